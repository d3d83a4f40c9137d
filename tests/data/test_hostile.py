"""Files of strangers: sizes and widths are known before anything is unpacked, and each fault is one
line.
"""

import io
import json
import os
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from messages import stating
from tacit.data import sizes
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data
from tacit.encoding.sources import open_source
from tacit.errors import InputError, StoreError, TacitError, excerpt, printable, quoted
from tacit.experiments import results

X = np.random.default_rng(0).normal(size=(6, 3))


@contextmanager
def warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def refuses(path, message, **options):
    with warnings_as_errors(), pytest.raises(TacitError, match=message) as error:
        _ = read_data(path, **options).labels
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 800
    return str(error.value)


def npy_header(shape, descr="<f8", *, suffix=""):
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return written.getvalue().replace(b"), }" + b" " * len(suffix), f"{suffix}), }}".encode(), 1)


@pytest.fixture
def few_bytes(monkeypatch):
    monkeypatch.setattr(sizes, "FREE", 1000)


def test_an_array_that_states_terabytes_is_refused(tmp_path):
    header = npy_header((1 << 40, 3))
    (tmp_path / "x.npy").write_bytes(header)
    refuses(
        tmp_path / "x.npy",
        f"its header states {len(header) + (24 << 40)} bytes and it has {len(header)}",
    )
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header)
    refuses(
        tmp_path / "x.npz",
        f"its header states {len(header) + (24 << 40)} bytes and it has {len(header)}",
    )


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path, few_bytes):
    np.savez_compressed(tmp_path / "x.npz", x=np.ones((10_000, 30)))
    size = (tmp_path / "x.npz").stat().st_size
    refuses(
        tmp_path / "x.npz",
        f"has {size} bytes and would unpack to 2400128, at most {100 * size} are read",
    )
    np.savez_compressed(tmp_path / "x.npz", x=X)
    assert read_data(tmp_path / "x.npz").x.tolist() == X.tolist()


@pytest.mark.parametrize("lists", [True, False])
def test_a_table_that_unpacks_to_far_more_is_refused(tmp_path, few_bytes, lists):
    rows = np.ones((50_000, 30))
    columns = {"x": list(rows)} if lists else {str(i): rows[:, i] for i in range(30)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", compression="zstd")
    size = (tmp_path / "x.parquet").stat().st_size
    refuses(
        tmp_path / "x.parquet",
        f"has {size} bytes and would unpack to 12000000, at most {100 * size} are read",
    )


def test_labels_of_a_table_that_unpack_to_far_more_are_refused(tmp_path, few_bytes):
    table = pa.table({"x": list(np.ones((200, 1))), "label": ["A" * 10_000] * 200})
    pq.write_table(table, tmp_path / "x.parquet", compression="zstd")
    refuses(tmp_path / "x.parquet", "would unpack to 20")


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
def test_packed_arrow_files_are_refused_before_they_are_unpacked(tmp_path, compression):
    """One small batch may unpack to gigabytes, and nothing in the file states to how many."""
    table = pa.table({"x": list(np.ones((50_000, 3))), "label": np.arange(50_000) % 2})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(str(tmp_path / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    (tmp_path / "dataset_info.json").write_text("{}")
    before = pa.total_allocated_bytes()
    if compression is None:
        assert read_data(tmp_path).x.shape == (50_000, 3)
        return
    refuses(tmp_path, "data.arrow holds packed batches, which are not read")
    assert pa.total_allocated_bytes() - before < 100_000


def test_arrow_offsets_outside_of_the_file_are_refused(tmp_path):
    table = pa.table({"x": [[1.0, 2.0]] * 1000})
    with (
        pa.OSFile(str(tmp_path / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    offsets = np.arange(0, 2001, 2, dtype=np.int32).tobytes()
    whole = (tmp_path / "data.arrow").read_bytes()
    assert whole.count(offsets) == 1
    (tmp_path / "data.arrow").write_bytes(
        whole.replace(offsets, np.full(1001, 1 << 30, np.int32).tobytes())
    )
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    refuses(tmp_path, "is not a complete saved data set")


@pytest.mark.parametrize(
    "kind", ["npy", "npz", "parquet", "floats.parquet", "safetensors", "store"]
)
def test_another_width_is_refused_before_rows_are_read(tmp_path, kind, monkeypatch):
    from safetensors.numpy import save_file

    path = tmp_path / f"x.{kind}"
    write = {
        "npy": lambda: np.save(path, X),
        "npz": lambda: np.savez(path, x=X),
        "parquet": lambda: pq.write_table(pa.table({"x": list(X)}), path),
        "floats.parquet": lambda: pq.write_table(
            pa.table({str(i): X[:, i] for i in range(3)}), path
        ),
        "safetensors": lambda: save_file({"x": X}, path),
        "store": lambda: EmbeddingStore.write(path, X),
    }
    write[kind]()
    assert read_data(path, width=3).x.shape == (6, 3)
    monkeypatch.setattr("tacit.data.imports.check_rows", None)
    monkeypatch.setattr("tacit.data.formats.npz.Archive.read", None)
    monkeypatch.setattr("tacit.data.formats.table.matrix", None)
    refuses(path, r"has 3 columns, shape \(6, 3\), and must have 2 columns", width=2)


def test_warnings_about_old_headers_are_not_printed(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy_header((2, 3), suffix="L") + np.ones(6).tobytes())
    assert b"3L)" in (tmp_path / "x.npy").read_bytes()
    with warnings_as_errors():
        assert read_data(tmp_path / "x.npy").x.shape == (2, 3)


@pytest.mark.parametrize("value", ["[" * 5000, "-" * 5000 + "1", "(" * 5000])
def test_headers_nested_without_end_are_refused(tmp_path, value):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {value}}}\n".encode()
    (tmp_path / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    )
    refuses(tmp_path / "x.npy", "is truncated or not a .npy array")


def restated(folder: Path, name: str, content: bytes) -> None:
    """Replace a file of a store, with its size in the manifest."""
    manifest = folder / "manifest.json"
    stated = json.loads(manifest.read_text())
    (folder / name).write_bytes(content)
    for entry in (*stated["shards"], stated["metadata"]):
        entry["bytes"] = (folder / entry["file"]).stat().st_size
    manifest.write_text(json.dumps(stated))


def as_parquet(table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


@pytest.fixture
def store(tmp_path):
    return EmbeddingStore.write(
        tmp_path / "s", X, list("abcabc"), metadata={"when": list("uvwxyz")}
    ).folder


def test_metadata_with_two_label_columns(store):
    label = pa.array([0, 1, 2, 0, 1, 2], pa.int32())
    restated(
        store, "metadata.parquet", as_parquet(pa.table([label, label], names=["label", "label"]))
    )
    refuses(store, "metadata.parquet is not what this store's manifest describes")


def test_metadata_of_more_rows_than_there_are_is_not_read(store, monkeypatch):
    restated(
        store,
        "metadata.parquet",
        as_parquet(pa.table({"label": pa.array(np.zeros(10_000), pa.int32())})),
    )
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    refuses(store, "metadata.parquet is not .* has 10000 rows where 6 are stated")


def test_a_schema_that_is_no_text(store, tmp_path):
    written = io.BytesIO()
    pq.write_table(pa.table({"aaaa": list("uvwxyz"), "x": list(X)}), written, store_schema=False)
    broken = written.getvalue().replace(b"aaaa", b"\xff\xfe\xff\xfe")
    (tmp_path / "x.parquet").write_bytes(broken)
    refuses(tmp_path / "x.parquet", "is truncated or not a Parquet file")
    with pytest.raises(InputError, match=stating("Parquet", "truncated")):
        open_source(tmp_path / "x.parquet")
    restated(store, "metadata.parquet", broken)
    with pytest.raises(StoreError, match="metadata.parquet is not what"):
        EmbeddingStore.open(store).metadata()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"card": {}', f'"card": {"[" * 50_000}', "nested more than 100 deep"),
        ('"card": {}', f'"card": {{"a": {"[" * 100}{"]" * 100}}}', "nested more than 100 deep"),
        ('"card": {}', '"card": {"a": NaN}', "NaN is not JSON"),
        ('"card": {}', '"card": {"a": 1e999}', stating("1e999", "range")),
        ('"identity": "s"', '"identity": "\\ud800"', "half of a surrogate pair"),
        ('"identity": "s"', '"identity": "a\\u001b[31m"', "identity must be printable text"),
        ('"identity": "s"', f'"identity": "{"A" * 5000}"', "identity must be printable text"),
        ('"a",', '"\\udfff",', "half of a surrogate pair"),
        ('"a",', f'"{"A" * 5000}",', "must be 1 to 500 printable letters"),
        ('"rows": 6,', f'"rows": {"9" * 4000},', stating("manifest.json", "63 bits")),
        ('"dtype": "float32"', f'"dtype": "{"A" * 5000}"', "is not one of float16"),
    ],
)
def test_manifests_that_are_out_of_bounds(store, old, new, message):
    file = store / "manifest.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    said = refuses(store, message)
    assert "A" * 201 not in said


def test_a_manifest_that_is_too_large_is_not_parsed(store, monkeypatch):
    monkeypatch.setattr("tacit.compute.documents.MOST_BYTES", 100)
    monkeypatch.setattr("tacit.compute.documents.read_text.__defaults__", (100,))
    refuses(store, "more than 100 bytes, the most that are read")


@pytest.mark.parametrize("kind", [np.array, list])
def test_labels_with_half_of_a_surrogate_pair(tmp_path, kind):
    with pytest.raises(InputError, match=stating("row 1", "label", "text")):
        EmbeddingStore.write(tmp_path / "s", X[:2], kind(["a", "b\ud800"]))
    assert not (tmp_path / "s").exists()


def test_labels_that_no_class_can_be_called_are_refused_where_they_are_written(tmp_path):
    with pytest.raises(InputError, match="must be 1 to 500 printable letters"):
        EmbeddingStore.write(tmp_path / "s", X[:2], ["a", "b\n"])
    assert not (tmp_path / "s").exists()


def test_a_folder_whose_name_is_no_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    with pytest.raises(
        InputError, match=r"identity must be printable text .* not 'caf\\udce9'"
    ) as error:
        EmbeddingStore.write(folder, X)
    assert str(error.value).isprintable()
    assert EmbeddingStore.write(folder, X, identity="cafe").identity == "cafe"
    np.savez(tmp_path / "x.npz", x=X)
    os.rename(tmp_path / "x.npz", os.fsencode(tmp_path) + b"/\xff.npz")
    assert read_data(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npz")).x.shape == (6, 3)
    refuses(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.npz"), r"\\udcfe.npz does not exist")


def test_names_are_quoted_in_part(tmp_path):
    np.savez(tmp_path / "x.npz", **{"A" * 5000: X, "\x1b[31m": X})
    said = refuses(tmp_path / "x.npz", "no array with a usual name")
    assert "A" * 201 not in said
    assert r"\x1b[31m" in said
    assert printable("a\tb\x1b\ud800é") == r"a b\x1b\ud800é"
    assert excerpt("A" * 200) == "A" * 200
    assert excerpt("A" * 201) == "A" * 197 + "..."
    assert len(quoted("\x00" * 300)) == 200


def test_many_classes_of_which_two_are_alike_are_told_soon():
    from tacit.data.labels import class_list

    with pytest.raises(InputError, match="class 199999 is listed twice"):
        class_list([*range(200_000), 199_999])


@pytest.mark.parametrize("columns", [{"key": ["0" * 20]}, {"more": [1]}, {"key": ["0" * 20] * 2}])
def test_results_of_another_kind(tmp_path, columns):
    (tmp_path / "cells").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "cells" / f"{'0' * 20}.parquet")
    with pytest.raises(InputError, match=stating(f"{'0' * 20}.parquet", "damaged")):
        results.read_results(tmp_path)

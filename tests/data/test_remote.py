"""Data at URLs: the same stores as from files, and no word of credentials."""

from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from messages import stating
from s3_server import ACCESS_KEY, s3_server
from tacit.cli.main import main
from tacit.compute.remote import RemotePath, as_path
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import identity_of, read_data
from tacit.data.locations import located, splits
from tacit.errors import InputError, LedgerError
from tacit.privacy.ledger import Ledger

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2.0, size=(40, 4)).astype(np.float32)
CLASSES = ["ant", "bee"]
LABELS = np.array(CLASSES)[np.arange(40) // 20]
SECRET = "hunter+2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of several kinds in a folder of this machine."""
    folder = tmp_path_factory.mktemp("data") / "bucket"
    table = pa.table({"x": pa.array(X.tolist(), pa.list_(pa.float32())), "label": LABELS})
    (folder / "parts").mkdir(parents=True)
    for number in range(4):
        part = table.slice(10 * number, 10)
        pq.write_table(part, folder / "parts" / f"part.{number}.parquet")
    hive = {"format": "parquet", "partitioning_flavor": "hive"}
    ds.write_dataset(table, folder / "hive", partitioning=["label"], **hive)
    pyarrow.feather.write_feather(table, folder / "table.feather")
    np.save(folder / "a_train.npy", X)
    np.save(folder / "a_train_targets.npy", np.arange(40) // 20)
    np.savez(folder / "arrays.npz", x=X, y=LABELS)
    EmbeddingStore.write(folder / "store", X, LABELS, classes=CLASSES)
    return folder


@pytest.fixture(params=["memory", "s3"])
def url(request, folder):
    """A function that gives the URL of a path in the bucket."""
    objects = {}
    for path in folder.rglob("*"):
        if path.is_file():
            objects[f"bucket/{path.relative_to(folder)}"] = path.read_bytes()
    if request.param == "memory":
        files = fsspec.filesystem("memory")
        files.pipe({f"/{key}": content for key, content in objects.items()})
        yield lambda path: f"memory://bucket/{path}"
        files.rm("/bucket", recursive=True)
        return
    with s3_server(objects) as options:
        user = f"{ACCESS_KEY}:{SECRET.replace('+', '%2B')}"
        yield lambda path: f"s3://{user}@bucket/{path}?{options}"


def stored_hash(folder, data):
    """Return the hash of the store of data."""
    return EmbeddingStore.write(folder, data.x, data.labels, classes=CLASSES).content_hash


def test_data_at_a_url_make_the_same_store(tmp_path, folder, url):
    expected = EmbeddingStore.open(folder / "store").content_hash
    for number, name in enumerate(["parts", "hive", "table.feather", "arrays.npz", "store"]):
        data = read_data(url(name), check=False, stream=True)
        assert stored_hash(tmp_path / str(number), data) == expected, name
        assert identity_of(url(name)) == identity_of(folder / name)
        assert isinstance(located(url(name)), RemotePath)
    assert EmbeddingStore.open(url("store")).content_hash == expected
    assert read_data(url("parts")).content_hash == read_data(folder / "parts").content_hash
    # labels beside the features
    data = read_data(url("a_train.npy"))
    assert np.array_equal(data.x, X)
    assert data.labels.tolist() == (np.arange(40) // 20).tolist()


@pytest.mark.parametrize("url", ["s3"], indirect=True)
def test_commands_take_urls(tmp_path, folder, url, capfd):
    release = tmp_path / "release"
    ledger = tmp_path / "my.ledger.jsonl"
    fit = ["fit", "noisy-sum", url("parts"), "--classes", "ant,bee", "--budget", "rho=1"]
    runs = [
        ["import", url("parts"), "--classes", "ant,bee", "--out", tmp_path / "imported"],
        ["ledger", url("parts"), "--allow", "rho=1", "--new", "--file", ledger],
        [*fit, "--ledger", ledger, "--out", release],
        ["evaluate", release, url("parts/part.1.parquet")],
        ["predict", release, url("hive"), "--out", tmp_path / "labels.csv"],
        [*fit, "--out", tmp_path / "uncounted"],
    ]
    for run in runs:
        assert main([str(argument) for argument in run]) == 0
    refused = [
        (["ledger", url("parts"), "--allow", "rho=1"], "not on this machine"),
        (["evaluate", release, url("nothing.parquet")], "does not exist"),
        (["evaluate", release, url("nothing.npz")], "does not exist"),
        (["import", url("parts"), "--out", url("new")], "outputs are written to this machine"),
        (["encode", url("hive"), "--encoder", "edges", "--out", tmp_path / "new"], "is a URL"),
        (["import", url("parts"), "--y", "no", "--out", tmp_path / "new"], "nothing named 'no'"),
    ]
    for run, message in refused:
        capfd.readouterr()
        assert main([str(argument) for argument in run]) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not any(word in error for word in ["hunter", ACCESS_KEY, "endpoint"])

    store = EmbeddingStore.open(tmp_path / "imported")
    assert store.content_hash == EmbeddingStore.open(folder / "store").content_hash
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(word in content for word in [b"hunter", ACCESS_KEY.encode()]), path


def test_without_access_the_refusal_holds_no_credentials(folder):
    content = (folder / "parts" / "part.0.parquet").read_bytes()
    with s3_server({"bucket/a.parquet": content}) as options:
        for user in ["other:a-secret@", "other:a/sec@ret@"]:
            with pytest.raises(InputError, match="cannot be read|has options") as refused:
                read_data(f"s3://{user}bucket/a.parquet?{options}")
            assert "sec" not in str(refused.value)
            assert refused.value.__cause__ is None


def test_what_is_no_url_of_data_is_refused():
    cases = {
        "http://user:pass@host/a.parquet?token=pass": stating("scheme 'http' is not read"),
        "abfs://container:pass@account/a.parquet?b=pass": stating("need a library", "adlfs"),
        "s3://key:pass@bucket/a.parquet?unknown=pass": stating("options", "pyarrow.fs"),
    }
    for url, message in cases.items():
        with pytest.raises(InputError, match=message) as refused:
            read_data(url)
        assert "pass" not in str(refused.value)


def test_urls_of_files_are_paths(folder):
    assert as_path(f"file://{folder}/a%20b.npz") == folder / "a b.npz"
    assert read_data(f"file://{folder}/arrays.npz").identity == "arrays"
    # as pathlib writes a URL
    assert str(as_path(Path("memory://bucket/a.npz"))) == "memory://bucket/a.npz"
    assert not isinstance(as_path("s3:"), RemotePath)


def test_splits_at_a_url(folder):
    files = fsspec.filesystem("memory")
    for name in ["train", "test"]:
        content = (folder / "parts" / "part.0.parquet").read_bytes()
        files.pipe(f"/split/data/{name}-0.parquet", content)
    assert splits("memory://split/data") == ["test", "train"]
    assert read_data("memory://split/data#train").identity == "data-train"
    with pytest.raises(LedgerError, match="not on this machine"):
        Ledger.beside("memory://split/data", "data")
    files.rm("/split", recursive=True)


@pytest.mark.parametrize("key", ["store/../../out", "store/sub/../../../../out"])
def test_no_name_in_a_bucket_leads_out_of_the_copy(folder, key):
    files = fsspec.filesystem("memory")
    files.pipe("/names/store/a.bin", b"content")
    # as a bucket may name an object; `pipe` would resolve it
    files.store[f"/names/{key}"] = files.store["/names/store/a.bin"]
    try:
        with pytest.raises(InputError, match=stating("'..'", "not read")):
            as_path("memory://names/store").copied()
    finally:
        files.rm("/names", recursive=True)
    with pytest.raises(InputError, match=stating("'..'")):
        as_path("memory://names/..")

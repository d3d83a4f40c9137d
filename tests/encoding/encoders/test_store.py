"""From a source to a store: the same bytes after a kill at any point, bad records, public stores,
classes.
"""

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from PIL import Image

from messages import stating
from tacit import EmbeddingStore
from tacit.compute.atomic import _HOST as HOST
from tacit.encoding import table_encoder
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.store import Options, encode_to_stores
from tacit.encoding.encoders.windows import windows
from tacit.encoding.sources import open_source
from tacit.errors import InputError
from tacit.models.table_columns import CUT_OFF

CLASSES = ["cat", "dog"]


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """50 pictures in two folders."""
    folder = tmp_path_factory.mktemp("source") / "pets"
    rng = np.random.default_rng(0)
    for number in range(50):
        path = folder / CLASSES[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20 + number % 3, 24, 3), dtype=np.uint8)).save(path)
    return folder


@pytest.fixture
def spoilt(pets, tmp_path):
    """The same with files that cannot be decoded."""
    folder = tmp_path / "spoilt"
    for path in pets.glob("*/*"):
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        os.link(path, folder / path.parent.name / path.name)
    (folder / "cat" / "empty.jpg").write_bytes(b"")
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(
        buffer, "jpeg"
    )
    (folder / "dog" / "cut.jpg").write_bytes(buffer.getvalue()[:800])
    (folder / "dog" / "link.png").symlink_to("link.png")
    return folder


def made(source, onnx_model, out, force=False, identity=None, **options):
    options = {"shard_rows": 10, "batch": 4} | options
    features = load_encoder(f"onnx:{onnx_model}")
    return encode_to_stores(
        {"": open_source(source)}, features, out, Options(**options), force=force, identity=identity
    )[""]


def test_only_rows_of_length_1_are_stored_in_half_precision(pets, onnx_model, tmp_path):
    source = {"": open_source(pets)}
    np.save(tmp_path / "p.npy", np.eye(32, 4, dtype=np.float32))
    for number, (features, dtype) in enumerate(
        [
            (load_encoder("edges:8"), np.float16),
            (load_encoder("edges:8", projection=tmp_path / "p.npy"), np.float32),
            (load_encoder(f"onnx:{onnx_model}"), np.float32),
        ]
    ):
        outcome = encode_to_stores(source, features, tmp_path / str(number))[""]
        assert outcome.store.dtype == dtype
    assert made(pets, onnx_model, tmp_path / "half", dtype="float16").store.dtype == np.float16


def bytes_of(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_a_store_of_pictures(pets, onnx_model, tmp_path):
    store = made(pets, onnx_model, tmp_path / "pets").store.verify()
    assert (store.rows, store.dim, store.dtype, store.identity) == (50, 12, np.float32, "pets")
    assert store.labels.tolist() == ["cat"] * 25 + ["dog"] * 25
    assert (store.classes, store.classes_declared) == (CLASSES, False)
    assert store.metadata()["record"][0].as_py() == "cat/00.png"
    import tacit

    alone = tacit.encode(sorted(pets.glob("*/*")), f"onnx:{onnx_model}", batch=4)
    assert (np.asarray(store.x) == alone).all()
    assert store.card["encoder"]["name"] == "onnx:tiny.onnx"
    assert (
        store.card["encoder"]["weights_sha256"]
        == hashlib.sha256(onnx_model.read_bytes()).hexdigest()
    )
    assert len(store.card["source"]["content_sha256"]) == 64
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets"]


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_change_nothing(pets, onnx_model, tmp_path, workers):
    one = made(pets, onnx_model, tmp_path / "one", workers=workers, identity="pets")
    other = made(pets, onnx_model, tmp_path / "other", identity="pets")
    assert bytes_of(one.store.folder) == bytes_of(other.store.folder)


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 13))
def test_a_run_that_stops_at_any_batch_goes_on(pets, onnx_model, tmp_path, at, monkeypatch):
    whole = made(pets, onnx_model, tmp_path / "whole", identity="p").store.folder
    from tacit.encoding.encoders.base import Features

    calls, own = [], Features.__call__

    def counted(self, *given):
        calls.append(1)
        if len(calls) == at:
            raise Stop
        return own(self, *given)

    monkeypatch.setattr(Features, "__call__", counted)
    with pytest.raises(Stop):
        made(pets, onnx_model, tmp_path / "part", identity="p")
    assert not (tmp_path / "part").exists()
    again = made(pets, onnx_model, tmp_path / "part", identity="p")
    assert bytes_of(tmp_path / "part") == bytes_of(whole)
    assert again.reused == 12 * ((at - 1) // 3)  # shards of 12 records are three batches of 4
    assert len(calls) == at + 13 - 3 * ((at - 1) // 3)  # no finished shard runs twice


RUN = """
import sys
from tacit.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def finished(work):
    """Number of finished shards."""
    try:
        return sum(name.endswith(".json") for name in os.listdir(work))
    except FileNotFoundError:
        return 0


@pytest.mark.thorough
def test_killed_at_random_moments(pets, onnx_model, tmp_path):
    """Kill -9, again and again, until it ends by itself."""
    line = [
        sys.executable,
        "-c",
        RUN,
        "encode",
        str(pets),
        "--encoder",
        f"onnx:{onnx_model}",
        "--batch",
        "2",
    ]
    line += ["--shard-rows", "2", "--identity", "p", "--out"]
    subprocess.run([*line, str(tmp_path / "whole")], check=True, capture_output=True)
    rng, kills = np.random.default_rng(0), 0
    while not (tmp_path / "part").exists():
        run = subprocess.Popen(
            [*line, str(tmp_path / "part")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        work = tmp_path / ".part.encoding" / "whole"
        before = finished(work)
        while run.poll() is None and finished(work) < before + 7:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
            kills += 1
        run.wait()
        assert kills < 60
    assert kills >= 2
    assert bytes_of(tmp_path / "part") == bytes_of(tmp_path / "whole")


def test_what_changed_is_done_again(pets, onnx_model, tmp_path, spoilt):
    with pytest.raises(InputError, match="3 of 53 records cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out")
    assert made(pets, onnx_model, tmp_path / "out").reused == 0  # another source
    with pytest.raises(InputError, match="cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out2")
    assert made(spoilt, onnx_model, tmp_path / "out2", skip_bad=True, dtype="float16").reused == 0
    with pytest.raises(InputError, match="cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out3")
    (spoilt / "cat" / "empty.jpg").unlink()
    assert made(spoilt, onnx_model, tmp_path / "out3", skip_bad=True).reused == 0


def test_another_encoder_starts_again(spoilt, onnx_model, tmp_path):
    with pytest.raises(InputError, match="cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out")
    features = load_encoder(f"onnx:{onnx_model}", mirror=True)
    options = Options(shard_rows=10, batch=4, skip_bad=True)
    assert (
        encode_to_stores({"": open_source(spoilt)}, features, tmp_path / "out", options)[""].reused
        == 0
    )


def test_a_file_that_changed_is_encoded_again(spoilt, onnx_model, tmp_path):
    with pytest.raises(InputError, match="cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out")
    (spoilt / "cat" / "empty.jpg").write_bytes((spoilt / "cat" / "00.png").read_bytes())
    found = made(spoilt, onnx_model, tmp_path / "out", skip_bad=True)
    assert (found.reused, found.store.rows) == (0, 51)


def test_records_that_cannot_be_decoded(spoilt, onnx_model, tmp_path):
    with pytest.raises(InputError, match=stating("3 of 53", "cat/empty.jpg", "--skip-bad")):
        made(spoilt, onnx_model, tmp_path / "out")
    # the list names private records
    assert (tmp_path / "out.bad.csv").stat().st_mode & 0o777 == 0o600
    listed = list(csv.reader((tmp_path / "out.bad.csv").open(encoding="utf-8")))
    assert [row[0] for row in listed[1:]] == ["cat/empty.jpg", "dog/cut.jpg", "dog/link.png"]
    found = made(spoilt, onnx_model, tmp_path / "out", skip_bad=True)
    assert (found.skipped, found.reused, found.store.rows) == (3, 53, 50)
    names = found.store.verify().metadata()["record"].to_pylist()
    assert not {"cat/empty.jpg", "dog/cut.jpg", "dog/link.png"} & set(names)
    assert found.store.labels.tolist() == [name.partition("/")[0] for name in names]


def test_nothing_but_bad_records(tmp_path, onnx_model):
    (tmp_path / "s" / "cat").mkdir(parents=True)
    (tmp_path / "s" / "cat" / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match=stating("no record", "encoded")):
        made(tmp_path / "s", onnx_model, tmp_path / "out", skip_bad=True)
    assert not (tmp_path / "out").exists()


def test_features_that_are_all_zeros_are_bad(tmp_path, onnx_model):
    np.savez(
        tmp_path / "a.npz", x=np.stack([np.zeros((8, 8), np.uint8), np.full((8, 8), 9, np.uint8)])
    )
    with pytest.raises(InputError, match=stating("row 0", "zeros")):
        made(tmp_path / "a.npz", onnx_model, tmp_path / "out")
    assert made(tmp_path / "a.npz", onnx_model, tmp_path / "out", skip_bad=True).store.rows == 1


def test_public_stores_keep_no_labels(pets, onnx_model, tmp_path):
    store = made(pets, onnx_model, tmp_path / "pool", public=True).store
    assert store.labels is None
    assert store.classes is None
    text = (tmp_path / "pool" / "manifest.json").read_text() + str(store.metadata().to_pylist())
    assert "cat" not in text
    assert "dog" not in text


def test_declared_classes(pets, onnx_model, tmp_path):
    store = made(pets, onnx_model, tmp_path / "a", classes=["dog", "cat", "fox"]).store
    assert (store.classes, store.classes_declared) == (["dog", "cat", "fox"], True)
    assert store.labels[0] == "cat"
    with pytest.raises(InputError, match="not one of the 1 classes"):
        made(pets, onnx_model, tmp_path / "b", classes=["dog"])
    assert not (tmp_path / ".b.encoding" / "whole").exists()
    with pytest.raises(InputError, match="classes are given"):
        made(pets, onnx_model, tmp_path / "c", classes=["dog"], public=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"shard_rows": 0}, "shard_rows=0"),
        ({"batch": 0}, "batch=0"),
        ({"workers": -1}, "workers=-1"),
    ],
)
def test_options_that_are_wrong(pets, onnx_model, tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        made(pets, onnx_model, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists(pets, onnx_model, tmp_path):
    store = made(pets, onnx_model, tmp_path / "out").store
    with pytest.raises(InputError, match="exists"):
        made(pets, onnx_model, tmp_path / "out")
    (tmp_path / "out.ledger.jsonl").write_text("")
    assert (
        made(pets, onnx_model, tmp_path / "out", force=True).store.content_hash
        == store.content_hash
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds something else"):
        made(pets, onnx_model, tmp_path / "mine", force=True)


def test_texts_in_any_order_of_length(sentence_model, tmp_path):
    rng = np.random.default_rng(0)
    texts = [
        " ".join(rng.choice(["a", "b", "c", "private"], size=rng.integers(1, 12)))
        for _ in range(70)
    ]
    lines = (json.dumps({"text": text, "label": number % 3}) for number, text in enumerate(texts))
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    features = load_encoder("sentence-transformers:x", kind="text", weights=sentence_model)
    source = {"": open_source(tmp_path / "t.jsonl")}
    store = encode_to_stores(
        source, features, tmp_path / "out", Options(batch=2, shard_rows=10, dtype="float32")
    )[""].store
    alone = np.concatenate([features([text]) for text in texts])
    assert np.allclose(store.x, alone, atol=1e-5)
    assert store.labels.tolist() == [number % 3 for number in range(70)]


def test_an_opened_store_behaves_like_any_other(pets, onnx_model, tmp_path):
    store = made(pets, onnx_model, tmp_path / "out", classes=CLASSES).store
    assert EmbeddingStore.open(store.folder).x[7:13].shape == (6, 12)
    import tacit

    learner = tacit.NoisySumPrototypes(
        budget="rho=1", noise="research", random_state=0, classes=store.classes
    )
    assert learner.fit(store.x, store.labels).guarantee_ == learner.promise()


PEAK = """
import sys
from tacit.cli.main import main
status = main(sys.argv[1:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(status)
"""


@pytest.mark.thorough
def test_peak_memory_does_not_grow_with_records(onnx_model, tmp_path):
    """Both fill a shard. The peak differs by a few bytes a record; a picture has 1,024, prepared
    3,072.
    """
    peaks = []
    for n in (5_000, 20_000):
        pixels = np.random.default_rng(0).integers(0, 256, (n, 32, 32), dtype=np.uint8)
        np.savez(tmp_path / f"{n}.npz", x=pixels, y=np.arange(n) % 10)
        line = (
            f"encode {tmp_path}/{n}.npz --encoder onnx:{onnx_model} --out {tmp_path}/out{n}"
            " --workers 0"
        )
        run = subprocess.run(
            [sys.executable, "-c", PEAK, *line.split()], capture_output=True, text=True, check=True
        )
        peaks.append(int(run.stdout.split()[-1]) * 1024)
    assert peaks[1] - peaks[0] < 15_000 * 400


OWN = """
import torch

class Base(torch.nn.Module):
    picture_input = {"size": [4, 4]}
    calls = 0

class Short(Base):
    def forward(self, x):
        return x.flatten(1)[:-1]

class Flat(Base):
    def forward(self, x):
        return x.sum((1, 2, 3))

class Changing(Base):
    def forward(self, x):
        self.calls += 1
        return x.flatten(1)[:, : 4 + self.calls]

class Failing(Base):
    def forward(self, x):
        raise ValueError("out of\\nmemory")

class NaN(Base):
    def forward(self, x):
        return x.flatten(1) * float("nan")
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Short", stating("(3, 48)", "4 records", "(4, 48)")),
        ("Flat", r"gives \(4,\) for 4 records"),
        ("Changing", stating("(4, 6)", "4 records", "(4, 5)")),
        ("Failing", stating("4 records", "ValueError: out of memory")),
        ("NaN", stating("record", "encoded", "finite")),
    ],
)
def test_encoders_that_give_what_is_no_row_for_each(pets, tmp_path, monkeypatch, name, said):
    (tmp_path / "faulty.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    features = load_encoder(f"torch:faulty.{name}")
    with pytest.raises(InputError, match=said):
        encode_to_stores({"": open_source(pets)}, features, tmp_path / "out", Options(batch=4))
    assert not (tmp_path / "out").exists()


def test_an_output_within_the_source(spoilt, onnx_model):
    for out in (spoilt / "out", spoilt / "cat" / "out"):
        with pytest.raises(InputError, match="lies in the source"):
            made(spoilt, onnx_model, out)
    assert not list(spoilt.rglob(".*"))


def test_code_that_changed_starts_again(spoilt, onnx_model, tmp_path, monkeypatch):
    import importlib

    text = OWN.replace("x.flatten(1)[:-1]", "x.flatten(1) + %d")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for number in (1, 2):
        (tmp_path / "code_of_ours.py").write_text(text % number)
        sys.modules.pop("code_of_ours", None)
        importlib.invalidate_caches()
        features, source = load_encoder("torch:code_of_ours.Short"), {"": open_source(spoilt)}
        if number == 1:
            with pytest.raises(InputError, match="cannot be encoded"):
                encode_to_stores(source, features, tmp_path / "out", Options(batch=4))
    assert (
        encode_to_stores(source, features, tmp_path / "out", Options(batch=4, skip_bad=True))[
            ""
        ].reused
        == 0
    )
    sys.modules.pop("code_of_ours", None)


def test_a_list_that_is_not_ours_stays(pets, onnx_model, tmp_path):
    (tmp_path / "out.bad.csv").write_text("mine\n")
    with pytest.raises(InputError, match=stating("out.bad.csv")):
        made(pets, onnx_model, tmp_path / "out", force=True)
    assert (tmp_path / "out.bad.csv").read_text() == "mine\n"


@pytest.mark.parametrize("left", ["json", "key", "npy"])
def test_what_a_kill_leaves_of_the_working_folder_does_no_harm(
    pets, spoilt, onnx_model, tmp_path, left
):
    with pytest.raises(InputError, match="cannot be encoded"):
        made(spoilt, onnx_model, tmp_path / "out")
    for path in (tmp_path / ".out.encoding" / "whole").glob(
        {"json": "00001-*.json", "key": "key.txt", "npy": "00001-*.npy"}[left]
    ):
        path.unlink()
    part = tmp_path / f".out.{HOST}-999999999.part"
    part.mkdir()
    found = made(spoilt, onnx_model, tmp_path / "out", skip_bad=True)
    assert found.reused < 53
    assert not part.exists()
    other = made(pets, onnx_model, tmp_path / "whole")
    assert sorted(found.store.metadata()["content"].to_pylist()) == sorted(
        other.store.metadata()["content"].to_pylist()
    )


def test_parts_with_and_without_labels(pets, onnx_model, tmp_path):
    sources = {"train": open_source(pets), "unlabeled": open_source(pets / "cat")}
    found = encode_to_stores(
        sources, load_encoder(f"onnx:{onnx_model}"), tmp_path / "out", Options(classes=CLASSES)
    )
    assert found["train"].store.classes_declared
    assert found["unlabeled"].store.labels is None


def test_a_rows_bits_do_not_depend_on_how_many_others_there_are(pets, vit_model, onnx_model):
    import tacit

    pictures = sorted(pets.glob("*/*"))
    for encoder, weights in ((f"onnx:{onnx_model}", None), ("transformers:x", vit_model)):
        whole = tacit.encode(pictures, encoder, weights=weights, batch=16)
        fewer = tacit.encode(pictures[:-3], encoder, weights=weights, batch=16)
        assert (whole[:-3] == fewer).all()


def test_a_picture_as_thin_as_a_line_is_a_bad_record(tmp_path, onnx_model):
    (tmp_path / "s").mkdir()
    Image.new("L", (60_000, 1)).save(tmp_path / "s" / "thin.png")
    Image.new("L", (40, 40), 9).save(tmp_path / "s" / "good.png")
    os.mkfifo(tmp_path / "s" / "pipe.png")
    side = tmp_path / "side.json"
    side.write_text(json.dumps({"size": [32, 32], "resize_to": 256}))
    features = load_encoder(f"onnx:{onnx_model}", sidecar=side)
    found = encode_to_stores(
        {"": open_source(tmp_path / "s")}, features, tmp_path / "out", Options(skip_bad=True)
    )[""]
    assert (found.skipped, found.store.rows) == (2, 1)
    assert "too far apart" in (tmp_path / "out.bad.csv").read_text()


def test_a_worker_that_is_killed():
    from tacit.encoding.encoders.batches import decode_ahead

    with pytest.raises(InputError, match="--workers 0"):
        list(decode_ahead(_exits, iter([[1], [2], [3], [4]]), 1))


def _exits(records, path=None):
    return records if records == [1] else os._exit(9)


def test_longer_texts_are_counted_and_averaged(sentence_model, tmp_path):
    # the encoder reads 32 words at once, and its tokenizer adds none
    texts = ["a b", "c " * 32 + "b " * 32 + "private", "b " * 33, "c " * 32]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    source = {"": open_source(tmp_path / "t.jsonl")}

    def encoded(long, name, **options):
        features = load_encoder(
            "sentence-transformers:x",
            kind="text",
            weights=sentence_model,
            long=long,
            precision="float32",
        )
        options = Options(batch=2, dtype="float32", **options)
        return encode_to_stores(source, features, tmp_path / name, options)[""], features

    beginning, features = encoded(None, "beginning")
    windows, _ = encoded("mean", "windows")
    assert beginning.longer == windows.longer == 2
    parts = features(["c " * 32, "b " * 32, "private"])
    assert np.allclose(beginning.store.x[1], parts[0], atol=1e-5)
    mean = parts.mean(axis=0)
    assert np.allclose(windows.store.x[1], mean / np.linalg.norm(mean), atol=1e-5)
    assert np.allclose(windows.store.x[[0, 3]], beginning.store.x[[0, 3]], atol=1e-5)

    # the count is a fact about private texts; the rule is one about the encoder
    assert "longer" not in (tmp_path / "beginning" / "manifest.json").read_text()
    assert "windows" in windows.store.card["encoder"]["long"]
    public, _ = encoded(None, "public", public=True)
    assert public.store.card["source"]["longer_texts"] == 2


def test_longer_texts_are_counted_in_a_warning_in_python(sentence_model, monkeypatch):
    import tacit

    texts = ["a b", "c " * 32 + "b " * 32, "b " * 33]
    name = "sentence-transformers:x"
    options = {"weights": sentence_model, "precision": "float32"}
    with pytest.warns(UserWarning, match="reads, .*: 2; pass long='mean'"):
        beginning = tacit.Encoder(name, **options).transform(texts)
    with pytest.warns(UserWarning, match=": 2;"):
        assert (tacit.encode(texts, name, **options) == beginning).all()

    features = load_encoder(name, kind="text", **options)
    monkeypatch.setattr(table_encoder, "load_encoder", lambda name, kind: features)
    encoder = tacit.TableEncoder({"columns": {"notes": {"kind": "text", "encoder": name}}})
    with pytest.warns(UserWarning, match=": 2;"):
        rows = encoder.transform({"notes": [*texts, None]})
    assert np.allclose(rows[:3, :-1], beginning, atol=1e-5)
    assert encoder.faults({"notes": texts[1:2]}) == [f"column 'notes': 1 {CUT_OFF}"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        means = tacit.Encoder(name, **options, long="mean").transform(texts)
        tacit.encode(texts[:1], name, **options)
    assert np.allclose(means[0], beginning[0], atol=1e-5)
    assert not np.allclose(means[1], beginning[1], atol=1e-2)


def test_windows_end_between_words():
    class Encoding(dict):
        def word_ids(self, _):
            return [0, 1, 1, 1, 2, 3, 3, 3, 3, 3]

    class Tokenizer:
        """A tokenizer of one letter a token, with two special tokens."""

        is_fast = True

        def num_special_tokens_to_add(self):
            return 2

        def __call__(self, text, **_):
            return Encoding(offset_mapping=[(place, place + 1) for place in range(len(text))])

    text = "abbbcddddd"
    assert windows(Tokenizer(), 5, text) == ["a", "bbb", "c", "ddd", "dd"]
    assert windows(Tokenizer(), 12, text) == [text]

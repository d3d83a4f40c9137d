"""What the owners of MNIST, CIFAR, STL-10 and Food-101 ship, made small; and arrays of pixels."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np
import pytest

from messages import stating
from tacit.encoding.sources import open_source, splits
from tacit.errors import InputError

RNG = np.random.default_rng(0)


def pack(folder, path):
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, folder.name)
    return path


def pixels(source, start=0):
    return np.stack(list(source.records(start)))


@pytest.mark.parametrize("packed", [True, False])
def test_mnist(tmp_path, packed):
    x, y = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8), np.array([3, 1, 4, 1, 5], np.uint8)
    for part in ("train", "t10k"):
        for what, data, head in (
            ("images-idx3", x, (2051, 5, 28, 28)),
            ("labels-idx1", y, (2049, 5)),
        ):
            content = struct.pack(f">{len(head)}I", *head) + data.tobytes()
            name = f"{part}-{what}-ubyte"
            (tmp_path / (f"{name}.gz" if packed else name)).write_bytes(
                gzip.compress(content) if packed else content
            )
    assert splits(tmp_path) == ["train", "test"]
    source = open_source(tmp_path, "test")
    assert (pixels(source) == x).all()
    assert (pixels(source, 3) == x[3:]).all()
    assert source.labels.tolist() == y.tolist()
    assert (source.classes, source.classes_declared) == (list(range(10)), True)


def test_mnist_cut_short(tmp_path):
    (tmp_path / "train-images-idx3-ubyte").write_bytes(
        struct.pack(">4I", 2051, 5, 28, 28) + b"\0" * 100
    )
    with pytest.raises(InputError, match="lacks the labels"):
        open_source(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, 5) + b"\0" * 5)
    with pytest.raises(InputError, match="bytes too early"):
        list(open_source(tmp_path).records(0))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">4I", 2049, 5, 28, 28))
    with pytest.raises(InputError, match="begins with 2049"):
        open_source(tmp_path)


def cifar(folder, hundred, binary):
    folder.mkdir()
    rows = 4
    x = RNG.integers(0, 256, (rows, 3072), dtype=np.uint8)
    names = ["apple", "baby", "cat"]
    y = [2, 0, 1, 0]
    parts = (
        ["train", "test"] if hundred else [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    )
    for part in parts:
        if binary:
            label = np.array(y, np.uint8)[:, None]
            label = np.hstack([label * 0, label]) if hundred else label
            (folder / f"{part}.bin").write_bytes(np.hstack([label, x]).tobytes())
        else:
            content = {
                b"data": x,
                (b"fine_labels" if hundred else b"labels"): y,
                b"filenames": [b"a"] * rows,
            }
            (folder / part).write_bytes(pickle.dumps(content, protocol=2))
    if binary:
        (folder / ("fine_label_names.txt" if hundred else "batches.meta.txt")).write_text(
            "\n".join(names) + "\n\n"
        )
    else:
        key = "fine_label_names" if hundred else "label_names"
        (folder / ("meta" if hundred else "batches.meta")).write_bytes(
            pickle.dumps({key: names}, protocol=2)
        )
    return x.reshape(rows, 3, 32, 32).transpose(0, 2, 3, 1), [names[i] for i in y]


@pytest.mark.parametrize("hundred", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_cifar(tmp_path, hundred, binary):
    x, y = cifar(tmp_path / "cifar", hundred, binary)
    times = 1 if hundred else 5
    for path in (tmp_path / "cifar", pack(tmp_path / "cifar", tmp_path / "cifar.tar.gz")):
        assert splits(path) == ["train", "test"]
        source = open_source(path, "train")
        assert len(source) == 4 * times
        assert (pixels(source) == np.tile(x, (times, 1, 1, 1))).all()
        assert (pixels(source, 3) == np.tile(x, (times, 1, 1, 1))[3:]).all()
        assert source.labels.tolist() == y * times
        assert (source.classes, source.classes_declared) == (["apple", "baby", "cat"], True)


class Evil:
    def __reduce__(self):
        return (eval, ("open('ran', 'w')",))


def test_a_pickle_that_asks_for_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cifar(tmp_path / "c", True, False)
    (tmp_path / "c" / "train").write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(InputError, match=r"asks for builtins\.eval"):
        open_source(tmp_path / "c", "train")
    assert not (tmp_path / "ran").exists()
    (tmp_path / "c" / "train").write_bytes(b"no")
    with pytest.raises(InputError, match="not a batch of CIFAR"):
        open_source(tmp_path / "c", "train")


def test_stl10(tmp_path):
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    x = RNG.integers(0, 256, (3, 96, 96, 3), dtype=np.uint8)
    for part in ("train", "unlabeled"):
        (folder / f"{part}_X.bin").write_bytes(x.transpose(0, 3, 2, 1).tobytes())
    (folder / "train_y.bin").write_bytes(bytes([1, 2, 1]))
    (folder / "class_names.txt").write_text("bird\ncar\n")
    for path in (folder, pack(folder, tmp_path / "stl10_binary.tar.gz")):
        assert splits(path) == ["train", "unlabeled"]
        source = open_source(path, "train")
        assert (pixels(source) == x).all()
        assert (pixels(source, 2) == x[2:]).all()
        assert source.labels.tolist() == ["bird", "car", "bird"]
        assert open_source(path, "unlabeled").labels is None
    (folder / "train_X.bin").write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match="no multiple of 27648"):
        open_source(folder, "train")


def test_food101(tmp_path):
    folder = tmp_path / "food-101"
    for name in ("images/apple_pie/1.jpg", "images/apple_pie/2.jpg", "images/ramen/3.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    (folder / "meta").mkdir()
    for name, text in (
        ("classes", "apple_pie\nramen\n"),
        ("train", "apple_pie/1\nramen/3\n"),
        ("test", "apple_pie/2\n"),
    ):
        (folder / "meta" / f"{name}.txt").write_text(text)
    for path in (folder, pack(folder, tmp_path / "food-101.tar.gz")):
        assert splits(path) == ["train", "test"]
        source = open_source(path, "train")
        assert sorted(source.labels.tolist()) == ["apple_pie", "ramen"]
        assert {name.rpartition("/")[2] for name in source.names} == {"1.jpg", "3.jpg"}
        assert source.classes_declared
        first = next(iter(source.records(0)))
        data = first if isinstance(first, bytes) else first.read_bytes()
        assert data.decode().endswith(source.names[0].partition("images")[2])


@pytest.mark.parametrize("compressed", [True, False])
def test_arrays(tmp_path, compressed):
    x = RNG.integers(0, 256, (6, 8, 9), dtype=np.uint8)
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "m.npz", x_train=x, y_train=np.arange(6), x_test=x[:2], y_test=np.arange(2))
    assert splits(tmp_path / "m.npz") == ["test", "train"]
    source = open_source(tmp_path / "m.npz", "train")
    assert (pixels(source, 2) == x[2:]).all()
    assert source.labels.tolist() == list(range(6))
    save(
        tmp_path / "n.npz",
        images=x.transpose(1, 2, 0)[..., None].transpose(2, 0, 1, 3).copy(),
        classes=["a", "b"],
        y=[0, 1] * 3,
    )
    named = open_source(tmp_path / "n.npz")
    assert (pixels(named) == x).all()
    assert (named.labels.tolist(), named.classes_declared) == (["a", "b"] * 3, True)
    np.save(tmp_path / "train_x.npy", np.repeat(x[:, None], 3, axis=1))
    np.save(tmp_path / "train_y.npy", np.arange(6))
    first = open_source(tmp_path / "train_x.npy")
    assert (pixels(first) == np.repeat(x[..., None], 3, axis=3)).all()
    assert first.labels.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.zeros((2, 4, 4))}, "give pixels as bytes"),
        ({"x": np.zeros((2, 4), np.uint8)}, r"has shape \(2, 4\)"),
        ({"x": np.zeros((0, 4, 4), np.uint8)}, "holds no pictures"),
        ({"q": np.zeros((2, 4, 4), np.uint8)}, stating("pictures", "--x")),
        ({"x": np.zeros((2, 4, 4), np.uint8), "y": np.zeros(3)}, "labels have shape"),
        ({"x": np.asfortranarray(np.zeros((2, 4, 4), np.uint8))}, "column by column"),
    ],
)
def test_arrays_that_are_no_pictures(tmp_path, arrays, said):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=said):
        open_source(tmp_path / "a.npz")


def test_a_damaged_archive_of_arrays(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, x=np.zeros((50, 40, 40), np.uint8))
    (tmp_path / "a.npz").write_bytes(buffer.getvalue()[:3000])
    with pytest.raises(InputError, match="truncated"):
        list(open_source(tmp_path / "a.npz").records(0))


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_outside_the_class_list(tmp_path, label):
    np.savez(
        tmp_path / "a.npz", x=np.ones((2, 4, 4), np.uint8), y=[0, label], classes=["a", "b", "c"]
    )
    with pytest.raises(InputError, match=stating("row 1", label, "3 classes")):
        open_source(tmp_path / "a.npz")

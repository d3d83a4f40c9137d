"""Private records in a public store."""

import numpy as np
import pytest

from tacit import EmbeddingStore
from tacit.data import overlap as module
from tacit.data.imports import read_data
from tacit.data.overlap import holds_private, overlap, private_rows
from tacit.errors import InputError


def store(path, rows, contents=None):
    return EmbeddingStore.write(
        path, rows, metadata=None if contents is None else {"content": contents}, dtype="float32"
    )


def test_same_content_and_near_directions(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    public = rng.normal(size=(300, 16))
    private = rng.normal(size=(70, 16))
    private[5] = public[200] * 3
    private[64] = public[7] + 1e-3 * rng.normal(size=16)
    own, other = [f"p{i}" for i in range(70)], [f"q{i}" for i in range(300)]
    own[9] = other[40] = other[250] = "same"
    for block in (1 << 24, 17 * 4096):
        monkeypatch.setattr(module, "BLOCK_VALUES", block)
        found = overlap(
            store(tmp_path / f"a{block}", private, own),
            store(tmp_path / f"b{block}", public, other),
        )
        assert found.same.tolist() == [[9, 40]]
        assert found.near.tolist() == [[5, 200], [64, 7]]
        assert found.cosines == pytest.approx([1, 1], abs=1e-4)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (private, public)]
    best = (unit[0] @ unit[1].T).max(axis=1)
    some = overlap(store(tmp_path / "c", private), store(tmp_path / "d", public), 0.6)
    assert some.near[:, 0].tolist() == np.flatnonzero(best >= 0.6).tolist()
    assert not some.hashed


def test_files_are_compared_by_direction(tmp_path):
    rng = np.random.default_rng(0)
    private, public = rng.normal(size=(20, 8)), rng.normal(size=(30, 8))
    private[3] = 2 * public[11]
    np.save(tmp_path / "private.npy", private)
    np.save(tmp_path / "public.npy", public)
    files = [read_data(tmp_path / f"{name}.npy") for name in ("private", "public")]
    for one, other in (files, (store(tmp_path / "a", private, ["x"] * 20), files[1])):
        found = overlap(one, other, 0.9999)
        assert found.near.tolist() == [[3, 11]]
        assert (found.hashed, found.same.tolist(), found.persons) == (False, [], None)


def test_what_cannot_be_compared(tmp_path):
    rows = np.ones((3, 4))
    with pytest.raises(InputError, match="have 4 columns and the public 5"):
        overlap(store(tmp_path / "a", rows), store(tmp_path / "b", np.ones((3, 5))))
    for cosine in (0, 1.5, float("nan")):
        with pytest.raises(InputError, match="cosine="):
            overlap(
                store(tmp_path / f"c{cosine}", rows), store(tmp_path / f"d{cosine}", rows), cosine
            )


def test_examples_among_class_names_are_found(tmp_path):
    rng = np.random.default_rng(0)
    rows, names = rng.normal(size=(30, 16)), rng.normal(size=(2, 3, 16))
    names[1, 2] = 4 * rows[8]
    private = EmbeddingStore.write(tmp_path / "p", rows, classes=2, names=names)
    words = store(tmp_path / "words", names.reshape(6, 16))
    assert overlap(private, words).near.tolist() == [[8, 5]]
    assert overlap(private, words).near_names.tolist() == []
    public = EmbeddingStore.write(tmp_path / "q", rng.normal(size=(5, 16)), classes=2, names=names)
    own = overlap(private)
    for found in (overlap(private, public), own):
        assert found.near.tolist() == []
        assert found.near_names.tolist() == [[8, 5]]
        assert found.names_cosines == pytest.approx([1], abs=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("width", [3, 200])
def test_rows_are_found_among_private_rows_in_every_form(tmp_path, monkeypatch, dtype, width):
    monkeypatch.setattr(module, "BLOCK_VALUES", 7 * width)
    rng = np.random.default_rng(0)
    private = rng.normal(size=(50, width)).astype(dtype)
    public = rng.normal(size=(30, width))
    chosen = 2 + rng.permutation(48)[:9]
    public[:9] = private[chosen]
    public[10] = private[0]
    public[10, 1] += 0.5
    public[11], private[1] = -0.0, 0.0
    assert private_rows(public, private) == 9  # a row of zeros is not counted
    assert private_rows(public[9:], private) == 0
    large = np.full((2, width), 1e30, dtype=np.float32)
    large[1, 0] = 2e30
    assert private_rows(large[:1], large[1:]) == 0


def test_a_tenth_of_the_smaller_data_is_too_much(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 8)).astype(np.float32)

    def holds(public, private):
        return holds_private(
            *(store(tmp_path / f"s{rng.integers(1 << 60)}", x) for x in (public, private))
        )

    assert holds(rows, rows)
    assert holds(rows[:20], rows)
    assert holds(rows, rows[:20])
    other = rng.normal(size=(90, 8)).astype(np.float32)
    assert not holds(other, rows)
    assert not holds(np.concatenate([other, rows[:10]]), rows)
    assert holds(np.concatenate([other, rows[:11]]), rows)

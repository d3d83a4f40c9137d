"""Arrays by the files that hold them."""

import pickle

import numpy as np

from tacit.compute.array_files import files_of, to_files
from tacit.data.sharded import ShardedArray


def test_mapped_arrays_are_found_again_and_others_are_written(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 4))
    np.save(tmp_path / "a.npy", rows)
    whole = np.load(tmp_path / "a.npy", mmap_mode="r")
    sharded = ShardedArray([whole, np.load(tmp_path / "a.npy", mmap_mode="r")])
    part = np.memmap(tmp_path / "a.npy", np.float64, "r", offset=128 + 32, shape=(3, 4))
    folder = tmp_path / "work"
    folder.mkdir()
    changed = np.load(tmp_path / "a.npy", mmap_mode="c")
    changed[:] = changed[::-1].copy()  # in memory alone
    for array in (whole, sharded, part, whole[5:], rows, rows[::2], changed):
        reference = to_files(array, folder)
        assert len(pickle.dumps(reference)) < 2000
        assert np.array_equal(pickle.loads(pickle.dumps(reference)).open()[:], array[:])
    # a slice of a map, one that may be written to, and the two in memory
    assert len(list(folder.iterdir())) == 4
    assert to_files(rows, folder) == to_files(rows.copy(), folder)


def test_a_file_that_changed_is_another(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    before = files_of(np.load(tmp_path / "a.npy", mmap_mode="r"))
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert before != files_of(np.load(tmp_path / "a.npy", mmap_mode="r"))

import numpy as np
import pytest

from tacit.mechanisms.blocks import Block, Picked, by_person, short_blocks

ROWS, LABELS = np.arange(8.0).reshape(4, 2), np.arange(4)


def test_blocks_of_records_are_cut_and_those_of_persons_are_not():
    short = list(short_blocks([Block(ROWS, LABELS)], 3))
    assert [len(block.rows) for block in short] == [3, 1]
    assert np.array_equal(np.concatenate([block.beside for block in short]), LABELS)
    (whole,) = short_blocks([Block(ROWS, LABELS, np.array([3, 4]))], 1)
    assert whole.rows is ROWS


def test_a_stream_is_of_persons_or_of_records():
    of_persons, blocks = by_person([(ROWS, LABELS, np.array([4]))])
    assert of_persons
    assert len(list(blocks)) == 1
    of_persons, blocks = by_person([(ROWS, LABELS)] * 2)
    assert not of_persons
    assert len(list(blocks)) == 2
    assert by_person([])[0] is False
    nobody = np.array([], int)
    of_persons, blocks = by_person([(ROWS[:0], LABELS[:0], nobody)])
    assert of_persons
    assert len(list(blocks)) == 1
    mixed = [(ROWS, LABELS, np.array([4])), (ROWS, LABELS)]
    for stream in (mixed, mixed[::-1], [(ROWS, LABELS, np.array([3]))], [(ROWS, LABELS, nobody)]):
        with pytest.raises(ValueError, match=r"whose|last person"):
            list(by_person(stream)[1])


def test_picked_rows_read_as_an_array():
    picked = Picked(ROWS, np.array([3, 0]))
    assert (len(picked), picked.shape, picked.dtype) == (2, (2, 2), np.float64)
    assert np.array_equal(np.asarray(picked), ROWS[[3, 0]])
    assert np.ascontiguousarray(picked, dtype=np.float32).dtype == np.float32

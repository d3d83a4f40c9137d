"""Matrices of votes as pandas writes them, and what is no header."""

import numpy as np
import pandas as pd
import pytest

from messages import stating
from tacit.data.matrices import read_matrix
from tacit.errors import InputError

VOTES = np.random.default_rng(0).integers(0, 10, (6, 100))


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz", "votes.parquet"])
def test_votes_of_a_data_frame(tmp_path, index, name):
    path = tmp_path / name
    # an index that is no count of the rows, as after a selection
    frame = pd.DataFrame(VOTES, index=range(30, 36))
    if name.endswith(".parquet"):
        frame.columns = frame.columns.astype(str)
        frame.set_axis(list("abcdef")).to_parquet(path, index=index)
    else:
        frame.to_csv(path, index=index)
    votes = read_matrix(path, "votes")
    assert votes.dtype == np.int64
    assert np.array_equal(votes, VOTES)


def test_texts_may_be_an_index_and_no_votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(',"V1","V2"\n"a",1,2\n"b",3,4\n')
    assert read_matrix(path, "votes").tolist() == [[1, 2], [3, 4]]
    path.write_text(",V1,V2\na,1,2\nb,3,x\n")
    with pytest.raises(InputError, match=stating("line 3", "no number", "column 3")):
        read_matrix(path, "votes")


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3,4,5", "0,1,2,2,4"])
def test_numbers_that_may_be_votes_are_no_header(tmp_path, header):
    path = tmp_path / "votes.csv"
    path.write_text(f"{header}\n{header}\n")
    with pytest.raises(InputError, match=stating("header")):
        read_matrix(path, "votes")

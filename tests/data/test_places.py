import gzip
import pickle

import numpy as np
import pytest

from messages import stating
from tacit.data.imports import read_data
from tacit.data.places import ROWS, Places
from tacit.errors import InputError, RowError


def test_rows_count_from_0_and_lines_of_text_from_1(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text('a,b\n1,"two\nlines"\n\n2,x\n3,y\n')
    assert [Places((table,), has_header=True).of(row) for row in range(3)] == [
        "line 2",
        "line 5",
        "line 6",
    ]
    assert Places((table,)).of(0) == "line 1"
    assert ROWS.of(3) == "row 3"

    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"a": 1}\n\n{"a": 2}\n'))
    assert Places((packed,)).of(1) == "line 3"
    assert Places((table, packed)).of(4 + 1) == f"line 3 of {packed}"

    ids = tmp_path / "ids.txt"
    ids.write_text("anna\n\nbert\n")
    assert Places((ids,), counts_empty=True).of(1) == "line 2"


def test_errors_of_rows_are_copied_whole_and_named_once(tmp_path):
    error = RowError("X ", 4, " is not finite")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.row) == ("X row 4 is not finite", 4)

    table = tmp_path / "t.csv"
    table.write_text("a\n" + "1\n" * 5)
    lines = Places((table,), has_header=True)
    with (
        pytest.raises(InputError, match="^X line 6 is not finite$"),
        lines.in_errors(),
        ROWS.in_errors(),
    ):
        raise error


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("t.csv", "a,label\n1,cat\n\nnan,cat\n", "t.csv line 4 is not finite"),
        ("t.tsv", "1.5\t2\n0\t0\n", "t.tsv line 2 is all zeros"),
        ("t.jsonl", '{"x": [1.0]}\n\n{"x": [0.0]}\n', "t.jsonl line 3 is all zeros"),
        ("t.jsonl", '{"x": [1.0]}\n\n{"x": [1.0, 2.0]}\n', "t.jsonl line 3 has 2 values"),
    ],
)
def test_files_of_text_are_named_by_line(tmp_path, name, text, place):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=place):
        read_data(tmp_path / name)


def test_parts_and_files_of_ids_are_named_by_line(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("a,label\n1,cat\n2,cat\n")
    (folder / "2.csv").write_text("a,label\n3,cat\n4,\n")
    with pytest.raises(InputError, match=stating("line 3 of", "2.csv has no label")):
        read_data(folder)

    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    (tmp_path / "ids.txt").write_text("anna\n\nbert\n")
    with pytest.raises(InputError, match="first: line 2"):
        read_data(tmp_path / "x.npy", persons=str(tmp_path / "ids.txt"))

"""Footers of Parquet: the number of values of each column, whatever is damaged."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.data.formats.footer import value_counts


@pytest.fixture
def path(tmp_path):
    columns = {
        "lists": [[1.0, 2.0, 3.0]] * 50,
        "uneven": [list(range(i % 4)) for i in range(50)],
        "name, with a comma": [f"c{i}" for i in range(50)],
        "truth": [True, False] * 25,
        "struct": [{"a": i, "b": [i, i]} for i in range(50)],
        **{str(i): np.arange(50.0) for i in range(40)},
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=7)
    return tmp_path / "x.parquet"


def test_values_are_counted(path):
    counts = value_counts(path)
    assert counts["lists"] == 150
    # an empty list takes the place of a value
    assert counts["uneven"] == sum(max(i % 4, 1) for i in range(50))
    assert (counts["name, with a comma"], counts["truth"], counts["struct"], counts["39"]) == (
        50,
        50,
        150,
        50,
    )


def test_damaged_footers_are_read_or_refused(path):
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(len(whole) - 8 - length, len(whole), 100):
        changed = bytearray(whole)
        changed[at] = rng.integers(256)
        path.write_bytes(changed)
        try:
            value_counts(path)
        except ValueError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x19\xfc" + b"\xff" * 20,  # a list of endless length
        b"\x1c" * 5000,  # structs without end
        b"\x18\xff\xff\xff\x7f\x00",  # a text beyond the end
        b"\x15" + b"\x80" * 50,  # a number without end
        b"\x1d\x00",  # a type that there is not
    ],
)
def test_footers_without_end_are_refused(tmp_path, footer):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match="its footer"):
        value_counts(path)
    path.write_bytes(b"PAR1\xff\xff\xff\x7fPAR1")
    with pytest.raises(ValueError, match="cut off"):
        value_counts(path)

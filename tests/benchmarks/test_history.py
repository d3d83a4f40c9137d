"""The history of ratios: what is read from a table, and that the picture is that of the history."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
history = runpy.run_path(str(FOLDER / "history.py"))

TABLE = """### Fits

| learner | fit, ratio | fit | over a loop (peer) |
|---|---|---|---|
| noisy-sum (50 rows) | 0.52 | 3 s | 12 times faster |
| auto | 1.5 | 2 s | |
| a loop | 1 | 1 s | 1 |
"""


def test_ratios_are_read_from_tables_and_times_are_not():
    assert history["ratios"](TABLE) == {
        "noisy-sum: fit, ratio": 0.52,
        "noisy-sum: over a loop (peer) times faster": 12.0,
        "auto: fit, ratio": 1.5,
    }


def test_every_record_says_when_and_where_it_was_measured():
    records = history["read"]()
    assert records
    for record in records:
        assert record["ratios"], record["script"]
        assert set(record) == {
            "date",
            "commit",
            "machine",
            "load",
            "script",
            "quick",
            "ratios",
        }


def test_the_picture_is_that_of_the_history():
    assert history["PICTURE"].read_text(encoding="utf-8") == history["drawing"](history["read"]())


def test_a_series_has_a_dot_for_each_record():
    record = {"script": "votes", "quick": False, "ratios": {"a < b: ratio": 2.0}}
    other = record | {"ratios": {"a < b: ratio": 4.0}}
    picture = history["drawing"]([record, other])
    assert picture.count("<circle") == 2
    assert "votes: a &lt; b: ratio" in picture
    assert "2 to 4" in picture

"""Rows of a table by a declared schema."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from messages import stating
from tacit.errors import InputError
from tacit.models.table_columns import Category, Date, Number, Ordered
from tacit.models.table_schema import CodedRows, TableSchema

DECLARED = {
    "columns": {
        "age": {"kind": "number", "low": 20, "high": 60, "cells": 4},
        "plan": {"kind": "category", "levels": ["free", "paid"]},
        "since": {"kind": "date", "parts": ["year", "weekday"], "years": [2020, 2022]},
        "grade": {"kind": "ordered", "low": 0, "high": 4},
    },
    "label": {"column": "left", "classes": ["no", "yes"]},
    "person": "customer",
    "missing": ["?"],
}
TABLE = {
    "grade": [0.0, 1.0, 4.0, None],
    "plan": ["paid", "?", "gold", "free"],
    "since": ["2021-03-01", None, "2030-01-01", "2019-12-31T23:00"],
    "age": [20.0, 39.0, 90.0, None],
}


def block(column, *cells, missing=()):
    values = np.array([*cells, None], dtype=object)[:-1]
    codes = column.coded(values, missing).codes
    rows = np.zeros((len(cells), column.width), dtype=np.float32)
    column.fill(codes, rows)
    return rows


def active(column, *cells, missing=()):
    return block(column, *cells, missing=missing).argmax(axis=1).tolist()


def test_every_row_has_one_unit_of_weight_for_each_column():
    schema = TableSchema.parse(DECLARED)
    rows = schema.rows(schema.coded(TABLE).codes)
    assert rows.dtype == np.float32
    assert rows.shape == (4, schema.width) == (4, 5 + 4 + 11 + 3)
    assert np.allclose((rows.astype(np.float64) ** 2).sum(axis=1), 4, atol=1e-6)


def test_numbers_go_to_the_cell_that_holds_its_lower_edge():
    column = Number(20, 60, cells=4)
    assert active(column, 20, 29.9, 30, 59, 60, -5, "1e3", None, "x") == [0, 0, 1, 3, 3, 0, 3, 4, 4]
    assert column.levels_in_words[1] == "30 to 40"
    faults = column.coded(np.array([-5, 1e3, np.inf, np.nan, 30]), ()).faults
    assert faults == {"below 20": 1, "above 60": 2, "no number": 0}
    declared = Number(0, 9, cells=2, declared_edges=(0.0, 1.0, 9.0))
    assert active(declared, 0.5, 1, 9) == [0, 1, 1]


def test_log_spacing_has_cells_of_one_ratio_above_the_lower_bound():
    edges = Number(-1, 999_998, "log", cells=6).edges
    assert np.allclose(edges + 2, 10.0 ** np.arange(7))
    assert edges[-1] == 999_998


def test_ordered_numbers_stay_numbers_of_unit_weight():
    column = Ordered(0, 4)
    rows = block(column, 0, 1, 9, None)
    expected = [[-1, 0, 0], [-0.5, np.sqrt(0.75), 0], [1, 0, 0], [0, 0, 1]]
    assert np.allclose(rows, expected)
    assert np.allclose(block(Ordered(0, 99, "log"), 9)[0, 0], 0)


def test_levels_are_compared_as_texts_and_others_share_one_entry():
    column = Category(("free", "7", "é"))
    cells = [" free", 7, 7.0, "e\u0301", "Free", True, None, np.nan, "NA", ""]
    assert active(column, *cells, missing=("NA",)) == [0, 1, 1, 2, 3, 3, 4, 4, 4, 4]
    assert column.coded(np.array(["x", "free"], dtype=object), ()).faults == {
        "of no declared level": 1
    }


def test_parts_of_a_date():
    column = Date(("year", "month", "day", "weekday", "hour"), (2020, 2021))
    cell = datetime(2021, 3, 4, 17, 30)
    rows = block(column, cell, str(cell), np.datetime64(cell), date(2021, 3, 4), "soon")
    names = np.array(column.levels_in_words)
    assert names[rows[0] > 0].tolist() == ["year 2021", "month 3", "day 4", "weekday 3", "hour 17"]
    assert (rows[0] == rows[1]).all()
    assert (rows[0] == rows[2]).all()
    assert names[rows[3] > 0][-1] == "hour 0"
    assert names[rows[4] > 0].tolist() == ["(missing)"]
    german = Date(("month",), form="%d.%m.%Y")
    assert active(german, "04.03.2021", "2021-03-04") == [2, 12]


def test_columns_are_matched_by_name_in_every_kind_of_table():
    schema = TableSchema.parse(DECLARED)
    wanted = schema.coded(TABLE)
    frame = pd.DataFrame(TABLE)
    tables = [
        frame[["age", "grade", "plan", "since"]],
        frame.convert_dtypes(),
        frame.assign(plan=frame["plan"].astype("category"), other=1),
        frame.assign(since=pd.to_datetime(frame["since"], format="ISO8601").dt.tz_localize("UTC")),
        pl.DataFrame(TABLE),
        pa.table(TABLE),
        pa.table(TABLE | {"plan": pa.array(TABLE["plan"]).dictionary_encode()}),
    ]
    for table in tables:
        coded = schema.coded(table)
        assert np.array_equal(coded.codes, wanted.codes, equal_nan=True)
        assert coded.faults == wanted.faults
    assert wanted.lines() == [
        "column 'age': 1 above 60",
        "column 'plan': 1 of no declared level",
        "column 'since': 1 before 2020, 1 after 2022",
    ]


def test_a_row_follows_from_its_record_alone():
    schema = TableSchema.parse(DECLARED)
    together = schema.coded(TABLE).codes
    for place in range(4):
        alone = schema.coded({name: cells[place : place + 1] for name, cells in TABLE.items()})
        assert np.array_equal(alone.codes[0], together[place], equal_nan=True)
    # True and 1 are equal in Python
    column = Category(("1",))
    assert active(column, True, 1) == active(column, True) + active(column, 1) == [1, 0]
    # so are decimals that are written differently, and times of two zones
    column = Category(("1.50",))
    assert active(column, Decimal("1.5"), Decimal("1.50")) == [1, 0]
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    evening = noon.astimezone(timezone(timedelta(hours=6)))
    assert noon == evening
    assert active(Date(("hour",)), noon, evening) == [12, 18]


@pytest.mark.parametrize("kind", ["arrow", "polars", "categorical"])
def test_a_missing_cell_does_not_round_long_numbers_of_other_records(kind):
    long = 2**53 + 1
    table_of = {
        "arrow": lambda cells: pa.table({"x": pa.array(cells, pa.int64())}),
        "polars": lambda cells: pl.DataFrame({"x": cells}),
        "categorical": lambda cells: pd.DataFrame({"x": pd.Categorical(cells)}),
    }[kind]
    levels = [str(long - 1), str(long)]
    schema = TableSchema.parse({"columns": {"x": {"kind": "category", "levels": levels}}})
    for cells in [[long, 5], [long, None]]:
        assert schema.coded(table_of(cells)).codes[0] == 1


def test_the_clock_time_of_a_zone_counts_in_every_kind_of_table():
    schema = TableSchema.parse({"columns": {"x": {"kind": "date", "parts": ["hour"]}}})
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    zoned = pa.table({"x": pa.array([noon], pa.timestamp("us", tz="Asia/Tokyo"))})
    for table in [zoned, zoned.to_pandas(), pl.from_arrow(zoned)]:
        assert schema.coded(table).codes.tolist() == [[21]]


def test_numbers_beyond_floats_go_to_the_last_cell():
    assert active(Number(0, 10, cells=4), 10**400, -(10**400)) == [3, 0]
    assert active(Category(("inf", "7")), 10**5000, 7) == [0, 1]


def test_a_column_that_is_there_twice_is_refused():
    schema = TableSchema.parse({"columns": {"x": {"kind": "number", "low": 0, "high": 1}}})
    twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    for table in [twice, pd.DataFrame([[1, 2]], columns=["x", "x"])]:
        with pytest.raises(InputError, match=stating("'x' twice")):
            schema.coded(table)


def test_entries_have_names_of_their_own():
    column = {"kind": "number", "edges": [1000000.1, 1000000.2, 1000000.3]}
    schema = TableSchema.parse({"columns": {"x": column}})
    assert schema.feature_names()[0] == "x = 1000000.1 to 1000000.2"


def test_rows_are_made_as_they_are_read():
    schema = TableSchema.parse(DECLARED)
    codes = schema.coded(TABLE).codes
    rows = CodedRows(schema, codes)
    assert rows.shape == (4, schema.width)
    assert (rows[1:3] == schema.rows(codes)[1:3]).all()


def test_it_is_written_and_read_again(tmp_path):
    schema = TableSchema.parse(DECLARED)
    assert TableSchema.parse(schema.declaration()) == schema
    assert schema.of_features().declaration().keys() == {"columns", "missing"}

    path = tmp_path / "schema.yaml"
    path.write_text(
        "columns:\n  plan: {kind: category, levels: [no, 01, yes]}\n"
        "  age: {kind: number, edges: [0, 1, 1e2]}\nlabel: left\n"
    )
    read = TableSchema.of(path)
    assert read.columns["plan"] == Category(("no", "01", "yes"))
    assert read.columns["age"] == Number(0, 100, cells=2, declared_edges=(0.0, 1.0, 100.0))
    assert (read.label, read.classes, read.person) == ("left", None, None)


@pytest.mark.parametrize(
    ("column", "facts"),
    [
        ({"kind": "number", "low": 1}, ("no high", "public knowledge")),
        ({"kind": "number", "low": "", "high": ""}, ("no low", "public knowledge")),
        ({"kind": "number", "low": 3, "high": 3}, ("low must be below high",)),
        ({"kind": "number", "low": 0, "high": 1, "cells": 1}, ("cells", "2 to 1000")),
        ({"kind": "number", "low": 0, "high": "nan"}, ("high", "no number")),
        ({"kind": "number", "edges": [0, 2, 1]}, ("do not increase",)),
        ({"kind": "number", "edges": [0, 1, 2], "low": 0}, ("leave low out",)),
        ({"kind": "number", "low": 0, "high": 1, "spacing": "cubic"}, ("even or log",)),
        ({"kind": "category", "levels": []}, ("no levels", "public knowledge")),
        ({"kind": "category", "levels": ["a", "a "]}, ("listed twice",)),
        ({"kind": "date", "parts": ["year"]}, ("no years", "public knowledge")),
        ({"kind": "date", "parts": ["minute"]}, ("'minute'",)),
        ({"kind": "date", "parts": ["year"], "years": [0, 10]}, ("1 to 9999",)),
        ({"kind": "category", "levels": ["a\n## b"]}, ("one line",)),
        ({"kind": "category", "levels": ["\x1b[31m"]}, ("control characters",)),
        ({"kind": "category", "levels": ["(missing)"]}, ("all columns do",)),
        ({"kind": "category", "levels": ["?"]}, ("missing value too",)),
        ({"kind": "number", "low": 0, "high": 10**400}, ("no number",)),
        ({"kind": "number", "low": -1e308, "high": 1e308}, ("too far apart",)),
        ({"kind": ["number"]}, ("has kind",)),
        ({"kind": "text"}, ("no encoder",)),
        ({"kind": "numbr"}, ("did you mean 'number'",)),
        ({"kind": "category", "level": ["a"]}, ("'level'", "did you mean 'levels'")),
    ],
)
def test_an_incomplete_or_malformed_column_is_refused_in_a_line(column, facts):
    with pytest.raises(InputError) as caught:
        TableSchema.parse({"columns": {"x": column}, "missing": ["?"]}, "schema.yaml")
    said = str(caught.value)
    assert "\n" not in said
    assert "schema.yaml" in said
    for fact in facts:
        assert fact in said


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("columns: {a: {kind: text, encoder: x:y}, a: {kind: text}}", ("'a'", "twice", "line 1")),
        ("columns: [", ("not YAML",)),
        ("label: y", ("no columns",)),
        ("columns: {a: {kind: ordered, low: 0, high: 1}}\nlabel: a", ("label 'a'", "leave it out")),
        ("columns: {a: {kind: ordered, low: 0, high: 1}}\nlabels: a", ("did you mean 'label'",)),
    ],
)
def test_a_malformed_file_is_refused_in_a_line(text, facts, tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        TableSchema.of(path)
    for fact in facts:
        assert fact in str(caught.value)


def test_a_table_without_a_declared_column_is_refused():
    schema = TableSchema.parse(DECLARED, "schema.yaml")
    lacks_plan = {name: cells for name, cells in TABLE.items() if name != "plan"}
    with pytest.raises(InputError, match=stating("plan", "lacks", "schema.yaml")):
        schema.coded(lacks_plan)
    with pytest.raises(InputError, match="no named columns"):
        schema.coded(np.zeros((3, 4)))
    with pytest.raises(InputError, match="different lengths"):
        schema.coded(TABLE | {"age": [1]})
    with pytest.raises(InputError, match=stating("plan", "list")):
        schema.coded(TABLE | {"plan": [["a"]] * 4})

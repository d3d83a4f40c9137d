"""Tables of texts and of pictures."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from messages import stating
from tacit.encoding.sources import open_source
from tacit.errors import InputError

TEXTS = ["one, two", "three\nlines", "grüße", ""]


def test_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('text,label\n"one, two",1\n"three\nlines",0\ngrüße,1\n"",0\n', encoding="utf-8")
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for own in (path, packed):
        source = open_source(own)
        assert (source.kind, len(source)) == ("text", 4)
        assert list(source.records(0)) == TEXTS
        assert list(source.records(2)) == TEXTS[2:]
        assert source.labels.tolist() == [1, 0, 1, 0]
        assert source.names[3] == "row 3"


def test_json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        "\n".join(json.dumps({"review": text, "class": "a"}) for text in TEXTS) + "\n",
        encoding="utf-8",
    )
    source = open_source(path)
    assert list(source.records(1)) == TEXTS[1:]
    assert source.labels.tolist() == ["a"] * 4


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_of_pictures(tmp_path, nested):
    data = [b"a", b"b", None]
    column = pa.array(
        [None if one is None else {"bytes": one, "path": "x"} for one in data] if nested else data
    )
    pq.write_table(
        pa.table({"image": column, "label": pa.array([0, 1, 0])}), tmp_path / "p.parquet"
    )
    source = open_source(tmp_path / "p.parquet")
    assert (source.kind, list(source.records(0))) == ("picture", data)


def test_parquet_of_many_row_groups_is_read_from_anywhere(tmp_path):
    texts = [f"text {i}" for i in range(5000)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "t.parquet", row_group_size=700)
    source = open_source(tmp_path / "t.parquet")
    assert source.labels is None
    assert list(source.records(3333)) == texts[3333:]


def test_saved_data_sets(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    own = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    own.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=own, test=own).save_to_disk(tmp_path / "two")
    for source in (open_source(tmp_path / "one"), open_source(tmp_path / "two", "test")):
        assert list(source.records(0)) == ["a", "b"]
        assert source.labels.tolist() == ["yes", "no"]
        assert (source.classes, source.classes_declared) == (["no", "yes"], True)

    # Hugging Face marks a missing label with -1
    unlabelled = {"text": ["a", "b", "c"], "label": [1, -1, 0]}
    datasets.Dataset.from_dict(unlabelled, features=features).save_to_disk(tmp_path / "gap")
    with pytest.raises(InputError, match=stating("row 1", "no label")):
        open_source(tmp_path / "gap")
    source = open_source(tmp_path / "gap", skip_bad=True)
    assert source.faults == {1: "it has no label"}
    assert source.labels[[0, 2]].tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.csv", b"text,label\n\xff\xfe,1\n", "not a CSV file in UTF-8"),
        ("t.csv", b"", "not a CSV file in UTF-8"),
        ("t.csv.gz", b"no", "not a CSV file in UTF-8"),
        ("t.csv", b'text,label\n"hello,1\n', "not a CSV file in UTF-8"),
        ("t.csv", b"text,label\n", "holds no rows"),
        ("t.csv", b"a,b\n1,2\n", stating("--x", "pictures", "texts")),
        ("t.csv", b"text,label\nhello,\n", "line 2 has no label"),
        ("t.jsonl", b'{"text": "a"}\nno\n', "line 2 is not JSON"),
        ("t.jsonl", b'{"text": "a"}\n{}\n', "line 2 has no 'text'"),
        ("t.jsonl", b'{"text": "\xff"}\n', "not JSON in UTF-8"),
        ("t.jsonl", b"", "name the one of texts"),
        ("t.parquet", b"PAR1", "truncated or not a Parquet file"),
        ("t.jsonl.gz", b"no", "not JSON in UTF-8"),
    ],
)
def test_tables_that_are_wrong(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)

    def read():
        return list(open_source(tmp_path / name).records(0))

    with pytest.raises(InputError, match=said):
        read()


def test_columns_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nhello,x\n", encoding="utf-8")
    source = open_source(tmp_path / "t.csv", x="a", y="b")
    assert (list(source.records(0)), source.labels.tolist()) == (["hello"], ["x"])
    with pytest.raises(InputError, match="nothing named 'z'; choose --y from: b"):
        open_source(tmp_path / "t.csv", x="a", y="z")
    with pytest.raises(InputError, match="--labels .* does not apply"):
        open_source(tmp_path / "t.csv", x="a", labels=tmp_path / "t.csv")


def test_errors_show_no_texts(tmp_path):
    (tmp_path / "t.csv").write_text(
        "text,label\nhello,0\nthe secret of Jane,she said,x\n", encoding="utf-8"
    )

    def read():
        return list(open_source(tmp_path / "t.csv").records(0))

    with pytest.raises(InputError, match=stating("line 3", "3 cells", "2")) as error:
        read()
    assert "secret" not in str(error.value)


def test_odd_tables_are_told_in_one_line(tmp_path):
    pq.write_table(
        pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]),
        tmp_path / "two.parquet",
    )
    (tmp_path / "deep.jsonl").write_text('{"text": ' + "[" * 100_000 + "\n", encoding="utf-8")
    (tmp_path / "label.jsonl").write_text('{"text": "a", "label": "x\\ny"}\n', encoding="utf-8")
    (tmp_path / "half.jsonl").write_text('{"text": "a", "label": "\\ud800"}\n', encoding="utf-8")
    for name, said in (
        ("two.parquet", "several columns 'text'"),
        ("deep.jsonl", "is not JSON"),
        ("label.jsonl", "printable"),
        ("half.jsonl", "half of a surrogate pair"),
    ):
        with pytest.raises(InputError, match=said):
            open_source(tmp_path / name)
    (tmp_path / "bom.jsonl").write_text('\ufeff{"text": "a"}\n', encoding="utf-8")
    assert list(open_source(tmp_path / "bom.jsonl").records(0)) == ["a"]


def test_labels_of_public_tables_are_not_read(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\nhello,\n", encoding="utf-8")
    assert open_source(tmp_path / "t.csv", public=True).labels is None


def test_a_column_names_the_persons(tmp_path):
    (tmp_path / "t.csv").write_text("text,label,id\nhello,a,patient-7731\nbye,b,p2\n")
    source = open_source(tmp_path / "t.csv", persons="id")
    assert (source.persons.tolist(), source.labels.tolist()) == (["patient-7731", "p2"], ["a", "b"])
    (tmp_path / "t.csv").write_text("text,label,id\nhello,a,patient-7731\nbye,b,\n")
    with pytest.raises(InputError, match=stating("t.csv", "empty id", "line 3")):
        open_source(tmp_path / "t.csv", persons="id")
    with pytest.raises(InputError, match=stating("'who'", "--persons", "id, label, text")):
        open_source(tmp_path / "t.csv", persons="who")

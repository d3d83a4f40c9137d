"""Tables of texts whose records have several labels: lists, or texts with a separator."""

import json

import numpy as np
import pyarrow as pa
import pytest

from messages import stating
from tacit.encoding.sources import open_source
from tacit.errors import InputError

NAMES = ["fear", "joy"]
SETS = [["joy"], [], ["joy", "fear"]]
MATRIX = [[False, True], [False, False], [True, True]]


def csv(folder):
    rows = [f"text {i},{'|'.join(labels)}" for i, labels in enumerate(SETS)]
    (folder / "t.csv").write_text("\n".join(["text,labels", *rows]) + "\n")
    return folder / "t.csv"


def lines(folder):
    rows = [{"text": f"text {i}", "labels": labels} for i, labels in enumerate(SETS)]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "t.jsonl"


def saved(folder):
    (folder / "saved").mkdir()
    indexes = [[NAMES.index(name) for name in labels] for labels in SETS]
    table = pa.table({"text": ["a", "b", "c"], "labels": indexes})
    with (
        pa.OSFile(str(folder / "saved" / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    # as `datasets` wrote lists before version 4
    features = {"labels": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}}
    (folder / "saved" / "dataset_info.json").write_text(json.dumps({"features": features}))
    state = {"_data_files": [{"filename": "data.arrow"}]}
    (folder / "saved" / "state.json").write_text(json.dumps(state))
    return folder / "saved"


@pytest.mark.parametrize(
    ("write", "separator", "declared"),
    [(csv, "|", False), (lines, None, False), (saved, None, True)],
)
def test_the_matrix_has_a_column_for_each_class(tmp_path, write, separator, declared):
    path = write(tmp_path)
    source = open_source(path, label_separator=separator)
    assert source.several
    assert source.labels.tolist() == MATRIX
    assert (source.classes, source.classes_declared) == (NAMES, declared)
    assert len(source) == 3
    # a public store reads no labels
    assert open_source(path, public=True, label_separator=separator).labels is None


def test_pixels_have_a_matrix_beside_them(tmp_path):
    pixels = np.zeros((3, 8, 8), np.uint8)
    np.savez(tmp_path / "p.npz", x=pixels, y=np.array(MATRIX, np.uint8), classes=NAMES)
    source = open_source(tmp_path / "p.npz")
    assert (source.labels.tolist(), source.classes) == (MATRIX, NAMES)
    np.save(tmp_path / "q_x.npy", pixels)
    np.save(tmp_path / "q_y.npy", 2 * np.array(MATRIX, np.uint8))
    with pytest.raises(InputError, match=stating("q_y.npy", "row 0", "neither 0 nor 1")):
        open_source(tmp_path / "q_x.npy")


def test_what_is_missing_is_refused_or_left_out(tmp_path):
    path = lines(tmp_path)
    text = path.read_text().replace('"labels": []', '"labels": null')
    path.write_text(text)
    with pytest.raises(InputError, match=stating("line 2", "missing", "empty list")):
        open_source(path)
    source = open_source(path, skip_bad=True)
    assert source.faults == {1: "it has no label"}
    with pytest.raises(InputError, match=stating("line 1", "no text")):
        open_source(path, label_separator="|")
    with pytest.raises(InputError, match=stating("label_separator=''", "white space")):
        open_source(path, label_separator="")

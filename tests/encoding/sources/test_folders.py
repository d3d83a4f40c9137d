"""Pictures in folders and archives: order, classes, tables of labels, and what is left out."""

import io
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from messages import lacking, stating
from tacit.encoding.sources import open_source, splits
from tacit.errors import InputError


def png(seed=0, size=(4, 5)):
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


FILES = {"cat/b.png": png(1), "cat/a.PNG": png(2), "dog/deep/c.png": png(3), "dog/notes.txt": b"x"}


@pytest.fixture
def pets(tmp_path):
    folder = tmp_path / "pets"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "fox").mkdir()
    (folder / ".hidden").write_bytes(b"")
    return folder


def test_a_class_per_subfolder(pets):
    source = open_source(pets)
    assert list(source.names) == ["cat/a.PNG", "cat/b.png", "dog/deep/c.png"]
    assert source.labels.tolist() == ["cat", "cat", "dog"]
    assert (source.classes, source.classes_declared) == (["cat", "dog", "fox"], False)
    assert source.left_out == ("dog/notes.txt",)
    assert [path.name for path in source.records(1)] == ["b.png", "c.png"]


def written(folder, names):
    """Write a picture under each name into a folder, and into a zip beside it."""
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        for number, name in enumerate(names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(png(number))
            file.writestr(name, png(number))
    return folder, archive


def test_folders_that_hold_all_pictures_are_no_class(tmp_path):
    names = ["photos/all/cat/a.png", "photos/all/dog/b.png", "photos/all/dog/old/c.png"]
    for path in written(tmp_path / "pets", names):
        source = open_source(path)
        assert source.labels.tolist() == ["cat", "dog", "dog"]
        assert source.classes == ["cat", "dog"]

    # another folder, of other files, changes nothing; an empty one is a class
    folder, archive = written(tmp_path / "one", ["photos/cat/a.png", "photos/dog/b.png"])
    (folder / "notes").mkdir()
    (folder / "notes" / "n.txt").write_text("x")
    assert open_source(folder).labels.tolist() == ["cat", "dog"]
    (folder / "photos" / "fox").mkdir()
    assert open_source(folder).classes == ["cat", "dog", "fox"]
    assert open_source(archive).classes == ["cat", "dog"]

    persons = ["photos/ann/cat/a.png", "photos/bob/cat/b.png", "photos/bob/dog/c.png"]
    for path in written(tmp_path / "persons", persons):
        source = open_source(path, persons_folder=2)
        assert source.labels.tolist() == ["cat", "cat", "dog"]
        assert source.persons.tolist() == ["ann", "bob", "bob"]
        assert source.classes == ["cat", "dog"]


def test_folders_that_may_be_splits_or_classes_are_refused(tmp_path):
    for path in written(tmp_path / "a", ["photos/train/cat/a.png", "photos/test/cat/b.png"]):
        with pytest.raises(InputError, match=stating("splits", "test, train", "photos/")):
            open_source(path)
    for path in written(tmp_path / "b", ["photos/a.png", "photos/cat/b.png"]):
        with pytest.raises(InputError, match=stating("photos", "beside")):
            open_source(path)


def test_names_are_compared_in_nfc(tmp_path):
    decomposed, composed = "caf\u0065\u0301", "caf\u00e9"
    for path in written(tmp_path / "p", [f"{decomposed}/a.png", f"{composed}/b.png", "x/c.png"]):
        source = open_source(path)
        assert source.classes == [composed, "x"]
        assert sorted(source.labels.tolist()) == [composed, composed, "x"]

    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / f"{decomposed}.png").write_bytes(png())
    (tmp_path / "flat" / "t.csv").write_text(f"file,label\n{composed}.png,{decomposed}\n")
    source = open_source(tmp_path / "flat")
    assert source.labels.tolist() == [composed]
    assert list(source.records(0)) == [tmp_path / "flat" / f"{decomposed}.png"]


@pytest.mark.parametrize(
    ("names", "classes"),
    [(["0", "2", "10"], [0, 2, 10]), (["00", "1"], ["00", "1"]), (["-1", "1"], [-1, 1])],
)
def test_subfolders_that_are_numbers(tmp_path, names, classes):
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(png())
    source = open_source(tmp_path)
    assert source.classes == classes
    assert sorted(source.labels.tolist()) == sorted(classes)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar"])
def test_archives_hold_the_same(pets, tmp_path, kind):
    path = tmp_path / f"pets.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in FILES.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as archive:
            for name, data in sorted(FILES.items()):
                info = tarfile.TarInfo(f"./{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    source, folder = open_source(path), open_source(pets)
    assert list(source.names) == list(folder.names)
    assert source.labels.tolist() == folder.labels.tolist()
    assert list(source.records(0)) == [own.read_bytes() for own in folder.records(0)]
    assert list(source.records(2)) == [FILES["dog/deep/c.png"]]


def test_parts(pets, tmp_path):
    whole = tmp_path / "whole"
    for part in ("train", "test"):
        (whole / part).parent.mkdir(exist_ok=True)
        (whole / part).symlink_to(pets)
    assert splits(whole) == ["test", "train"]
    source = open_source(whole, "train")
    assert source.names[0] == "train/cat/a.PNG"
    assert source.labels.tolist() == ["cat", "cat", "dog"]
    assert source.classes == ["cat", "dog", "fox"]
    with pytest.raises(InputError, match=stating("--split", "test, train")):
        open_source(whole)
    with pytest.raises(InputError, match="no split 'dev'"):
        open_source(whole, "dev")
    with pytest.raises(InputError, match="leave it out"):
        open_source(pets, "train")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "file,label\nb.png,dog\nmissing.png,cat\na.png,cat\n"),
        ("labels.tsv", "label\tfile_name\ndog\tb.png\ncat\tmissing.png\ncat\ta.png\n"),
        (
            "labels.jsonl",
            '{"id": "b", "y": "dog"}\n{"id": "missing", "y": "cat"}\n{"id": "a", "y": "cat"}\n',
        ),
    ],
)
def test_a_flat_folder_beside_a_table(tmp_path, name, text):
    folder = tmp_path / "flat"
    folder.mkdir()
    for own in ("a", "b", "unlisted"):
        (folder / f"{own}.png").write_bytes(png())
    (tmp_path / name).write_text(text, encoding="utf-8")
    source = open_source(folder, labels=tmp_path / name)
    assert source.labels.tolist() == ["dog", "cat", "cat"]
    assert [None if own is None else own.name for own in source.records(0)] == [
        "b.png",
        None,
        "a.png",
    ]
    assert source.left_out == ("unlisted.png",)
    (folder / name).write_text(text, encoding="utf-8")  # found by itself among the pictures
    assert open_source(folder).labels.tolist() == ["dog", "cat", "cat"]
    assert open_source(folder).left_out == ("unlisted.png",)


def test_a_flat_folder_without_a_table_has_no_labels(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    assert open_source(tmp_path).labels is None


def test_links_in_a_circle(pets):
    (pets / "cat" / "loop").symlink_to(pets)
    with pytest.raises(InputError, match=stating("folder", "link")):
        open_source(pets)


def test_a_link_to_itself_is_a_record_that_cannot_be_read(pets):
    (pets / "cat" / "z.png").symlink_to("z.png")
    assert "cat/z.png" in open_source(pets).names


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: (folder / "empty").mkdir(), "empty holds no pictures"),
        (lambda folder: (folder / "top.png").write_bytes(png()), "pictures beside its subfolders"),
        (lambda folder: (folder / "x.zip").write_bytes(b"PK no"), "x.zip is truncated or damaged"),
        (lambda folder: (folder / "x.tar.gz").write_bytes(b"no"), stating("x.tar.gz", "damaged")),
        (lambda folder: (folder / "x.docx").write_bytes(b"no"), "unknown ending"),
    ],
)
def test_what_is_no_source(pets, make, said):
    make(pets)
    name = next(
        (own for own in ("empty", "x.zip", "x.tar.gz", "x.docx") if (pets / own).exists()), ""
    )
    with pytest.raises(InputError, match=said):
        open_source(pets / name)


def test_tables_that_do_not_fit(pets, tmp_path):
    table = tmp_path / "t.csv"
    for text, said in (
        ("file,label\nnone.png,cat\n", "names no picture"),
        ("a,b\n1,2\n", "name the one of files with --x"),
        ("file,label\nb.png,cat\nb.png,dog\n", "twice"),
        ("file,label\n", "no rows"),
    ):
        table.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            open_source(pets, labels=table)
    with pytest.raises(InputError, match="does not exist"):
        open_source(pets, labels=tmp_path / "gone.csv")


def test_the_stamp_changes_with_a_file(pets):
    before = open_source(pets).stamp
    assert open_source(pets).stamp == before
    (pets / "cat" / "b.png").write_bytes(png(9, (6, 6)))
    assert open_source(pets).stamp != before


def test_a_table_means_the_exact_name_first_and_never_one_of_several(tmp_path):
    for name in ("1.png", "1.png.png", "a/2.png", "b/2.png"):
        (tmp_path / "g" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "g" / name).write_bytes(png(len(name)))
    table = tmp_path / "t.csv"
    table.write_text("file,label\n1.png,7\n1.png.png,8\na\\2.png,9\n", encoding="utf-8")
    source = open_source(tmp_path / "g", labels=table)
    assert [path.name for path in source.records(0)] == ["1.png", "1.png.png", "2.png"]
    assert source.labels.tolist() == [7, 8, 9]
    for text, said in (
        ("2.png,A", "line 2 names '2.png', which may be a/2.png or b/2.png"),
        ("1,A\n1.png,B", "twice"),
        ("1.png,", "line 2 has no label"),
    ):
        table.write_text(f"file,label\n{text}\n", encoding="utf-8")
        with pytest.raises(InputError, match=said):
            open_source(tmp_path / "g", labels=table)


def test_links_in_tar_archives(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name, kind in (
            ("b/1.png", tarfile.REGTYPE),
            ("a/h.png", tarfile.LNKTYPE),
            ("a/s.png", tarfile.SYMTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = (
                kind,
                "b/1.png",
                len(png()) if kind == tarfile.REGTYPE else 0,
            )
            archive.addfile(info, io.BytesIO(png()))
    source = open_source(tmp_path / "a.tar.gz")
    assert list(source.records(0)) == [png(), png()]
    assert source.left_out == ("a/s.png",)


def test_names_in_zip_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x", b"")
        archive.writestr("cat/0.png", png())
        archive.infolist()[1].filename = archive.filelist[1].filename = "cat\\0.png"
    source = open_source(tmp_path / "a.zip")
    assert (list(source.names), source.labels.tolist()) == (["cat/0.png"], ["cat"])
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("c/0.png", png(1))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("c/0.png", png(2))
    with pytest.raises(InputError, match=r"holds 'c/0.png' twice"):
        open_source(tmp_path / "b.zip")


def test_another_file_of_the_same_size_and_time_changes_the_stamp(pets):
    import os

    before, path = open_source(pets).stamp, pets / "cat" / "b.png"
    times, size = path.stat(), path.stat().st_size
    path.unlink()
    path.write_bytes(b"\0" * size)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert open_source(pets).stamp != before


# Ids of persons

SECRET = "patient-7731"
OF_PERSONS = {f"{SECRET}/cat/a.png": png(1), f"{SECRET}/dog/b.png": png(2), "p2/cat/c.png": png(3)}


def made(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("split", [None, "train"])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("archive", [False, True])
def test_a_level_of_folders_is_named_after_persons(tmp_path, split, level, archive):
    files = {
        "/".join(
            [
                *([split] if split else []),
                *(name.split("/") if level == 1 else [name.split("/")[i] for i in (1, 0, 2)]),
            ]
        ): data
        for name, data in OF_PERSONS.items()
    }
    path = made(tmp_path / "d", files)
    (path / (split or "") / ("p2/fox" if level == 1 else "fox")).mkdir()
    if archive:
        path = tmp_path / "d.zip"
        with zipfile.ZipFile(path, "w") as file:
            for name, data in files.items():
                file.writestr(name, data)
    source = open_source(path, split, persons_folder=level)
    of_record = [
        (person, label)
        for person, label in zip(source.persons.tolist(), source.labels.tolist(), strict=True)
    ]
    assert sorted(of_record) == [("p2", "cat"), (SECRET, "cat"), (SECRET, "dog")]
    assert source.classes == (["cat", "dog"] if archive else ["cat", "dog", "fox"])
    assert all(SECRET in name or "p2" in name for name in source.names)
    assert not any(
        SECRET in source.shown(name) or "p2" in source.shown(name) for name in source.names
    )
    assert source.shown("README.txt") == "README.txt"


def test_folders_of_persons_without_classes_have_no_labels(tmp_path):
    source = open_source(
        made(tmp_path / "d", {f"{SECRET}/a.png": png(), "p2/b.png": png()}), persons_folder=1
    )
    assert (source.labels, source.persons.tolist()) == (None, ["p2", SECRET])


def test_a_table_names_the_persons(tmp_path):
    folder = made(tmp_path / "d", {"a.png": png(1), "b.png": png(2)})
    (tmp_path / "t.csv").write_text(f"file,label,who\nb.png,cat,{SECRET}\na.png,dog,p2\n")
    source = open_source(folder, labels=tmp_path / "t.csv", persons="who")
    assert source.persons.tolist() == [SECRET, "p2"]
    (tmp_path / "ids.txt").write_text(f"{SECRET}\np2\n")
    assert open_source(folder, persons=str(tmp_path / "ids.txt")).persons.tolist() == [SECRET, "p2"]


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (OF_PERSONS, {"persons_folder": 3}, ("3 folders",)),
        (OF_PERSONS, {"persons_folder": 0}, ("--persons-folder 0", "1")),
        (OF_PERSONS, {"persons": "who"}, ("--x", "--y", "--persons")),
        (OF_PERSONS, {"persons": "who", "persons_folder": 1}, ("both", "ids")),
        (OF_PERSONS, {"persons_folder": 1, "public": True}, ("--public keeps no person ids",)),
        (
            {"a.png": png(), "t.csv": b"file,label\na.png,x\n"},
            {"persons_folder": 1},
            ("pictures", "apply"),
        ),
        (
            {f"{SECRET}/cat/a.png": png(), f"{SECRET}/b.png": png()},
            {"persons_folder": 1},
            ("beside its subfolders",),
        ),
    ],
)
def test_ids_that_cannot_be_found_are_refused_without_showing_one(
    tmp_path, files, options, message
):
    with pytest.raises(InputError) as caught:
        open_source(made(tmp_path / "d", files), **options)
    assert not lacking(str(caught.value), *message)
    assert SECRET not in str(caught.value)


def shard(path, classes):
    """Write a shard of WebDataset: a picture, its class, if any, and other facts of each record."""
    with tarfile.open(path, "w") as file:
        for number, value in enumerate(classes):
            members = {"jfif": png(number), "json": b"{}"}
            if value is not None:
                members["cls"] = f"{value}\n".encode()
            for ending, data in members.items():
                info = tarfile.TarInfo(f"{number:06d}.{ending}")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize(("classes", "kind"), [([2, 0, 1], "i"), (["dog", "cat", "dog"], "U")])
def test_classes_of_webdataset(tmp_path, classes, kind):
    source = open_source(shard(tmp_path / "shard.tar", classes))
    assert list(source.names) == ["000000.jfif", "000001.jfif", "000002.jfif"]
    assert source.labels.tolist() == classes
    assert (source.labels.dtype.kind, source.label_kind) == (kind, "index")
    assert source.left_out == ("000000.json", "000001.json", "000002.json")
    assert open_source(tmp_path / "shard.tar", public=True).labels is None


def test_a_picture_without_a_class_is_refused_or_left_out(tmp_path):
    path = shard(tmp_path / "shard.tar", [2, None, 1])
    with pytest.raises(InputError, match=stating("shard.tar", "row 1", "no label")):
        open_source(path)
    source = open_source(path, skip_bad=True)
    assert source.faults == {1: "it has no label"}

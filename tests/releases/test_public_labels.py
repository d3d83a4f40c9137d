"""Labels of public rows by a release: what a folder holds, and what its check finds."""

import csv
import hashlib
import json
import shutil

import numpy as np
import pytest

import tacit
from messages import lacking, stating
from tacit.data.embeddings import EmbeddingStore
from tacit.errors import InputError, ReleaseError
from tacit.privacy.ledger import Ledger
from tacit.releases.labelling import label_public
from tacit.releases.labels_document import LabelsDocument, labels_card
from tacit.releases.public_labels import PublicLabels
from tacit.releases.release import Release

KINDS = {
    "text": ["ant", 'b"ee,', "cow"],
    "int": [3, -1, 10],
    "bool": [True, False],
}
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(90, 6)) + 2 * np.eye(3, 6)[np.arange(90) % 3]
RELEASE = Release.of(
    tacit.NoisySumPrototypes("rho=2", classes=3).fit(ROWS, np.arange(90) % 3), name="three"
)
POOL = RNG.normal(size=(40, 6))
AT_LEAST = 0.5


@pytest.fixture
def store(tmp_path):
    columns = {"row": list(range(7, 47)), "record": [f'a/{i}, "x"\r' for i in range(40)]}
    return EmbeddingStore.write(tmp_path / "pool", POOL, metadata=columns, dtype="float64")


@pytest.fixture
def folder(store, tmp_path):
    labels = label_public(RELEASE, store, at_least=AT_LEAST, date="2026-01-02")
    return labels.save(tmp_path / "labels")


def test_labels_are_those_of_predict_with_probabilities_rounded_down(folder):
    labels = PublicLabels.load(folder).verify()
    of_classes = RELEASE.predict_proba(POOL)
    largest = of_classes.max(axis=1)
    kept = np.flatnonzero(largest >= AT_LEAST)
    assert 0 < len(kept) < 40
    assert labels.rows.tolist() == kept.tolist()
    assert np.array_equal(labels.labels, RELEASE.predict(POOL)[kept])
    assert np.all(labels.probabilities <= largest[kept])
    assert np.allclose(labels.probabilities, largest[kept], rtol=0, atol=1e-4)
    assert labels.guarantee == RELEASE.guarantee
    with (folder / "labels.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    row = int(first["row"])
    assert row == kept[0]
    assert (first["source_row"], first["name"]) == (str(row + 7), f'a/{row}, "x"\r')


def test_the_card_names_what_was_labelled_and_repeats_the_guarantee(folder, store):
    card = (folder / "CARD.md").read_text(encoding="utf-8")
    document = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    for text in (RELEASE.document.accounting.statement, RELEASE.document.accounting.in_words):
        assert text in card
    assert document["pool"]["hash"] == store.content_hash
    assert document["release"]["arrays_sha256"] == RELEASE.sha256
    of_release = (folder / "release.json").read_bytes()
    assert of_release == RELEASE.files()["release.json"]
    assert document["release"]["document_sha256"] == hashlib.sha256(of_release).hexdigest()

    # counts per class, of the rows that have a label and of those that were left out
    predicted = RELEASE.predict(POOL)
    kept = RELEASE.predict_proba(POOL).max(axis=1) >= AT_LEAST
    selection = document["selection"]
    for label, count in enumerate(selection["classes"]):
        assert count["labelled"] == np.sum(kept & (predicted == label))
        assert count["left_out"] == np.sum(~kept & (predicted == label))
    assert selection["share_left_out"] == np.mean(~kept)
    assert not lacking(card, "no private record", "premise")


def test_without_a_probability_every_row_has_a_label(tmp_path):
    labels = label_public(RELEASE, POOL, public={"name": "blobs"})
    assert np.array_equal(labels.labels, RELEASE.predict(POOL))
    assert labels.document.selection.at_least == "none"
    assert labels.document.pool.name == "blobs"
    labels = PublicLabels.load(labels.save(tmp_path / "labels")).verify()
    assert labels.origin is None


def test_rows_of_no_class_are_left_out_and_counted(tmp_path):
    rng = np.random.default_rng(1)
    means = 3 * np.eye(3, 20)
    rows = means[np.arange(600) % 3] + rng.normal(size=(600, 20)) / 4
    learner = tacit.AutoPrototypes("rho=2", classes=3, public=rng.normal(size=(300, 20)))
    release = Release.of(learner.fit(rows, np.arange(600) % 3), name="three")
    foreign = rng.normal(size=(50, 20)) / 4 + 3 * np.eye(20)[3:].mean(axis=0)
    pool = np.vstack([rows[:60], foreign])

    labels = label_public(release, pool, refuse=0.05, at_least=0.6)
    likely = release.predict_proba(pool).max(axis=1) >= 0.6
    refused = release.unfamiliarity(pool) > 0.95
    assert refused[60:].sum() > 40
    assert labels.rows.tolist() == np.flatnonzero(~refused & likely).tolist()
    selection = labels.document.selection
    assert (selection.refuse, selection.refused) == (0.05, refused.sum())
    assert selection.share_refused == refused.mean()
    assert selection.left_out == np.sum(~likely & ~refused)

    folder = labels.save(tmp_path / "labels")
    PublicLabels.load(folder).verify()
    assert "share refused" in (folder / "CARD.md").read_text(encoding="utf-8").lower()
    forged(folder, put("selection", "refuse", value="none"))
    with pytest.raises(ReleaseError, match="no share is stated"):
        PublicLabels.load(folder).verify()
    with pytest.raises(ReleaseError, match="cannot refuse rows of no class"):
        label_public(RELEASE, POOL, refuse=0.05)


def test_a_pool_of_many_blocks_is_labelled_as_predict_does(monkeypatch):
    monkeypatch.setattr("tacit.models.rows.BLOCK_ROWS", 7)
    labels = label_public(RELEASE, POOL)
    assert np.array_equal(labels.labels, RELEASE.predict(POOL))
    X, _ = labels.join(POOL)
    assert np.array_equal(X, POOL)


def test_labels_are_joined_to_the_pool_that_was_labelled(folder, store, tmp_path):
    labels = PublicLabels.load(folder)
    for pool in (store, POOL, tmp_path / "pool"):
        X, y = labels.join(pool)
        assert np.array_equal(X, POOL[labels.rows])
        assert np.array_equal(y, RELEASE.predict(X))
    for other in (POOL[::-1], POOL[:-1], POOL + 1e-9):
        with pytest.raises(InputError, match=stating("40 rows of 'pool'", store.content_hash)):
            labels.join(other)


@pytest.mark.parametrize("classes", KINDS.values(), ids=KINDS)
def test_labels_of_every_kind_are_read_as_they_were(classes, tmp_path):
    truth = np.array(classes)[np.arange(90) % len(classes)]
    release = Release.of(tacit.NoisySumPrototypes("rho=2", classes=classes).fit(ROWS, truth))
    labels = PublicLabels.load(label_public(release, POOL).save(tmp_path / "labels")).verify()
    expected = release.predict(POOL)
    assert labels.labels.dtype == expected.dtype
    assert labels.labels.tolist() == expected.tolist()


def test_the_same_command_gives_the_same_bytes(store):
    first, second = (label_public(RELEASE, store, date="2026-01-02").files() for _ in range(2))
    assert first == second


# a careful forger writes the card and the hashes that go with a change
def forged(folder, change):
    document = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    change(document)
    table = (folder / "labels.csv").read_bytes()
    document["table"]["sha256"] = hashlib.sha256(table).hexdigest()
    of_release = (folder / "release.json").read_bytes()
    document["release"]["document_sha256"] = hashlib.sha256(of_release).hexdigest()
    (folder / "labels.json").write_text(json.dumps(document), encoding="utf-8")
    labels = PublicLabels.load(folder)
    card = labels_card(LabelsDocument.model_validate(document, strict=False), labels.release)
    (folder / "CARD.md").write_text(card, encoding="utf-8")


def put(*path, value):
    def change(document):
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def test_a_forged_folder_that_contradicts_nothing_passes(folder):
    forged(folder, put("product", "name", value="other name"))
    PublicLabels.load(folder).verify()


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("guarantee", "statement"), "it is private", "the guarantee of labels.json is not that"),
        (("guarantee", "unprotected"), ["all"], "the guarantee of labels.json is not that"),
        (("release", "name"), "other", "release.name"),
        (("release", "arrays_sha256"), "0" * 64, "arrays_sha256"),
        (("pool", "rows"), 41, "do not add up to the pool"),
        (("selection", "at_least"), 0.9, "below the stated probability 0.9"),
        (("selection", "at_least"), "none", "rows were left out, and no probability is stated"),
        (("selection", "classes", 0, "labelled"), 39, "the counts of labels.json"),
        (("selection", "share_left_out"), 0.0, "the counts of labels.json"),
    ],
)
def test_a_changed_statement_is_found(folder, path, value, fault):
    forged(folder, put(*path, value=value))
    with pytest.raises(ReleaseError, match=fault) as error:
        PublicLabels.load(folder).verify()
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_changed_guarantee_of_the_release_is_found(folder):
    file = folder / "release.json"
    release = json.loads(file.read_text(encoding="utf-8"))
    release["parameters"]["rho"] = 0.1
    file.write_text(json.dumps(release, indent=1) + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"release.json has another hash"):
        PublicLabels.load(folder).verify()
    of_release = RELEASE.document.model_validate(release, strict=False)
    text = json.dumps(of_release.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    file.write_text(text, encoding="utf-8")
    forged(folder, lambda _: None)
    with pytest.raises(ReleaseError, match=stating("parameters.rho", "0.1")):
        PublicLabels.load(folder).verify()


def test_a_changed_label_or_card_is_found(folder):
    table = (folder / "labels.csv").read_bytes()
    lines = table.split(b"\n")
    start, label, probability = lines[1].rsplit(b",", 2)
    other_label = b"2" if label != b"2" else b"0"
    lines[1] = b",".join([start, other_label, probability])
    (folder / "labels.csv").write_bytes(b"\n".join(lines))
    with pytest.raises(ReleaseError, match=r"labels.csv has another hash"):
        PublicLabels.load(folder).verify()
    (folder / "labels.csv").write_bytes(table)
    with (folder / "CARD.md").open("a") as card:
        card.write("It is free.\n")
    with pytest.raises(ReleaseError, match=r"CARD.md does not say what labels.json says"):
        PublicLabels.load(folder).verify()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "its columns are"),
        ("row,label,probability\n", "it has no rows"),
        ("row,label,probability\n0,0,.9\n0,1,.9\n", "ascending positions in a pool of 40 rows"),
        ("row,label,probability\n40,0,.9\n", "ascending positions in a pool of 40 rows"),
        ("row,label,probability\n-1,0,.9\n", "ascending positions in a pool of 40 rows"),
        ("row,label,probability\n1,7,.9\n", "at line 2"),
        ("row,label,probability\n1,0,1.5\n", "not from 0 to 1"),
        ("row,label,probability\n1,0,nan\n", "not from 0 to 1"),
        ("row,label,probability\n1,0\n", "at line 2"),
        ('row,label,probability\n1,"0,.9\n', "at line 2"),
        ("row,label,probability\n99999999999999999999,0,.9\n", "at line 2"),
    ],
)
def test_a_table_that_is_none_is_refused(text, fault, tmp_path):
    folder = label_public(RELEASE, POOL).save(tmp_path / "labels")
    (folder / "labels.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError, match=fault) as error:
        PublicLabels.load(folder)
    assert "labels.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_files_of_strangers_are_refused_in_one_line(folder):
    with pytest.raises(ReleaseError, match="holds labels of public rows and not a release"):
        Release.load(folder)
    (folder / "run.py").write_text("")
    with pytest.raises(ReleaseError, match=r"'run.py' is not a file of a release \(labels.json"):
        PublicLabels.load(folder)
    (folder / "run.py").unlink()
    good = (folder / "labels.json").read_text(encoding="utf-8")
    for text, fault in (
        ("[", "is not valid JSON"),
        ("{}", 'does not say "format": "tacit-public-labels"'),
        (good.replace('"version": 1', '"version": 2'), "format version 2, this tacit reads 1"),
        (good.replace('"labelled"', '"labeled"'), "labels.json: selection"),
    ):
        (folder / "labels.json").write_text(text, encoding="utf-8")
        with pytest.raises(ReleaseError, match=fault):
            PublicLabels.load(folder)
    (folder / "labels.json").unlink()
    with pytest.raises(ReleaseError, match="holds no labels.json; give a folder that tacit label"):
        PublicLabels.load(folder)


def test_private_pools_are_refused(store, tmp_path):
    ledger = Ledger.beside(tmp_path / "pool", "pool")
    ledger.allow("rho=3")
    with pytest.raises(InputError, match=stating("counts what is spent on 'pool'", "public rows")):
        label_public(RELEASE, store)
    # once something is charged, the store notes it and is refused without the ledger too
    ledger.charge(RELEASE.guarantee, what="a release")
    shutil.copytree(tmp_path / "pool", tmp_path / "copy")
    ledger.path.unlink()
    for name in ("pool", "copy"):
        with pytest.raises(InputError, match=stating("notes a ledger of 'pool'", "public rows")):
            label_public(RELEASE, EmbeddingStore.open(tmp_path / name))


def test_a_synthetic_pool_is_refused(tmp_path):
    card = {"synthetic": {"release": "another"}}
    pool = EmbeddingStore.write(tmp_path / "drawn", POOL, card=card)
    with pytest.raises(InputError, match=stating("'drawn' is synthetic", "use tacit predict")):
        label_public(RELEASE, pool)


def test_bad_input_is_refused_in_one_line():
    for at_least in (0, 1.01, -1, float("nan"), "much", True):
        with pytest.raises(InputError, match="must be a probability above 0 and at most 1"):
            label_public(RELEASE, POOL, at_least=at_least)
    with pytest.raises(InputError, match=r"no row .* probability 1 or more, the largest is 0\.\d+"):
        label_public(RELEASE, POOL, at_least=1)
    with pytest.raises(InputError, match=r"has shape \(40, 5\) and must have shape \(n, 6\)"):
        label_public(RELEASE, POOL[:, :5])
    with pytest.raises(InputError, match="must be a Release; pass"):
        label_public("three", POOL)
    with pytest.raises(InputError, match="states 'size'; pass name, revision and hash"):
        label_public(RELEASE, POOL, public={"size": "40"})
    with pytest.raises(ReleaseError, match="give one line of text"):
        label_public(RELEASE, POOL, public={"name": "two\nlines"})
    with pytest.raises(ReleaseError, match="give one line of text"):
        label_public(RELEASE, POOL, name="two\nlines")


def test_a_release_that_does_not_verify_is_not_used():
    altered = Release(RELEASE.document, RELEASE.arrays, RELEASE.sha256, "another card")
    with pytest.raises(ReleaseError, match=r"CARD.md does not say what release.json says"):
        label_public(altered, POOL)


def test_a_release_of_several_labels_is_refused(monkeypatch):
    monkeypatch.setattr(Release, "several", True)
    with pytest.raises(InputError, match=stating("several labels or none", "use tacit predict")):
        label_public(RELEASE, POOL)


def test_labels_of_research_noise_are_stamped_and_saved_only_when_asked(tmp_path):
    learner = tacit.NoisySumPrototypes("rho=2", classes=3, noise="research", random_state=0)
    labels = label_public(Release.of(learner.fit(ROWS, np.arange(90) % 3)), POOL)
    with pytest.raises(ReleaseError, match=stating("NOT FOR RELEASE", "--allow-research")):
        labels.save(tmp_path / "labels")
    assert not list(tmp_path.iterdir())
    folder = labels.save(tmp_path / "labels", allow_research=True)
    assert "**NOT FOR RELEASE**" in PublicLabels.load(folder).verify().card()


def test_only_labels_are_replaced(folder, tmp_path):
    labels = PublicLabels.load(folder)
    with pytest.raises(InputError, match="exists"):
        labels.save(folder)
    labels.save(folder, force=True)
    (folder / "notes.txt").write_text("mine")
    for other in (folder, RELEASE.save(tmp_path / "release")):
        with pytest.raises(InputError, match="holds something else"):
            labels.save(other, force=True)


@pytest.fixture
def of_tree(tmp_path):
    classes = ["ant", "bee", "cow"]
    learner = tacit.NoisySumPrototypes("rho=2", classes=classes)
    fitted = learner.fit(ROWS, np.array(classes)[np.arange(90) % 3])
    tree = {"ant": "insect", "bee": "insect", "cow": "mammal"}
    return Release.of(fitted, name="animals", tree=tree)


def test_a_release_with_a_tree_labels_with_its_nodes(of_tree, tmp_path):
    answers = of_tree.answers(POOL, at_least=0.7)
    labels = label_public(of_tree, POOL, at_least=0.7)
    labels = PublicLabels.load(labels.save(tmp_path / "labels")).verify()
    answered = np.flatnonzero(answers.level)
    assert labels.rows.tolist() == answered.tolist()
    assert labels.labels.tolist() == answers.label[answered].tolist()
    assert labels.table.levels.tolist() == answers.level[answered].tolist()
    assert {"insect", "ant"} <= set(labels.labels.tolist())
    counts = {count.label: count.labelled for count in labels.document.selection.classes}
    assert counts["insect"] == np.sum(answers.label == "insect")

    # a class whose probability is below once it is rounded down gives way to the node above it
    row = np.flatnonzero(answers.label == "ant")[0]
    label_public(of_tree, POOL, at_least=answers.probability[row]).save(tmp_path / "other")
    labels = PublicLabels.load(tmp_path / "other").verify()
    assert labels.labels[labels.rows == row].tolist() == ["insect"]

    # without a probability the classes answer, and one that two nodes could reach is refused
    assert label_public(of_tree, POOL).labels.tolist() == of_tree.predict(POOL).tolist()
    with pytest.raises(InputError, match="must be above 0.5"):
        label_public(of_tree, POOL, at_least=0.5)


def test_a_changed_level_is_found(of_tree, tmp_path):
    folder = label_public(of_tree, POOL, at_least=0.7).save(tmp_path / "labels")
    table = (folder / "labels.csv").read_text(encoding="utf-8")
    assert '"insect",1,' in table
    changed = table.replace('"insect",1,', '"insect",2,', 1)
    (folder / "labels.csv").write_text(changed, encoding="utf-8")
    forged(folder, lambda _: None)
    with pytest.raises(ReleaseError, match="a level of labels.csv is not that of its label"):
        PublicLabels.load(folder).verify()

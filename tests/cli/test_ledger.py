"""`tacit ledger` and the commands that are charged to it."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from messages import lacking, stating
from tacit.data.embeddings import EmbeddingStore
from tacit.privacy.events import ZCDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit


def test_the_rule_and_each_charge_are_printed_in_the_currency_of_the_allowance(stores, run):
    status, out, _ = run("ledger private --allow epsilon=1,delta=1e-5")
    assert status == 0
    assert not lacking(out, "mu^2=0", "mu^2=0.0718515", "epsilon=1,delta=1e-05", "0 charges")
    assert not lacking(out, "mu^2", "subtracted", "mu^2=0.0718515")
    assert run("fit public private --public public --budget epsilon=0.5 --out one")[0] == 0
    assert run("fit noisy-sum private --budget rho=0.001 --out two")[0] == 0
    status, out, _ = run("ledger private")
    first, second = (line for line in out.splitlines() if line.startswith("  "))
    assert not lacking(first, "PublicPrototypes", "epsilon=0.496029", "delta=1e-05", "exponential")
    assert "NoisySumPrototypes fit: mu^2=0.002; Gaussian noise" in second
    status, _, err = run("fit noisy-sum private --budget rho=0.03 --out three")
    assert status == 2
    assert "would overdraw" in err


def test_another_currency_prices_a_search(stores, run):
    assert run("ledger private --allow epsilon=1,delta=1e-5 --currency renyi")[0] == 0
    _, out, _ = run("ledger private")
    assert "the Renyi divergence at order" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ledger private --currency mu", ("--allow", "allowance")),
        ("ledger private --allow rho=1 --currency mu", ("allowance", "rho=1")),
        ("ledger private --allow epsilon=1,delta=1e-5 --currency gold", ('"mu", "renyi"',)),
    ],
)
def test_bad_currencies_are_one_line_and_status_2(stores, run, line, message):
    status, _, err = run(line)
    assert status == 2
    assert not lacking(err, *message)
    assert err.count("\n") == 1


def test_a_raised_allowance_is_a_record_in_what_is_printed_and_in_the_card(stores, run):
    run("ledger private --allow rho=0.1")
    assert run("fit noisy-sum private --budget rho=0.1 --out one")[0] == 0
    status, out, _ = run("ledger private --allow rho=1")
    assert status == 0
    assert not lacking(out, "raised", "rho=0.1", "no guarantee")
    assert run("fit noisy-sum private --budget rho=0.1 --out two")[0] == 0
    assert not lacking((stores / "two" / "CARD.md").read_text(), "no guarantee")
    assert "record and no guarantee" not in (stores / "one" / "CARD.md").read_text()
    assert run("ledger private --allow epsilon=1,delta=1e-5")[0] == 2


FIT = "fit noisy-sum {} --budget rho=0.1 --out {}"


def charges(path="private.ledger.jsonl", identity="private"):
    return len(Ledger(path, identity).account().charges)


def has_note(folder):
    return json.loads(Path(folder, "manifest.json").read_text()).get("has_ledger", False)


@pytest.mark.parametrize(
    "line",
    [
        FIT.format("private", "release") + " --ledger typo.jsonl",
        "adapt release private --out adapted --ledger typo.jsonl",
        "ledger private --file typo.jsonl --allow rho=1",
        "ledger private --file typo.jsonl",
    ],
)
def test_a_named_ledger_must_exist(stores, run, line):
    assert run("ledger private --allow rho=0.1")[0] == 0
    if "adapt" in line:
        assert run("fit auto test --public public --budget rho=1 --out release")[0] == 0
    status, _, err = run(line)
    assert status == 2
    assert not lacking(err, "typo.jsonl", "tacit ledger DATA --new --file typo.jsonl")
    assert not Path("typo.jsonl").exists()
    assert charges() == 0


def test_a_table_is_charged_to_a_ledger_that_exists(stores, run):
    Path("t.csv").write_text("label\n0\n1\n")
    line = (
        "privatize-labels t.csv --column label --classes 2 --budget epsilon=1 --ledger typo.jsonl"
        " --out out.csv"
    )
    status, _, err = run(line)
    assert status == 2
    assert "typo.jsonl does not exist" in err
    assert {path.name for path in stores.glob("*.*")} == {"t.csv"}


def test_a_ledger_in_a_file_is_started_by_new(stores, run):
    assert run("ledger private --new --file books.jsonl --allow rho=1")[0] == 0
    assert run(FIT.format("private", "one") + " --ledger books.jsonl")[0] == 0
    assert charges("books.jsonl") == 1
    assert has_note("private")
    status, _, err = run("ledger private --new --file books.jsonl --allow rho=2")
    assert status == 2
    assert not lacking(err, "books.jsonl", "'private'", "--new")
    assert not lacking(run("ledger private --new")[2], "--new", "--allow")


def test_a_ledger_of_other_data_is_refused(stores, run):
    assert run("ledger private --allow rho=1")[0] == 0
    for line in (
        FIT.format("test", "r") + " --ledger private.ledger.jsonl",
        "ledger test --file private.ledger.jsonl",
    ):
        status, _, err = run(line)
        assert status == 2
        assert "private" in err
        assert "'test'" in err
    status, _, err = run("ledger test --file private.ledger.jsonl --allow rho=9")
    assert status == 2
    assert not lacking(err, "private", "'test'", "--new")
    assert not Path("r").exists()
    assert run("ledger test --new --file private.ledger.jsonl --allow rho=1")[0] == 0
    assert run(FIT.format("test", "r") + " --ledger private.ledger.jsonl")[0] == 0
    assert (charges(), charges(identity="test")) == (0, 1)


def test_a_renamed_store_is_charged_to_its_ledger(stores, run):
    assert run("ledger private --allow rho=0.1")[0] == 0
    os.rename("private", "renamed")
    assert run(FIT.format("renamed", "one"))[0] == 0
    assert charges() == 1
    assert "would overdraw" in run(FIT.format("renamed", "two"))[2]
    assert not Path("renamed.ledger.jsonl").exists()


def test_a_store_that_was_moved_away_from_its_ledger_is_refused(stores, run):
    assert run("ledger private --allow rho=0.1")[0] == 0
    Path("away").mkdir()
    os.rename("private", "away/private")
    remedy = (
        "name it with --ledger FILE, or start another with tacit ledger away/private --new"
        " --allow ..."
    )
    for line in (
        FIT.format("away/private", "r"),
        "ledger away/private --allow rho=1",
        "ledger away/private",
    ):
        status, _, err = run(line)
        assert status == 2
        assert "notes a ledger of 'private', and none is beside it; " + remedy in err
    assert not Path("r").exists()
    assert run(FIT.format("away/private", "one") + " --ledger private.ledger.jsonl")[0] == 0
    assert charges() == 1
    assert run("ledger away/private --new --allow rho=0.1")[0] == 0
    assert run(FIT.format("away/private", "two"))[0] == 0
    assert charges("away/private.ledger.jsonl") == 1


def test_a_lost_ledger_is_noticed(stores, run):
    Ledger.beside("private", "private").allow("rho=1")
    assert has_note("private")
    Path("private.ledger.jsonl").unlink()
    assert not lacking(run(FIT.format("private", "r"))[2], "'private'", "ledger", "beside")


def test_parts_of_a_store_note_its_ledger(stores, run):
    assert run("ledger private --allow rho=0.1")[0] == 0
    assert run("split private --n-public 30 --n-test 20 --out parts")[0] == 0
    assert run("subset private --imbalance 2 --out beside")[0] == 0
    assert [has_note(f"parts/{name}") for name in ("private", "public", "test")] == [
        True,
        False,
        False,
    ]
    assert has_note("beside")
    assert not lacking(run(FIT.format("parts/private", "one"))[2], "beside", "--ledger")
    assert run(FIT.format("beside", "one"))[0] == 0
    assert charges() == 1
    assert (
        "would overdraw"
        in run(FIT.format("parts/private", "two") + " --ledger private.ledger.jsonl")[2]
    )


def test_a_second_ledger_of_the_same_data_is_started_with_a_word_about_the_first(stores, run):
    said = "private.ledger.jsonl counts uses of 'private' too; what both ledgers allow adds up"
    assert said not in run("ledger private --new --allow rho=0.1")[1]
    status, out, _ = run("ledger private --new --file second.jsonl --allow rho=1")
    assert status == 0
    assert said in out


def test_an_imported_copy_is_charged_to_the_ledger_of_its_data(stores, run):
    assert run("ledger private --allow rho=0.1")[0] == 0
    assert run("import private --out copy")[0] == 0
    assert EmbeddingStore.open("copy").identity == "private"
    assert run(FIT.format("copy", "one"))[0] == 0
    assert charges() == 1
    Path("away").mkdir()
    assert run("import copy --out away/copy")[0] == 0
    assert not lacking(run(FIT.format("away/copy", "two"))[2], "beside", "--ledger")
    assert run("import private --out renamed --identity other")[0] == 0
    assert not lacking(run(FIT.format("renamed", "three"))[2], "'other'", "ledger", "beside")
    status, _, err = run("import copy --out public-copy --declare-public")
    assert status == 2
    assert "whose rows are private" in err


def test_a_store_made_of_a_file_with_a_ledger_is_charged_to_it(stores, run):
    store = EmbeddingStore.open("private")
    np.savez("survey.npz", X=store.x[:], y=store.y)
    assert run("ledger survey.npz --allow rho=0.1")[0] == 0
    assert run("import survey.npz --out made --classes 3")[0] == 0
    assert run(FIT.format("made", "one"))[0] == 0
    assert charges("survey.npz.ledger.jsonl", "survey") == 1


def test_a_part_is_written_where_the_ledger_of_its_data_is_lost(stores, run):
    assert run("ledger private --allow rho=0.1")[0] == 0
    Path("private.ledger.jsonl").unlink()
    status, out, _ = run("subset private --imbalance 2 --out part")
    assert status == 0
    assert not lacking(out, "'private'", "ledger", "beside")
    assert has_note("part")


def test_the_note_stays_when_rows_are_appended_and_the_files_are_sound(stores, run):
    before = json.loads(Path("private/manifest.json").read_text())
    assert run("ledger private --allow rho=1")[0] == 0
    assert json.loads(Path("private/manifest.json").read_text()) == before | {"has_ledger": True}
    store = EmbeddingStore.open("private").verify()
    store.append(store.x[:3], store.labels[:3])
    assert has_note("private")


def test_other_folders_and_read_only_stores_get_no_note(stores, run, monkeypatch):
    Path("other").mkdir()
    Path("other/manifest.json").write_text('{"name": "a web page"}')
    Ledger.beside("other", "other").allow("rho=1")
    assert Path("other/manifest.json").read_text() == '{"name": "a web page"}'

    def refused(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tacit.privacy.ledger.note", refused)
    with pytest.warns(UserWarning, match=stating("private.ledger.jsonl", "note")):
        Ledger.beside("private", "private").allow("rho=1")
    assert charges() == 0


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("noisy-sum private --budget rho=0.1", "rho=0.1"),
        ("noisy-sum private --budget epsilon=1,delta=1e-6", "epsilon=1,delta=1e-06"),
        ("noisy-sum private --budget mu=0.5", "mu=0.5"),
        ("public private --public public --budget epsilon=1", "epsilon=1"),
        ("noisy-sum private --budget rho=0.1 --unit change-label", "rho=0.1 --unit change-label"),
    ],
)
def test_the_ledger_that_is_proposed_allows_no_more_than_was_spent(stores, run, line, limit):
    status, out, _ = run(f"fit {line} --out release")
    assert status == 0
    assert not lacking(out, f"tacit ledger private --allow {limit}")
    document = json.loads(Path("release/release.json").read_text())
    assert document["accesses"]["covered"] == "this run only"


def test_a_balance_says_since_when_uses_are_recorded(stores, run):
    assert run("ledger private --allow rho=1")[0] == 0
    assert run(FIT.format("private", "release"))[0] == 0
    date = json.loads(Path("private.ledger.jsonl").read_text().splitlines()[0])["time"][:10]
    said = f"under unit add-remove; uses before {date} are not recorded"
    assert said in run("ledger private")[1]
    assert said in Path("release/CARD.md").read_text()
    shutil.copytree("release", "copy")
    assert run("inspect copy")[0] == 0


def test_each_declared_part_has_its_balance(stores, run):
    status, out, _ = run("ledger private --allow rho=0.1 --parts A,B")
    assert status == 0
    assert not lacking(out, "Taken on trust", "no record is in two of", "'B'")
    assert not lacking(out, "rho=0 of rho=0.1 spent on part 'B' in 0 charges")
    (file,) = Path().glob("*.ledger.jsonl")
    ledger = Ledger(file, json.loads(file.read_text().splitlines()[0])["identity"])
    ledger.charge(Guarantee(Unit.ADD_REMOVE, ZCDP(0.08)), "summary", part="A")

    status, _, err = run("fit noisy-sum private --budget rho=0.05 --out R")
    assert status == 2
    assert not lacking(err, "at most rho=0.08 of rho=0.1", "2 declared parts")
    _, out, _ = run("ledger private")
    assert not lacking(out, "rho=0.08 of rho=0.1 spent on part 'A' in 1 charge")
    assert not lacking(out, "summary (part 'A'): rho=0.08")
    _, out, _ = run("ledger private --json")
    facts = json.loads(out)
    assert facts["parts"]["B"]["left"] == "0.1"
    assert facts["charges"][0]["part"] == "A"


def test_parts_belong_to_an_allowance(stores, run):
    status, _, err = run("ledger private --parts A,B")
    assert status == 2
    assert not lacking(err, "parts='A,B'", "--allow")
    assert run("ledger private --allow rho=1 --parts A,,B")[0] == 2

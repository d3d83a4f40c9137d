"""`tacit summarise` and `tacit combine`: what they write, print and refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.conftest import CLASSES, rows
from cli.test_bad_input import refused
from messages import lacking
from tacit.cli.paid_tables import words_of_parts
from tacit.data.embeddings import EmbeddingStore
from tacit.releases.release import Release
from tacit.releases.summary import Summary

SUMMARISE = "summarise {} --budget rho=.5 --part {} --out {}"


@pytest.fixture
def here(stores):
    EmbeddingStore.write(
        "second", *rows(np.random.default_rng(1), 90), classes=CLASSES, labels="index"
    )
    return stores


@pytest.fixture
def two(here, run):
    for store, name in (("private", "a"), ("second", "b")):
        assert run(SUMMARISE.format(store, name.upper(), name) + " --public public")[0] == 0
    return here


def test_two_owners_make_one_classifier(two, run):
    status, out, err = run("combine a b --public public --curator Ada --out r")
    assert (status, err) == (0, "")
    assert not lacking(out, "r: release of 2 summaries of 2 parts, over 3 classes")
    assert not lacking(out, "rho = 0.5", "zCDP")
    assert [line.split(":")[0] for line in out.splitlines()[1:3]] == ["  A", "  B"]

    release = Release.load("r").verify()
    assert release.document.product.name == "r"
    assert release.document.product.curator == "Ada"
    in_python = tacit.combine(["b", "a"], public=EmbeddingStore.open("public").x, name="r")
    for name, array in in_python.arrays.items():
        assert np.array_equal(release.arrays[name], array)
    stated = release.document.public_inputs
    assert stated.public_data.name == "public"
    assert stated.public_data.hash == EmbeddingStore.open("public").content_hash

    assert run("evaluate r test")[0] == 0
    card = run("inspect r")[1]
    assert not lacking(card, "- A: 3 classes")
    assert not lacking(card, "- B: 3 classes")
    assert not lacking(card, "who sees what: each owner sees the records of its part")
    for command in ("page r --out r.html", "publish r --to hub", "inspect r --dossier d.html"):
        assert run(command)[0] == 0
    (parts,) = [fact for fact in facts_of("d.json") if fact["name"] == "Parts"]
    assert not lacking(parts["text"], "A: 3 classes", "B: 3 classes")


def facts_of(dossier):
    """All facts of a dossier."""
    sections = json.loads(Path(dossier).read_text(encoding="utf-8"))["sections"]
    return [fact for section in sections for fact in section["facts"]]


def test_a_gate_leaves_ledgers_to_the_owners(here, run):
    run("ledger private --allow rho=1")
    assert run(SUMMARISE.format("private", "A", "a"))[0] == 0
    assert run("combine a --out r")[0] == 0
    Path("policy.toml").write_text('unit = "add-remove"\nepsilon = 6\ndelta = 1e-6\n')
    assert run("inspect r --require policy.toml")[0] == 0
    status, out, _ = run("inspect r --require policy.toml --ledger private.ledger.jsonl")
    assert status == 1
    assert not lacking(out, "each owner's ledger counts", "leave the ledger out")


def test_a_summary_states_its_part_its_lists_and_where_its_rows_came_from(here, run):
    command = SUMMARISE.format("private", "north", "s")
    status, out, _ = run(
        f"{command} --public public --class-list-name beetles --curator Ada --date 2026-01-02"
    )
    assert status == 0
    assert not lacking(out, "s: summary of 'north' over 3 classes of width 5", "mean of public")
    assert not lacking(out, "tacit ledger private --allow rho=0.5")
    document = Summary.load("s").verify().document
    assert document.recipe.class_list == "beetles"
    assert document.recipe.public_data.name == "public"
    assert (document.product.curator, document.product.date) == ("Ada", "2026-01-02")
    assert document.product.name == "summary of north"
    assert document.combination.class_lists == (tuple(CLASSES),)


def test_inspect_checks_a_summary_and_prints_its_card(two, run):
    assert run("combine a b --as-summary --out both")[0] == 0
    for folder in ("a", "both"):
        status, out, _ = run(f"inspect {folder}")
        assert status == 0
        assert out.startswith(f"{folder}: verified; ")
        assert Path(f"{folder}/CARD.md").read_text(encoding="utf-8") in out
    printed = json.loads(run("inspect both --json")[1])
    assert printed["verified"] is True
    assert [part["name"] for part in printed["document"]["combination"]["parts"]] == ["A", "B"]
    for option in ("--registry r.yaml", "--dossier d.html"):
        refused(run, f"inspect a {option}", "does not apply: a holds a summary")
    card = Path("a/CARD.md")
    card.write_text(card.read_text() + "and more")
    refused(run, "inspect a", "CARD.md does not say")


def test_a_sum_is_a_summary_again_and_has_the_same_bits_in_any_grouping(two, run):
    assert run("combine a b --as-summary --out ab --date 2026-01-02")[0] == 0
    assert run(SUMMARISE.format("test", "C", "c") + " --public public")[0] == 0
    assert run("combine c ab --as-summary --out one --date 2026-01-02")[0] == 0
    others = "--as-summary --folder sums --jobs 1"
    assert run(f"combine b c a {others} --out other --date 2026-01-02")[0] == 0
    for file in Path("one").iterdir():
        assert file.read_bytes() == Path("other", file.name).read_bytes()


def test_declarations_decide_the_cost(two, run):
    def rho(options):
        status, out, _ = run(f"combine a b {options} --json --force --out r")
        assert status == 0
        return json.loads(out)["rho"]

    assert rho("") == pytest.approx(0.5)
    assert rho("--overlapping") == pytest.approx(1.0)
    assert rho("--moving") == pytest.approx(0.5)
    assert run(SUMMARISE.format("private", "C", "c") + " --public public --unit replace")[0] == 0
    out = run("combine a c --keep-noisy --out mixed")[1]
    assert not lacking(out, "A: 3 classes", "under add-remove;")
    assert not lacking(out, "C: 3 classes", "under replace;")
    assert "the costs of all parts add up" in run("combine a b --overlapping --out p")[1]
    # names that differ by case are one part
    assert run(SUMMARISE.format("second", "a", "d") + " --public public")[0] == 0
    assert "release of 2 summaries of 1 part," in run("combine a d --out q")[1]
    assert words_of_parts(["A", "b", "a", "B"]) == "2 parts (A, b)"


def test_the_ledger_is_charged_for_the_part(here, run):
    run("ledger private --allow rho=.6 --parts 2025,2026")
    for part in ("2025", "2026"):
        assert run(SUMMARISE.format("private", part, part))[0] == 0
    refused(run, SUMMARISE.format("private", "2025", "again"), "overdraw the ledger")
    refused(run, SUMMARISE.format("private", "2027", "other"), "2027")
    assert not lacking(run("ledger private")[1], "2025", "2026")


def test_outputs_and_facts_are_checked_before_anything_is_charged(here, run):
    run("ledger private --allow rho=1")
    command = SUMMARISE.format("private", "A", "{}").replace("--out {}", "")
    for options, *words in (
        ("--out public", "public exists"),
        ("--out public --force", "holds something else"),
        ("--out nowhere/s", "is not a folder"),
        ("--out s --date today", "'today'"),
        ("--out s --public private", "is the private data"),
        ("--out s --noise research --seed 0", "not for release"),
        ("--out s --noise research", "needs a seed"),
        ("--out s --unit add-remove-person", "needs person ids"),
        ("--out s --class-list-name=", "is empty"),
    ):
        refused(run, f"{command} {options}", *words)
    line = command.replace("rho=.5", "{}") + " --out s"
    for budget in ("rho=nan", "rho=inf", "rho=-1", "none"):
        refused(run, line.format(budget), "budget")
    refused(run, "summarise private --part A --out s", "--budget is missing")
    refused(run, "summarise private --budget rho=1 --out s", "--part is missing")
    np.savez("undeclared.npz", x=np.ones((4, 5)), y=np.arange(4) % 2)
    refused(run, SUMMARISE.format("undeclared.npz", "A", "s"), "--classes")
    assert run("summarise private --budget rho=1 --part A --out s")[0] == 0


def test_what_is_no_summary_is_named(two, run):
    assert run("combine a --out r")[0] == 0
    for folders, *words in (
        ("", "no summaries to combine"),
        ("nowhere", "nowhere does not exist"),
        ("a r", "r is a release and not a summary"),
        ("private", "an embedding store", "make one with tacit summarise private"),
        ("a b a", "part 'A' is there twice"),
        ("a public/manifest.json", "is not a folder"),
    ):
        refused(run, f"combine {folders} --out q", *words)
    assert run("label-public r public --out labels")[0] == 0
    refused(run, "combine labels --out q", "holds labels of public rows and not a summary")
    refused(run, "fit noisy-sum a --budget rho=1 --out q", "a holds a summary and no records")
    refused(run, SUMMARISE.format("r", "A", "q"), "r holds a release and no records")
    refused(run, "combine a --out r", "r exists")
    refused(run, "combine a --out a --force --as-summary", "is the summary a, or in it")
    refused(run, "combine a --out a/r", "is the summary a, or in it")
    refused(run, "combine a --out q --public test", "is not the centre of the summaries")
    refused(run, "combine a --out q --names test", "give --public")
    refused(run, "combine a --out q --public public --as-summary", "--as-summary makes none")
    refused(run, "combine a --out q --curator Ada --as-summary", "--curator does not go")


@pytest.mark.parametrize(
    "line",
    [
        "predict a test --out p.csv",
        "evaluate a test",
        "publish a --to hub",
        "page a --out a.html",
        "adapt a test --out q",
        "export a --onnx a.onnx",
        "label-public a public --out q",
        "choose a a --on test --budget rho=1",
        "inspect a --require policy.toml",
    ],
)
def test_a_summary_in_place_of_a_release_is_named_with_the_remedy(here, run, line):
    Path("policy.toml").write_text('unit = "add-remove"\n')
    assert run(SUMMARISE.format("private", "A", "a"))[0] == 0
    refused(run, line, "a holds a summary", "tacit combine a --out RELEASE")


def test_another_recipe_is_refused_with_the_difference(two, run):
    assert run(SUMMARISE.format("second", "C", "c"))[0] == 0
    refused(
        run,
        "combine a c --out q",
        "a and c do not add up",
        "the same public rows (--public), or none",
    )
    np.save("fewer.npy", EmbeddingStore.open("public").x[:20])
    assert run(SUMMARISE.format("second", "E", "e") + " --public fewer.npy")[0] == 0
    refused(run, "combine a e --out q", "their public rows are not the same", "summarise --like")
    command = SUMMARISE.format("second", "D", "d") + " --public public --class-list-name other"
    assert run(command)[0] == 0
    refused(run, "combine a d --out q", "name of the class list", "'other'")


def test_several_summaries_of_one_part_are_named(two, run):
    assert run(SUMMARISE.format("second", "a", "again") + " --public public")[0] == 0
    out = run("combine a b again --public public --out r")[1]
    assert not lacking(out, "r: release of 3 summaries of 2 parts")
    assert not lacking(out, "2 summaries are of one part, 'A', 'a': their costs add up")
    assert "rho = 1 (zCDP)" in out
    assert "of one part" not in run("combine a b --public public --out r2")[1]

    out = run("combine a b again --public public --without a --out r3")[1]
    assert not lacking(out, "Left out: a, of part 'A'")
    assert not lacking(out, "Left out: again, of part 'a'")


def test_the_dossier_says_that_some_parts_used_persons(two, run):
    x, y = rows(np.random.default_rng(4), 90)
    persons = np.arange(90) // 3
    EmbeddingStore.write("of_persons", x, y, classes=CLASSES, labels="index", persons=persons)
    command = SUMMARISE.format("of_persons", "P", "p") + " --public public"
    assert run(f"{command} --unit add-remove-person")[0] == 0
    for summaries, words in (("a p", "was used in the parts"), ("a b", "was not used")):
        assert run(f"combine {summaries} --public public --out r --force")[0] == 0
        assert run("inspect r --dossier d.html --force")[0] == 0
        (whom,) = [fact for fact in facts_of("d.json") if fact["name"] == "From whom"]
        assert words in whom["text"]


def test_an_altered_summary_is_asked_for_again(two, run):
    path = Path("a/sums.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    refused(run, "combine a b --out q", "get the summary again from its owner")


def test_remedies_name_options(two, run):
    refused(run, "combine a b --method auto --out q", "(--public)")
    refused(run, "combine a b --method least-squares --out q", "(--moments)")


def test_an_interrupt_leaves_no_output(two, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.releases.summary.Summary.files", interrupt)
    assert run("combine a b --as-summary --out both")[0] == 130
    assert run(SUMMARISE.format("private", "C", "c"))[0] == 130
    assert not Path("both").exists()
    assert not Path("c").exists()
    assert not list(Path().glob(".*.part"))


def test_second_moments_are_combined_by_least_squares(here, run):
    for store, name in (("private", "a"), ("second", "b")):
        command = SUMMARISE.format(store, name.upper(), name)
        assert run(f"{command} --public public --moments")[0] == 0
    status, out, err = run("combine a b --method least-squares --out r")
    assert (status, err) == (0, "")
    assert "r: release of 2 summaries of 2 parts" in out
    assert "of its moments 1.825" in out
    release = Release.load("r").verify()
    assert "solved for from noisy moments" in release.document.contents.what
    assert run("inspect r")[0] == 0
    assert run("evaluate r test")[0] == 0

    refused(run, "combine a b --method other --out r2", "method='other'", "least-squares")
    combined = "combine a b --method least-squares --as-summary --out r2"
    refused(run, combined, "--method least-squares", "--as-summary makes none")


def test_an_agreed_summary_gives_the_list_its_name_and_its_sources(two, run):
    command = SUMMARISE.format("{}", "{}", "{}") + " --public public"
    agreed = command.format("private", "N", "agreed") + " --class-list-name beetles"
    assert run(f"{agreed} --source classes=a")[0] == 0
    EmbeddingStore.write("third", *rows(np.random.default_rng(2), 90))
    for like, out in (("agreed", "c"), ("agreed/summary.json", "d")):
        line = f"{command.format('third', out, out)} --like {like} --labels index"
        assert run(line)[0] == 0, run(line)
        recipe = Summary.load(out).recipe
        assert recipe.class_list == "beetles"
        assert [source.parts for source in recipe.sources] == [("A",)]
    assert run("combine c d agreed --public public --out r")[0] == 0


def test_what_does_not_fit_an_agreed_summary_is_refused_before_anything_is_charged(two, run):
    run("ledger private --allow rho=1")
    np.save("other.npy", EmbeddingStore.open("public").x[:20])
    wide = EmbeddingStore.open("private").x[:]
    np.savez("wide.npz", x=np.hstack([wide, wide]), y=np.tile(CLASSES, 30))
    card = {"encoder": {"name": "resnet"}}
    x, y = rows(np.random.default_rng(3), 90)
    EmbeddingStore.write("encoded", x, y, classes=CLASSES, labels="index", card=card)
    EmbeddingStore.write("more", x, y, classes=[*CLASSES[:2], "dog"], labels="index")
    command = SUMMARISE.format("{}", "C", "c") + " --like a"
    for line, *words in (
        ("private", "the rows are 'unit rows' here", "'public' with --public"),
        ("private --public other.npy", "the hash of the centre is"),
        ("wide.npz --public public", "columns"),
        ("wide.npz", "unit rows"),
        ("encoded --public public", "the encoder is 'resnet' and 'not stated'"),
        ("private --public public --class-list-name other", "'other' and 'not stated'"),
        ("more --public public", "does not list: 'dog'", "--classes"),
        ("private --public public --classes ant,Bee,cow", "'bee' and 'Bee' differ by case"),
        ("private --public public --classes 3", "of type int", "of type str"),
    ):
        refused(run, command.format(line), *words)
    refused(run, command.format("private").replace("--like a", "--like private"), "not a summary")
    # further classes are welcome
    assert run(command.format("more --public public --classes ant,bee,cow,dog"))[0] == 0
    assert run("combine a c --public public --out r")[0] == 0
    assert len(Release.load("r").classes) == 4


def test_a_part_leaves_and_what_has_seen_it_is_named(two, run):
    assert run(SUMMARISE.format("test", "C", "c") + " --public public --source centre=a")[0] == 0
    status, out, _ = run("combine a b --public public --without A --out r")
    assert status == 0
    assert not lacking(out, "Left out: a, of part 'A'")
    assert not lacking(out, "This recalls nothing")
    assert not lacking(out, "never saw 'A'")
    assert [part.name for part in Release.load("r").document.pattern.combination.parts] == ["B"]

    status, out, _ = run("combine a b c --public public --without A --out seen")
    assert status == 0
    assert not lacking(out, "c: its centre was computed from 'summary of A', which holds 'A'")
    assert not lacking(out, "so seen cannot be said never to have seen it")
    assert run("inspect seen --dossier seen.html")[0] == 0
    (seen,) = [fact for fact in facts_of("seen.json") if fact["name"].startswith("Computed")]
    assert seen["text"] == "centre from summary of A (of A)"
    printed = json.loads(run("combine a b c --without A --json --as-summary --out s")[1])
    assert printed["left_out"] == [{"summary": "a", "part": "A"}]
    assert [held["where"] for held in printed["still_holds"]] == ["c"]

    status, out, err = run("combine a b c --without A --forget --out forgotten")
    assert (status, out) == (1, "")
    assert not lacking(err, "forgotten was not written", "c: its centre was computed from")
    assert not Path("forgotten").exists()
    assert run("combine a b --without A --forget --out forgotten")[0] == 0


def test_parts_that_cannot_leave_are_refused(two, run):
    assert run("combine a b --as-summary --out ab")[0] == 0
    refused(run, "combine ab --without A --out q", "'A' cannot be taken out of ab")
    refused(run, "combine a b --without C --out q", "without='C' is no part of the summaries")
    refused(run, "combine a b --without A --without B --out q", "no summary remains")
    refused(run, "combine a b --forget --out q", "name one with --without")
    for source in ("centre", "centre=", "weights=a", "centre=nowhere"):
        line = SUMMARISE.format("private", "C", "c") + f" --source {source}"
        refused(run, line, source.partition("=")[2] or source.partition("=")[0])


def test_parts_that_are_too_noisy_are_named_by_their_multipliers(two, run):
    assert "sums lower the expected quality" not in run("combine a b --out r")[1]
    loud = "summarise test --budget rho=.001 --part loud --public public --out loud"
    assert run(loud)[0] == 0
    out = run("combine a b loud --out q")[1]
    assert not lacking(
        out, "Left out a summary of 'loud'", "lower the expected quality", "--keep-noisy keeps"
    )
    assert "loud" not in Release.load("q").card()
    assert run("combine a b loud --keep-noisy --out kept")[0] == 0
    assert "loud" in Release.load("kept").card()
    # a sum that others are added to loses nothing
    assert run("combine a b loud --as-summary --out sum")[0] == 0
    assert len(Summary.load("sum").parts) == 3


def test_a_part_counts_at_its_allowance(two, run):
    status, out, _ = run("combine a b --allowance A:rho=2 --out r")
    assert (status, Release.load("r").verify().guarantee.rho) == (0, pytest.approx(2))
    assert "rho = 2" in out
    refused(run, "combine a b --allowance A --out q", "must name a part and its budget")
    refused(run, "combine a b --allowance A:rho=.0001 --out q", "cost more than its allowance")

"""Summaries: what they hold, that they add up exactly, and what is refused."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tacit
from messages import stating
from tacit.errors import InputError, LedgerError, ReleaseError
from tacit.models.summarised import COUNT_SCALE, COUNT_SHARE, ROW_SCALE, SAME_CENTRE, UNIT
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian
from tacit.privacy.parts import combined
from tacit.releases.combination import Declared, noise_of_classes, united_classes
from tacit.releases.plausible import implausible
from tacit.releases.summary import Summary, added_up, assembled
from tacit.releases.summary_document import SummaryDocument, summary_card

RNG = np.random.default_rng(0)
CENTRES = 2 * RNG.normal(size=(3, 5))
X = np.concatenate([centre + RNG.normal(size=(40, 5)) for centre in CENTRES])
Y = np.repeat([0, 1, 2], 40)
PUBLIC = np.concatenate([centre + RNG.normal(size=(20, 5)) for centre in CENTRES])


def summary_of(part, budget="rho=0.5", classes=3, x=X, y=Y, public=None, **facts):
    fit = tacit.ClassSummary(budget, classes=classes, part=part, public=public)
    return Summary.of(fit.fit(x, y), date="2026-01-01", **facts)


ALL = [summary_of(part, public=PUBLIC) for part in ("A", "B", "C", "D")]


def test_sums_and_counts_are_those_of_the_records():
    research = tacit.ClassSummary(
        "rho=1e6", classes=3, part="A", noise="research", random_state=0
    ).fit(X, Y)
    sums, noise, counts, count_noise = Summary.of(research).noisy_sums()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    z = research.summarised_.noise
    assert np.allclose(sums, [unit[c == Y].sum(axis=0) for c in range(3)], atol=0.01)
    assert np.allclose(counts, 40, atol=0.02)
    assert np.allclose(noise, z / (1 - COUNT_SHARE) ** 0.5)
    assert np.allclose(count_noise, z / COUNT_SHARE**0.5)


def test_it_costs_its_budget_in_one_event_and_is_what_auto_releases_first():
    settings = {"public": PUBLIC, "noise": "research", "random_state": 3}
    one = tacit.ClassSummary("rho=0.5", classes=3, part="A", **settings).fit(X, Y)
    auto = tacit.AutoPrototypes("rho=0.5", classes=3, refine=False, **settings).fit(X, Y)
    assert one.guarantee_.rho == pytest.approx(0.5)
    assert one.guarantee_.event.base() == Gaussian(Budget.zcdp(0.5).gaussian(split=True))
    release = tacit.combine([Summary.of(one)], public=PUBLIC)
    arrays = tacit.Release.of(auto).arrays
    assert set(release.arrays) == set(arrays)
    for name, array in arrays.items():
        assert np.array_equal(release.arrays[name], array), name


def test_bits_depend_on_no_order_and_no_grouping():
    expected = added_up(ALL).files()
    for order in itertools.permutations(ALL):
        assert added_up(order).files() == expected
    a, b, c, d = ALL
    for grouped in ((a + b) + (c + d), a + (b + (c + d)), ((d + a) + c) + b):
        assert grouped.verify().files() == expected


def test_records_that_move_are_covered_under_add_remove_alone():
    """Under replace the number of records of a part is public, and a move changes it."""
    assert added_up(ALL, declared=Declared(moving=True)).guarantee == added_up(ALL).guarantee
    fits = [tacit.ClassSummary(classes=3, part=part, unit="replace").fit(X, Y) for part in "AB"]
    with pytest.raises(InputError, match=r"moving=True.*under unit=add-remove"):
        added_up([Summary.of(fit) for fit in fits], declared=Declared(moving=True))


def test_class_lists_unite_and_a_part_adds_nothing_to_classes_that_it_does_not_list():
    names = np.array(["ant", "bee", "cow"])
    first = summary_of("A", classes=["cow", "bee"], x=X[40:], y=names[Y[40:]])
    second = summary_of("B", "rho=0.125", ["ant", "bee"], X[:80], names[Y[:80]])
    both = (first + second).verify()
    assert both.classes == ("ant", "bee", "cow")
    assert noise_of_classes(both.document.combination) == pytest.approx([2, 5**0.5, 1])
    integers = {
        label: row
        for one in (first, second)
        for label, row in zip(one.classes, one.totals, strict=True)
        if label != "bee"
    }
    assert np.array_equal(both.totals[0], integers["ant"])
    assert np.array_equal(both.totals[2], integers["cow"])
    again = added_up([*ALL]).document.combination
    assert noise_of_classes(again) == pytest.approx(2 * ALL[0].parts[0].noise_of_sums)
    assert united_classes(first.document.combination) == ("cow", "bee")


def test_sums_beyond_64_bits_are_kept_in_two_words(tmp_path):
    def large(part):
        small = summary_of(part)
        arrays = {"sums": np.full((3, 6), 2**61, dtype=np.int64)}
        document = small.document
        row = document.combination.parts[0].model_copy(update={"name": part})
        combination = document.combination.model_copy(update={"parts": (row,)})
        return assembled(small.recipe, combination, arrays, document.product, document.noise)

    class Trusting(Summary):
        def verify(self):
            return self

    trusted = [Trusting(**vars(large(part))) for part in ("A", "B", "C")]
    total = added_up(trusted)
    assert set(total.arrays) == {"sums", "sums_high"}
    assert (total.totals / 2**61).tolist() == np.full((3, 6), 3.0).tolist()


def test_the_guarantee_is_the_maximum_over_parts_and_the_sum_where_they_overlap():
    cheap, dear = summary_of("A", "rho=0.1"), summary_of("B", "rho=0.4")
    assert (cheap + dear).guarantee.rho == pytest.approx(0.4)
    assert added_up(
        [cheap, dear], declared=Declared(overlapping=True)
    ).guarantee.rho == pytest.approx(0.5)
    again = summary_of("B", "rho=0.2")
    assert (cheap + dear + again).guarantee.rho == pytest.approx(0.6)
    parts = [("A", cheap.guarantee), ("B", dear.guarantee)]
    assert (cheap + dear).guarantee == combined(parts)
    assert "that no record is in two of the 2 parts 'A', 'B'" in (cheap + dear).card()


def test_the_same_sums_are_refused_twice():
    a, b, c, _ = ALL
    with pytest.raises(InputError, match=r"part 'A' is there twice"):
        added_up([a, b, a])
    with pytest.raises(InputError, match=r"part 'B' is there twice"):
        (a + b) + (b + c)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: summary_of("B"), "the same public rows (--public), or none"),
        (lambda: summary_of("B", x=X[:, :4], public=PUBLIC[:, :4]), "the width is '5' and '4'"),
        (lambda: summary_of("B", public=PUBLIC[:30]), "the hash of the centre"),
        (lambda: summary_of("B", public=PUBLIC, class_list="ICD-10"), "name of the class list"),
        (
            lambda: summary_of("B", public=PUBLIC, classes=list("abc"), y=np.array(list("abc"))[Y]),
            "the type of the labels is 'int' and 'str'",
        ),
        (lambda: summary_of("B", public=PUBLIC, encoder={"name": "other"}), "the encoder is"),
    ],
)
def test_another_recipe_is_refused_with_the_difference(other, difference):
    with pytest.raises(InputError, match=stating(difference)):
        ALL[0] + other()


def test_labels_that_differ_by_case_alone_are_refused():
    texts = np.array(["ant", "bee", "cow"])[Y]
    first = summary_of("A", classes=["ant", "bee", "cow"], y=texts)
    second = summary_of("B", classes=["Ant", "bee", "cow"], y=np.array(["Ant", "bee", "cow"])[Y])
    with pytest.raises(InputError, match="differ by case"):
        first + second


def test_labels_that_one_list_tells_apart_are_two_classes():
    """One owner may have classes that differ by case, which were paid for."""
    names = np.array(["Ca", "CA", "Mg"])
    first = summary_of("A", classes=list(names), y=names[Y])
    assert set((first + summary_of("B", classes=list(names), y=names[Y])).classes) == set(names)
    less = summary_of("B", classes=["CA", "Mg"], x=X[40:], y=names[Y[40:]])
    assert set((first + less).classes) == set(names)
    other = summary_of("B", classes=["ca", "Mg"], x=X[:40], y=["ca"] * 40)
    for summaries in ([first, other], [other, first]):
        with pytest.raises(InputError, match="differ by case"):
            added_up(summaries)


def test_encoders_of_other_hashes_do_not_add_up_in_any_order():
    """A hash that one of them does not state is not compared."""
    one, other = ("1" * 64, "2" * 64)
    summaries = [
        summary_of("A", encoder={"name": "e"}),
        summary_of("B", encoder={"name": "e", "hash": one}),
        summary_of("C", encoder={"name": "e", "hash": other}),
    ]
    assert (summaries[0] + summaries[1]).recipe.encoder.hash == one
    for order in itertools.permutations(summaries):
        with pytest.raises(InputError, match="the encoder's hash is"):
            added_up(order)
    with pytest.raises(InputError, match="the encoder's hash is"):
        (summaries[0] + summaries[1]) + summaries[2]


def test_centres_that_are_rounded_otherwise_are_one():
    shifted = PUBLIC * (1 + 1e-13)
    first, second = ALL[0], summary_of("B", public=shifted)
    difference = np.abs(first.centre - second.centre).max()
    assert 0 < difference < SAME_CENTRE
    assert (first + second).files() == (second + first).files()


def test_it_is_written_read_and_verified(tmp_path):
    total = ALL[0] + ALL[1]
    folder = total.save(tmp_path / "s")
    again = Summary.load(folder).verify()
    assert again.files() == total.files()
    with pytest.raises(InputError):
        total.save(tmp_path / "s")
    total.save(tmp_path / "s", force=True)


def changed(folder, *path, value):
    """Change a value of the document, with the card that goes with it."""
    file = folder / "summary.json"
    document = json.loads(file.read_text())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(document))
    model = SummaryDocument.model_validate_json(json.dumps(document))
    (folder / "CARD.md").write_text(summary_card(model))
    return folder


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("guarantee", "event", "event", "event", "noise_multiplier"), 100.0),
        (("guarantee", "unprotected"), []),
        (("combination", "overlapping"), True),
        (("combination", "costs", 0, "rho"), 0.001),
        (("combination", "costs", 0, "epsilon"), 0.001),
        (("combination", "parts", 0, "name"), "Z"),
        (("combination", "parts", 0, "name"), "A "),
        (("statement",), "nothing is revealed"),
        (("in_words",), "nothing is revealed"),
        (("stamp",), "NOT FOR RELEASE"),
        (("sha256",), "0" * 64),
        (("recipe", "centre_sha256"), "0" * 64),
        (("recipe", "class_type"), "str"),
    ],
)
def test_a_forged_statement_is_refused(tmp_path, path, value):
    folder = changed((ALL[0] + ALL[1]).save(tmp_path / "s"), *path, value=value)
    with pytest.raises(ReleaseError):
        Summary.load(folder).verify()


def poisoned(change):
    """A summary whose arrays were changed, and whose document and card go with them."""
    good = summary_of("poisoned")
    sums = good.arrays["sums"].copy()
    change(sums)
    document = good.document
    return assembled(
        good.recipe, document.combination, {"sums": sums}, document.product, document.noise
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda sums: sums.__setitem__((1, 0), 10**12 * UNIT // 2**12), "longer sum"),
        (lambda sums: sums.__setitem__((1, slice(5)), int(60 * ROW_SCALE) * UNIT), "longer sum"),
        (lambda sums: sums.__setitem__((2, 5), -int(20 * COUNT_SCALE * UNIT) * 5), "negative"),
        (lambda sums: sums.__setitem__((0, 5), int(2**31.5 * COUNT_SCALE) * UNIT), "more than"),
    ],
)
def test_a_poisoned_summary_is_named_and_not_added(change, fault):
    bad = poisoned(change)
    with pytest.raises(ReleaseError, match=fault):
        bad.verify()
    with pytest.raises(ReleaseError, match=fault):
        added_up([summary_of("A"), bad])


def test_honest_summaries_are_plausible_whatever_their_noise():
    for budget in ("rho=1e-6", "rho=0.01", "rho=100"):
        summary_of("A", budget).verify()
    sums = np.zeros((2, 3))
    assert implausible(sums, np.ones(2), (0, 1), 1) is None


def test_arrays_of_another_form_are_refused(tmp_path):
    folder = ALL[0].save(tmp_path / "s")
    for arrays in (
        {"sums": np.full((3, 6), np.nan), "centre": np.zeros(5)},
        {"sums": np.zeros((3, 5), dtype=np.int64), "centre": np.zeros(5)},
        {"sums": np.zeros((3, 6), dtype=np.int64), "centre": np.full(5, np.nan)},
        {"sums": np.zeros((3, 6), dtype=np.int64)},
    ):
        save_file(arrays, folder / "sums.safetensors")
        with pytest.raises(ReleaseError):
            Summary.load(folder)


def test_a_stamped_summary_is_refused(tmp_path):
    fit = tacit.ClassSummary(classes=3, part="A", noise="research", random_state=0).fit(X, Y)
    stamped = Summary.of(fit)
    with pytest.raises(ReleaseError, match="NOT FOR RELEASE"):
        stamped.save(tmp_path / "s")
    both = stamped + ALL[3] if stamped.centre is not None else stamped + summary_of("B")
    assert both.document.stamp == "NOT FOR RELEASE"
    assert both.document.noise == "research"


def test_what_is_no_class_summary_is_refused():
    noisy = tacit.NoisySumPrototypes(classes=3).fit(X, Y)
    with pytest.raises(ReleaseError, match="is no ClassSummary"):
        Summary.of(noisy)
    fit = tacit.ClassSummary(classes=3, part="A").fit(X, Y)
    with pytest.raises(ReleaseError, match=r"pass tacit\.Summary\.of"):
        tacit.Release.of(fit)
    with pytest.raises(InputError, match="does not predict"):
        fit.predict(X)
    fit.set_params(budget="rho=0.1")
    with pytest.raises(ReleaseError, match="changed after fit"):
        Summary.of(fit)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classes": None}, "would read the class list"),
        ({"budget": "rho=inf"}, "pass a finite budget"),
        ({"part": None}, "must name the records"),
        ({"part": "A "}, "spaces at its ends"),
    ],
)
def test_parameters_that_no_summary_can_have_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        tacit.ClassSummary(**({"classes": 3, "part": "A"} | parameters)).promise()


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_summary_that_was_written_earlier_verifies_and_adds_up(name):
    written = Path(__file__).parent / "written" / "summary-1" / name
    summary = Summary.load(written).verify()
    for file, data in summary.files().items():
        assert (written / file).read_bytes() == data
    assert tacit.combine([written]).verify().guarantee.rho == pytest.approx(0.5)


def test_a_ledger_is_charged_for_the_part(tmp_path):
    ledger = tacit.Ledger(tmp_path / "l.jsonl", identity="hospital")
    ledger.allow("rho=1", parts=["2025", "2026"])
    for part in ("2025", "2026"):
        tacit.ClassSummary("rho=0.6", classes=3, part=part, ledger=ledger).fit(X, Y)
    assert [charge.part for charge in ledger.account().charges] == ["2025", "2026"]
    with pytest.raises(LedgerError):
        tacit.ClassSummary("rho=0.6", classes=3, part="2025", ledger=ledger).fit(X, Y)


def test_a_part_with_an_allowance_counts_at_it():
    a, b = summary_of("A", "rho=0.1"), summary_of("B", "rho=0.3")
    again = summary_of("A", "rho=0.1")
    release = tacit.combine([a, b, again], allowances={"A": "rho=0.5"}).verify()
    assert release.guarantee.rho == pytest.approx(0.5)
    assert release.document.pattern.combination.allowances == {"A": "rho=0.5"}
    assert "that the budgets of 'B' were fixed beforehand" in release.card()
    total = added_up([a, again, b], declared=Declared.of(allowances={"A": "rho=0.5"}))
    with pytest.raises(InputError, match="was combined with"):
        total + summary_of("C")
    with pytest.raises(InputError, match="cost more than its allowance"):
        tacit.combine([a, again], allowances={"A": "rho=0.15"})
    with pytest.raises(InputError, match="no part of the releases"):
        tacit.combine([a], allowances={"Z": "rho=1"})


def test_a_part_that_is_too_noisy_is_left_out_by_its_multiplier_alone():
    clear, noisy = summary_of("clear", "rho=10"), summary_of("noisy", "rho=1e-4")
    with pytest.warns(UserWarning, match="left out a summary of 'noisy'.*keep_noisy=True"):
        release = tacit.combine([noisy, clear])
    assert [row.name for row in release.document.pattern.combination.parts] == ["clear"]
    with pytest.warns(UserWarning, match="left out"):
        # the allowance of a part that is left out bounds nothing
        tacit.combine([noisy, clear], allowances={"noisy": "rho=1"})
    kept = tacit.combine([noisy, clear], keep_noisy=True)
    assert len(kept.document.pattern.combination.parts) == 2
    texts = np.array(["ant", "bee"])
    alone = summary_of("alone", "rho=1e-4", ["ant"], X[:40], texts[Y[:40]])
    both = tacit.combine([alone, summary_of("B", "rho=10", ["bee"], X[40:80], texts[Y[40:80]])])
    assert len(both.document.pattern.combination.parts) == 2

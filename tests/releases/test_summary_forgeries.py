"""Summaries that somebody made up as a whole: each statement agrees with the others but one."""

import hashlib
import json
import sys

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.mechanisms import gaussian, outer_products
from tacit.models.summarised import OF_MOMENTS, OF_SUMS, event_of_noise
from tacit.privacy.events import ZCDP, Gaussian, Parallel, PureDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases import noisy
from tacit.releases.card import render_card
from tacit.releases.combination import (
    Declared,
    PartCost,
    PartRow,
    Summand,
    combination_of,
    noise_of_classes,
    other_noise,
)
from tacit.releases.reading import arrays_file
from tacit.releases.release import Release
from tacit.releases.summary import Summary, added_up, assembled

X = np.repeat(np.eye(3), 20, axis=0)
Y = np.repeat([0, 1, 2], 20)


def summary_of(part, unit="add-remove", classes=3):
    persons = np.arange(len(Y)) if "person" in unit else None
    fit = tacit.ClassSummary("rho=0.5", classes=classes, part=part, unit=unit)
    return Summary.of(fit.fit(X, Y, persons=persons))


HONEST = summary_of("A")
NOISE = HONEST.parts[0].noise_of_sums


def forged(noise=NOISE, cost=HONEST.guarantee, sums=None, high=None, sha256=None):
    """A summary of part B, which is read from files that agree in all that follows from these."""
    arrays = {"sums": np.zeros((3, 4), np.int64) if sums is None else sums}
    if high is not None:
        arrays["sums_high"] = high
    row = PartRow(
        name="B",
        date="2026-01-01",
        noise_of_sums=noise,
        noise_of_moments=None,
        class_list=0,
        cost=0,
        sha256=sha256 or hashlib.sha256(arrays_file(arrays)).hexdigest(),
    )
    combination = combination_of([Summand(row, (0, 1, 2), PartCost.of(cost))])
    document = HONEST.document
    made = assembled(HONEST.recipe, combination, arrays, document.product, document.noise)
    return Summary.of_files(made.files(allow_research=True))


def test_a_summary_that_agrees_in_all_is_read():
    assert (forged().verify() + HONEST).guarantee.rho == pytest.approx(0.5)


@pytest.mark.parametrize(
    "values",
    [
        {"noise": 0.0},
        {"noise": 1e-9},
        {"noise": NOISE * 1.0001},
        {"noise": 9e29},
        {"cost": Guarantee(Unit.ADD_REMOVE, Parallel(Gaussian(100.0), over="classes"))},
        {"cost": Guarantee(Unit.ADD_REMOVE, Gaussian(NOISE))},
        {"cost": Guarantee(Unit.ADD_REMOVE, Parallel(Gaussian(NOISE), over="splits"))},
        {"cost": Guarantee(Unit.REPLACE, Gaussian(NOISE))},
        {"cost": Guarantee(Unit.ADD_REMOVE, ZCDP(0.0))},
        {"cost": Guarantee(Unit.ADD_REMOVE, PureDP(0.001))},
        {"cost": Guarantee(Unit.ADD_REMOVE, 2 * Parallel(Gaussian(NOISE), over="classes"))},
        {
            "cost": Guarantee(
                Unit.ADD_REMOVE, ZCDP(0.0), (), (("vip", Parallel(Gaussian(NOISE), "classes")),)
            )
        },
    ],
)
def test_noise_that_does_not_go_with_the_cost_is_refused(values):
    """A weight follows from the noise, and the promise from the cost."""
    with pytest.raises(ReleaseError, match="cost of part 'B' is not that of sums with its noise"):
        forged(**values).verify()


@pytest.mark.parametrize("unit", list(Unit))
def test_the_noise_of_every_unit_goes_with_its_cost(unit):
    assert other_noise(summary_of("A", unit).verify().document.combination) is None
    assert OF_SUMS.under(unit) == gaussian.CLASS_SUMS.under(unit)
    assert OF_MOMENTS.under(unit) == outer_products.MOMENTS.under(unit)


def test_second_moments_cost_what_their_noise_says():
    both = event_of_noise(Unit.ADD_REMOVE, 2.0, 4.0)
    assert both == Parallel(Gaussian(2.0), over="classes") + Gaussian(4.0)
    assert event_of_noise(Unit.CHANGE_LABEL, 2.0, 0.0).counted()[0][1] == 1


def test_numbers_that_would_wrap_around_in_64_bits_are_refused_whatever_their_noise():
    cost = Guarantee(Unit.ADD_REMOVE, Parallel(Gaussian(9e29), over="classes"))
    extremes = {
        "sums": {"sums": np.full((3, 4), -(2**63))},
        "high": {"high": np.full((3, 4), 2**63 - 1)},
    }
    with pytest.raises(ReleaseError, match="larger numbers than sums have"):
        added_up([forged(9e29, cost, **extremes["high"])] * 2)
    # 2^63 units of 2^-32 are less than the noise of many
    forged(9e29, cost, **extremes["sums"]).verify()


def test_a_part_cannot_take_the_hash_of_another_ones_arrays():
    with pytest.raises(ReleaseError, match="hash of other arrays"):
        forged(sha256=HONEST.sha256).verify()


def test_both_that_name_the_same_sums_are_named(tmp_path):
    both = (HONEST + forged()).save(tmp_path / "both")
    own = HONEST.save(tmp_path / "own")
    with pytest.raises(InputError, match=stating(f"in {both} and in {own}")):
        added_up([both, own])


@pytest.mark.parametrize(
    "lists", [[[0, 0, 2]], [[0, True, 2]], [[0, 1.0, 2]], [[0, "a", 2]], [[0, 1], ["a", "b"]]]
)
def test_class_lists_of_equal_or_mixed_labels_are_refused(lists):
    two_lists = HONEST + summary_of("B", classes=[0, 1, 2, 3])
    files = (two_lists if len(lists) == 2 else HONEST).files()
    document = json.loads(files["summary.json"])
    document["combination"]["class_lists"] = lists
    with pytest.raises(ReleaseError, match="class list"):
        Summary.of_files(files | {"summary.json": json.dumps(document).encode()})


def test_the_noise_of_many_parts_with_many_class_lists_takes_little_time():
    """Each part has noise and a class list of its own, so pairs of class and part are many."""
    row = HONEST.parts[0]
    cost = HONEST.document.combination.costs[0]
    summands = [
        Summand(
            row.model_copy(update={"noise_of_sums": 1 + i / 1000, "sha256": f"{i:064x}"}),
            (-1, i),
            cost,
        )
        for i in range(2000)
    ]
    combination = combination_of(summands)
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        shared, *others = noise_of_classes(combination)
    finally:
        sys.setprofile(None)
    # a few for each part, of 4,000,000 pairs
    assert calls < 400_000
    assert shared == pytest.approx(sum((1 + i / 1000) ** 2 for i in range(2000)) ** 0.5)
    assert others == pytest.approx([1 + i / 1000 for i in range(2000)])


def test_more_class_lists_than_can_be_compared_are_refused(monkeypatch):
    """The documents are a stranger's, and parts times classes may be any number."""
    summaries = [HONEST, summary_of("B", classes=4), summary_of("C", classes=5)]
    monkeypatch.setattr(noisy, "MOST_PAIRS", 9)
    assert tacit.combine(summaries).guarantee.rho == pytest.approx(0.5)
    monkeypatch.setattr(noisy, "MOST_PAIRS", 8)
    with pytest.raises(InputError, match="3 class lists, too many"):
        tacit.combine(summaries)
    assert tacit.combine(summaries, keep_noisy=True).guarantee.rho == pytest.approx(0.5)


def test_a_message_of_many_allowances_is_short():
    parts = [f"clinic {'x' * 80} {i}" for i in range(6)]
    summaries = [summary_of(part) for part in parts]
    both = added_up(summaries, declared=Declared.of(allowances=dict.fromkeys(parts, "rho=1")))
    with pytest.raises(InputError, match="declare the same") as error:
        both + HONEST
    assert len(str(error.value)) < 600


def test_a_release_states_noise_that_goes_with_the_costs_of_its_parts():
    release = tacit.combine([HONEST]).verify()
    pattern = release.document.pattern
    row = pattern.combination.parts[0].model_copy(update={"noise_of_sums": 2 * NOISE})
    combination = pattern.combination.model_copy(update={"parts": (row,)})
    pattern = pattern.model_copy(update={"combination": combination})
    document = release.document.model_copy(update={"pattern": pattern})
    forgery = Release(
        document, release.arrays, release.sha256, render_card(document), release.source
    )
    with pytest.raises(ReleaseError, match="cost of part 'A' is not that of sums with its noise"):
        forgery.verify()

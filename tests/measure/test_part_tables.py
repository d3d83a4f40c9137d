"""Tables of several parts of the records: their sum, its file, and what is refused."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.compute.wide import Wide
from tacit.errors import InputError, ReleaseError
from tacit.measure import part_tables
from tacit.measure.intervals import Noise
from tacit.measure.part_tables import misfit, sha256_of
from tacit.measure.summed_noise import SummedNoise
from tacit.mechanisms.partition_tables import cell_counts, noise_of_cells
from tacit.privacy.events import Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import combined
from tacit.privacy.unit import Unit

CLASSES = ["cat", "dog", "eel"]
ROWS = np.repeat(np.eye(3), 40, axis=0)
LABELS = np.repeat(CLASSES, 40)
MODEL = tacit.NoisySumPrototypes("rho=5", classes=CLASSES).fit(ROWS, LABELS)
RELEASE = tacit.Release.of(MODEL)
WARDS = np.array(["a", "b"])[np.arange(120) % 2]


def table(part, budget="rho=0.5", release=RELEASE, **changes):
    return tacit.evaluate(release, ROWS, LABELS, budget=budget, part=part, **changes)


def words(evaluation):
    return {
        kind: (wide.high.tolist(), wide.low.tolist()) for kind, wide in evaluation.counts.items()
    }


@pytest.fixture(scope="module")
def tables():
    options = {"tables": ["right", "confidence"], "by": WARDS, "groups": ["a"]}
    return [
        table("hospital A", **options),
        table("hospital B", budget="rho=0.2", **options),
        table("hospital C", budget="mu=1", **options),
    ]


def test_sums_have_the_same_bits_in_any_order_and_grouping(tables, tmp_path):
    totals = [tacit.Evaluation.combine(order) for order in itertools.permutations(tables)]
    a, b, c = tables
    totals += [(a + b) + c, a + (c + b)]
    files = {total.save(tmp_path / f"{i}.json").read_bytes() for i, total in enumerate(totals)}
    assert len(files) == 1
    total = totals[0]
    for kind in ("right", "confidence"):
        exact = sum(
            one.counts[kind].high.astype(object) * 2**32 + one.counts[kind].low for one in tables
        )
        wide = total.counts[kind]
        assert (wide.high.astype(object) * 2**32 + wide.low == exact).all()
    assert total.overall.records == pytest.approx(360, abs=60)
    assert list(total.groups) == ["a", "other"]


def test_the_noise_of_a_sum_is_that_of_all_parts_and_the_price_that_of_the_dearest(tables):
    a, b, c = tables
    total = a + b + c
    variances = [one.cell_noise.variance for one in tables]
    # two tables share each budget
    assert variances == pytest.approx([2 / (2 * 0.5), 2 / (2 * 0.2), 2])
    assert total.cell_noise == Noise(math.sqrt(math.fsum(variances)))
    assert total.guarantee_.rho == pytest.approx(0.5)
    assert (b + c).guarantee_.rho == pytest.approx(0.5)
    assert [row.name for row in total.parts] == ["hospital A", "hospital B", "hospital C"]

    overlapping = tacit.Evaluation.combine([a, b], overlapping=True)
    assert overlapping.guarantee_.rho == pytest.approx(0.7)
    # who adds to a sum of overlapping parts cannot make it cheaper
    assert (overlapping + c).guarantee_.rho == pytest.approx(1.2)
    assert words(overlapping) == words(a + b)
    again = table("hospital A", tables=["right", "confidence"], by=WARDS, groups=["a"])
    assert (a + again + b).guarantee_.rho == pytest.approx(1.0)


N_CELLS = 3
MULTIPLIERS = {"A": 2.0, "B": 1.0}


def distances(unit, pairs):
    """The mu of both noisy tables, exactly, for each pair of data sets that differ in one record.

    A record is the set of its cells: of a part and a place in the table of this part.
    """
    others = [("A", 0), ("B", 0), ("B", 1)]
    found = []
    for pair in pairs:
        squares = 0.0
        for part, multiplier in MULTIPLIERS.items():
            old, new = (
                cell_counts(
                    np.array([cell for at, cell in [*others, *record] if at == part]), N_CELLS
                )
                for record in pair
            )
            moved = (new.high - old.high).astype(float)
            scale = noise_of_cells(Gaussian(multiplier), unit)
            squares += float((moved**2).sum()) / scale**2
        found.append(math.sqrt(squares))
    return found


def test_the_price_of_a_sum_holds_for_all_neighbours_and_some_reach_it():
    """All records, added or replaced, in one part or in both."""
    places = list(itertools.product(MULTIPLIERS, range(N_CELLS)))
    single = [(place,) for place in places]
    double = [pair for pair in itertools.product(places[:3], places[3:])]

    def price(unit, **declared):
        costs = [(part, Guarantee(unit, Gaussian(z))) for part, z in MULTIPLIERS.items()]
        return combined(costs, **declared)

    added = [((), record) for record in single]
    both = [((), record) for record in single + double]
    disjoint = price(Unit.ADD_REMOVE)
    overlapping = price(Unit.ADD_REMOVE, overlapping=True)
    assert max(distances(Unit.ADD_REMOVE, added)) == pytest.approx(disjoint.mu)
    assert max(distances(Unit.ADD_REMOVE, both)) == pytest.approx(overlapping.mu)
    assert overlapping.mu > disjoint.mu

    # a replaced record stays in its part, or moves to another one
    replaced = list(itertools.product(single, single))
    staying = [(old, new) for old, new in replaced if old[0][0] == new[0][0]]
    assert max(distances(Unit.REPLACE, staying)) == pytest.approx(price(Unit.REPLACE).mu)
    moving = price(Unit.ADD_REMOVE, moving=True).to(Unit.REPLACE)
    assert max(distances(Unit.ADD_REMOVE, replaced)) <= moving.mu


def test_a_file_gives_the_same_evaluation(tables, tmp_path):
    for i, one in enumerate([tables[0], tables[0] + tables[1]]):
        again = tacit.Evaluation.load(one.save(tmp_path / f"{i}.json"))
        assert words(again) == words(one)
        assert again.guarantee_ == one.guarantee_
        assert again.cell_noise == one.cell_noise
        assert again.combination == one.combination
        assert again.interval("accuracy") == one.interval("accuracy")
        assert again.statement() == one.statement()
        assert again.release_sha256 == RELEASE.sha256
        assert again.classes.dtype == one.classes.dtype


def test_a_sum_with_laplace_noise_has_intervals_by_its_own_law(tmp_path):
    a = table("A", budget="epsilon=1")
    b = table("B", budget="epsilon=0.5")
    gaussian = table("C", budget="mu=1")
    total = (a + b) + gaussian
    assert isinstance(total.cell_noise, SummedNoise)
    assert total.cell_noise == (gaussian + b + a).cell_noise
    assert total.cell_noise.variance == pytest.approx(2 * 1 + 2 * 4 + 1)
    low, high = total.interval("accuracy")
    assert low < 1 <= high
    assert tacit.Evaluation.load(total.save(tmp_path / "t.json")).cell_noise == total.cell_noise
    assert a.cell_noise == Noise(1.0, laplace=True)
    assert tacit.Evaluation.combine([a]).cell_noise == a.cell_noise


OTHER = tacit.Release.of(
    tacit.NoisySumPrototypes("rho=5", classes=CLASSES).fit(ROWS[::-1], LABELS[::-1])
)
SWAPPED = tacit.Release.of(
    tacit.NoisySumPrototypes("rho=5", classes=CLASSES[::-1]).fit(ROWS, LABELS)
)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"release": OTHER}, "one is of the release"),
        ({"release": SWAPPED}, "one is of the release"),
        ({"by": WARDS, "groups": ["a"]}, "group 0 is 'a' in one and 'all' in the other"),
        ({"tables": ["confidence"]}, "table 0 is 'confidence' in one and 'right' in the other"),
        ({"tables": ["right", "predicted"]}, "one has 2 tables and the other 1"),
    ],
)
def test_tables_of_another_kind_are_refused_with_the_difference(changes, fault):
    with pytest.raises(InputError, match=fault):
        table("A", **changes) + table("B")


def test_what_cannot_be_added_is_refused(tmp_path):
    a = table("A")
    with pytest.raises(InputError, match="table of part 'A' is there twice, and its records"):
        (a + table("B")) + a
    without = tacit.evaluate(MODEL, ROWS, LABELS, budget="rho=0.5")
    for refused in (lambda: a + without, lambda: without.save(tmp_path / "t.json")):
        with pytest.raises(InputError, match="name no part of the records"):
            refused()
    with pytest.raises(InputError, match="must be a Release where a part is named"):
        table("A", release=MODEL)
    with pytest.raises(InputError, match="one line"):
        table("A\n")
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(InputError, match="pass one at least"):
        tacit.Evaluation.combine([])
    persons = table("B", unit="add-remove-person", persons=np.arange(120))
    with pytest.raises(InputError, match="'A' count records, and those of part 'B' count persons"):
        a + persons


@pytest.mark.parametrize(
    "changes", [{"noise": "research", "random_state": 0}, {"budget": "mu=inf"}]
)
def test_tables_that_are_not_for_release_are_stamped(changes, tmp_path):
    one = table("A", **changes)
    with pytest.raises(ReleaseError, match="stamped NOT FOR RELEASE"):
        one.save(tmp_path / "t.json")
    file = one.save(tmp_path / "t.json", allow_research=True)
    again = tacit.Evaluation.load(file) + table("B")
    assert again.noise == one.noise
    with pytest.raises(ReleaseError, match="stamped"):
        again.save(tmp_path / "sum.json")


def test_a_ledger_is_charged_with_the_part(tmp_path):
    ledger = tacit.Ledger(tmp_path / "l.jsonl", identity="test")
    ledger.allow("rho=1")
    table("hospital A", ledger=ledger)
    (charge,) = ledger.account().charges
    assert charge.part == "hospital A"
    assert charge.guarantee.rho == pytest.approx(0.5)


def change(values, place, value):
    *path, last = place
    for key in path:
        values = values[key]
    if callable(value):
        value = value(values[last])
    values[last] = value


ROW = ("combination", "parts", 0)
FORGED = [
    (("format",), "tacit-release", 'does not say "format"'),
    (("version",), 2, "this tacit reads 1"),
    (("more",), 1, "Extra inputs"),
    (("tables", 0, "counts", 0), math.nan, "not valid JSON"),
    (("tables", 0, "counts", 0), 1.5, "valid integer"),
    (("tables", 0, "counts", 0), 2**90, "less than"),
    (("tables", 0, "counts", 0), 10**12 << 32, "1e+12 records in cell"),
    (("tables", 0, "counts", 0), -(10**6) << 32, "-1e+06 records in cell"),
    (("tables", 0, "counts", 0), lambda count: count + 1, "another hash than is stated"),
    (("tables", 1, "counts", 0), lambda count: count + (1000 << 32), "of the same records"),
    (("tables", 0, "counts"), lambda counts: counts[1:], "has 5 counts"),
    (("tables", 0, "kind"), "confidence", "is there twice"),
    (("groups",), ["a"] * 10**3 + ["b"], "named twice"),
    (("groups",), [str(i) for i in range(10**5)], "cells, and a file holds at most"),
    (("groups",), ["a\n"], "one line"),
    (("classes",), ["cat", "dog", "owl"], "another class list"),
    (("release",), "abc", "should match pattern"),
    ((*ROW, "name"), " A", "A"),
    ((*ROW, "noise_of_sums"), 0.5, "gives other noise than is stated"),
    ((*ROW, "cost"), 1, "does not go with the list"),
    ((*ROW, "sha256"), "0" * 64, "another hash than is stated"),
    (("combination", "parts"), lambda rows: rows * 2, "would count twice"),
    (("combination", "costs", 0, "guarantee", "event", "noise_multiplier"), 9.0, "noise"),
    (("combination", "costs", 0, "guarantee", "event", "type"), "Nothing", "cannot be read"),
    (("guarantee", "event", "noise_multiplier"), 9.0, "do not give the recorded guarantee"),
    (("guarantee", "unprotected"), ["all"], "do not give the recorded guarantee"),
    (("statement",), "nothing was learned", "is not what the recorded events give"),
    (("stamp",), "NOT FOR RELEASE", "does not agree with secure noise"),
    (("noise",), "research", "does not agree with research noise"),
]


@pytest.mark.parametrize(
    ("place", "value", "fault"), FORGED, ids=[f"{p[-1]}" for p, _, _ in FORGED]
)
def test_forged_files_are_refused_in_one_line(tmp_path, place, value, fault):
    file = table("A", tables=["right", "confidence"]).save(tmp_path / "t.json")
    values = json.loads(file.read_text())
    change(values, place, value)
    file.write_text(json.dumps(values))
    with pytest.raises(ReleaseError) as error:
        tacit.Evaluation.load(file)
    assert fault in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(ReleaseError, match="is not a file"):
        tacit.Evaluation.load(tmp_path)
    (tmp_path / "t.json").write_bytes(b"\xff")
    with pytest.raises(ReleaseError, match="not UTF-8"):
        tacit.Evaluation.load(tmp_path / "t.json")


def test_noise_alone_is_never_taken_for_poison():
    """Cells of classes without records, at laws with long tails."""
    rng = np.random.default_rng(0)
    n = 200_000
    for noise, values in (
        (Noise(3.0), rng.normal(0, 3, (2, n))),
        (Noise(3.0, laplace=True), rng.laplace(0, 3, (2, n))),
    ):
        integers = np.rint(values * 2**32).astype(np.int64)
        counts = {
            kind: Wide.of(row.reshape(1, -1, 2)) for kind, row in zip("ab", integers, strict=True)
        }
        assert misfit(counts, noise) is None
        assert misfit(counts, Noise(noise.scale / 20, noise.laplace)) is not None
    assert sha256_of(counts) != sha256_of(dict(reversed(counts.items())))


@pytest.mark.parametrize("name", ["one.json", "two.json"])
def test_tables_that_were_written_earlier_are_read_and_add_up(name, tmp_path):
    written = Path(__file__).parents[1] / "releases" / "written" / "evaluation-1" / name
    evaluation = tacit.Evaluation.load(written)
    assert evaluation.save(tmp_path / name).read_bytes() == written.read_bytes()
    assert evaluation.guarantee_.rho == pytest.approx(0.5)


def test_tables_that_no_file_holds_are_refused_before_the_charge(tmp_path, monkeypatch):
    monkeypatch.setattr(part_tables, "MOST_CELLS_OF_FILE", 5)
    ledger = tacit.Ledger(tmp_path / "ledger.jsonl", identity="test records")
    ledger.allow("rho=1")
    with pytest.raises(InputError, match="6 cells, and a file holds at most 5"):
        tacit.evaluate(RELEASE, ROWS, LABELS, budget="rho=0.5", part="A", ledger=ledger)
    assert not ledger.account().charges
    tacit.evaluate(RELEASE, ROWS, LABELS, budget="rho=0.5", ledger=ledger)

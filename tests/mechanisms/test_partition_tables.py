import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms import partition_tables as tables
from tacit.mechanisms.gaussian import UNIT
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Laplace
from tacit.privacy.unit import Unit

# a record is in a cell of each of two tables: class by right or wrong, and class by predicted class
N_CELLS = 4
RECORDS = list(itertools.product(range(N_CELLS), repeat=2))

# what one person may have: no record, or up to three
PEOPLE = [
    records
    for m in range(4)
    for records in itertools.combinations_with_replacement(RECORDS[::3], m)
]

# the other records, and the number of records of the person of each
OTHERS = [((0, 1), 2), ((3, 3), 2), ((1, 0), 1)]


def released(records, q, *, per_person):
    """Exact cells of q tables, with the other records, in records."""
    sizes = [len(records)] * len(records) + [size for _, size in OTHERS]
    rows = np.array([*records, *(record for record, _ in OTHERS)])
    given = np.array(sizes) if per_person else None
    wide = [tables.cell_counts(rows[:, t], N_CELLS, given) for t in range(q)]
    return np.concatenate([table.high * 2**32 + table.low for table in wide])


def neighbours(unit):
    """The records of one person or record in pairs of neighbouring data sets."""
    single = [(record,) for record in RECORDS]
    if unit is Unit.ADD_REMOVE:
        return [(one, ()) for one in single]
    if unit in (Unit.REPLACE, Unit.CHANGE_LABEL):
        return list(itertools.product(single, single))
    if unit is Unit.ADD_REMOVE_PERSON:
        return [(one, ()) for one in PEOPLE]
    pairs = itertools.product(PEOPLE, PEOPLE)
    if unit is Unit.CHANGE_LABELS_OF_PERSON:
        return [(one, other) for one, other in pairs if len(one) == len(other)]
    return list(pairs)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("unit", list(Unit))
def test_the_sensitivity_holds_for_all_neighbours_and_some_reach_it(unit, q):
    """All pairs of neighbouring data sets: rounding of weights shortens what a person adds."""
    pairs = neighbours(unit)
    known = {}
    for records in {records for pair in pairs for records in pair}:
        known[records] = released(records, q, per_person=unit.per_person)
    moves = np.array([known[one] - known[other] for one, other in pairs])
    for norm, cost in ((2, Gaussian(1.0)), (1, Laplace(1.0))):
        largest = np.linalg.norm(moves.astype(float), norm, axis=1).max() / UNIT
        assert largest == pytest.approx(tables.noise_of_cells(cost, unit, q), rel=1e-12)
        assert largest <= tables.noise_of_cells(cost, unit, q)


def test_one_record_more_of_a_person_moves_a_table_by_one_at_most():
    moves = []
    for one in PEOPLE:
        for new in RECORDS:
            move = released((*one, new), 1, per_person=True) - released(one, 1, per_person=True)
            moves.append(np.abs(move).sum())
    assert max(moves) == UNIT


def test_records_of_a_person_count_one_together_whatever_cells_they_are_in():
    cells = np.array([0, 1, 1, 3, 2])
    persons = np.array([3, 3, 3, 1, 1])
    table = tables.cell_counts(cells, N_CELLS, persons) / UNIT
    np.testing.assert_allclose(table, [1 / 3, 2 / 3, 1, 1], atol=1e-9)
    assert (tables.cell_counts(cells, N_CELLS) / UNIT).tolist() == [1, 2, 1, 1]


def test_the_event_spends_the_budget():
    assert tables.event(Budget.zcdp(0.5)) == Gaussian(1.0)
    assert tables.event(Budget.pure(0.5)) == Laplace(2.0)
    assert tables.event(Budget.gdp(0.25)) == Gaussian(4.0)
    assert tables.event(Budget.pure(math.inf)) == Laplace(0.0)


@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)], ids=["secure", "research"])
@pytest.mark.parametrize(
    ("cost", "unit", "q", "law"),
    [
        (Gaussian(5.0), Unit.ADD_REMOVE, 1, stats.norm(scale=5)),
        (Gaussian(5.0), Unit.REPLACE_PERSON, 2, stats.norm(scale=10)),
        (Laplace(2.0), Unit.ADD_REMOVE, 1, stats.laplace(scale=2)),
        (Laplace(2.0), Unit.CHANGE_LABEL, 2, stats.laplace(scale=8)),
    ],
)
def test_noise_has_the_scale_of_the_event_under_the_unit(noise, cost, unit, q, law):
    n = 3000
    table = tables.cell_counts(np.arange(n), n)
    noisy = tables.noisy_tables([table] * q, cost, unit, noise)
    assert len(noisy) == q
    values = np.concatenate([table / UNIT for table in noisy]) - 1
    assert stats.kstest(values, law.cdf).pvalue > 1e-6
    assert len(np.unique(values)) == len(values)


def test_without_a_bound_the_tables_are_exact():
    table = tables.cell_counts(np.array([0, 0, 1]), N_CELLS)
    for cost in (Gaussian(0.0), Laplace(0.0)):
        (exact,) = tables.noisy_tables([table], cost, Unit.ADD_REMOVE, SecureNoise())
        assert (exact / UNIT).tolist() == [2, 1, 0, 0]

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.measure.prediction_sets import SLACK, Threshold, cells_of, paid_threshold
from tacit.mechanisms import partition_tables
from tacit.mechanisms.noise import ResearchNoise
from tacit.models.prediction_sets import SetRule, edges, scores_of_labels
from tacit.privacy.events import Gaussian
from tacit.privacy.unit import Unit

RECORD_UNITS = [Unit.ADD_REMOVE, Unit.REPLACE, Unit.CHANGE_LABEL]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_without_noise_the_threshold_is_that_of_split_conformal_prediction(level):
    """Against the order statistic itself, rounded up to an edge."""
    rng = np.random.default_rng(0)
    edge_list = np.linspace(0.1, 0.9, 9)
    for n in range(1, 40):
        values = rng.random(n)
        rank = math.ceil(level * (n + 1) - 1e-9)
        quantile = np.sort(values)[rank - 1] if rank <= n else math.inf
        place = int(np.searchsorted(edge_list, quantile))
        table = np.bincount(cells_of(values, edge_list), minlength=10).astype(float)

        # a part of a record more, below all edges, makes up for the slack for rounding
        rule = Threshold(level, 0.0, 9)
        assert rule.margin == rule.floor == 0
        table[0] += (SLACK + 1e-9) / (1 - level)
        assert rule.chosen(table) == place


def test_a_score_at_an_edge_is_in_the_sets_of_that_edge():
    values = np.array([0.2, 0.25, 0.3, 0.75, 0.8])
    edge_list = np.array([0.25, 0.5, 0.75])
    cells = cells_of(values, edge_list)
    assert cells.tolist() == [0, 0, 1, 2, 3]
    for place, edge in enumerate(edge_list):
        assert ((cells <= place) == (values <= edge)).all()


def test_the_rule_goes_down_from_the_top_and_stops_where_an_edge_fails():
    """The proof needs that the edge below a missed score has passed."""
    rule = Threshold(0.5, 0.0, 4)
    table = np.array([20.0, -12.0, 8.0, 1.0, 3.0])
    above = np.cumsum(table[::-1])[:-1]
    assert (above <= rule.most_above(table.sum())).tolist() == [True, True, False, True]
    assert rule.chosen(table) == 2


def exact_miss(n, above, level, deviation):
    """P(a set misses) for one edge, where `above` of all n + 1 records lie above it: the share of
    these records as the test record, times the probability that the edge passes.
    """
    rule = Threshold(level, deviation, 1)
    a = 1 - level
    # of W and of the noise of the total, with the signs of upper bounds
    cov = deviation**2 * np.array([[(1 - a) ** 2 + a**2, -(1 - 2 * a)], [-(1 - 2 * a), 2.0]])
    most = rule.most_above(n) - (above - 1)
    passes = stats.multivariate_normal(cov=cov).cdf([most, n - rule.floor])
    return above / (n + 1) * passes


@pytest.mark.parametrize("level", [0.6, 0.9, 0.98])
def test_one_edge_misses_no_more_than_promised_by_closed_form(level):
    worst = 0.0
    for deviation, n in itertools.product([0.7, 4.0], [1, 3, 10, 40, 200, 1000]):
        counts = np.unique(np.linspace(1, n + 1, 25).astype(int))
        near = np.arange(1, min(n + 1, int((1 - level) * n + 3 * deviation) + 2))
        for above in np.union1d(counts, near[:: max(len(near) // 15, 1)]):
            miss = exact_miss(n, int(above), level, deviation)
            assert miss <= (1 - level) + 1e-5
            worst = max(worst, miss)
    # a bound that were far from reached would make sets too large
    assert worst > 0.6 * (1 - level)


@pytest.mark.parametrize(("level", "deviation", "n_edges"), [(0.9, 7.0, 64), (0.6, 3.0, 9)])
def test_the_bounds_of_the_proof_add_up_to_the_promise_and_hardly_less(level, deviation, n_edges):
    """Summed over all ranks, each at the edge that is worst for it."""
    rule = Threshold(level, deviation, n_edges)
    a = 1 - level
    above = np.arange(1, n_edges + 1)
    taus = deviation * np.sqrt((1 - a) ** 2 * above + a**2 * (n_edges + 1 - above))
    for n in np.linspace(rule.margin / a, 3000, 7).astype(int):
        ranks = np.arange(1, n + 2)
        bounds = stats.norm.cdf((rule.most_above(n) - (ranks - 1)) / taus[:, None]).max(axis=0)
        assert bounds.sum() <= a * (n + 1)
    assert bounds.sum() >= a * (n + 1) - 5


def simulated(n_classes, n, rng):
    """Cells of `n` scores of a model that is right for about two rows of three."""
    logits = rng.normal(size=(n, n_classes))
    labels = rng.integers(n_classes, size=n)
    logits[np.arange(n), labels] += 2.5
    shares = np.exp(2 * logits)
    shares /= shares.sum(axis=1, keepdims=True)
    edge_list = edges("probability", n_classes)
    return cells_of(scores_of_labels(shares, labels, "probability"), edge_list)


@pytest.mark.parametrize(("n", "rho"), [(60, 0.01), (500, 0.01), (500, 0.05), (3000, 0.5)])
def test_sets_cover_in_draws_of_records_and_noise(n, rho):
    rng = np.random.default_rng(1)
    pool = simulated(20, 20_000, rng)
    n_edges = len(edges("probability", 20))
    # coverage of each edge on the pool, and 1 of sets of all classes
    coverage = np.append(np.cumsum(np.bincount(pool, minlength=n_edges + 1))[:-1] / len(pool), 1)
    deviation = 1 / math.sqrt(2 * rho)
    rule = Threshold(0.9, deviation, n_edges)
    covered = []
    for _ in range(200):
        table = np.bincount(rng.choice(pool, n), minlength=n_edges + 1)
        covered.append(coverage[rule.chosen(table + deviation * rng.normal(size=n_edges + 1))])
    assert np.mean(covered) >= 0.9 - np.std(covered) / math.sqrt(len(covered))
    if n >= 500:
        assert np.mean(covered) < 0.97


def test_persons_with_many_like_records_are_covered_as_those_with_one():
    """The records of a person are equal, so that taking them for independent would not cover."""
    rng = np.random.default_rng(2)
    edge_list = np.linspace(0.02, 0.98, 49)
    covered = []
    for _ in range(300):
        n_records = rng.choice([1, 30], 80, p=[0.7, 0.3])
        values = rng.random(80) ** np.where(n_records == 1, 0.3, 3)
        sizes = np.repeat(n_records, n_records)
        threshold = paid_threshold(
            np.repeat(values, n_records),
            edge_list,
            level=0.8,
            cost=Gaussian(1.0),
            unit=Unit.ADD_REMOVE_PERSON,
            noise=ResearchNoise(rng),
            sizes=sizes,
        )
        edge = 1.0 if threshold is None else threshold
        covered.append(0.7 * edge ** (1 / 0.3) + 0.3 * edge ** (1 / 3))
    assert np.mean(covered) >= 0.8 - np.std(covered) / math.sqrt(len(covered))


@pytest.mark.parametrize("unit", RECORD_UNITS)
def test_neighbours_move_the_table_by_the_sensitivity_at_most(unit):
    """All data sets of up to three records in four cells, and all their neighbours."""
    edge_list = np.array([0.25, 0.5, 0.75])
    values = [0.1, 0.25, 0.6, 0.9]
    most = partition_tables.IN_L2.under(unit)
    furthest = 0.0
    for size in range(1, 4):
        for records in itertools.product(values, repeat=size):
            table = counts_of(records, edge_list)
            if unit is Unit.ADD_REMOVE:
                neighbours = [(*records, value) for value in values]
            else:
                neighbours = [(*records[:-1], value) for value in values]
            for neighbour in neighbours:
                distance = np.linalg.norm(table - counts_of(neighbour, edge_list))
                furthest = max(furthest, float(distance))
    assert furthest <= most
    assert furthest > most * (1 - 1e-9)


def gaussian_delta(mu, epsilon):
    """Delta at epsilon of N(0, 1) against N(mu, 1)."""
    upper = stats.norm.cdf(mu / 2 - epsilon / mu)
    return upper - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


def test_one_drawn_record_of_each_person_would_cost_more_for_a_record_than_for_a_person():
    """A second record of a person takes the place of the first in the table in half of the draws,
    sqrt(2) away: Q = (P + R)/2, and its delta at e^epsilon is half of that of R against P at
    2 e^epsilon - 1.
    """
    mu, epsilon = 1.0, 3.0
    drawn = gaussian_delta(math.sqrt(2) * mu, math.log(2 * math.exp(epsilon) - 1)) / 2
    assert drawn > 3 * gaussian_delta(mu, epsilon)

    # weights 1/2 move the same table by 1/sqrt(2)
    table = partition_tables.cell_counts(np.array([0]), 2, np.array([1]))
    larger = partition_tables.cell_counts(np.array([0, 1]), 2, np.array([2, 2]))
    moved = np.asarray(larger / 2.0**32) - np.asarray(table / 2.0**32)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(0.5))


def counts_of(values, edge_list):
    cells = cells_of(np.array(values), edge_list)
    return np.asarray(partition_tables.cell_counts(cells, len(edge_list) + 1) / 2.0**32)


def test_noise_of_a_replaced_record_is_larger_by_the_root_of_two():
    """Seeded noise of twice the scale moves the noisy table, and the rule knows its scale."""
    seen = []

    class Recording(ResearchNoise):
        def gaussian(self, values, scale):
            seen.append(scale / 2.0**32)
            return super().gaussian(values, scale)

    for unit in (Unit.ADD_REMOVE, Unit.REPLACE):
        paid_threshold(
            np.random.default_rng(0).random(50),
            edges("probability", 5),
            level=0.9,
            cost=Gaussian(3.0),
            unit=unit,
            noise=Recording(0),
        )
    assert seen == pytest.approx([3.0, 3.0 * math.sqrt(2)])


def test_without_a_bound_on_the_cost_there_is_no_noise():
    values = np.linspace(0, 1, 1000)
    edge_list = np.linspace(0.01, 0.99, 99)
    threshold = paid_threshold(
        values,
        edge_list,
        level=0.9,
        cost=Gaussian(0.0),
        unit=Unit.ADD_REMOVE,
        noise=ResearchNoise(0),
    )
    assert threshold == pytest.approx(0.91)
    assert SetRule("probability", threshold).threshold == threshold

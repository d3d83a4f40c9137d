"""What class names and neighbours teach a linear head, and that choices are made by outputs it has
not seen.
"""

import numpy as np
import pytest
from scipy.special import softmax

from tacit.learners.common.heads import Head
from tacit.learners.label_dp import neighbours, structured
from tacit.learners.label_dp.evidence import Evidence, fitted_head
from tacit.learners.label_dp.neighbours import Neighbours, nearest_rows, spaced
from tacit.learners.label_dp.structured import (
    HeldOut,
    held_out,
    length_of_names,
    mean_head,
    names_heads,
    structured_head,
)
from tacit.models.rows import unit_rows

RNG = np.random.default_rng(0)
NAMES = np.eye(4, 6)
LABELS = RNG.integers(0, 4, 600)
ROWS = unit_rows(NAMES[LABELS] + 0.2 * RNG.normal(size=(600, 6)))
ANSWERS = np.where(RNG.random(600) < 0.5, LABELS, RNG.integers(0, 4, 600))
KNOWN = Evidence(
    np.log(np.where(np.eye(4, dtype=bool)[ANSWERS], 0.625, 0.125)), np.zeros(600, dtype=bool)
)
ALL = HeldOut(ROWS, KNOWN)


def accuracy(head):
    return np.mean(head.log_probabilities(ROWS).argmax(axis=1) == LABELS)


def test_names_are_used_if_they_fit_and_forgotten_if_not():
    whole, half = names_heads(ROWS, KNOWN, ALL, NAMES)
    assert accuracy(whole) > 0.95
    assert half.coefficients == pytest.approx(whole.coefficients / 2)
    for names in (None, NAMES[[1, 2, 3, 0]]):
        heads = names_heads(ROWS, KNOWN, ALL, names)
        assert len(heads) == 1
        assert not heads[0].coefficients.any()


def test_few_outputs_contradict_no_names():
    """Two outputs against the names leave them in use; many like them do not."""
    other = NAMES[[1, 2, 3, 0]]
    assert length_of_names(ROWS, KNOWN, other).contradicted
    few = np.arange(2)
    assert not length_of_names(ROWS[few], KNOWN.among(few), other).contradicted
    assert not length_of_names(ROWS, KNOWN, NAMES).contradicted


@pytest.mark.parametrize("names", [None, NAMES, NAMES[[1, 2, 3, 0]]])
def test_heads_learn_from_outputs(names):
    assert accuracy(structured_head(ROWS, KNOWN, names, seed=0)) > 0.9


def test_heads_that_are_compared_have_not_seen_the_held_out_outputs(monkeypatch):
    seen, held = [], held_out(600, 0)

    def recorded(rows, evidence, *more):
        seen.append(evidence)
        return fitted_head(rows, evidence, *more)

    monkeypatch.setattr(structured, "fitted_head", recorded)
    structured_head(ROWS, KNOWN, NAMES, seed=0)
    assert len(held) == 90
    knowing = [np.array_equal(evidence.values, KNOWN.values) for evidence in seen]
    assert any(knowing)
    for evidence, knows in zip(seen, knowing, strict=True):
        assert knows or not evidence.values[held].any()
    assert not knowing[0]


def test_held_out_positions_follow_from_the_public_seed():
    assert np.array_equal(held_out(100, 1), held_out(100, 1))
    assert not np.array_equal(held_out(100, 1), held_out(100, 2))
    assert len(held_out(3, 0)) == 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_records_work(n):
    head = structured_head(ROWS[:n], KNOWN.among(np.arange(n)), NAMES, seed=0)
    assert np.isfinite(head.log_probabilities(ROWS)).all()


def test_nearest_rows_are_those_of_the_largest_products(monkeypatch):
    monkeypatch.setattr(neighbours, "TOGETHER", 600 * 7)  # several blocks
    products = ROWS @ ROWS.T
    np.fill_diagonal(products, -np.inf)
    assert np.array_equal(nearest_rows(ROWS, 3), np.argsort(-products, axis=1)[:, :3])


def test_a_row_is_taught_by_the_head_its_neighbours_and_its_own_output(monkeypatch):
    """A third the head and two thirds the neighbours are its prior; targets are not likelihoods,
    and add nothing.
    """
    targets = []
    monkeypatch.setattr(
        neighbours, "fitted_head", lambda rows, evidence, *_: targets.append(evidence) or ZERO
    )
    head = Head(NAMES, np.zeros(4))
    around = Neighbours.among(ROWS)
    around.taught(head, KNOWN, ZERO)
    p = softmax(ROWS @ NAMES.T, axis=1)
    posterior = p * np.exp(KNOWN.values)
    posterior /= posterior.sum(axis=1, keepdims=True)
    taught = (p + 2 * posterior[around.nearest[:, :10]].mean(axis=1)) * np.exp(KNOWN.values)
    assert targets[0].values == pytest.approx(taught / taught.sum(axis=1, keepdims=True))
    assert targets[0].target.all()
    given = RNG.dirichlet(np.ones(4), 600)
    around.taught(head, Evidence.of_targets(given), ZERO)
    assert targets[1].values == pytest.approx(
        (p + 2 * given[around.nearest[:, :10]].mean(axis=1)) / 3
    )


ZERO = Head(np.zeros((4, 6)), np.zeros(4))


def test_neighbours_teach_about_records_without_outputs():
    """A tenth of the answers, which are right, and the rest of the rows: their neighbours say the
    class.
    """
    few = Evidence(np.where(np.eye(4, dtype=bool)[LABELS], 0.0, -20.0), KNOWN.target).without(
        np.arange(60, 600)
    )
    first = fitted_head(ROWS, few, 100.0, ZERO)
    around = Neighbours.among(ROWS)
    last = around.taught(around.taught(first, few, ZERO), few, ZERO)
    truth = np.arange(600), LABELS
    assert last.log_probabilities(ROWS)[truth].mean() > first.log_probabilities(ROWS)[truth].mean()


def test_votes_add_up_the_log_likelihoods_of_neighbours(monkeypatch):
    """Beside what the head says; outputs that are targets do not vote."""
    targets = []
    monkeypatch.setattr(
        neighbours,
        "fitted_head",
        lambda rows, evidence, *_: targets.append(evidence.values) or ZERO,
    )
    head, around = Head(NAMES, np.zeros(4)), Neighbours.among(ROWS)
    around.voted(KNOWN, head, 30)
    values = KNOWN.values + KNOWN.values[around.nearest[:, :30]].sum(axis=1)
    assert targets[0] == pytest.approx(softmax(ROWS @ NAMES.T + values, axis=1))
    around.voted(Evidence.of_targets(RNG.dirichlet(np.ones(4), 600)), head, 30)
    assert targets[1] == pytest.approx(softmax(ROWS @ NAMES.T, axis=1))


def test_votes_tell_what_single_answers_do_not():
    """A binary answer of little epsilon by random halves of the classes: better than by each answer
    alone.
    """
    rng = np.random.default_rng(0)
    halves = rng.random((600, 4)) < 0.5
    right = rng.random(600) < 0.6
    said = np.where(right, halves[np.arange(600), LABELS], ~halves[np.arange(600), LABELS])
    weak = Evidence(np.log(np.where(halves == said[:, None], 0.6, 0.4)), KNOWN.target)
    alone = max(accuracy(fitted_head(ROWS, weak, ridge, ZERO)) for ridge in (0.1, 1.0, 4.0))
    assert accuracy(Neighbours.among(ROWS).voted(weak, ZERO, 100)) > alone + 0.03


def test_the_mean_of_heads():
    mean = mean_head([ZERO, Head(NAMES, np.ones(4))], np.array([0.75, 0.25]))
    assert mean.coefficients == pytest.approx(NAMES / 4)
    assert mean.intercepts == pytest.approx(np.full(4, 0.25))


def test_the_best_factor_of_scores():
    """Scores that foretell outputs are multiplied, those that mislead are shrunk."""
    sure = Evidence(np.where(np.eye(4, dtype=bool)[LABELS], 0.0, -20.0), KNOWN.target)
    assert HeldOut(ROWS, sure).best(Head(NAMES, np.zeros(4)))[1] == max(structured.FACTORS)
    assert HeldOut(ROWS, KNOWN).best(Head(NAMES[[1, 2, 3, 0]], np.zeros(4)))[1] == min(
        structured.FACTORS
    )


def test_spaced_positions():
    assert spaced(3, 5).tolist() == [0, 1, 2]
    assert spaced(10, 4).tolist() == [0, 2, 5, 7]


def test_heads_on_all_outputs_start_from_their_like_and_need_no_others(monkeypatch):
    """The last fits are those of the heads in the mean, from the compared head of the same form."""
    starts = []

    def recorded(rows, evidence, ridge, about, start=None):
        head = fitted_head(rows, evidence, ridge, about, start)
        starts.append((start, head))
        return head

    monkeypatch.setattr(structured, "fitted_head", recorded)
    compared = structured.Fits(ROWS, KNOWN.without(np.arange(90)))
    strong = structured.ByRidge(ZERO, None, 1.0)
    weak = structured.ByRidge(ZERO, strong, 0.1)
    head = compared.head(weak)
    assert [start for start, _ in starts] == [ZERO, starts[0][1]]
    structured.Fits(ROWS, KNOWN, earlier=compared).head(weak)
    assert len(starts) == 3
    assert starts[2][0] is head

"""Scores shared among the records of a person: every neighbour of small cases, and the same
integers on any route.
"""

import itertools
from collections import Counter

import numpy as np
import pytest

import tacit
from messages import lacking, stating
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import engine_from
from tacit.data.persons import Persons
from tacit.learners.prototypes import projected
from tacit.learners.prototypes import scores as module
from tacit.learners.prototypes.scores import clipped
from tacit.learners.prototypes.scores.arithmetic import scoring
from tacit.mechanisms import exponential, top_k

NAMES = ["float32", "float64", "int8"]
WINDOWS = [(0.0, 2.0), (1.2, 1.8), (1.0, 1.01)]
N_CLASSES, MOST = 3, 3


def found(public, x, y, n_classes, bounds, records, name="auto", **options):
    how = scoring(public, *bounds, name=name, classes=n_classes)
    with module.scores(
        how, public, x, y, n_classes, person_sizes=np.asarray(records), **options
    ) as totals:
        return np.array(totals), how


PUBLIC = np.eye(2)
KINDS = [  # a row whose scores are all or nothing for each of two candidates, and a class
    (row, c) for row in ((1, 1), (1, -1), (-1, 1), (-1, -1)) for c in range(N_CLASSES)
]


def adds(kinds):
    """What a person with these records adds to the scores, of shape (C, 2), in units of the
    sensitivity.
    """
    if not kinds:
        return np.zeros((N_CLASSES, 2))
    x, y = zip(*kinds, strict=True)
    totals, how = found(
        PUBLIC, np.array(x, float), np.array(y), N_CLASSES, (0.5, 1.5), np.full(len(x), len(x))
    )
    return totals / how.sensitivity


@pytest.fixture(scope="module")
def people():
    """Nobody and all persons with up to three records, and what each adds."""
    sets = [
        kinds
        for m in range(MOST + 1)
        for kinds in itertools.combinations_with_replacement(KINDS, m)
    ]
    return sets, np.array([adds(kinds) for kinds in sets])


# scores that other persons add, in units of the sensitivity: each candidate far ahead in each class
OTHERS = 40 * np.array(list(itertools.product([(0, 1), (1, 0)], repeat=N_CLASSES)), float)


def exponential_logs(utilities):
    return utilities - np.logaddexp(*np.moveaxis(utilities, -1, 0))[..., None]


def flip_logs(utilities):
    """Permute-and-flip between two candidates: the one behind shows heads and comes first half of
    the time.
    """
    behind = utilities - utilities.max(axis=-1, keepdims=True)
    other = behind[..., ::-1]
    return np.where(behind < 0, behind - np.log(2), np.log1p(-np.exp(np.minimum(other, 0)) / 2))


def losses(before, after, logs, epsilon, of_others=OTHERS):
    """The largest log ratio of all classes' choices together, and the widest range of it, over what
    others add.
    """
    moved = [
        logs(epsilon * (others + before)) - logs(epsilon * (others + after)) for others in of_others
    ]
    highest = np.max([one.max(axis=-1).sum(axis=-1) for one in moved], axis=0)
    lowest = np.min([one.min(axis=-1).sum(axis=-1) for one in moved], axis=0)
    ranges = np.max([np.ptp(one, axis=-1).sum(axis=-1) for one in moved], axis=0)
    return np.maximum(highest, -lowest).max(), ranges.max()


LOGS = pytest.mark.parametrize(
    "logs", [exponential_logs, flip_logs], ids=["exponential", "permute-and-flip"]
)


@LOGS
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_a_person_added_costs_epsilon_over_all_classes_together(people, logs, epsilon):
    sets, added = people
    worst, widest = losses(added, np.zeros_like(added), logs, epsilon)
    assert 0.9 * epsilon < worst <= epsilon * (1 + 1e-9)
    assert logs is flip_logs or widest <= epsilon * (1 + 1e-9)
    for m in (2, 3):  # it is attained by persons with several records, in one class and in several
        for spread in (1, m):
            some = [
                i
                for i, kinds in enumerate(sets)
                if len(kinds) == m and len({c for _, c in kinds}) == spread
            ]
            assert losses(added[some], 0 * added[some], logs, epsilon)[0] > 0.9 * epsilon


@LOGS
def test_a_record_added_to_a_person_costs_no_more(people, logs):
    sets, added = people
    place = {frozenset(Counter(kinds).items()): i for i, kinds in enumerate(sets)}
    pairs = [
        (i, place[frozenset(Counter((*kinds, kind)).items())])
        for i, kinds in enumerate(sets)
        if len(kinds) < MOST
        for kind in KINDS
    ]
    before, after = np.array(pairs).T
    worst, widest = losses(added[before], added[after], logs, 1.0)
    assert 0.9 < worst <= 1 + 1e-9
    assert logs is flip_logs or widest <= 1 + 1e-9
    several = before > len(KINDS)  # persons with two records already
    assert losses(added[before[several]], added[after[several]], logs, 1.0)[0] > 0.5


@LOGS
def test_a_replaced_person_and_swapped_labels_cost_two_changes(people, logs):
    sets, added = people
    rows = [tuple(sorted(row for row, _ in kinds)) for kinds in sets]
    of_labels = 0.0
    for i in range(1, len(sets)):
        worst, widest = losses(added[i], added[1:], logs, 1.0, OTHERS[1:3])
        assert worst <= 2 + 1e-9
        assert logs is flip_logs or widest <= 2 + 1e-9
        same = [j for j in range(1, len(sets)) if rows[j] == rows[i]]
        of_labels = max(of_labels, losses(added[i], added[same], logs, 1.0, OTHERS[1:3])[0])
    assert of_labels > 1.8


def test_a_record_added_to_a_person_moves_scores_within_the_window():
    """The proof in `tacit.mechanisms.exponential`, for every window and number of records here."""
    tight = 0
    for window in range(1, 300):
        s = np.arange(window + 1)
        for m in range(1, window + 3):
            most_lost = int((s // m - s // (m + 1)).max())
            width = m * most_lost + window // (m + 1)
            assert width <= window
            tight += width == window and m > 1
    assert tight > 0


def data(seed=0, n=80, m=30, d=9):
    """Records of 25 persons with up to 8 records each, in any classes; some rows are zeros."""
    rng = np.random.default_rng(seed)
    x, public = np.abs(rng.normal(size=(n, d))), np.abs(rng.normal(size=(m, d)))
    x[::13] = 0
    return public, x, rng.integers(0, N_CLASSES, n), Persons.of(rng.integers(0, 25, n), n)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", WINDOWS)
def test_scores_are_those_of_whole_numbers(bounds, name):
    """Each record's own score times the factor, divided by the person's records over all classes,
    rounded down.

    Or, without a clip, times a whole weight, and the sum is rounded down.
    """
    public, x, y, persons = data()
    if (bounds, name) == ((1.0, 1.01), "int8"):
        bounds = (1.0, 1.05)
    records = persons.of_same_person
    totals, how = found(public, x, y, N_CLASSES, bounds, records, name)
    if how.clipped:
        assert 2**36 < how.sensitivity <= 2**37
    else:
        assert how.sensitivity == 2**37 + 2 * N_CLASSES  # the window and what rounding adds
    rows, candidates = (
        how.arithmetic.integers(x).astype(int),
        how.arithmetic.integers(public, public=True).astype(int),
    )
    wanted = np.zeros((N_CLASSES, len(public)), int)
    for row, label, m in zip(rows, y, records, strict=True):
        if row.any():
            score = np.clip(candidates @ row, how.low, how.high) - how.low
            wanted[label] += score * how.factor // m if how.clipped else score * (2**18 // m)
    wanted //= 1 if how.clipped else 2**18
    assert np.array_equal(totals, wanted)


@pytest.mark.parametrize("bounds", WINDOWS)
def test_a_person_adds_the_same_whatever_others_have_and_no_more_than_the_window(bounds):
    public, x, y, persons = data()
    totals, how = found(public, x, y, N_CLASSES, bounds, persons.of_same_person)
    for person in range(persons.number):
        own, others = persons.codes == person, persons.codes != person
        rest, _ = found(
            public, x[others], y[others], N_CLASSES, bounds, persons.at(others).of_same_person
        )
        alone, _ = found(public, x[own], y[own], N_CLASSES, bounds, np.full(own.sum(), own.sum()))
        assert np.abs(totals - rest - alone).max() <= (0 if how.clipped else 1)
        assert alone.min() >= 0
        assert (totals - rest).max(axis=1).sum() <= how.sensitivity


def test_a_person_with_very_many_records_is_not_rounded_away():
    """A thousand records at a candidate add the window less a millionth, in the arithmetic of the
    smallest integers.
    """
    public = np.random.default_rng(0).normal(size=(40, 16))
    x = np.repeat(public[:1], 1000, axis=0)
    totals, how = found(public, x, np.arange(1000) % 2, 2, (1.0, 1.5), np.full(1000, 1000), "int8")
    assert how.high - how.low < 10**5
    assert (1 - 1e-6) * how.sensitivity < totals[:, 0].sum() <= how.sensitivity


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", WINDOWS[:2])
def test_the_integers_do_not_depend_on_order_blocks_or_folders(bounds, name, tmp_path, monkeypatch):
    public, x, y, persons = data(1, n=200, m=70)
    records = persons.of_same_person
    expected, _ = found(public, x, y, N_CLASSES, bounds, records, name)
    order = np.random.default_rng(0).permutation(len(x))
    assert np.array_equal(
        found(public, x[order], y[order], N_CLASSES, bounds, records[order], name)[0], expected
    )
    monkeypatch.setattr(clipped, "TILE", 16)
    monkeypatch.setattr(clipped, "ROWS", 18)
    monkeypatch.setattr(module, "BLOCK", 20)
    monkeypatch.setattr(clipped, "SHARD_BYTES", 1)
    for options in ({}, {"folder": tmp_path}):
        assert np.array_equal(
            found(public, x, y, N_CLASSES, bounds, records, name, **options)[0], expected
        )
    monkeypatch.setattr(module, "IN_MEMORY", 100)
    assert np.array_equal(found(public, x, y, N_CLASSES, bounds, records, name)[0], expected)


def test_a_cuda_device_gives_the_same_integers():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    public, x, y, persons = data(1, n=300, m=70, d=13)
    for bounds in ((1.2, 1.8), (1.0, 1.1)):
        given = public, x, y, N_CLASSES, bounds, persons.of_same_person
        assert np.array_equal(found(*given, "int8-cuda")[0], found(*given, "int8")[0])


def test_workers_find_the_same_integers(tmp_path):
    public, x, y, persons = data(1)
    given = public, x, y, N_CLASSES, (1.2, 1.8), persons.of_same_person
    scores, _ = found(*given, folder=tmp_path, engine=engine_from("joblib", 2, tmp_path))
    assert np.array_equal(scores, found(*given)[0])


def test_shards_of_other_persons_are_not_taken(tmp_path, monkeypatch):
    """The same rows and labels, of as many persons, of whom each has other records."""
    public, x, y, persons = data(2, m=100)
    monkeypatch.setattr(clipped, "TILE", 8)
    monkeypatch.setattr(clipped, "SHARD_BYTES", 1)
    write, written = Checkpoint.write, []

    def noted(checkpoint, name, content):
        if name.endswith(".npy"):
            written.append(int(name.removesuffix(".npy")))
        write(checkpoint, name, content)

    def stopped(checkpoint, name, content):
        if name == "00003.npy":
            raise KeyboardInterrupt
        noted(checkpoint, name, content)

    monkeypatch.setattr(Checkpoint, "write", stopped)
    with pytest.raises(KeyboardInterrupt):
        found(public, x, y, N_CLASSES, (1.2, 1.8), persons.of_same_person, folder=tmp_path)
    assert written == [0, 1, 2]
    monkeypatch.setattr(Checkpoint, "write", noted)
    others = persons.of_same_person + 1
    moved, _ = found(public, x, y, N_CLASSES, (1.2, 1.8), others, folder=tmp_path)
    assert written[3:] == list(range(13))
    assert np.array_equal(moved, found(public, x, y, N_CLASSES, (1.2, 1.8), others)[0])


def test_numbers_of_records_are_needed_by_person_and_there_alone():
    public, x, y, persons = data()
    for classes, records in ((3, None), (None, persons.of_same_person)):
        how = scoring(public, 1.2, 1.8, classes=classes)
        with pytest.raises(ValueError, match=stating("person_sizes", "person")):
            module.scores(how, public, x, y, N_CLASSES, person_sizes=records).__enter__()


UNITS = ["add-remove-person", "replace-person", "change-labels-of-person"]


def fit(given, budget="epsilon=1", **parameters):
    public, x, y, persons = given
    model = tacit.PublicPrototypes(
        budget,
        classes=N_CLASSES,
        public=public,
        **({"noise": "research", "random_state": 0} | parameters),
    )
    return model.fit(x, y, persons=persons.codes if "unit" in parameters else None)


FORMS = [
    {},
    {"k": 4},
    {"selection": "permute-and-flip"},
    {"d_min": 0.0, "d_max": 2.0},
    {"names": np.eye(3, 9)},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_person_moves_the_scores_of_all_classes_together_by_one_at_most(form):
    """The learner's own scores; also of the names, and of one record that joins those of a
    person.
    """
    given = public, x, y, persons = data(3)
    more = fit(given, unit="add-remove-person", **form).utilities_
    joined = 0
    for person in range(6):
        for gone in (
            persons.codes == person,
            np.arange(len(x)) == np.flatnonzero(persons.codes == person)[0],
        ):
            fewer = fit(
                (public, x[~gone], y[~gone], persons.at(~gone)), unit="add-remove-person", **form
            ).utilities_
            moved = more - fewer
            rise, fall = np.maximum(moved.max(axis=1), 0), np.minimum(moved.min(axis=1), 0)
            assert (rise - fall).sum() <= 1 + 1e-9
            joined += fall.sum() < 0
    assert joined > 0


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_person_in_three_classes_adds_a_third_to_each(form):
    public = data()[0]
    x, y = np.repeat(2 * public[:1], 4, axis=0), np.array([0, 1, 2, 0])
    more = fit(
        (public, x, y, Persons.of([0, 0, 0, 1], 4)), unit="add-remove-person", **form
    ).utilities_
    fewer = fit(
        (public, x[3:], y[3:], Persons.of([1], 1)), unit="add-remove-person", **form
    ).utilities_
    assert (more - fewer)[:, 0] == pytest.approx(1 / 3, abs=1e-3)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_with_one_record_per_person_the_choice_is_that_of_records(form):
    public, x, y, persons = data(4)
    alone = public, x, y, Persons.of(np.arange(len(x))[::-1], len(x))
    for seed in range(10):
        by_person = fit(alone, unit="add-remove-person", random_state=seed, **form)
        by_record = fit(alone, random_state=seed, **form)
        assert np.array_equal(by_person.prototypes_, by_record.prototypes_)
        assert np.allclose(by_person.utilities_, by_record.utilities_, rtol=0, atol=1e-6)
    assert not np.array_equal(
        fit((public, x, y, persons), unit=UNITS[0], **form).utilities_, by_record.utilities_
    )


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_guarantee_is_one_event_for_all_classes(form):
    given = data(5)
    kind = "PureDP" if "selection" in form else "Exponential"
    for unit, changes in zip(UNITS, (1, 2, 2), strict=True):
        model = fit(given, unit=unit, noise="secure", random_state=None, **form)
        assert model.guarantee_ == model.promise()
        assert model.guarantee_.unit == unit
        assert model.guarantee_.epsilon(0) == 1.0
        (event,) = model.guarantee_.events
        assert type(event).__name__ == kind
        selection = model.released_.mechanism["selection"]
        assert not lacking(selection, f"epsilon {1 / changes:g} per class")
    record = fit(given, unit=UNITS[0], **form).guarantee_
    assert record.to("add-remove").epsilon(0) == 1.0
    assert record.to("replace").epsilon(0) == record.to("replace-person").epsilon(0) == 2.0


def test_a_set_is_chosen_for_the_sensitivity_and_the_classes_of_a_person(monkeypatch):
    given, seen = data(6), []
    choose = top_k.select_set
    monkeypatch.setattr(
        top_k,
        "select_set",
        lambda *row, **facts: (
            seen.append((facts["sensitivity"], facts["classes"])) or choose(*row, **facts)
        ),
    )
    fit(given, k=3, unit="add-remove-person", d_min=1.2, d_max=1.8)
    fit(given, k=3, d_min=1.2, d_max=1.8)
    how = scoring(given[0], 1.2, 1.8, classes=3)
    assert seen == 3 * [(how.sensitivity, 3)] + 3 * [(how.high - how.low, 1)]


def test_one_choice_is_made_at_the_scale_of_a_person(monkeypatch):
    given, seen = data(6), []
    choose = exponential.select
    monkeypatch.setattr(
        exponential,
        "select",
        lambda *row, **facts: seen.append(facts["sensitivity"]) or choose(*row, **facts),
    )
    fit(given, unit="add-remove-person", d_min=1.2, d_max=1.8)
    assert seen == 3 * [scoring(given[0], 1.2, 1.8, classes=3).sensitivity]


def test_an_infinite_budget_takes_no_account_of_persons():
    given = data(7)
    for form in ({}, {"k": 4}, {"d_min": 0.0, "d_max": 2.0}):
        by_person = fit(given, "epsilon=inf", unit="add-remove-person", **form)
        assert np.array_equal(by_person.utilities_, fit(given, "epsilon=inf", **form).utilities_)


def test_a_projection_of_chosen_rows_shares_scores_and_is_one_event_a_choice(monkeypatch):
    public, x, y, persons = data(8)
    facts = {
        "classes": 3,
        "public": public,
        "prototypes": "public",
        "steps": 3,
        "noise": "research",
        "random_state": 0,
    }
    shared_over = []

    def noted(*arguments, classes, **settings):
        shared_over.append(classes)
        return scoring(*arguments, classes=classes, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(projected, "scoring", noted)
        model = tacit.ProjectedPrototypes("rho=0.5", unit="add-remove-person", **facts).fit(
            x, y, persons.codes
        )
    assert shared_over == [3]
    assert model.guarantee_ == model.promise()
    assert {type(event).__name__ for event in model.guarantee_.events} == {
        "Exponential",
        "Gaussian",
    }
    assert model.guarantee_.rho == pytest.approx(0.5)
    alone = np.arange(len(x))
    for budget in ("rho=0.5", "rho=inf"):
        by_person = tacit.ProjectedPrototypes(budget, unit="add-remove-person", **facts).fit(
            x, y, alone
        )
        by_record = tacit.ProjectedPrototypes(budget, **facts).fit(x, y)
        assert np.array_equal(by_person.indices_, by_record.indices_)
        assert np.allclose(by_person.coefficients_, by_record.coefficients_, rtol=0, atol=1e-5)

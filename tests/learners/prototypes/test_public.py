import itertools

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.prototypes.public import rows_in_directions
from tacit.privacy.events import Exponential, Parallel, PureDP


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6)) * 2
    y = np.repeat([0, 1, 2], [60, 30, 10])
    public = np.concatenate([centres + rng.normal(size=(3, 6)) * 0.3, rng.normal(size=(20, 6))])
    return centres[y] + rng.normal(size=(100, 6)), y, public


WHOLE = {"d_min": 0.0, "d_max": 2.0}


def fit(data, budget="epsilon=1", **parameters):
    x, y, public = data
    return tacit.PublicPrototypes(budget, classes=3, **({"public": public} | parameters)).fit(x, y)


@pytest.mark.parametrize("bounds", [(0.0, 2.0), (1.2, 1.8)])
@pytest.mark.parametrize("k", [1, 4])
def test_infinite_budget_takes_the_best_with_the_lowest_index_on_ties(data, bounds, k):
    x, y, public = data
    public = np.concatenate([public, public])  # every score twice
    model = fit((x, y, public), "epsilon=inf", k=k, d_min=bounds[0], d_max=bounds[1])
    p, q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (public, x))
    clipped = np.clip(1 + q @ p.T, *bounds) - bounds[0]
    for c in range(3):
        utility = np.round(clipped[y == c].sum(axis=0), 3)
        best = np.sort(np.argsort(-utility, kind="stable")[:k])
        assert np.atleast_1d(model.indices_[c]).tolist() == best.tolist()
    assert np.array_equal(model.prototypes_, public[model.indices_])
    assert model.prototypes_.shape == ((3, 6) if k == 1 else (3, k, 6))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("bounds", [(0.0, 2.0), (0.5, 1.5)])
def test_centring_is_that_of_centred_rows_and_keeps_the_rows_as_passed(data, k, bounds):
    x, y, public = data
    u, p = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, public))
    centre = p.mean(axis=0)
    window = {"k": k, "d_min": bounds[0], "d_max": bounds[1]}
    model = fit(data, "epsilon=inf", centre=True, **window)
    plain = fit((u - centre, y, p - centre), "epsilon=inf", **window)
    assert np.array_equal(model.indices_, plain.indices_)
    assert np.array_equal(model.prototypes_, public[model.indices_])
    assert np.array_equal(model.predict(x), plain.predict(u - centre))
    assert fit(data, centre=True, **window).guarantee_ == fit(data, **window).guarantee_


def test_a_window_from_public_rows_implies_a_centre_and_shows_its_bounds(data):
    x = data[0]
    model = fit(data, "epsilon=inf")
    low, high = model.window_
    assert 0 < low < high < 2
    plain = fit(data, "epsilon=inf", d_min=low, d_max=high, centre=True)
    assert np.array_equal(model.indices_, plain.indices_)
    assert np.array_equal(model.centre_, plain.centre_)
    assert np.array_equal(model.predict(x), plain.predict(x))
    assert model.released_.mechanism["clip window of 1 + cosine"] == [low, high]
    assert fit(data, "epsilon=inf", d_min="public", d_max="public").window_ == model.window_
    assert fit(data, d_min=0, d_max=2).centre_ is None


def test_a_window_from_public_rows_does_not_look_at_private_ones(data):
    x, y, public = data
    windows = {
        fit((rows, y, public), d_min="public", d_max="public").window_
        for rows in (x, -x, x[::-1] + 3)
    }
    assert len(windows) == 1


def test_prototypes_are_public_rows_as_passed(data):
    x, y, public = data
    half = public.astype(np.float16)
    model = fit((x, y, half), k=3)
    assert model.prototypes_.dtype == np.float16
    assert np.array_equal(model.prototypes_, half[model.indices_])
    assert all(row.tolist() == sorted(set(row.tolist())) for row in model.indices_)


def test_predictions_are_by_the_mean_cosine_distance_over_the_prototypes(data):
    x = data[0]
    model = fit(data, k=4, centre=False, **WHOLE)
    p = model.prototypes_ / np.linalg.norm(model.prototypes_, axis=2, keepdims=True)
    q = x / np.linalg.norm(x, axis=1, keepdims=True)
    distance = np.stack([(1 - q @ p[c].T).mean(axis=1) for c in range(3)], axis=1)
    assert np.array_equal(model.predict(x), distance.argmin(axis=1))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("bounds", [(0.0, 2.0), (1.3, 1.6)])
def test_the_learner_draws_the_mechanism_it_states(k, bounds):
    """Frequencies of the whole learner against exp(epsilon u) over all sets, u computed in
    float64.
    """
    rng = np.random.default_rng(1)
    x, public = np.abs(rng.normal(size=(6, 4))), np.abs(rng.normal(size=(5, 4)))
    p, q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (public, x))
    utility = ((np.clip(1 + q @ p.T, *bounds) - bounds[0]) / (bounds[1] - bounds[0])).sum(axis=0)
    sets = list(itertools.combinations(range(5), k))
    weights = np.exp([2.0 * min(utility[i] for i in s) for s in sets])
    times = 600
    found = [
        tuple(np.atleast_1d(model.indices_[0]).tolist())
        for seed in range(times)
        for model in [
            tacit.PublicPrototypes(
                "epsilon=2", public=public, classes=1, k=k, d_min=bounds[0], d_max=bounds[1],
                noise="research", random_state=seed,
            ).fit(x, np.zeros(6, dtype=int))
        ]
    ]  # fmt: skip
    observed = np.array([found.count(s) for s in sets])
    from scipy.stats import chisquare

    assert chisquare(observed, times * weights / weights.sum()).pvalue > 1e-6


@pytest.mark.parametrize("budget", ["epsilon=2", "rho=0.5"])
@pytest.mark.parametrize("k", [1, 3])
def test_a_larger_unit_is_drawn_at_less(data, budget, k):
    """Under replacement an exponential mechanism has twice the epsilon, so it is drawn at half the
    epsilon.
    """
    halved = {"epsilon=2": "epsilon=1", "rho=0.5": "rho=0.125"}[budget]

    def drawn(budget, unit):
        few = {"noise": "research", "k": k, "unit": unit} | WHOLE
        return np.array(
            [fit(data, budget, random_state=seed, **few).indices_ for seed in range(20)]
        )

    assert np.array_equal(drawn(budget, "replace"), drawn(halved, "add-remove"))
    assert not np.array_equal(drawn(budget, "replace"), drawn(budget, "add-remove"))


def test_events():
    assert tacit.PublicPrototypes("epsilon=1.5").promise().event == Parallel(
        Exponential(1.5), "classes"
    )
    assert tacit.PublicPrototypes("epsilon=1.5", k=7).promise().event == Parallel(
        Exponential(1.5), "classes"
    )
    assert tacit.PublicPrototypes("rho=0.5").promise().epsilon(0) == pytest.approx(2.0)
    flip = tacit.PublicPrototypes("epsilon=1", selection="permute-and-flip")
    assert flip.promise().event == Parallel(PureDP(1.0), "classes")


def test_public_rows_may_be_a_list_of_lists_or_a_sharded_store(data, tmp_path):
    x, y, public = data
    store = tacit.EmbeddingStore.write(tmp_path / "public", public, dtype="float64", shard_rows=7)
    for k in (1, 3):
        fits = [
            fit((x, y, rows), "epsilon=inf", k=k).prototypes_
            for rows in (public, public.tolist(), store.x)
        ]
        assert np.array_equal(fits[0], fits[1])
        assert np.array_equal(fits[0], fits[2])


def test_utilities_stay_private_under_secure_noise(data):
    model = fit(data, noise="research")
    assert model.utilities_.shape == (3, 23)
    assert 0 <= model.utilities_.min() <= model.utilities_[0].max() <= 60
    model.set_params(noise="secure")
    assert not hasattr(model.fit(*data[:2]), "utilities_")


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 5])
def test_accuracy_on_real_embeddings_is_that_of_the_direct_formula(cifar100, k):
    x, y, test_x, test_y = cifar100.train_x, cifar100.train_y, cifar100.test_x, cifar100.test_y
    public = cifar100.public[:20000]
    models = [
        tacit.PublicPrototypes(
            "epsilon=2",
            public=public,
            classes=100,
            k=k,
            noise="research",
            random_state=seed,
            **WHOLE,
        )
        for seed in range(3)
    ]
    found = np.mean([model.fit(x, y).score(test_x, test_y) for model in models])

    unit = [
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (a.astype(float) for a in (public, x, test_x))
    ]
    rng = np.random.default_rng(0)
    expected = []
    for _ in range(3):
        prototypes = []
        for c in range(100):
            own = unit[1][y == c]
            # the sum over own rows of (1 + cosine)/2
            utility = (len(own) + unit[0] @ own.sum(axis=0)) / 2
            if k == 1:
                chosen = [np.argmax(2 * utility - np.log(rng.exponential(size=len(utility))))]
            else:
                ranked = np.argsort(-utility)
                rank = np.arange(k, len(utility) + 1)
                log_sets = sum(np.log(rank - i) for i in range(1, k))
                y_drawn = rank[
                    np.argmax(
                        2 * utility[ranked[k - 1 :]]
                        + log_sets
                        - np.log(rng.exponential(size=len(rank)))
                    )
                ]
                chosen = ranked[
                    np.append(rng.choice(y_drawn - 1, k - 1, replace=False), y_drawn - 1)
                ]
            prototypes.append(unit[0][chosen].mean(axis=0))
        expected.append((np.argmax(unit[2] @ np.array(prototypes).T, axis=1) == test_y).mean())
    assert found == pytest.approx(np.mean(expected), abs=0.02)
    assert found > 0.25


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"public": None}, InputError, "public=None must be"),
        ({"public": np.ones((4, 5))}, InputError, "encode both the same way"),
        ({"public": np.ones(6)}, InputError, "public has 1 dimension"),
        ({"k": 24}, InputError, stating("k=24", "23 public rows")),
        ({"centre": "yes"}, InputError, stating("centre='yes'", "False", "True")),
        ({"k": 0}, InputError, "k=0 must be"),
        ({"k": 1.5}, InputError, "k=1.5 must be"),
        ({"public": np.zeros((4, 6))}, InputError, "public row 0 is all zeros"),
        ({"public": np.full((4, 6), np.inf)}, InputError, "public row 0 is not finite"),
        ({"d_min": 1.0, "d_max": 0.5}, InputError, "d_min=1.0 must be below d_max=0.5"),
        ({"d_min": "publik"}, InputError, stating("d_min='publik'", "'public'", "number")),
        ({"d_min": "public", "centre": False}, InputError, "centre=False does not go"),
        ({"d_min": 1.9999}, InputError, "d_min=1.9999, d_max='public' are 1.999900 and"),
        ({"selection": "gumbel"}, InputError, "selection='gumbel'"),
        ({"selection": "permute-and-flip", "k": 2}, BudgetError, "needs k=1 and a pure budget"),
        (
            {"selection": "permute-and-flip", "budget": "rho=1"},
            BudgetError,
            "needs k=1 and a pure budget",
        ),
    ],
)
def test_bad_parameters(data, parameters, error, message):
    with pytest.raises(error, match=message):
        fit(data, **parameters)


def test_public_rows_of_whole_numbers_are_released_as_floats(tmp_path):
    public = np.array([[3, 0], [0, 2], [-1, -1]])
    model = tacit.PublicPrototypes(
        "epsilon=inf", public=public, classes=2, noise="research", **WHOLE
    )
    model.fit(np.array([[1.0, 0.1], [0.1, 1.0]]), np.array([0, 1]))
    assert model.prototypes_.dtype == np.float64
    assert model.prototypes_.tolist() == [[3, 0], [0, 2]]
    private = tacit.PublicPrototypes("epsilon=1", public=public, classes=2)
    release = tacit.Release.of(private.fit(np.array([[1.0, 0.1], [0.1, 1.0]]), np.array([0, 1])))
    release.save(tmp_path / "release")
    assert tacit.Release.load(tmp_path / "release").predict([[1.0, 0.0]]) in ([0], [1])


NAMES = np.array([[0.6, 0.8, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]])


def test_names_are_candidates_of_every_class(data):
    """Without noise the nearest of public rows and names is taken, whichever class a name is of."""
    x, y, public = data
    means = np.array([unit(x[y == c]).mean(axis=0) for c in range(3)])
    model = fit((x, y, -means), "epsilon=inf", names=means[[1, 0, 2]], **WHOLE)
    assert model.indices_.tolist() == [3 + 1, 3, 3 + 2]
    assert np.allclose(model.prototypes_, unit(means), rtol=0, atol=1e-12)
    cosines = np.array([(1 + unit(x[y == c]) @ unit(means).T).sum(axis=0) for c in range(3)])
    weights = np.array([[7 / 8, 1, 7 / 8], [1, 7 / 8, 7 / 8], [7 / 8, 7 / 8, 1]])
    assert np.allclose(model.utilities_[:, [4, 3, 5]], cosines * weights / 2, rtol=1e-3)
    mixed = fit(data, "epsilon=inf", names=[means[0], -means[1], -means[2]], **WHOLE)
    assert mixed.indices_[0] == len(public)
    assert np.array_equal(mixed.prototypes_[1:], public[mixed.indices_[1:]])


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_name_is_kept_as_a_row_of_its_direction_about_the_centre(data):
    x, y, public = data
    centre = unit(public).mean(axis=0)
    rows = rows_in_directions(unit(NAMES - centre), centre)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.allclose(unit(rows - centre), unit(NAMES - centre), rtol=0, atol=1e-12)
    names = [NAMES, NAMES[1], -NAMES[0]]
    model = fit(data, "rho=1e-6", names=names, centre=True, noise="research", random_state=1)
    own = np.flatnonzero(model.indices_ == len(public) + np.arange(3))
    assert own.size > 0
    directions = tacit.NamePrototypes(classes=3, names=names, public=public).fit(x, y).prototypes_
    assert np.allclose(unit(model.prototypes_ - centre)[own], directions[own], rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 8.0])
def test_a_class_without_records_keeps_its_name_half_of_the_time(data, epsilon):
    x, y, public = data
    chosen = [
        fit(
            (x[y < 2], y[y < 2], public),
            f"epsilon={epsilon}",
            names=NAMES,
            noise="research",
            random_state=seed,
        )
        for seed in range(200)
    ]
    own = np.mean([model.indices_[2] == len(public) + 2 for model in chosen])
    assert own == pytest.approx(0.5, abs=0.11)  # three standard deviations


@pytest.mark.parametrize("bounds", [(0.0, 2.0), (0.9, 1.4)])
def test_a_record_moves_the_scores_of_its_class_by_one_at_most(data, bounds):
    """Of names too, and what is added to the class's own name does not depend on records."""
    x, y, public = data
    given = {
        "names": NAMES,
        "d_min": bounds[0],
        "d_max": bounds[1],
        "noise": "research",
        "random_state": 0,
    }
    more, fewer = fit(data, **given).utilities_, fit((x[1:], y[1:], public), **given).utilities_
    assert more.shape == (3, len(public) + 3)
    moved = more - fewer
    assert np.array_equal(moved[1:], np.zeros_like(moved[1:]))
    assert np.all((moved[0] >= 0) & (moved[0] <= 1))
    assert moved[0, -3:].max() > 0


def test_names_need_a_single_choice_and_survive_the_smallest_budget(data):
    with pytest.raises(InputError, match=stating("k=1", "k=5")):
        tacit.PublicPrototypes(names=NAMES, classes=3, k=5).promise()
    assert fit(data, "epsilon=1e-9", names=NAMES, **WHOLE).predict(data[0]).shape == (100,)


def test_names_beside_scores_in_a_folder(data, tmp_path):
    given = {"names": NAMES, "noise": "research", "random_state": 0}
    inside = fit(data, folder=tmp_path / "scores", engine="joblib", **given)
    assert np.array_equal(inside.indices_, fit(data, **given).indices_)
    assert [path.name for path in (tmp_path / "scores").iterdir()] == [".lock"]

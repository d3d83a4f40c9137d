import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import lacking, stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.balance import COUNT_SHARE
from tacit.learners.common.softmax import residuals
from tacit.learners.common.unit_rows import FARTHEST
from tacit.learners.prototypes import projected
from tacit.learners.prototypes.projected import (
    gradient_by_layer,
    gradient_rows,
    longest_rate,
    pulls,
)
from tacit.learners.prototypes.scores.arithmetic import scoring
from tacit.learners.prototypes.split import Split, calibrated
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Exponential, Gaussian, Parallel, compose
from tacit.privacy.unit import Unit

ZERO = np.zeros(4)


def head_of(layer, sums):
    """Return W' W S_c/|W S_c| of each class, and zero where S_c is."""
    projected_sums = sums @ layer.T
    lengths = np.linalg.norm(projected_sums, axis=1, keepdims=True)
    return projected_sums / np.maximum(lengths, 1e-300) @ layer


def cross_entropy(layer, sums, rows, labels, scale, offsets=0.0):
    """Return the sum over records of the cross-entropy by the layer, divided by `scale`."""
    logits = scale * rows @ head_of(layer, sums).T + offsets
    return (logsumexp(logits, axis=1) - logits[np.arange(len(rows)), labels]).sum() / scale


def gradient_of_loss(layer, *arguments):
    """Return the derivative of `cross_entropy` by each entry of the layer, by differences."""
    found = np.zeros_like(layer)
    for entry in np.ndindex(layer.shape):
        step = np.zeros_like(layer)
        step[entry] = 1e-6
        rise = cross_entropy(layer + step, *arguments) - cross_entropy(layer - step, *arguments)
        found[entry] = rise / 2e-6
    return found


def clipped_by_head(rows, labels, layer, sums, scale, clip):
    """Return the sum of the records' gradients by the head, clipped one after the other."""
    total = np.zeros_like(sums)
    head = head_of(layer, sums)
    for x, y in zip(rows, labels, strict=True):
        gradient = np.outer(softmax(scale * head @ x) - np.eye(len(sums))[y], x)
        total += gradient / max(1, np.linalg.norm(gradient) / clip)
    return total


def naive_gradients(rows, labels, layer, sums, scale, clip):
    """Return the sum of the records' gradients by the layer, prototypes held, clipped one by one."""
    total = np.zeros_like(layer)
    prototypes = unit(sums @ layer.T)
    for x, y in zip(rows, labels, strict=True):
        residual = softmax(scale * prototypes @ layer @ x) - np.eye(len(sums))[y]
        gradient = np.outer(residual @ prototypes, x)
        total += gradient / max(1, np.linalg.norm(gradient) / clip)
    return total


def sums_of(rows, labels):
    return np.stack([rows[labels == c].sum(axis=0) for c in range(4)])


@pytest.mark.parametrize(("public", "dimension"), [(None, None), (PUBLIC, 2)])
def test_sums_without_noise_learn_by_the_gradient_with_prototypes_held(public, dimension):
    rows = unit(X) if public is None else unit(unit(X) - unit(public).mean(axis=0))
    sums = sums_of(rows, Y)
    shares = np.bincount(Y) + 1.0
    model = tacit.ProjectedPrototypes("rho=inf", classes=4, public=public, dimension=dimension).fit(
        X, Y
    )
    layer = previous = ahead = np.linalg.svd(unit(sums))[2][: dimension or 4]
    for step in range(60):
        prototypes = unit(sums @ ahead.T)
        residual = (
            softmax(20 * rows @ ahead.T @ prototypes.T + np.log(shares / shares.mean()), axis=1)
            - np.eye(4)[Y]
        )
        layer = ahead - (40 if public is None else 10) / 500 * (residual @ prototypes).T @ rows
        ahead = layer + step / (step + 3) * (layer - previous)
        previous = layer
    scores = rows @ layer.T @ unit(sums @ layer.T).T
    assert np.allclose(model.coefficients_ @ rows.T, scores.T)
    assert np.allclose(model.prototypes_ @ model.prototypes_.T, sums @ layer.T @ layer @ sums.T)
    assert np.allclose(model.coefficients_, unit(model.prototypes_) @ model.projection_)
    assert np.array_equal(model.predict(X), scores.argmax(axis=1))


def test_public_rows_without_noise_learn_by_the_whole_gradient():
    centre = unit(PUBLIC).mean(axis=0)
    rows = unit(unit(X) - centre)
    shares = np.bincount(Y) + 1.0
    offsets = np.log(shares / shares.mean())
    model = tacit.ProjectedPrototypes(
        "rho=inf", prototypes="public", classes=4, public=PUBLIC, dimension=2, steps=4
    ).fit(X, Y)

    sums = unit(unit(PUBLIC) - centre)[model.indices_]
    layer = previous = ahead = np.linalg.svd(sums)[2][:2]
    for step in range(4):
        gradient = gradient_of_loss(ahead, sums, rows, Y, 20, offsets)
        layer = ahead - 4 / 3 / 500 * gradient
        ahead = layer + step / (step + 3) * (layer - previous)
        previous = layer

    scores = rows @ layer.T @ unit(sums @ layer.T).T
    assert np.allclose(model.coefficients_ @ rows.T, scores.T, atol=1e-5)


def test_more_steps_before_public_rows_lower_the_loss():
    """The prototypes move with the layer: with their movement left out, the loss rises."""
    rows = unit(unit(X) - unit(PUBLIC).mean(axis=0))
    shares = np.bincount(Y) + 1.0
    losses = []
    for steps in (1, 10, 30, 60, 100):
        settings = {"public": PUBLIC, "prototypes": "public", "learning_rate": 1.0}
        model = tacit.ProjectedPrototypes("rho=inf", classes=4, steps=steps, **settings).fit(X, Y)
        logits = 20 * rows @ model.coefficients_.T + np.log(shares / shares.mean())
        losses.append(float((logsumexp(logits, axis=1) - logits[np.arange(500), Y]).mean()))
    assert losses == sorted(losses, reverse=True)


def test_it_starts_as_noisy_sums():
    still = tacit.ProjectedPrototypes("rho=inf", classes=4, learning_rate=1e-9).fit(X, Y)
    assert np.allclose(
        still.coefficients_,
        unit(tacit.NoisySumPrototypes("rho=inf", classes=4).fit(X, Y).prototypes_),
    )


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_the_gradient_by_the_layer_is_that_of_the_cross_entropy(size):
    """One class has no prototype: it is represented by zero, and moves nothing."""
    rng = np.random.default_rng(3)
    layer, sums = rng.normal(size=(3, 12)) * size, rng.normal(size=(4, 12))
    sums[2] = 0
    rows, labels = unit(X)[:30], Y[:30]
    scale = 5 / size
    by_head = clipped_by_head(rows, labels, layer, sums, scale, 1e9)
    expected = gradient_of_loss(layer, sums, rows, labels, scale)
    assert np.allclose(gradient_by_layer(by_head, layer, sums), expected, atol=1e-4)


def test_noise_that_all_classes_share_moves_no_layer():
    rng = np.random.default_rng(3)
    by_head, layer, sums = (rng.normal(size=shape) for shape in ((4, 12), (3, 12), (4, 12)))
    shared = by_head + rng.normal(size=12)
    assert np.allclose(
        gradient_by_layer(shared, layer, sums), gradient_by_layer(by_head, layer, sums)
    )


@pytest.fixture
def exact_sums(monkeypatch):
    """Exact sums of outer products before their noise, in the order of release."""
    drawn = []
    noisy_products = outer_products.noisy_products

    def noted(blocks, *, shape, **settings):
        blocks = list(blocks)
        drawn.append(product_sums(iter(blocks), shape=shape).astype(float) / UNIT)
        return noisy_products(iter(blocks), shape=shape, **settings)

    monkeypatch.setattr(outer_products, "noisy_products", noted)
    return drawn


# Of every data set the same rows are chosen, so that the first step begins at one layer.
CHOSEN = {"prototypes": "public", "public": PUBLIC, "classes": 4, "counts": 125, "scale": 7.0}


def first_sum(exact_sums, rows, labels, persons=None, **settings):
    """Return the exact sum of the first step, and the model."""
    model = tacit.ProjectedPrototypes(
        "rho=0.1", steps=2, noise="research", random_state=0, **CHOSEN, **settings
    ).fit(rows, labels, persons)
    first, _ = exact_sums
    exact_sums.clear()
    return first, model


@pytest.fixture
def chosen_alike(monkeypatch):
    """Rows 0, 1, 2, ... of the public rows are chosen, whatever the private records are."""
    chosen = itertools.cycle(range(4))
    monkeypatch.setattr(projected, "select_one", lambda *_, **__: next(chosen))


@pytest.mark.parametrize("clip", [0.1, 1.0, 2.0])
def test_a_step_sums_the_clipped_gradients_by_the_head(clip, exact_sums, chosen_alike):
    found, model = first_sum(exact_sums, X, Y, clip=clip)
    centre = unit(PUBLIC).mean(axis=0)
    sums, rows = unit(unit(PUBLIC[:4]) - centre), unit(unit(X) - centre)
    layer = np.linalg.svd(sums, full_matrices=False)[2]
    assert model.indices_.tolist() == [0, 1, 2, 3]
    assert np.allclose(found * clip, clipped_by_head(rows, Y, layer, sums, 7.0, clip), atol=0.02)


def test_a_neighbour_moves_the_sum_of_a_step_by_no_more_than_is_charged(exact_sums, chosen_alike):
    """One record less, one with another label, and one person less, in units of `clip`."""
    clip = 0.5
    rows, labels, persons = X[:40], Y[:40], np.arange(40) // 4
    whole, _ = first_sum(exact_sums, rows, labels, clip=clip)
    by_person, _ = first_sum(exact_sums, rows, labels, persons, clip=clip, unit="add-remove-person")

    distances = {"record": [], "label": [], "person": []}
    for record in (0, 13, 26):
        keep = np.arange(40) != record
        less, _ = first_sum(exact_sums, rows[keep], labels[keep], clip=clip)
        distances["record"].append(np.linalg.norm(whole - less))

        changed = np.where(keep, labels, (labels + 1) % 4)
        other, _ = first_sum(exact_sums, rows, changed, clip=clip)
        distances["label"].append(np.linalg.norm(whole - other))

        stay = persons != record // 4
        other_persons = rows[stay], labels[stay], persons[stay]
        less, _ = first_sum(exact_sums, *other_persons, clip=clip, unit="add-remove-person")
        distances["person"].append(np.linalg.norm(by_person - less))

    for kind, bound in (("record", 1.0), ("label", 2.0), ("person", 1.0)):
        assert 0.6 * bound < max(distances[kind]) <= bound + 1e-12


def test_after_its_noisy_sums_a_fit_reads_no_record(monkeypatch, chosen_alike):
    """With the same choice, counts and noisy sums, other records give the same bits."""
    rng = np.random.default_rng(5)
    released = rng.normal(size=(6, 4, X.shape[1]))

    def coefficients(rows, labels):
        following = iter(released)
        monkeypatch.setattr(outer_products, "noisy_products", lambda *_, **__: next(following))
        model = tacit.ProjectedPrototypes("rho=0.1", steps=6, noise="research", **CHOSEN)
        return model.fit(rows, labels).coefficients_

    expected = coefficients(X, Y)
    assert np.array_equal(coefficients(rng.normal(size=(90, X.shape[1])), Y[:90]), expected)


@pytest.mark.parametrize("step", [1e-6, -1e-6])
def test_the_gradient_is_that_of_the_cross_entropy_with_prototypes_held(step):
    rng = np.random.default_rng(3)
    layer, sums, x = rng.normal(size=(3, 12)), rng.normal(size=(4, 12)), unit(X)[:1]
    prototypes = unit(sums @ layer.T)

    def loss(layer):
        scores = 5 * prototypes @ layer @ x[0]
        return (np.log(np.exp(scores).sum()) - scores[Y[0]]) / 5

    expected = naive_gradients(x, Y[:1], layer, sums, 5, 1e9)
    for entry in np.ndindex(layer.shape):
        moved = layer.copy()
        moved[entry] += step
        assert (loss(moved) - loss(layer)) / step == pytest.approx(expected[entry], abs=1e-5)


@pytest.mark.parametrize("clip", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_clipping_is_that_of_every_single_gradient(clip, size):
    rng = np.random.default_rng(1)
    layer, sums = rng.normal(size=(3, 12)) * size, rng.normal(size=(4, 12))
    parts = [Block(rounded(unit(X[half])), Y[half]) for half in (slice(0, 200), slice(200, 500))]
    left_and_right = gradient_rows(layer, sums, ZERO, parts, scale=7.0, clip=clip)
    found = product_sums(left_and_right, shape=(3, 12)) / UNIT * clip
    assert np.allclose(found, naive_gradients(unit(X), Y, layer, sums, 7.0, clip), atol=0.02)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (100, 256)])
def test_a_pull_does_not_depend_on_the_other_rows(scale, n_classes, width):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    rows, labels = unit(rng.normal(size=(301, width))), rng.integers(0, n_classes, 301)
    head, prototypes = (
        rng.normal(size=(n_classes, width)),
        rng.normal(size=(n_classes, min(width, 40))) * scale,
    )

    def of(chosen):
        own = residuals(rounded(rows[chosen]), labels[chosen], head, np.zeros(n_classes))
        return pulls(own, prototypes)

    whole = of(np.arange(301))
    order = rng.permutation(301)
    for chosen in (np.arange(301)[::-1], order, order[:100], order[:1], order[::2]):
        assert np.array_equal(of(chosen), whole[chosen])


def test_pulls_are_products():
    rng = np.random.default_rng(2)
    own = rng.normal(size=(50, 7))
    own *= 2**0.5 / np.linalg.norm(own, axis=1, keepdims=True)
    assert np.allclose(pulls(own, 3 * np.eye(7)[:, :5]), 3 * own[:, :5], atol=1e-4)


def test_the_budget_is_spent_in_sums_steps_and_counts():
    promise = tacit.ProjectedPrototypes("rho=0.5", steps=7, share=0.3).promise()
    z = Budget.parse("rho=0.5").gaussian(split=True)
    of_sums, of_step, of_counts = (
        z / 0.3**0.5,
        z * (7 / (0.7 - COUNT_SHARE)) ** 0.5,
        z / COUNT_SHARE**0.5,
    )
    sums, counts = (Parallel(Gaussian(z), "classes") for z in (of_sums, of_counts))
    assert promise.event == compose([sums, 7 * Gaussian(of_step), counts])
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    declared = tacit.ProjectedPrototypes("rho=0.5", steps=7, share=0.3, counts=125).promise()
    assert declared.event == compose([sums, 7 * Gaussian(z * (7 / 0.7) ** 0.5)])
    assert declared.unprotected == (*promise.unprotected, "class counts (declared)")


@pytest.mark.parametrize("counts", [None, 125])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_the_budget_is_spent_in_a_choice_steps_and_counts(share, counts):
    """rho_1 = share rho for the choice, at epsilon = sqrt(8 rho_1); rho_counts + T/(2 sigma^2) is
    the rest.
    """
    settings = {"prototypes": "public", "steps": 7, "share": share, "counts": counts, "classes": 4}
    promise = tacit.ProjectedPrototypes("rho=0.5", **settings).promise()
    count_share = 0.0 if counts else COUNT_SHARE
    rhos = {
        type(event.base()): event.rho * uses
        for event, uses in promise.event.counted()
        if event.base() != event
    }
    assert rhos.pop(Exponential) == pytest.approx(share * 0.5)
    assert rhos == ({} if counts else {Gaussian: pytest.approx(COUNT_SHARE * 0.5)})
    ((step, uses),) = (
        (event, uses) for event, uses in promise.event.counted() if event.base() == event
    )
    assert uses == 7
    assert uses / (2 * step.noise_multiplier**2) == pytest.approx((1 - share - count_share) * 0.5)
    assert promise.rho == pytest.approx(0.5, rel=1e-11)
    assert Budget.parse("rho=0.5").permits(promise.event)
    assert promise.unprotected == (("class counts (declared)",) if counts else ())


@pytest.mark.parametrize("unit", ["add-remove", "replace", "change-label"])
def test_an_approximate_budget_buys_more_for_all_events_together_than_for_each(unit):
    budget = Budget.parse("epsilon=2,delta=1e-6")
    promise = tacit.ProjectedPrototypes(budget, prototypes="public", unit=unit).promise()
    spent = promise.epsilon(1e-6)
    assert spent <= 2
    assert spent == pytest.approx(2, rel=1e-5)
    assert promise.rho > tacit.ProjectedPrototypes(budget, unit=unit).promise().rho


def test_public_prototypes_are_drawn_at_the_epsilon_of_their_event(monkeypatch, steps_drawn):
    from tacit.learners.prototypes import selection

    drawn = []
    select = selection.exponential.select

    def noted(row, **settings):
        drawn.append((settings["sensitivity"], settings["epsilon"], settings["selection"]))
        return select(row, **settings)

    monkeypatch.setattr(selection.exponential, "select", noted)
    settings = {
        "prototypes": "public",
        "public": PUBLIC,
        "classes": 4,
        "steps": 12,
        "noise": "research",
    }
    for neighbours in ("add-remove", "replace"):
        drawn.clear()
        steps_drawn.clear()
        model = tacit.ProjectedPrototypes("rho=0.1", unit=neighbours, random_state=0, **settings)
        model.fit(X, Y)
        sensitivity = scoring(PUBLIC, *model.window_, centre=model.centre_).sensitivity
        # of one record that is added or removed, which is what the samplers take
        split = Split(model.share, COUNT_SHARE, 12, True)
        z = calibrated(Budget.parse("rho=0.1"), Unit(neighbours), split)
        uses = dict(split.event(z).counted())
        (choice,) = (event.base() for event in uses if isinstance(event.base(), Exponential))
        assert drawn == [(sensitivity, choice.epsilon, "exponential")] * 4
        assert {uses[Gaussian(z)] for z, _ in steps_drawn} == {12}
        assert len(steps_drawn) == 12


def test_public_prototypes_start_as_those_of_public():
    """At an infinite budget and a layer that does not move; the release has what it predicts by."""
    settings = {"classes": 4, "public": PUBLIC, "d_min": 0.9, "d_max": 1.9}
    still = tacit.ProjectedPrototypes(
        "rho=inf", prototypes="public", learning_rate=1e-9, **settings
    ).fit(X, Y)
    chosen = tacit.PublicPrototypes("rho=inf", centre=True, **settings).fit(X, Y)
    assert np.array_equal(still.indices_, chosen.indices_)
    assert still.window_ == chosen.window_ == (0.9, 1.9)
    rows = unit(unit(PUBLIC) - unit(PUBLIC).mean(axis=0))[chosen.indices_]
    assert np.allclose(still.coefficients_, rows, atol=1e-6)
    assert np.allclose(still.prototypes_ @ still.projection_, rows, atol=1e-6)
    assert np.array_equal(still.predict(X), chosen.predict(X))
    by_default = tacit.ProjectedPrototypes(
        "rho=inf", prototypes="public", classes=4, public=PUBLIC
    ).fit(X, Y)
    assert (
        by_default.window_
        == tacit.PublicPrototypes("rho=inf", classes=4, public=PUBLIC).fit(X, Y).window_
    )


def test_public_prototypes_can_be_released(tmp_path):
    model = tacit.ProjectedPrototypes(
        "epsilon=2,delta=1e-6", prototypes="public", public=PUBLIC, classes=4
    ).fit(X, Y)
    release = tacit.Release.load(
        tacit.Release.of(model, name="projected").save(tmp_path / "release")
    ).verify()
    assert np.array_equal(release.predict(X), model.predict(X))
    assert release.document.stamp is None
    card = release.card()
    uses = [event.base() for event, _ in model.promise().event.counted()]
    (choice,) = (event for event in uses if isinstance(event, Exponential))
    assert f"exponential, epsilon {rounded_up(choice.epsilon)} per class" in card
    assert not lacking(card, "public record", "layer")


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_noise_of_sums_and_of_a_step_agrees_with_their_events(clip):
    """Of no records, 36 entries over 300 draws: variances z^2, and (learning rate x clip x
    z/n)^2.
    """
    settings = {
        "classes": 6,
        "steps": 1,
        "counts": 1,
        "learning_rate": 1.0,
        "clip": clip,
        "noise": "research",
    }
    nothing = np.zeros((2, 6)), np.array([0, 1])
    models = [
        tacit.ProjectedPrototypes("rho=0.02", random_state=s, **settings).fit(*nothing)
        for s in range(300)
    ]
    multipliers = [
        event.base().noise_multiplier for event, _ in models[0].guarantee_.event.counted()
    ]
    assert multipliers == pytest.approx([(25 / 0.7) ** 0.5, (25 / 0.3) ** 0.5])
    layers = np.stack([model.projection_ for model in models])
    sums = np.stack([np.linalg.solve(model.projection_, model.prototypes_.T).T for model in models])
    assert sums.var() == pytest.approx(multipliers[0] ** 2, rel=0.05)
    starts = np.stack([np.linalg.svd(unit(own))[2] for own in sums])
    assert (layers - starts).var() == pytest.approx((clip * multipliers[1] / 6) ** 2, rel=0.05)


def test_noise_of_each_release_is_fresh_at_the_multiplier_of_its_event(monkeypatch, steps_drawn):
    sums, class_sums = [], gaussian.noisy_class_sums

    def noisy_class_sums(blocks, **settings):
        sums.append(settings["noise_multiplier"])
        return class_sums(blocks, **settings)

    monkeypatch.setattr(gaussian, "noisy_class_sums", noisy_class_sums)
    model = tacit.ProjectedPrototypes(
        "rho=0.1", classes=4, steps=12, noise="research", random_state=0
    ).fit(X, Y)
    done = [Gaussian(z) for z, _ in steps_drawn] + [Parallel(Gaussian(z), "classes") for z in sums]
    assert dict(compose(done).counted()) == dict(model.guarantee_.event.counted())
    assert len(steps_drawn) == 12
    assert len(sums) == 2  # sums and counts
    noise = np.stack([drawn.ravel() for _, drawn in steps_drawn])
    assert np.abs(np.corrcoef(noise) - np.eye(12)).max() < 0.8
    assert noise.std() == pytest.approx(steps_drawn[0][0], rel=0.1)


def test_the_learning_rate_is_the_longest_that_noise_allows():
    fit = {"classes": 4, "counts": 125, "noise": "research", "random_state": 0}
    assert tacit.ProjectedPrototypes("rho=1e6", **fit).fit(X, Y).learning_rate_ == 40
    assert tacit.ProjectedPrototypes("rho=1e6", public=PUBLIC, **fit).fit(X, Y).learning_rate_ == 10
    selected = {"prototypes": "public", "public": PUBLIC}
    by_rows = tacit.ProjectedPrototypes("rho=1e6", **selected, **fit).fit(X, Y)
    assert by_rows.learning_rate_ == 4 / 3
    of_classes = [longest_rate(c, centred=True, selected=True) for c in (30, 31, 1000)]
    assert of_classes == [10] * 3
    short = tacit.ProjectedPrototypes("rho=0.005", steps=10, share=0.75, **fit).fit(X, Y)
    assert short.learning_rate_ == pytest.approx(3 * 500 / (100 * 10 * 2 * 12**0.5))


def test_counts_are_noisy_unless_declared():
    def rate(n, seed, **parameters):
        model = tacit.ProjectedPrototypes(
            "rho=0.005", classes=4, noise="research", random_state=seed, **parameters
        )
        return model.fit(X[:n], Y[:n]).learning_rate_

    assert len({rate(500, seed) for seed in range(20)}) > 10
    assert rate(400, 0, counts=125) == rate(500, 1, counts=125)


def test_a_class_without_records_is_farthest_without_noise():
    for chosen in (
        {},
        {"prototypes": "public", "public": np.random.default_rng(0).normal(size=(50, X.shape[1]))},
    ):
        model = tacit.ProjectedPrototypes("rho=inf", classes=5, **chosen).fit(X, Y)
        assert model.intercepts_.tolist() == [0, 0, 0, 0, FARTHEST]
        assert set(model.predict(-X)) <= {0, 1, 2, 3}


@pytest.mark.thorough
@pytest.mark.slow
def test_accuracy_on_a_tenth_of_real_embeddings_is_above_that_of_noisy_sums(cifar100):
    """With a hundred times the rho, noise is to signal as in the whole."""
    settings = {"classes": 100, "public": cifar100.public, "noise": "research", "random_state": 0}

    def score(kind, rho):
        model = kind(f"rho={rho}", **settings).fit(cifar100.train_x[:5000], cifar100.train_y[:5000])
        return model.score(cifar100.test_x, cifar100.test_y)

    for rho, floor in (("inf", 0.58), (3200, 0.58), (50, 0.59)):
        assert score(tacit.ProjectedPrototypes, rho) > max(
            floor, score(tacit.NoisySumPrototypes, rho) + 0.01
        )
    assert score(tacit.ProjectedPrototypes, 0.5) > 0.51


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, stating("Gaussian", "pure epsilon")),
        ({"steps": 0}, InputError, "steps=0 must be a whole number"),
        ({"share": 0.95}, InputError, stating("share=0.95", "0.1", "0.9")),
        ({"dimension": 0}, InputError, "dimension=0 must be a whole number"),
        ({"scale": 0}, InputError, "scale=0 must be a number"),
        ({"clip": 0}, InputError, "clip=0 must be a number"),
        ({"counts": [1, 2]}, InputError, stating("one number", "4 classes")),
        ({"balanced": 1}, InputError, stating("balanced=1", "False", "True")),
        ({"learning_rate": 0}, InputError, "learning_rate=0 must be a number"),
        ({"public": np.ones((3, 2))}, InputError, "encode both the same way"),
        ({"prototypes": "rows"}, InputError, stating("prototypes='rows'", "'sums'", "'public'")),
        ({"prototypes": 3}, InputError, stating("prototypes=3", "'sums'", "'public'")),
        ({"d_min": 0.5}, InputError, stating("d_min=0.5", "d_max='public'", "prototypes='public'")),
        ({"prototypes": "public"}, InputError, stating("public=None", "rows")),
        (
            {"prototypes": "public", "public": np.ones((3, 2))},
            InputError,
            "encode both the same way",
        ),
        (
            {"prototypes": "public", "public": PUBLIC, "d_min": 1.5, "d_max": 1.0},
            InputError,
            "d_min=1.5 must be below",
        ),
        (
            {"prototypes": "public", "public": PUBLIC, "budget": "epsilon=1"},
            BudgetError,
            "no pure epsilon",
        ),
        (
            {"prototypes": "public", "public": PUBLIC, "share": 1},
            InputError,
            "share=1 must be a number",
        ),
        (
            {"prototypes": "public", "public": PUBLIC, "balanced": 1},
            InputError,
            stating("balanced=1", "False", "True"),
        ),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.ProjectedPrototypes(**({"classes": 4} | parameters)).fit(X, Y)

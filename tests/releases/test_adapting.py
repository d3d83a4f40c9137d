import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tacit
from messages import lacking, stating
from tacit.errors import InputError, ReleaseError
from tacit.models.adapting import Task
from tacit.models.carried import carried
from tacit.releases import adapting
from tacit.releases.reading import arrays_file
from tacit.releases.registry import registry_yaml
from tacit.releases.release import Release, Utility
from tacit.releases.schema import Adaptation

C, D = 6, 16
TRUE = np.random.default_rng(3).normal(size=(C, D)) / 2


def rows(seed, n, spread=0.7):
    """Rows (n, D) of the classes in turn, and their classes."""
    y = np.arange(n) % C
    return TRUE[y] + spread * np.random.default_rng(seed).normal(size=(n, D)), y


PUBLIC, _ = rows(0, 300)
NEW, _ = rows(1, 600)
TEST = rows(2, 1200)


def fitted(**parameters):
    X, y = rows(4, 240)
    settings = {
        "budget": "rho=0.02",
        "public": PUBLIC,
        "classes": C,
        "noise": "research",
        "random_state": 0,
    }
    return tacit.AutoPrototypes(**settings | parameters).fit(X, y)


LEARNER = fitted()
RELEASE = Release.of(LEARNER, name="six")
REFINED = Release.of(fitted(budget="rho=50"), name="refined")


def accuracy(release):
    X, y = TEST
    return np.mean(release.predict(X) == y)


def test_an_adapted_release_is_better_and_says_so():
    adapted = tacit.adapt(RELEASE, NEW, name="new rows", hash="abc")
    assert accuracy(adapted.release) > accuracy(RELEASE) + 0.05
    assert adapted.rows == 600
    assert (
        adapted.why
        == f"adapted to 600 rows: the log likelihood of a held-out row rose by {adapted.gain:.3g}"
        " nats"
    )
    card = adapted.release.verify().card()
    assert "- rows: 600\n- name: new rows\n- hash: abc\n" in card
    assert "which leaves the guarantee unchanged" in card
    assert not lacking(card, "private record", "guarantee")
    contents = adapted.release.document.contents
    assert not lacking(contents.what, "quadratic", "adapted")
    assert "which leaves the guarantee unchanged" in json.dumps(
        adapted.release.document.model_dump(mode="json")
    )


def test_the_guarantee_and_all_statements_about_privacy_are_unchanged():
    adapted = tacit.adapt(RELEASE, NEW).release
    assert adapted.guarantee == RELEASE.guarantee
    before, after = RELEASE.document.model_dump(), adapted.document.model_dump()
    assert {item for item in before if before[item] != after[item]} == {
        "contents",
        "post_processing",
    }


def test_the_scores_are_those_of_the_release_and_what_is_added():
    adapted = tacit.adapt(RELEASE, NEW).release
    posterior = {
        name: array for name, array in RELEASE.arrays.items() if name.startswith("posterior.")
    }
    assert set(RELEASE.arrays) == set(adapted.arrays) | set(posterior)
    for name in ("axes", "centre"):
        np.testing.assert_array_equal(adapted.arrays[name], RELEASE.arrays[name])
    unit = NEW / np.linalg.norm(NEW, axis=1, keepdims=True) - LEARNER.centre_
    along = unit / np.linalg.norm(unit, axis=1, keepdims=True) @ RELEASE.arrays["axes"]
    known = carried(RELEASE.arrays)
    added = Task(known, along, RELEASE.similarities(NEW), linear=False).addition().of(along)
    np.testing.assert_allclose(
        adapted.similarities(NEW), RELEASE.similarities(NEW) + added, rtol=1e-9, atol=1e-9
    )


def test_a_refined_release_keeps_what_its_steps_taught():
    assert REFINED.decision.rule == "linear"
    adapted = tacit.adapt(REFINED, NEW).release
    assert set(adapted.arrays) == {"coefficients", "intercepts", "centre", "probabilities"}
    assert np.array_equal(adapted.arrays["probabilities"], REFINED.arrays["probabilities"])
    assert accuracy(adapted) > accuracy(REFINED) - 0.01
    change = adapted.arrays["coefficients"] - REFINED.arrays["coefficients"]
    assert 0 < np.abs(change).max() < np.abs(REFINED.arrays["coefficients"]).max()


def test_rows_that_do_not_suit_the_release():
    few, y = rows(1, 600)
    adapted = tacit.adapt(RELEASE, few[y < 2])
    assert adapted.release is None
    assert adapted.why.startswith(
        "the rows do not suit the release: they gather in few of the classes: their spread"
    )


def test_it_goes_to_a_folder_and_back(tmp_path):
    adapted = tacit.adapt(RELEASE, NEW).release
    back = Release.load(adapted.save(tmp_path / "a", allow_research=True)).verify()
    assert back.document == adapted.document
    assert isinstance(back.document.post_processing, Adaptation)
    np.testing.assert_array_equal(back.predict(TEST[0]), adapted.predict(TEST[0]))
    of_file = Release.load(RELEASE.save(tmp_path / "b", allow_research=True)).verify()
    assert tacit.adapt(of_file, NEW).release.sha256 == adapted.sha256


def test_a_stamped_release_stays_stamped(tmp_path):
    adapted = tacit.adapt(RELEASE, NEW).release
    assert adapted.document.stamp == "NOT FOR RELEASE"
    with pytest.raises(ReleaseError, match="'six' is NOT FOR RELEASE"):
        adapted.save(tmp_path / "a")


def test_the_utility_of_the_old_arrays_is_not_that_of_the_new():
    utility = Utility(
        test_set="t",
        rows=9,
        accuracy=0.5,
        balanced_accuracy=0.5,
        per_class={},
        interval=(0, 1),
        interval_of="accuracy",
    )
    assert tacit.adapt(RELEASE.with_utility(utility), NEW).release.document.utility == "not stated"


def test_the_registry_says_that_it_was_adapted():
    adapted = tacit.adapt(RELEASE, NEW).release
    published = adapted.document.model_copy(update={"stamp": None})
    assert not lacking(registry_yaml(published), "adapted", "unlabelled")


def test_zero_rows_contribute_nothing():
    with_zeros = np.insert(NEW, [0, 7, 7, 600], 0.0, axis=0)
    one, other = tacit.adapt(RELEASE, NEW), tacit.adapt(RELEASE, with_zeros)
    assert other.rows == 600
    assert one.release.sha256 == other.release.sha256


def test_lengths_of_rows_do_not_matter():
    scaled = tacit.adapt(RELEASE, NEW * np.linspace(0.5, 2, 600)[:, None]).release
    np.testing.assert_allclose(
        scaled.arrays["coefficients"],
        tacit.adapt(RELEASE, NEW).release.arrays["coefficients"],
        rtol=1e-9,
    )


def test_of_many_rows_some_are_drawn(monkeypatch):
    monkeypatch.setattr(adapting, "MOST", 300)
    adapted = tacit.adapt(RELEASE, NEW)
    assert adapted.rows == 300
    drawn = np.sort(np.random.default_rng(0).choice(600, 300, replace=False))
    assert adapted.release.sha256 == tacit.adapt(RELEASE, NEW[drawn]).release.sha256


@pytest.mark.parametrize(
    ("X", "fault"),
    [
        (NEW[:, :5], stating("X", "(600, 5)", "(n, 16)")),
        (np.where(np.arange(D) == 3, np.nan, NEW), "row 0 of X is not finite"),
        (NEW[:63], stating("63 rows", "64")),
        (NEW[:0], stating("X", "0 rows")),
        (np.zeros((100, D)), stating("X", "0 rows")),
        ([["a"] * D], "not numbers"),
    ],
)
def test_rows_of_another_form(X, fault):
    with pytest.raises(InputError, match=fault):
        tacit.adapt(RELEASE, X)


def test_names_for_the_card_are_one_line():
    with pytest.raises(ReleaseError, match="name = 'two.nlines'.*; give one line of text"):
        tacit.adapt(RELEASE, NEW, name="two\nlines")


def test_releases_without_a_posterior_are_refused():
    other = Release.of(tacit.NoisySumPrototypes(classes=C).fit(*rows(4, 240)))
    fault = (
        "carries no posterior of class means, which only releases of auto do; fit with tacit fit"
        " auto"
    )
    with pytest.raises(ReleaseError, match=fault):
        tacit.adapt(other, NEW)


def test_an_adapted_release_is_not_adapted_again():
    adapted = tacit.adapt(RELEASE, NEW).release
    with pytest.raises(ReleaseError, match=stating("already", "all rows")):
        tacit.adapt(adapted, NEW)


def test_class_names_are_carried_and_used():
    named = Release.of(fitted(names=TRUE, budget="rho=0.01"))
    assert named.arrays["posterior.names"].shape == (C, named.arrays["axes"].shape[1])
    assert accuracy(tacit.adapt(named, NEW).release) >= accuracy(named)
    assert "posterior.names" not in RELEASE.arrays


def test_a_forged_posterior_is_refused(tmp_path):
    folder = RELEASE.save(tmp_path / "r", allow_research=True)
    arrays = load_file(folder / "arrays.safetensors")
    save_file(
        arrays | {"posterior.spreads": -arrays["posterior.spreads"]}, folder / "arrays.safetensors"
    )
    with pytest.raises(ReleaseError, match=stating("posterior.spreads", "above 0")):
        Release.load(folder)
    save_file(
        {k: v for k, v in arrays.items() if k != "posterior.means"}, folder / "arrays.safetensors"
    )
    with pytest.raises(ReleaseError, match=stating("release.json", "shapes")):
        Release.load(folder)


def test_another_release_cannot_carry_a_posterior_that_does_not_fit():
    small = {
        name: array[:3] if name == "posterior.means" else array
        for name, array in RELEASE.arrays.items()
    }
    listed = tuple(
        each.model_copy(update={"shape": small[each.name].shape})
        for each in RELEASE.document.contents.arrays
    )
    sha256 = hashlib.sha256(arrays_file(small)).hexdigest()
    contents = RELEASE.document.contents.model_copy(update={"arrays": listed, "sha256": sha256})
    document = RELEASE.document.model_copy(update={"contents": contents})
    with pytest.raises(ReleaseError, match=stating("posterior.means", "float32", "(3, 16)")):
        replace(RELEASE, document=document, arrays=small, sha256=sha256).verify()


def test_what_is_no_release_is_refused():
    with pytest.raises(InputError, match=stating("release='folder'", "tacit.Release.load")):
        tacit.adapt("folder", np.ones((100, 3)))


def test_prediction_sets_do_not_outlive_the_probabilities_that_they_were_paid_for():
    calibrated = tacit.calibrate_sets(RELEASE, *rows(8, 200), budget="rho=1")
    assert calibrated.prediction_sets is not None
    adapted = tacit.adapt(calibrated, NEW).release
    assert adapted.prediction_sets is None
    adapted.verify()

"""The plain words with which pages and READMEs open."""

import numpy as np
import pytest

import tacit
from label_sets import label_set_release
from messages import lacking
from tacit.privacy.unit import Unit
from tacit.privacy.words import in_words, protection, right_guesses
from tacit.releases.opening import classes_words, opening
from tacit.releases.release import LabelSetUtility, Release


def a_release(classes=2, **facts):
    names = np.asarray(list(range(classes)) if isinstance(classes, int) else classes)
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=classes)
    return Release.of(learner.fit(np.eye(3)[[0, 1]], names[[0, 1]]), **facts)


@pytest.mark.parametrize("unit", Unit)
def test_the_protection_is_that_of_the_guarantee_in_words(unit):
    sentence = protection(unit, 0.3829)
    assert sentence.startswith(f"It hides {unit.hidden_fact}:")
    assert "at most 69.2 right" in sentence
    assert "69.2% of the time" in in_words(unit, 4.9, 9.0, 0.3829)
    assert unit.hidden.startswith(f"{unit.hidden_fact} (")
    assert protection(unit, 0.0) == f"It hides {unit.hidden_fact}: nothing in it depends on that."


@pytest.mark.parametrize(
    ("advantage", "right"), [(0.3829, "69.2"), (0.38, "69"), (0.001, "50.1"), (1.0, "100")]
)
def test_right_guesses_are_rounded_up(advantage, right):
    assert right_guesses(advantage) == right


def test_what_a_model_does_is_said_by_its_task_and_its_input():
    facts = {"description": "pets", "intended_use": "sorting pictures."}
    words = opening(a_release(encoder={"name": "dino"}, **facts).document, "Not signed.")
    assert not lacking(words.task, "one of 2 classes", "3 numbers, made by dino")
    assert words.task.endswith("describes it as: pets. Intended use: sorting pictures.")
    assert words.signature == "Curator: not stated. Not signed."
    assert "what makes them is not stated" in opening(a_release().document, "").task

    several = opening(label_set_release().document, "")
    assert several.task.startswith("It marks each record with any of 4 labels, or with none.")

    names = ["a", "b", "c", "d"]
    tree = {name: "first" if name < "c" else "second" for name in names}
    released = Release.of(tacit.NoisySumPrototypes(classes=names).fit(np.eye(4), names), tree=tree)
    assert "a group of them" in opening(released.document, "").task


def test_a_long_list_of_classes_says_how_many_more():
    document = a_release(25).document
    assert classes_words(document, 3) == "0, 1, 2 and 22 more."
    assert opening(document, "").classes.endswith("18, 19 and 5 more.")
    assert opening(a_release(["cat", "dog"]).document, "").classes == "cat, dog."


def test_figures_say_how_they_were_measured():
    measured = LabelSetUtility(
        test_set="notes",
        rows=1500,
        mean_average_precision=0.81,
        interval=(0.79, 0.83),
        interval_of="mean average precision",
        micro_f1=0.7,
        macro_f1=0.6,
        exact_match=0.555,
        calibration_error=0.02,
        rare_by="counts in the test set",
        per_label={"ant": 0.9},
        protection="public test set",
    )
    words = opening(label_set_release().with_utility(measured).document, "").utility
    assert not lacking(
        words, "55.5 of 100", "81.0 of 100", "79.0 to 83.0", "1,500 rows of notes: public test set"
    )
    assert opening(a_release().document, "").utility.startswith("Not stated")


def test_what_protects_nobody_says_so():
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=2, noise="research", random_state=0)
    seeded = Release.of(learner.fit(np.eye(2), [0, 1]))
    assert opening(seeded.document, "").protection.startswith("None: its noise was drawn from")
    unbounded = Release.of(tacit.NoisySumPrototypes("rho=inf", classes=2).fit(np.eye(2), [0, 1]))
    assert opening(unbounded.document, "").protection.startswith("None: no bound holds")

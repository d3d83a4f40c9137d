import doctest
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tacit
from messages import lacking, stating
from tacit.errors import InputError, ReleaseError
from tacit.models.probabilities import Probabilities
from tacit.privacy.events import (
    Exponential,
    Gaussian,
    Parallel,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.releases import release as release_module
from tacit.releases import statement
from tacit.releases.release import Release, Utility

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(3, 12)) * 3
LABELS = np.repeat([0, 1, 2], 40)
ROWS = CENTRES[LABELS] + RNG.normal(size=(120, 12))
PUBLIC = (CENTRES[np.arange(30) % 3] + RNG.normal(size=(30, 12))).astype(np.float32)
TEST_ROWS = RNG.normal(size=(200, 12)) * 3
NAMES = np.array(["cat", "dog", "élan"])


def noisy_sum(**parameters):
    y = parameters.pop("y", LABELS)
    return tacit.NoisySumPrototypes(**{"budget": "rho=0.5", "classes": 3} | parameters).fit(ROWS, y)


LEARNERS = {
    "noisy-sum": noisy_sum,
    "noisy-sum, names": lambda: noisy_sum(classes=["cat", "dog", "élan"], y=NAMES[LABELS]),
    "noisy-sum, replace": lambda: noisy_sum(unit="replace", budget="epsilon=1,delta=1e-6"),
    "noisy-sum, label": lambda: noisy_sum(unit="change-label"),
    "coinpress": lambda: tacit.CoinPressPrototypes("rho=8", classes=3).fit(ROWS, LABELS),
    "coinpress, pooled": (
        lambda: tacit.CoinPressPrototypes(
            "rho=8", classes=3, pooling=5, metric="euclidean", counts=40
        ).fit(ROWS, LABELS)
    ),
    "noisy-sum, centred": lambda: noisy_sum(public=PUBLIC),
    "least-squares": (
        lambda: tacit.LeastSquares("rho=8", classes=3, alpha=0.5, intercept=0.5).fit(ROWS, LABELS)
    ),
    "gradient-descent": (
        lambda: tacit.GradientDescent("rho=8", classes=3, public=PUBLIC).fit(ROWS, LABELS)
    ),
    "global-adapt": (
        lambda: tacit.GlobalAdapt("rho=8", classes=3, public=PUBLIC, counts=40).fit(ROWS, LABELS)
    ),
    "projected": (
        lambda: tacit.ProjectedPrototypes("rho=8", classes=3, public=PUBLIC).fit(ROWS, LABELS)
    ),
    "feature-covariance": (
        lambda: tacit.FeatureCovariance("rho=8", classes=3, intercept=0.5).fit(ROWS, LABELS)
    ),
    "newton": lambda: tacit.Newton("rho=8", classes=3, public=PUBLIC).fit(ROWS, LABELS),
    "public, centred": (
        lambda: tacit.PublicPrototypes("epsilon=1", classes=3, public=PUBLIC, centre=True).fit(
            ROWS, LABELS
        )
    ),
    "public": (
        lambda: tacit.PublicPrototypes("epsilon=1", classes=3, public=PUBLIC).fit(ROWS, LABELS)
    ),
    "public, k=3": (
        lambda: tacit.PublicPrototypes("epsilon=1", classes=3, public=PUBLIC, k=3).fit(ROWS, LABELS)
    ),
    "public, flip": (
        lambda: tacit.PublicPrototypes(
            "epsilon=1", classes=3, public=PUBLIC, selection="permute-and-flip"
        ).fit(ROWS, LABELS)
    ),
}

UTILITY = {
    "test_set": "digits, held out",
    "rows": 400,
    "accuracy": 0.9,
    "balanced_accuracy": 0.88,
    "per_class": {"0": 0.95, "1": 0.81},
    "interval": (0.84, 0.91),
    "interval_of": "balanced accuracy",
    "protection": "public test set",
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())
def test_a_reloaded_release_verifies_and_predicts_like_the_learner(make, tmp_path):
    model = make()
    release = Release.load(Release.of(model).save(tmp_path / "out")).verify()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "CARD.md",
        "arrays.safetensors",
        "release.json",
    ]
    expected = model.predict(TEST_ROWS)
    assert np.array_equal(release.predict(TEST_ROWS), expected)
    assert release.predict(TEST_ROWS).dtype == expected.dtype
    assert np.array_equal(
        release.predict(TEST_ROWS.astype(np.float16)), model.predict(TEST_ROWS.astype(np.float16))
    )
    fitted = model.released_
    assert np.array_equal(
        release.similarities(TEST_ROWS), fitted.decision.similarities(fitted.arrays, TEST_ROWS)
    )
    assert release.guarantee == model.guarantee_
    assert release.width == 12
    for name, array in model.released_.arrays.items():
        assert np.array_equal(release.arrays[name], array)
        assert release.arrays[name].dtype == array.dtype


@pytest.mark.parametrize("labels", [[False, True], [0.5, -2.0], ["a", ""], [-1, 2**40]])
def test_labels_keep_their_type(labels, tmp_path):
    model = noisy_sum(classes=2, y=(LABELS > 0).astype(int))
    model.classes_ = np.array(labels)
    release = Release.load(Release.of(model).save(tmp_path / "out"))
    assert release.classes.dtype == model.classes_.dtype
    assert np.array_equal(release.predict(TEST_ROWS), model.predict(TEST_ROWS))


@pytest.mark.parametrize("fact", ["name", "curator", "description", "intended_use"])
def test_an_empty_fact_is_refused(fact):
    with pytest.raises(ReleaseError, match=stating(f"{fact}=' '", "empty", "one line")):
        Release.of(noisy_sum(), **{fact: " "})


@pytest.mark.parametrize("method", ["noisy-sum", "label-private", "public", "public, k=3"])
def test_predicting_needs_no_training_code_and_no_slow_imports(method, tmp_path):
    made = LEARNERS | {
        "label-private": lambda: tacit.LabelPrivate("epsilon=1", classes=3).fit(ROWS, LABELS)
    }
    folder = Release.of(made[method]()).save(tmp_path / "out")
    code = f"""
import sys, numpy as np
from tacit.releases.release import Release
release = Release.load({str(folder)!r})
release.verify().predict(np.ones((3, 12)))
release.card()
release.guarantee.epsilon(1e-6)
heavy = ("sklearn", "opendp", "dp_accounting", "torch", "pandas", "numba", "pyarrow", "joblib", "rich", "yaml")
families = ("tacit.learners.prototypes", "tacit.learners.linear")
training = ("tacit.learners.common.base", *families, "tacit.mechanisms", "tacit.data")
bad = [name for name in sys.modules if name.split(".")[0] in heavy or name.startswith(training)]
assert not bad, bad
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_of_a_store_are_predicted_from_its_files(tmp_path, monkeypatch):
    release = Release.of(noisy_sum())
    rows = np.random.default_rng(0).normal(size=(1000, 12)).astype(np.float16)
    store = tacit.EmbeddingStore.write(tmp_path / "store", rows, shard_rows=300)
    assert len(store.x.shards) == 4
    monkeypatch.setattr(type(store.x), "__array__", None)
    assert np.array_equal(release.predict(store.x), release.predict(rows))

    # probabilities too are of blocks of rows, and never of all
    sizes = []
    of_all = Probabilities.of

    def recorded(rule, similarities):
        sizes.append(len(similarities))
        return of_all(rule, similarities)

    monkeypatch.setattr(Probabilities, "of", recorded)
    for options in ({}, {"at_least": 0.8}, {"at_least": 0.8, "refuse": 0.3, "familiar": store.x}):
        answers = release.answers(store.x, **options)
        in_memory = options | ({"familiar": rows} if "familiar" in options else {})
        for name in ("label", "level", "probability"):
            expected = getattr(release.answers(rows, **in_memory), name)
            np.testing.assert_array_equal(getattr(answers, name), expected)
    assert (answers.level == 0).any()
    assert 0 < max(sizes) <= 256

    rows[777, 3] = np.nan
    spoiled = type(store.x)([rows[:500], rows[500:]])
    with pytest.raises(InputError, match="row 777 of X is not finite"):
        release.predict(spoiled)


def test_research_noise_is_stamped_and_saved_only_when_asked(tmp_path):
    release = Release.of(noisy_sum(noise="research", random_state=987654321))
    with pytest.raises(ReleaseError, match=stating("NOT FOR RELEASE", "seeded", "noise='secure'")):
        release.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())
    folder = release.save(tmp_path / "out", allow_research=True)
    assert Release.load(folder).verify().document.stamp == "NOT FOR RELEASE"
    card, document = (folder / "CARD.md").read_text(), (folder / "release.json").read_text()
    assert card.splitlines()[2] == "**NOT FOR RELEASE**"
    assert '"stamp": "NOT FOR RELEASE"' in document
    assert "987654321" not in card + document


@pytest.mark.parametrize(
    "model",
    [
        noisy_sum(budget="rho=inf"),
        tacit.PublicPrototypes("epsilon=inf", classes=3, public=PUBLIC, k=2).fit(ROWS, LABELS),
        tacit.CoinPressPrototypes("rho=inf", classes=3).fit(ROWS, LABELS),
    ],
    ids=["noisy-sum", "public", "coinpress"],
)
def test_without_a_bound_it_is_stamped(model, tmp_path):
    release = Release.of(model)
    with pytest.raises(
        ReleaseError, match=stating("NOT FOR RELEASE", "bound", "allow_research=True")
    ):
        release.save(tmp_path / "out")
    reloaded = Release.load(release.save(tmp_path / "out", allow_research=True)).verify()
    assert "it is not private" in reloaded.card()
    assert np.array_equal(reloaded.predict(TEST_ROWS), model.predict(TEST_ROWS))


def test_what_is_no_fitted_learner_is_refused():
    with pytest.raises(ReleaseError, match=stating("NoisySumPrototypes", "fitted")):
        Release.of(tacit.NoisySumPrototypes(classes=3))
    with pytest.raises(ReleaseError, match=stating("clf=dict", "learner")):
        Release.of({})
    changed = noisy_sum().set_params(budget="rho=0.1")
    with pytest.raises(ReleaseError, match=stating("changed", "fit again")):
        Release.of(changed)


def test_other_guarantees_are_refused():
    class DataDependentBound(Guarantee):
        pass

    model = noisy_sum()
    held = model.guarantee_
    model.guarantee_ = DataDependentBound(held.unit, held.event)
    with pytest.raises(ReleaseError, match=stating("DataDependentBound", "private")):
        Release.of(model)


def test_classes_of_other_types_are_refused():
    model = noisy_sum()
    model.classes_ = np.array([1, "a", 2.5], dtype=object)
    with pytest.raises(ReleaseError, match=stating("ints", "floats", "strings", "bools")):
        Release.of(model)
    model.classes_ = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    with pytest.raises(ReleaseError, match=stating("date", "ints", "bools")):
        Release.of(model)


def test_facts_must_be_one_line_of_text():
    model = noisy_sum()
    with pytest.raises(ReleaseError, match="give one line of text") as error:
        Release.of(model, name="a\n## 5. Privacy parameters")
    assert "\n" not in str(error.value)
    with pytest.raises(ReleaseError, match=stating("licence", "'MIT'")):
        Release.of(model, public={"licence": "MIT"})
    with pytest.raises(ReleaseError, match="date"):
        Release.of(model, date="yesterday")


def test_facts_given_are_stated():
    model = noisy_sum()
    document = Release.of(
        model,
        name="n",
        curator="c",
        description="d",
        intended_use="i",
        date=date(2026, 1, 2),
        public={"name": "digits", "overlap": "none known"},
        encoder={"name": "vit", "revision": "1", "hash": "ab"},
    ).document
    assert document.product.model_dump() == {
        "name": "n",
        "curator": "c",
        "description": "d",
        "intended_use": "i",
        "date": "2026-01-02",
    }
    assert document.public_inputs.public_data.overlap == "none known"
    assert document.public_inputs.public_data.hash == "not stated"
    assert document.public_inputs.encoder.hash == "ab"


def test_the_ledgers_balance_is_stated(tmp_path):
    ledger = Ledger(tmp_path / "survey.jsonl", identity="survey")
    ledger.allow("rho=2")
    document = Release.of(noisy_sum(ledger=ledger)).document
    balance, before = document.pattern.ledger.split("; ")
    assert not lacking(balance, "rho=0.5 of rho=2", "1 charge", "add-remove")
    assert re.fullmatch(r"uses before \d{4}-\d{2}-\d{2} are not recorded", before)
    assert "ledger of 'survey'" in document.accesses.covered
    assert Release.of(noisy_sum()).document.pattern.ledger == "no ledger: this run only"
    assert "rho=0.5" in Release.of(noisy_sum(), ledger=ledger).document.pattern.ledger
    assert Release.of(noisy_sum()).document.pattern.pattern.startswith(
        "published once; it does not know of other"
    )
    assert not lacking(document.pattern.pattern, "published once", "ledger")
    again = Release.of(noisy_sum(ledger=ledger)).document
    assert not lacking(again.pattern.pattern, "2 charges", "repeatedly")
    assert "once" not in again.pattern.ledger
    assert again.variant.data_domain.startswith("one or more labelled rows")


@pytest.mark.parametrize("kind", ["noisy-sum", "public"])
def test_no_fact_about_the_private_data_is_stated(kind):
    def fitted(n):
        rows, labels = np.tile(ROWS, (n, 1))[: 40 * n], np.tile(LABELS, n)[: 40 * n]
        if kind == "public":
            model = tacit.PublicPrototypes("epsilon=1", classes=3, public=PUBLIC).fit(rows, labels)
            learned = {"indices": np.array([0, 1, 2]), "prototypes": PUBLIC[:3]}
        else:
            model = tacit.NoisySumPrototypes(classes=3).fit(rows, labels)
            learned = {"prototypes": CENTRES}
        arrays = model.released_.arrays | learned  # as if this had been learned
        model.released_ = replace(model.released_, arrays=arrays, probabilities=Probabilities(2.0))
        return Release.of(model, date="2026-01-01")

    few, many = fitted(1), fitted(7)
    assert few.document == many.document
    assert few.card() == many.card()


def test_only_the_arrays_depend_on_the_private_data():
    first, second = (
        Release.of(noisy_sum(), date="2026-01-01").document.model_dump() for _ in range(2)
    )
    for document in (first, second):
        document["contents"]["sha256"] = ""
    assert first == second


def test_utility_is_added_and_minority_accuracy_is_paid_for(tmp_path):
    release = Release.of(noisy_sum())
    plain = release.with_utility(Utility(**UTILITY))
    assert plain.guarantee.unprotected == ()
    assert plain.document.utility.accuracy == 0.9
    minority = release.with_utility(Utility(**UTILITY, minority_accuracy=0.5))
    listed = ("training class sizes (through minority accuracy)",)
    assert (
        minority.guarantee.unprotected == minority.document.variant.unprotected_quantities == listed
    )
    assert (
        minority.with_utility(Utility(**UTILITY, minority_accuracy=0.5)).guarantee.unprotected
        == listed
    )
    reloaded = Release.load(minority.save(tmp_path / "out")).verify()
    assert reloaded.document.utility == minority.document.utility
    assert "- minority accuracy: 0.5" in reloaded.card()
    assert release.document.utility == "not stated"


def test_a_utility_must_be_possible():
    with pytest.raises(ValueError, match="lower end is above"):
        Utility(**UTILITY | {"interval": (0.9, 0.1)})
    with pytest.raises(ValueError, match="less than or equal to 1"):
        Utility(**UTILITY | {"accuracy": 88.0})


def test_declared_counts_and_derived_classes_are_unprotected():
    counted = tacit.CoinPressPrototypes("rho=8", classes=3, counts=40).fit(ROWS, LABELS)
    assert Release.of(counted).document.variant.unprotected_quantities == (
        "class counts (declared)",
    )
    with pytest.warns(tacit.PrivacyLeakWarning):
        derived = noisy_sum(classes=None)
    variant = Release.of(derived).document.variant
    assert variant.unprotected_quantities == ("class list (read off the private labels)",)
    assert "class list" not in variant.public_arguments
    replaced = Release.of(noisy_sum(unit="replace")).document.variant
    assert replaced.unprotected_quantities == ("number of records",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 5)), stating("X", "(2, 5)", "(n, 12)")),
        (np.ones(12), "X has one dimension"),
        (np.full((2, 12), np.nan), "row 0 of X is not finite"),
        (np.array([[1.0] * 12, [np.inf] * 12]), "row 1 of X is not finite"),
        ([["a"] * 12], "X has dtype <U1, not numbers"),
        (np.ones((2, 12), dtype=object), "X has dtype object"),
        ([[1.0], [1.0, 2.0]], "X is ragged"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, message):
    with pytest.raises(InputError, match=message) as error:
        Release.of(noisy_sum()).predict(rows)
    assert "\n" not in str(error.value)


def test_released_arrays_cannot_be_changed():
    model = noisy_sum()
    release = Release.of(model)
    with pytest.raises(ValueError, match="read-only"):
        release.arrays["prototypes"][0] = 0
    model.prototypes_[:] = 0
    assert release.verify().arrays["prototypes"].any()


def test_an_existing_folder_is_replaced_only_by_force_and_only_if_a_release(tmp_path):
    release = Release.of(noisy_sum())
    folder = release.save(tmp_path / "out")
    with pytest.raises(InputError, match=stating("exists", "--force")):
        release.save(folder)
    newer = Release.of(noisy_sum())
    newer.save(folder, force=True)
    assert Release.load(folder).sha256 == newer.sha256
    (folder / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=stating("not replaced")):
        release.save(folder, force=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=stating("not replaced")):
        release.save(tmp_path / "file", force=True)
    for file in ("thesis.tex", "release.json", "arrays.safetensors"):
        (folder / file).unlink()
    with pytest.raises(InputError, match=stating("not replaced")):
        release.save(folder, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_an_interrupted_save_leaves_nothing(tmp_path, monkeypatch, failure):
    from pathlib import Path

    write = Path.write_bytes

    def interrupted(path, data):
        if path.name == "CARD.md":
            raise failure
        return write(path, data)

    release = Release.of(noisy_sum())
    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(failure):
        release.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_release_too_large_to_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(release_module.LIMITS, "release.json", 1000)
    with pytest.raises(ReleaseError, match=stating("release.json", "1000")):
        Release.of(noisy_sum()).save(tmp_path / "out")


def test_the_document_is_plain_json_and_hashes_the_arrays(tmp_path):
    folder = Release.of(noisy_sum()).save(tmp_path / "out")
    document = json.loads((folder / "release.json").read_text())
    assert (
        document["contents"]["sha256"]
        == hashlib.sha256((folder / "arrays.safetensors").read_bytes()).hexdigest()
    )
    assert document["parameters"]["pure_epsilon"] == "inf"
    assert document["parameters"]["rho"] == 0.5
    assert document["profile"]["mu"] == 1.0


def test_stated_numbers_are_those_of_the_guarantee():
    model = noisy_sum()
    document, guarantee = Release.of(model).document, model.guarantee_
    assert [point.epsilon for point in document.parameters.epsilons] == [
        guarantee.epsilon(delta) for delta in (1e-5, 1e-6, 1e-9)
    ]
    assert document.profile.advantage == guarantee.advantage
    for converted in document.parameters.conversions:
        assert converted.rho == guarantee.to(converted.unit).rho
        assert converted.epsilons[1].epsilon == guarantee.to(converted.unit).epsilon(1e-6)
    assert [converted.unit for converted in document.parameters.conversions] == [
        "replace",
        "change-label",
    ]
    assert [rate.true_positive_rate for rate in document.profile.attack_rates] == [
        guarantee.attack_rate(rate) for rate in (0.001, 0.01, 0.1)
    ]


def test_the_example_runs():
    results = doctest.testmod(release_module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(
    "event",
    [
        1000 * Gaussian(100.0),
        compose(
            [
                *(Parallel(Exponential(0.1 + 0.01 * i), "classes") for i in range(20)),
                20 * Gaussian(30.0),
            ]
        ),
        50 * RandomizedResponse(0.5, 10),
        PureDP(0.4) + RandomizedResponse(0.6, 2),
        2000 * SampledGaussian(1.0, 0.01),
        RepeatAndSelect(Gaussian(4.0), 5, 1),
    ],
    ids=lambda event: event.describe()[:40],
)
def test_what_learners_and_searches_do_is_never_too_much_to_account(event):
    """Else a release would be refused after its fit was charged."""
    assert statement.work(Guarantee(Unit.ADD_REMOVE, event)) < 0.8 * statement.MAX_WORK


@pytest.mark.parametrize("name", LEARNERS)
def test_probabilities_travel_with_a_release_and_keep_its_decision(name, tmp_path):
    learner = LEARNERS[name]()
    release = Release.of(learner)
    expected = learner.predict_proba(TEST_ROWS)
    assert np.array_equal(release.predict_proba(TEST_ROWS), expected)
    loaded = Release.load(release.save(tmp_path / "r", allow_research=True)).verify()
    assert np.array_equal(loaded.predict_proba(TEST_ROWS), expected)
    assert np.allclose(expected.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.array_equal(loaded.classes[expected.argmax(axis=1)], loaded.predict(TEST_ROWS))


def test_a_release_without_the_scale_predicts_and_refuses_probabilities(tmp_path):
    model = noisy_sum()
    model.released_ = replace(model.released_, probabilities=None)
    older = Release.load(Release.of(model).save(tmp_path / "r")).verify()
    assert np.array_equal(older.predict(TEST_ROWS), model.predict(TEST_ROWS))
    with pytest.raises(ReleaseError, match=stating("before", "probabilities", "fit again")):
        older.predict_proba(TEST_ROWS)


def test_a_scale_out_of_range_is_refused(tmp_path):
    folder = Release.of(noisy_sum()).save(tmp_path / "release")
    arrays = load_file(folder / "arrays.safetensors")
    save_file(arrays | {"probabilities": np.array([-1.0, 0.0])}, folder / "arrays.safetensors")
    with pytest.raises(ReleaseError, match=stating("probabilities", "scale=-1.0", "0")):
        Release.load(folder)


def test_a_learner_whose_noise_other_samplers_drew_is_refused():
    """As one pickled by an earlier version, whose secure noise was discrete noise of OpenDP."""
    learner = tacit.NoisySumPrototypes("rho=1", classes=2).fit(np.eye(2), [0, 1])
    tacit.Release.of(learner, name="present")
    learner.samplers_ = "secure"
    with pytest.raises(ReleaseError, match=stating("samplers", "version")):
        tacit.Release.of(learner, name="earlier")
    del learner.samplers_
    with pytest.raises(ReleaseError, match=stating("samplers", "version")):
        tacit.Release.of(learner, name="earlier")

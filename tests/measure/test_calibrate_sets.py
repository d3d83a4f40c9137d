"""Releases that carry prediction sets: what they state, predict, refuse and lose."""

import re
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetError, InputError, LedgerError, ReleaseError
from tacit.models.prediction_sets import SCORES, SetRule
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.releases.onnx_graph import metadata
from tacit.releases.release import Release
from tacit.releases.statement import statement_of
from tacit.report.release_page import SETS_ELSEWHERE, release_page

CLASSES = ["ant", "bee", "cow", "dog"]


def rows(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    return np.eye(4)[y] + rng.normal(0, 0.6, (n, 4)), np.array(CLASSES)[y]


LEARNER = tacit.NoisySumPrototypes("rho=5", classes=CLASSES).fit(*rows(0, 500))
RELEASE = Release.of(LEARNER, name="animals", date=date(2026, 1, 2))
CALIBRATION = rows(1, 800)
CALIBRATED = tacit.calibrate_sets(RELEASE, *CALIBRATION, level=0.9, budget="rho=0.5")
TEST = rows(2, 1500)


@pytest.mark.parametrize("score", SCORES)
def test_sets_are_read_again_and_cover_about_the_level(tmp_path, score):
    release = tacit.calibrate_sets(
        RELEASE,
        *CALIBRATION,
        level=0.9,
        budget="rho=0.5",
        score=score,
        noise="research",
        random_state=0,
    )
    release = Release.load(release.save(tmp_path / "animals", allow_research=True)).verify()
    X, y = TEST
    sets = release.predict_sets(X)
    assert 0.85 < np.mean([label in labels for labels, label in zip(sets, y, strict=True)]) < 0.97
    assert 1 < np.mean([len(labels) for labels in sets]) < 3
    assert [labels[0] for labels in sets] == release.predict(X).tolist()
    for labels, row in zip(sets[:20], release.predict_proba(X[:20]), strict=True):
        shares = [row[CLASSES.index(label)] for label in labels]
        assert shares == sorted(shares, reverse=True)


def test_the_release_keeps_its_guarantee_and_states_that_of_the_calibration_records():
    assert CALIBRATED.guarantee == RELEASE.guarantee
    assert CALIBRATED.document.stamp is None
    sets = CALIBRATED.prediction_sets
    assert sets.guarantee.event == {"type": "Gaussian", "noise_multiplier": pytest.approx(1)}
    assert "0.5-zCDP" in sets.statement
    card = CALIBRATED.card()
    for text in (sets.promise, sets.statement, sets.about):
        assert text in card


@pytest.mark.parametrize("score", SCORES)
def test_lines_of_the_card_make_the_same_sets(tmp_path, monkeypatch, score):
    release = tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=0.5", score=score)
    release.save(tmp_path / "animals")
    monkeypatch.chdir(tmp_path / "animals")
    code = re.search(r"```python\n(.*?)```", release.card(), re.DOTALL)[1]
    names = {"X": TEST[0]}
    exec(code, names)
    assert names["sets"].tolist() == release.set_members(TEST[0])[1].tolist()


def test_a_threshold_of_all_classes_is_said_so(tmp_path, monkeypatch):
    release = tacit.calibrate_sets(RELEASE, *rows(3, 20), level=0.99, budget="rho=0.01")
    assert release.prediction_sets.threshold == "every set holds all classes"
    assert {len(labels) for labels in release.predict_sets(TEST[0])} == {4}
    release.save(tmp_path / "animals")
    monkeypatch.chdir(tmp_path / "animals")
    names = {"X": TEST[0]}
    exec(re.search(r"```python\n(.*?)```", release.card(), re.DOTALL)[1], names)
    assert names["sets"].all()


def changed(**changes):
    """The release with changed statements about its sets."""
    return CALIBRATED.with_sets(CALIBRATED.prediction_sets.model_copy(update=changes))


def test_a_statement_that_the_events_do_not_bear_out_is_refused():
    cheaper = {"type": "Gaussian", "noise_multiplier": 10.0}
    recorded = CALIBRATED.prediction_sets.guarantee.model_copy(update={"event": cheaper})
    better = statement_of(tacit.Guarantee.from_json(recorded.model_dump()), "secure")
    for release in (changed(statement=better), changed(guarantee=recorded)):
        with pytest.raises(ReleaseError, match=r"contents\.sets\.statement is stated as"):
            release.verify()


def test_seeded_noise_stamps_the_release(tmp_path):
    release = tacit.calibrate_sets(
        RELEASE, *CALIBRATION, budget="rho=0.5", noise="research", random_state=0
    )
    assert release.document.stamp == "NOT FOR RELEASE"
    with pytest.raises(ReleaseError, match="noise of its prediction sets is seeded"):
        release.save(tmp_path / "animals")
    folder = release.save(tmp_path / "animals", allow_research=True)
    Release.load(folder).verify()

    # without the sets the release is as it was
    assert release.with_sets(None).document == RELEASE.document
    unstamped = release.document.model_copy(update={"stamp": None})
    with pytest.raises(ReleaseError, match="stamp None"):
        Release(unstamped, release.arrays, release.sha256, release.card_text).verify()


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.jsonl", "calibration")
    ledger.allow("rho=0.7")
    tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=0.5", ledger=ledger)
    assert ledger.account().spent.rho == pytest.approx(0.5)
    monkeypatch.setattr("tacit.measure.prediction_sets.paid_threshold", None)
    with pytest.raises(LedgerError):
        tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=0.5", ledger=ledger)
    # nothing is charged for records that are refused
    with pytest.raises(InputError):
        tacit.calibrate_sets(RELEASE, CALIBRATION[0][:9], CALIBRATION[1], budget="rho=0.1")
    with pytest.raises(TypeError):
        tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=0.1", ledger=ledger)
    assert ledger.account().spent.rho == pytest.approx(0.6)


@pytest.mark.parametrize("unit", list(Unit))
def test_every_unit_has_its_event(unit):
    persons = np.arange(800) // 3 if unit.per_person else None
    release = tacit.calibrate_sets(
        RELEASE, *CALIBRATION, budget="rho=0.5", unit=unit, persons=persons
    )
    guarantee = release.prediction_sets.guarantee
    assert guarantee.unit == unit
    assert guarantee.event["noise_multiplier"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level=1.0 must be above 0 and below 1"),
        ({"level": "0.9"}, "level='0.9' must be above 0 and below 1"),
        ({"score": "entropy"}, "score='entropy' must be one of probability, cumulative"),
        ({"unit": "add-remove-person"}, "needs to know whose each record is"),
        ({"unit": 3}, "unit=3 must be text"),
        ({"ledger": "ledger.jsonl"}, "ledger='ledger.jsonl' must be a Ledger"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        tacit.calibrate_sets(RELEASE, *CALIBRATION, **{"budget": "rho=0.5"} | arguments)


def test_a_pure_budget_and_a_foreign_release_are_refused():
    with pytest.raises(BudgetError, match="pass epsilon=1,delta=1e-6"):
        tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="epsilon=1")
    with pytest.raises(InputError, match="must be a Release"):
        tacit.calibrate_sets(LEARNER, *CALIBRATION, budget="rho=1")
    with pytest.raises(InputError, match="one label each"):
        tacit.calibrate_sets(RELEASE, CALIBRATION[0], np.ones((800, 4), dtype=bool), budget="rho=1")
    with pytest.raises(ReleaseError, match="carries no prediction sets"):
        RELEASE.predict_sets(TEST[0])


def test_a_threshold_that_the_rule_cannot_choose_is_found():
    for threshold in (1.0, 0.7):
        sets = CALIBRATED.prediction_sets.model_copy(update={"threshold": threshold})
        with pytest.raises(ReleaseError, match=f"threshold {threshold:g} is none of its score"):
            CALIBRATED.with_sets(sets).verify()


def test_releases_of_several_labels_are_refused():
    several = tacit.NoisySumPrototypes("rho=5", classes=CLASSES, most_labels=2)
    several.fit(CALIBRATION[0], [[label] for label in CALIBRATION[1]])
    with pytest.raises(ReleaseError, match="one label a row"):
        tacit.calibrate_sets(Release.of(several), *CALIBRATION, budget="rho=1")


def test_releases_that_are_older_than_sets_are_refused():
    folder = Path(__file__).parents[1] / "releases/written/version-8/several"
    older = Release.load(folder)
    with pytest.raises(ReleaseError, match="sets are stated from version 9 on"):
        tacit.calibrate_sets(older, *CALIBRATION, budget="rho=1")


def test_a_budget_without_a_bound_stamps_the_release():
    release = tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=inf")
    assert release.document.stamp == "NOT FOR RELEASE"
    assert "it is not private" in release.prediction_sets.statement
    release.verify()


def test_a_file_for_onnxruntime_and_a_page_say_where_the_sets_are():
    assert metadata(CALIBRATED.head())["sets"] == CALIBRATED.prediction_sets.rule
    assert "sets" not in metadata(RELEASE.head())
    assert SETS_ELSEWHERE in release_page(CALIBRATED)
    assert SETS_ELSEWHERE not in release_page(RELEASE)


def test_the_words_of_a_rule_are_true():
    for score in SCORES:
        release = tacit.calibrate_sets(RELEASE, *CALIBRATION, budget="rho=0.5", score=score)
        number = float(release.prediction_sets.rule.split()[-1 if score == "probability" else -2])
        threshold = 1 - number if score == "probability" else number
        shares = release.predict_proba(TEST[0])
        members = SetRule(score, threshold).of(shares)
        assert np.mean(members == release.set_members(TEST[0])[1]) > 0.999

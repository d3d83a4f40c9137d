"""Releases of document versions 3 to 10 load and verify as they were written."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from messages import stating
from tacit.errors import ReleaseError
from tacit.privacy.accounting import older_epsilon
from tacit.privacy.events import Exponential, Gaussian, RepeatAndSelect
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases import statement
from tacit.releases.release import Release, Utility
from tacit.releases.schema import Document, OlderAccounting, OlderProfile
from tacit.releases.statement import privacy_items

WRITTEN = Path(__file__).parent / "written" / "version-3"
OLDER = [
    (version, path.name)
    for version in (4, 5, 6, 7, 8, 9, 10)
    for path in sorted((WRITTEN.parent / f"version-{version}").iterdir())
]
UTILITY = Utility(
    test_set="t",
    rows=10,
    accuracy=0.5,
    balanced_accuracy=0.5,
    per_class={},
    interval=(0.4, 0.6),
    interval_of="accuracy",
)


def test_it_verifies_and_says_what_it_said(tmp_path):
    release = Release.load(WRITTEN).verify()
    assert (type(release.document.profile), type(release.document.accounting)) == (
        OlderProfile,
        OlderAccounting,
    )
    assert [point.delta for point in release.document.parameters.epsilons] == [1e-6, 1e-9]
    release.save(tmp_path / "again")
    assert (tmp_path / "again" / "CARD.md").read_bytes() == (WRITTEN / "CARD.md").read_bytes()
    assert len(release.predict(np.ones((3, release.width)))) == 3


@pytest.mark.parametrize(("version", "name"), OLDER)
def test_a_release_of_an_earlier_version_verifies_and_says_what_it_said(version, name, tmp_path):
    written = WRITTEN.parent / f"version-{version}" / name
    release = Release.load(written).verify()
    assert release.document.version == version
    again = release.save(tmp_path / "again")
    for file in ("release.json", "CARD.md", "arrays.safetensors"):
        assert (again / file).read_bytes() == (written / file).read_bytes()
    if release.several:
        return
    measured = Release.load(release.with_utility(UTILITY).save(tmp_path / "measured")).verify()
    # without its figures of several parts it is a release of a fit
    expected = 9 if name == "figures-of-parts" else version
    assert (measured.document.version, measured.document.utility) == (expected, UTILITY)


def test_it_keeps_its_version_when_its_utility_is_added(tmp_path):
    measured = Release.load(WRITTEN).with_utility(UTILITY)
    reloaded = Release.load(measured.save(tmp_path / "measured")).verify()
    assert (reloaded.document.version, reloaded.document.utility) == (3, UTILITY)


def test_it_is_refused_for_no_more_work_than_its_own_numbers_take():
    search = Guarantee(Unit.ADD_REMOVE, RepeatAndSelect(Gaussian(4.0), 5, 1))
    assert 0 < statement.work(search, 3) < statement.work(search)


@pytest.mark.parametrize("version", [3, 4])
def test_a_document_that_mixes_two_versions_is_refused(tmp_path, version):
    folder = tmp_path / "mixed"
    shutil.copytree(WRITTEN, folder)
    document = json.loads((folder / "release.json").read_text())
    document["version"] = version
    if version == 3:
        document["profile"]["advantage"] = 0.5
    (folder / "release.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match=stating("advantage", "in_words", "version 4")):
        Release.load(folder)


def test_noise_of_opendp_is_refused_before_version_6_which_names_it(tmp_path):
    folder = tmp_path / "mixed"
    shutil.copytree(WRITTEN.parent / "version-5" / "gaussian", folder)
    document = json.loads((folder / "release.json").read_text())
    document["mechanisms"]["noise"] = "opendp"
    (folder / "release.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match=stating("opendp", "version 6")):
        Release.load(folder)


def test_its_attack_rates_are_those_of_its_version():
    selection = Guarantee(Unit.ADD_REMOVE, Exponential(2.0))
    rates = {
        version: privacy_items(selection, version)["profile"].attack_rates[-1].true_positive_rate
        for version in (3, 4, 5)
    }
    by_renyi = older_epsilon(Exponential(2.0), 0.1)
    assert rates[3] == pytest.approx(0.1 * math.exp(by_renyi) + 0.1, rel=1e-9)
    assert rates[4] == pytest.approx(0.1 + 0.5, rel=1e-9)  # by the advantage, sqrt(rho/2)
    odds = math.exp(2) * 0.1 / 0.9
    assert rates[5] == pytest.approx(odds / (1 + odds), rel=1e-9)


def test_its_words_and_epsilons_are_those_of_its_version():
    document = Release.load(WRITTEN.parent / "version-4" / "response").document
    assert "at most 88.1% of the time" in document.accounting.in_words
    assert "conservative" in document.accounting.in_words
    single = Guarantee(Unit.ADD_REMOVE, Exponential(1.0))
    epsilons = {
        version: privacy_items(single, version)["parameters"].epsilons[0].epsilon
        for version in (4, 5, 6, 7, 8, 9, 10)
    }
    assert epsilons[4] == 1.0
    assert epsilons[5] == pytest.approx(
        1 + 2 * math.log1p(-math.sqrt(1e-5 * -math.expm1(-1))), rel=1e-9
    )


@pytest.mark.parametrize("version", [4, 5])
def test_a_profile_says_whether_attacks_reach_its_rates_from_version_5_on(tmp_path, version):
    document = Release.load(WRITTEN.parent / "version-4" / "pure").document.model_dump(mode="json")
    document["version"] = version
    if version == 4:
        document["profile"]["rates_are"] = "at most so large"
    with pytest.raises(ValidationError, match=stating("rates_are", "version 5")):
        Document.model_validate_json(json.dumps(document))

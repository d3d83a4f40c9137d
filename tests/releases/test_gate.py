"""The gate: every rule met and broken, and no folder or ledger that was tampered with passes."""

import json
import math
import shutil
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

import tacit
from messages import lacking, stating
from tacit.cli.paid_evaluation import utility_of
from tacit.errors import InputError, ReleaseError
from tacit.privacy.accounting import epsilon
from tacit.privacy.events import Exponential, Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.history import History
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.releases import gate
from tacit.releases.audited import AuditResult, outcome
from tacit.releases.card import render_card
from tacit.releases.gate import decide
from tacit.releases.labelling import label_public
from tacit.releases.policy import Policy
from tacit.releases.publishing import publish
from tacit.releases.release import Release, Utility
from tacit.releases.schema import Document

pytest.importorskip("model_signing")

ROWS = np.random.default_rng(0).normal(size=(60, 6))
LABELS = np.arange(60) % 3
PERSONS = np.arange(60) // 2
ENCODER = {"name": "resnet", "revision": "7", "hash": "ab12"}
UTILITY = Utility(
    test_set="blobs, held out",
    rows=400,
    accuracy=0.9,
    balanced_accuracy=0.88,
    per_class={"0": 0.95},
    interval=(0.84, 0.91),
    interval_of="balanced accuracy",
    protection="public test set",
)
# of rho = 0.5, the budget of each fit: mu is 1
MU_1 = {"unit": "person", "epsilon": 4.5, "delta": 1e-5}


def key_pair(folder, name):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}-public.pem").write_bytes(public)


def learner(ledger=None, **parameters):
    parameters = {"classes": 3, "unit": "add-remove-person", "ledger": ledger} | parameters
    made = tacit.NoisySumPrototypes("rho=0.5", **parameters)
    persons = PERSONS if Unit(made.unit).per_person else None
    return made.fit(ROWS, LABELS, persons=persons)


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A ledger with a charge before the release; the release, signed; keys; labels by it."""
    folder = tmp_path_factory.mktemp("once")
    key_pair(folder, "key")
    key_pair(folder, "other")
    ledger = Ledger(folder / "ledger", "survey")
    ledger.allow("rho=5", "add-remove-person", most_records=4)
    ledger.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "an earlier fit")
    fitted = learner(ledger)
    release = Release.of(fitted, encoder=ENCODER, least_records=20).with_utility(UTILITY)
    publish(release, folder / "signed", key=folder / "key.pem")
    labels = label_public(release, ROWS[:9], public={"name": "pool"})
    publish(labels, folder / "labels", key=folder / "key.pem")
    return folder


@pytest.fixture
def made(once, tmp_path):
    """A copy of these files, which a test may change."""
    shutil.copytree(once, tmp_path / "made")
    return tmp_path / "made"


def answers(verdict):
    return {ruling.rule: (ruling.met, ruling.line) for ruling in verdict.rulings}


def decided(made, folder="signed", *, ledger="ledger", key="key-public.pem", **policy):
    return decide(
        made / folder,
        Policy.of(policy),
        ledger=None if ledger is None else made / ledger,
        key=None if key is None else made / key,
        today=date(2026, 12, 1),
    )


def of_two(mu_squared):
    return epsilon(Gaussian(1 / math.sqrt(mu_squared)), 1e-5)


# The charges of the ledger have mu = 1 each, so all have mu = sqrt(2) together.
BOTH = of_two(2.0)
RULES = [
    ("unit", {"unit": "person"}, ["add-remove-person"], True),
    ("unit", {"unit": "record"}, ["add-remove-person", "add-remove"], True),
    ("unit", {"unit": "replace-person"}, ["replace-person"], True),
    ("unit", {"unit": "change-labels-of-person"}, ["change-labels-of-person", "--unit"], False),
    ("epsilon", MU_1 | {"epsilon": BOTH * (1 - 1e-12)}, ["1e-05", "all 2 charges"], True),
    ("epsilon", MU_1 | {"epsilon": BOTH * (1 - 1e-6)}, ["1e-05", "smaller budget"], False),
    # a replacement is two changes
    ("epsilon", MU_1 | {"unit": "replace", "epsilon": of_two(8.0)}, ["replace"], True),
    ("epsilon", MU_1 | {"unit": "replace", "epsilon": of_two(7.9)}, ["replace"], False),
    ("epsilon", MU_1 | {"unit": "change-labels-of-person"}, ["does not imply"], False),
    ("unprotected", {"unprotected": ["that each class has at least 20 records"]}, [], True),
    ("unprotected", {"unprotected": [], "least_records": 1}, ["declared"], True),
    ("unprotected", {"unprotected": []}, ["at least 20 records"], False),
    ("unprotected", {"unprotected": ["that each"]}, ["at least 20 records"], False),
    ("least_records", {"least_records": 20}, ["20"], True),
    ("least_records", {"least_records": 21}, ["20", "21"], False),
    ("evaluation", {"evaluation": "public"}, ["public"], True),
    ("evaluation", {"evaluation": "paid or public"}, ["public"], True),
    ("evaluation", {"evaluation": "paid"}, ["public", "paid", "tacit evaluate"], False),
    ("signature", {"signature": "required"}, ["signed"], True),
    ("encoder", {"encoder": "known"}, ["resnet", "7", "ab12"], True),
    ("encoder", {"encoder": ["clip", "resnet"]}, ["resnet"], True),
    ("encoder", {"encoder": ["resnet@7"]}, ["resnet"], True),
    ("encoder", {"encoder": ["ab12"]}, ["resnet"], True),
    ("encoder", {"encoder": ["clip", "resnet@8", "7"]}, ["resnet", "clip"], False),
    # mu is sqrt 2: 2 Phi(mu / 2) - 1
    ("advantage", {"unit": "person", "advantage": 0.5206}, ["0.5205"], True),
    ("advantage", {"unit": "person", "advantage": 0.5204}, ["0.5205", "0.5204"], False),
    ("audit_days", {"audit_days": 30}, ["audit"], False),
]


@pytest.mark.parametrize(("rule", "policy", "facts", "met"), RULES)
def test_each_rule_is_met_or_broken(once, rule, policy, facts, met):
    needs_ledger = rule in ("epsilon", "advantage")
    verdict = decided(once, ledger="ledger" if needs_ledger else None, **policy)
    answer, line = answers(verdict)[rule]
    assert answer is met
    assert lacking(line, *facts) == []
    assert "\n" not in line
    assert verdict.met is all(ruling.met for ruling in verdict.rulings)


def test_the_ledger_must_begin_by_a_date(once):
    since = Ledger(once / "ledger", "survey").account().since[:10]
    assert decided(once, ledger_since=since).met
    met, line = answers(decided(once, ledger_since="2020-01-01"))["ledger_since"]
    assert not met
    assert lacking(line, since, "2020-01-01") == []
    met, line = answers(decided(once, ledger=None, ledger_since=since))["ledger_since"]
    assert not met
    assert lacking(line, "--ledger") == []


def test_a_policy_of_every_rule_is_met_and_the_verdict_names_what_was_checked(once):
    policy = MU_1 | {
        "epsilon": 7,
        "ledger_since": "2100-01-01",
        "unprotected": [],
        "least_records": 10,
        "evaluation": "public",
        "signature": "required",
        "encoder": "known",
        "advantage": 0.6,
    }
    verdict = decided(once, **policy)
    assert [ruling.rule for ruling in verdict.rulings if not ruling.met] == []
    assert verdict.unchecked == ("audit_days",)
    assert len(verdict.rulings) == 2 + len(policy) - 1  # verified, stamp; delta is of epsilon
    document = (once / "signed" / "release.json").read_bytes()
    assert lacking(verdict.sentence, gate.hashlib.sha256(document).hexdigest()) == []


def test_without_a_ledger_the_release_alone_counts_and_the_line_says_so(once):
    policy = MU_1 | {"epsilon": of_two(1.0) * (1 + 1e-12)}
    verdict = decided(once, ledger=None, **policy)
    assert verdict.met
    assert lacking(answers(verdict)["epsilon"][1], "this release alone", "no ledger") == []
    assert not decided(once, **policy).met


def test_charges_after_the_release_count(made):
    ledger = Ledger(made / "ledger", "survey")
    ledger.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "a later fit")
    assert decided(made, **MU_1 | {"epsilon": of_two(3.0) * (1 + 1e-12)}).met
    assert not decided(made, **MU_1 | {"epsilon": of_two(2.9)}).met


@pytest.mark.parametrize(("parts", "mu_squared"), [(["A", "B"], 3.0), ([], 4.0)])
def test_charges_of_declared_parts_count_at_the_most_expensive_part(made, parts, mu_squared):
    ledger = Ledger(made / "ledger", "survey")
    ledger.allow("rho=5", "add-remove-person", most_records=4, parts=parts)
    for part in ("A", "B"):
        ledger.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "a summary", part)
    verdict = decided(made, **MU_1 | {"epsilon": of_two(mu_squared) * (1 + 1e-12)})
    assert verdict.met
    assert ("declared parts" in answers(verdict)["epsilon"][1]) is bool(parts)
    assert not decided(made, **MU_1 | {"epsilon": of_two(mu_squared - 0.1)}).met


def test_charges_per_record_count_by_the_declared_most_records_of_a_person(made):
    # four records of a person, at noise 4 each, are one person at noise 1
    ledger = Ledger(made / "ledger", "survey")
    ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(4.0)), "per record")
    assert decided(made, **MU_1 | {"epsilon": of_two(3.0) * (1 + 1e-12)}).met
    assert not decided(made, **MU_1 | {"epsilon": of_two(2.9)}).met


def with_sets(made, ledger=None, **parameters):
    """The release with prediction sets that cost as much as its fit."""
    parameters = {"unit": "add-remove-person", "persons": PERSONS} | parameters
    release = Release.load(made / "signed")
    release = tacit.calibrate_sets(
        release, ROWS, LABELS, level=0.5, budget="rho=0.5", ledger=ledger, **parameters
    )
    return release.save(made / "with sets")


def test_the_price_of_prediction_sets_is_added(made):
    with_sets(made)
    options = {"ledger": None, "key": None}
    most = of_two(2.0)
    verdict = decided(made, "with sets", **options, **MU_1 | {"epsilon": most * (1 + 1e-12)})
    assert verdict.met
    assert lacking(answers(verdict)["epsilon"][1], "sets", "among both") == []
    assert not decided(made, "with sets", **options, **MU_1 | {"epsilon": of_two(1.9)}).met


@pytest.mark.parametrize("identity", ["survey", "calibration"])
def test_a_ledger_counts_the_price_of_sets_once(made, identity):
    """Also where it has a fit of the same cost, and where the charge of the sets was cut off."""
    ledger = Ledger(made / "ledger", identity)
    ledger.allow("rho=5", "add-remove-person", most_records=4)
    before = (made / "ledger").read_bytes()
    with_sets(made, ledger)
    for _ in range(2):
        most = MU_1 | {"epsilon": of_two(3.0) * (1 + 1e-12)}
        assert decided(made, "with sets", key=None, **most).met
        less = MU_1 | {"epsilon": of_two(2.9)}
        assert not decided(made, "with sets", key=None, **less).met
        (made / "ledger").write_bytes(before)


def test_paid_figures_are_an_evaluation_whose_price_is_added(made):
    release = Release.load(made / "signed")
    options = {"persons": PERSONS, "unit": "add-remove-person"}
    figures = tacit.evaluate(release, ROWS, LABELS, budget="rho=0.5", **options)
    release.with_utility(utility_of(figures, "visits", None)).save(made / "paid")
    options = {"ledger": None, "key": None}
    assert decided(made, "paid", evaluation="paid", **options).met
    assert decided(made, "paid", evaluation="paid or public", **options).met
    verdict = decided(made, "paid", evaluation="public", **options)
    assert not verdict.met
    assert lacking(answers(verdict)["evaluation"][1], "paid", "public") == []

    most = MU_1 | {"epsilon": of_two(2.0) * (1 + 1e-12)}
    assert decided(made, "paid", **options, **most).met
    assert not decided(made, "paid", **options, **MU_1 | {"epsilon": of_two(1.9)}).met


def test_sets_per_record_are_none_per_person(made):
    with_sets(made, unit="add-remove", persons=None)
    verdict = decided(made, "with sets", unit="person", ledger=None, key=None)
    assert not verdict.met
    assert lacking(answers(verdict)["unit"][1], "add-remove", "sets") == []
    assert decided(made, "with sets", unit="record", ledger=None, key=None).met


def test_the_most_expensive_choice_of_groups_counts():
    groups = (("a", Gaussian(1.0)), ("b", Gaussian(2.0)))
    personal = Guarantee(Unit.ADD_REMOVE, Gaussian(math.inf), groups=groups)
    number = gate_largest([personal, personal])
    assert number == pytest.approx(of_two(2.0))


def gate_largest(guarantees):
    from tacit.releases.rules import largest

    return largest(guarantees, lambda event: epsilon(event, 1e-5), (1e-5,))


def test_too_many_choices_of_groups_are_not_met():
    from tacit.releases.rules import Unmet

    groups = tuple((str(number), Exponential(1.0 + number)) for number in range(17))
    personal = Guarantee(Unit.ADD_REMOVE, Gaussian(math.inf), groups=groups)
    with pytest.raises(Unmet, match=stating("256")):
        gate_largest([personal, personal])


def test_a_stamped_release_never_passes(tmp_path):
    seeded = learner(noise="research", random_state=0)
    Release.of(seeded).save(tmp_path / "seeded", allow_research=True)
    verdict = decide(tmp_path / "seeded", Policy.of({"unit": "person"}))
    assert not verdict.met
    assert lacking(answers(verdict)["stamp"][1], "NOT FOR RELEASE") == []
    assert answers(verdict)["unit"][0]


def test_fits_that_the_statement_does_not_cover_are_no_epsilon(tmp_path):
    from sklearn.base import clone

    first = learner()
    clone(first).fit(ROWS, LABELS, persons=PERSONS)
    with pytest.warns(tacit.PrivacyLeakWarning):
        Release.of(first).save(tmp_path / "chosen")
    verdict = decide(tmp_path / "chosen", Policy.of(MU_1 | {"epsilon": 100}))
    assert not verdict.met
    assert lacking(answers(verdict)["epsilon"][1], "2 fits") == []


def test_facts_that_are_not_stated_are_not_met(tmp_path):
    Release.of(learner(unit="add-remove")).save(tmp_path / "bare")
    policy = {
        "unit": "person",
        "least_records": 1,
        "evaluation": "paid or public",
        "signature": "required",
        "encoder": "known",
        "audit_days": 1000,
    }
    verdict = decide(tmp_path / "bare", Policy.of(policy))
    broken = {rule for rule, (met, _) in answers(verdict).items() if not met}
    assert broken == set(policy)
    # a list of encoders does not hold what is not stated
    assert not decide(tmp_path / "bare", Policy.of({"encoder": ["not stated"]})).met


def test_a_name_alone_is_no_known_encoder(tmp_path):
    Release.of(learner(), encoder={"name": "resnet"}).save(tmp_path / "named")
    assert not decide(tmp_path / "named", Policy.of({"encoder": "known"})).met
    assert decide(tmp_path / "named", Policy.of({"encoder": "resnet"})).met


def test_an_older_release_has_no_ledger_that_could_be_checked(once, tmp_path):
    from pathlib import Path

    written = next(Path(__file__).parent.glob("written/*/release.json")).parent
    shutil.copytree(written, tmp_path / "older")
    verdict = decide(
        tmp_path / "older", Policy.of({"ledger_since": "2100-01-01"}), ledger=once / "ledger"
    )
    assert not verdict.met


def test_labels_are_held_against_the_same_rules_but_have_no_evaluation(once):
    policy = MU_1 | {"epsilon": 7, "unprotected": [], "least_records": 20, "signature": "required"}
    assert decided(once, "labels", **policy).met
    verdict = decided(once, "labels", **policy, evaluation="public")
    assert not verdict.met
    assert lacking(answers(verdict)["evaluation"][1], "does not apply") == []


def audited(made, name, day="2026-11-20", bound_at_alarm=0.0):
    """Sign the release with an audit of a day."""
    release = Release.load(made / "signed")
    promise = release.guarantee.epsilon(1e-5)
    audit = AuditResult(
        result=outcome(1.0, promise, bound_at_alarm, promise),
        lower_bound=1.0,
        lower_bound_at_alarm=bound_at_alarm,
        promise_at_alarm=promise,
        delta_at_alarm=1e-5,
        promise=promise,
        delta=1e-5,
        confidence=0.95,
        unit="add-remove-person",
        assumption="none",
        attacks=("threshold",),
        setup="100 refits",
        date=day,
        version="1",
    )
    return publish(release.with_audit(audit), made / name, key=made / "key.pem")


@pytest.mark.parametrize(
    ("day", "days", "met", "facts"),
    [
        ("2026-11-20", 12, True, ["11 days", "2026-11-20", "12"]),
        ("2026-11-20", 11, False, ["11 days", "2026-11-20", "11"]),
        ("2026-12-01", 1, True, ["0 days"]),
        ("2026-12-02", 100, False, ["2026-12-02", "still to come"]),
        ("2026-02-30", 100, False, ["2026-02-30"]),
    ],
)
def test_an_audit_is_met_while_it_is_young(made, day, days, met, facts):
    audited(made, "audited", day)
    verdict = decided(made, "audited", audit_days=days, ledger=None)
    assert verdict.met is met
    answer, line = answers(verdict)["audit_days"]
    assert answer is met
    assert lacking(line, *facts) == []


def test_an_audit_counts_only_under_a_signature(made):
    audited(made, "audited")
    assert not decided(made, "audited", audit_days=100, ledger=None, key=None).met
    assert not decided(made, "audited", audit_days=100, ledger=None, key="other-public.pem").met


def test_an_audit_that_broke_the_promise_passes_under_no_policy(made):
    audited(made, "audited", bound_at_alarm=100.0)
    verdict = decided(made, "audited", unit="person", ledger=None)
    assert not verdict.met
    assert lacking(answers(verdict)["stamp"][1], "BROKEN") == []


def test_an_edited_audit_does_not_pass(made):
    audited(made, "audited", "2020-01-01")

    def later(document):
        document["audit"]["date"] = "2026-11-30"

    rewrite(made / "audited", later)
    verdict = decided(made, "audited", audit_days=30, ledger=None)
    assert not verdict.met
    assert not answers(verdict)["audit_days"][0]

    def lower(document):
        document["audit"]["lower_bound"] = 50.0

    rewrite(made / "audited", lower)
    verdict = decided(made, "audited", unit="person", ledger=None, key=None)
    assert [ruling.rule for ruling in verdict.rulings] == ["verified"]


# tampering


def test_a_key_is_always_checked(once):
    assert decided(once, unit="person", ledger=None).met
    verdict = decided(once, unit="person", ledger=None, key="other-public.pem")
    assert not verdict.met
    assert answers(verdict)["signature"][0] is False
    assert lacking(answers(verdict)["signature"][1], once / "signed") == []


def test_a_signature_needs_a_key(once):
    met, line = answers(decided(once, signature="required", ledger=None, key=None))["signature"]
    assert not met
    assert lacking(line, "--key") == []


def rewrite(folder, change):
    """Change the document of a release, and write the card that goes with it."""
    document = json.loads((folder / "release.json").read_text())
    change(document)
    (folder / "release.json").write_text(json.dumps(document, indent=1))
    card = render_card(Document.model_validate_json(json.dumps(document)))
    (folder / "CARD.md").write_text(card)


def halve_epsilon(document):
    for point in document["parameters"]["epsilons"]:
        point["epsilon"] /= 2


def fewer_records(document):
    document["contents"]["least_records"] = 1000


def other_events(document):
    document["guarantee"]["event"] = Gaussian(100.0).to_json()


@pytest.mark.parametrize("change", [halve_epsilon, fewer_records, other_events])
def test_a_forged_document_does_not_verify_and_no_rule_is_looked_at(made, change):
    rewrite(made / "signed", change)
    verdict = decided(made, unit="person", ledger=None, key=None)
    assert not verdict.met
    assert [ruling.rule for ruling in verdict.rulings] == ["verified"]


def test_an_edited_card_and_edited_arrays_do_not_verify(made):
    card = made / "signed" / "CARD.md"
    card.write_text(card.read_text().replace("person", "record", 1))
    verdict = decided(made, unit="person", ledger=None, key=None)
    assert [ruling.met for ruling in verdict.rulings] == [False]
    shutil.copy(made / "signed" / "README.md", card)
    arrays = made / "signed" / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"\0")
    assert not decided(made, unit="person", ledger=None, key=None).met


def test_a_consistent_forgery_has_no_signature(made):
    def rename(document):
        document["public_inputs"]["encoder"]["name"] = "clip"

    rewrite(made / "signed", rename)
    policy = {"encoder": ["clip"]}
    assert decided(made, **policy, ledger=None, key=None).met
    verdict = decided(made, **policy, ledger=None)
    assert not verdict.met
    assert not answers(verdict)["signature"][0]


@pytest.mark.parametrize("number", range(3))
def test_a_ledger_without_one_of_its_lines_counts_for_nothing(made, number):
    file = made / "ledger"
    lines = file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    file.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    policy = MU_1 | {"epsilon": 100, "advantage": 1, "ledger_since": "2100-01-01"}
    verdict = decided(made, **policy)
    broken = {rule for rule, (met, _) in answers(verdict).items() if not met}
    assert broken == {"epsilon", "advantage", "ledger_since"}


def test_an_edited_ledger_counts_for_nothing(made):
    file = made / "ledger"
    file.write_bytes(file.read_bytes().replace(b"an earlier fit", b"an earlier fib"))
    assert not decided(made, **MU_1 | {"epsilon": 100}).met
    assert not decided(made, ledger_since="2100-01-01").met


def test_a_ledger_that_was_written_anew_counts_for_nothing(made):
    (made / "ledger").unlink()
    ledger = Ledger(made / "ledger", "survey")
    ledger.allow("rho=5", "add-remove-person")
    released = Release.load(made / "signed").guarantee
    ledger.charge(released, "NoisySumPrototypes fit")
    verdict = decided(made, ledger_since="2100-01-01")
    assert not verdict.met
    assert lacking(answers(verdict)["ledger_since"][1], "no line of it") == []


def test_a_ledger_of_other_data_counts_for_nothing(tmp_path):
    # the card was given the balance of data that the fit was not charged to
    ledger = Ledger(tmp_path / "ledger", "survey")
    ledger.allow("rho=5", "add-remove-person")
    other = Ledger(tmp_path / "ledger", "visits")
    other.allow("rho=5", "add-remove-person")
    Release.of(learner(ledger), ledger=ledger).save(tmp_path / "charged")
    other.charge(Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "of the other data")
    Release.of(learner(), ledger=other).save(tmp_path / "uncharged")

    policy = Policy.of({"ledger_since": "2100-01-01"})
    assert decide(tmp_path / "charged", policy, ledger=tmp_path / "ledger").met
    verdict = decide(tmp_path / "uncharged", policy, ledger=tmp_path / "ledger")
    assert not verdict.met
    assert lacking(answers(verdict)["ledger_since"][1], "no charge of this release") == []


def test_a_release_that_states_another_first_day_is_not_met(made):
    def earlier(document):
        document["pattern"]["ledger_since"] = "2001-01-01"

    rewrite(made / "signed", earlier)
    verdict = decided(made, ledger_since="2100-01-01", key=None)
    assert not verdict.met
    assert lacking(answers(verdict)["ledger_since"][1], "2001-01-01") == []


def test_a_head_before_the_charge_of_the_release_is_not_its_own(made):
    def earlier(document):
        document["pattern"]["ledger_head"] = History.read(made / "ledger").hashes[0]

    rewrite(made / "signed", earlier)
    verdict = decided(made, ledger_since="2100-01-01", key=None)
    assert not verdict.met
    assert lacking(answers(verdict)["ledger_since"][1], "no charge of this release") == []


def test_a_link_to_a_folder_is_refused(made):
    (made / "link").symlink_to(made / "signed")
    with pytest.raises(InputError, match=stating(made / "link", "link")):
        decided(made, "link", unit="person", ledger=None)


def test_a_folder_that_is_exchanged_after_it_was_read_does_not_pass(made, monkeypatch):
    """Put the signed folder in the place of a forged one, once that was read."""

    def rename(document):
        document["public_inputs"]["encoder"]["name"] = "clip"

    shutil.copytree(made / "signed", made / "forged")
    rewrite(made / "forged", rename)
    read = gate.files_of

    def read_then_exchange(folder):
        files = read(folder)
        shutil.rmtree(folder)
        (made / "signed").rename(folder)
        return files

    monkeypatch.setattr(gate, "files_of", read_then_exchange)
    verdict = decided(made, "forged", encoder=["clip"], signature="required", ledger=None)
    assert not verdict.met
    assert answers(verdict)["encoder"][0]
    assert not answers(verdict)["signature"][0]


def test_a_further_file_and_a_link_in_the_folder_are_refused(made):
    (made / "signed" / "README.md").rename(made / "README.md")
    (made / "signed" / "README.md").symlink_to(made / "README.md")
    with pytest.raises(ReleaseError, match=stating("README.md")):
        decided(made, unit="person", ledger=None)
    (made / "signed" / "README.md").unlink()
    (made / "signed" / "records.csv").write_text("private")
    with pytest.raises(ReleaseError, match=stating("'records.csv'")):
        decided(made, unit="person", ledger=None)


@pytest.mark.parametrize("name", [".git", ".cache", ".gitattributes"])
def test_what_no_check_reads_does_not_leave_with_a_release(made, name):
    path = made / "signed" / name
    if name == ".gitattributes":
        path.write_text("private")
    else:
        path.mkdir()
        (path / "records.csv").write_text("private")
    verdict = decided(made, unit="person", ledger=None)
    met, line = answers(verdict)["verified"]
    assert not verdict.met
    assert not met
    assert not lacking(line, name, "copy")


def test_a_ledger_that_no_rule_reads_or_that_is_not_there_is_refused(once):
    with pytest.raises(InputError, match=stating("--ledger", "ledger_since")):
        decided(once, unit="person")
    with pytest.raises(InputError, match=stating(once / "none", "not a file")):
        decided(once, ledger="none", ledger_since="2100-01-01")


def test_every_rule_of_a_policy_has_an_answer():
    from tacit.releases.policy import KEYS
    from tacit.releases.rules import RULES as rules

    assert set(rules) | {"delta"} == set(KEYS)


def test_a_declared_number_of_records_is_a_whole_number():
    fitted = learner()
    for number in (0, -1, 2.0, True):
        with pytest.raises(ReleaseError, match=stating(f"least_records={number}", "whole number")):
            Release.of(fitted, least_records=number)
    document = Release.of(fitted, least_records=7).document
    assert document.contents.least_records == 7
    quantity = "that each class has at least 7 records (declared)"
    assert quantity in document.variant.unprotected_quantities
    assert Release.of(fitted).document.contents.least_records == "not stated"


def test_item_12_states_the_ledger_after_the_charge_of_the_fit(once):
    pattern = Release.load(once / "signed").document.pattern
    account = Ledger(once / "ledger", "survey").account()
    assert (pattern.ledger_head, pattern.ledger_since) == (account.head, account.since[:10])
    assert replace(account.charges[-1].guarantee, unprotected=()) == replace(
        Release.load(once / "signed").guarantee, unprotected=()
    )

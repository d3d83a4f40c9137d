import numpy as np
import pytest

import tacit
from messages import lacking
from tacit.privacy.events import Exponential, Gaussian, Laplace, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.releases.card import item_lines, render_card
from tacit.releases.release import Release
from tacit.releases.schema import ITEMS, Document, Mechanisms
from tacit.releases.statement import accounting_item, rounded_up

HEADINGS = [
    "1. Product",
    "2. Variant",
    "3. Trust setting",
    "4. Privacy unit",
    "5. Privacy parameters",
    "6. Privacy profile",
    "7. Data accesses covered",
    "8. What is released",
    "9. Accounting",
    "10. Mechanisms",
    "11. Data-dependent bounds",
    "12. Release pattern",
    "13. Post-processing",
    "14. Implementation",
    "15. Utility",
    "16. Public data and encoder",
    "17. Empirical audit",
]


def a_release(classes=3, **facts):
    labels = np.arange(60) % 2
    names = np.asarray(list(range(classes)) if isinstance(classes, int) else classes)
    return Release.of(
        tacit.NoisySumPrototypes(classes=classes).fit(np.ones((60, 4)), names[labels]), **facts
    )


def test_assumptions_of_all_events_are_stated_once_each():
    guarantee = Guarantee(
        Unit.REPLACE, 3 * Gaussian(2.0) + Gaussian(5.0), groups=(("a", Laplace(3.0)),)
    )
    document = a_release().document

    def assumptions(noise, version):
        return accounting_item(
            guarantee, document.parameters, document.profile, noise, version
        ).assumptions

    of_discrete = assumptions("opendp", 6)
    assert of_discrete[0].startswith("noise is secret and exact: holds")
    assert of_discrete[1:] == (Gaussian.assumption, Laplace.assumption)
    # until version 5 secure noise was OpenDP's
    assert assumptions("secure", 5) == of_discrete
    (of_rounded,) = assumptions("secure", 6)
    assert not lacking(of_rounded, "exact: holds", "rounded", "the time of a draw is not constant")


def section(card, number):
    return card.split(f"\n## {number}. ")[1].split("\n## ")[0]


def test_all_17_items_are_there_in_order():
    headings = [line[3:] for line in a_release().card().splitlines() if line.startswith("## ")]
    assert headings == [*HEADINGS, "Predicting without tacit"]
    assert len(ITEMS) == 17


def test_unknown_facts_say_so():
    card = a_release().card()
    for number in (1, 14, 15, 16, 17):
        assert "not stated" in section(card, number)


def test_numbers_and_conversions_are_there():
    card = a_release().card()
    assert "- rho: 0.5" in section(card, 5)
    assert not lacking(section(card, 5), "pure epsilon", "none")
    assert "unit = replace, rho = 2" in section(card, 5)
    assert "unit = change-label, rho = 1" in section(card, 5)
    assert "false positive rate = 0.01, true positive rate = 0.0923" in section(card, 6)
    assert "noise standard deviation: 1" in section(card, 10)
    assert "P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta" in section(card, 9)
    assert not lacking(section(card, 14), "OpenSSL", "operating system")
    assert "opendp" not in section(card, 14)
    assert "shape = 3 x 4" in section(card, 8)


def test_noise_of_opendp_is_named_with_its_version_and_correction(tmp_path):
    model = tacit.NoisySumPrototypes("rho=0.5", classes=2, noise="opendp").fit(np.eye(2), [0, 1])
    release = Release.load(Release.of(model).save(tmp_path / "release")).verify()
    card = release.card()
    assert release.document.stamp is None
    assert release.predict(np.eye(2)).shape == (2,)
    assert "noise: opendp" in section(card, 10)
    assert "OpenDP samplers" in section(card, 14)
    assert "- opendp: " in section(card, 14)
    assert Gaussian.assumption in section(card, 9)


def test_stated_bounds_are_never_rounded_down():
    release = a_release()
    for number, delta in enumerate((1e-5, 1e-6, 1e-9), 1):
        stated = section(release.card(), 5).split("epsilon = ")[number].split(",")[0]
        assert float(stated) >= release.guarantee.epsilon(delta)
        assert f"({stated}, {delta:g})" in section(release.card(), 9)


def test_noise_multipliers_are_never_rounded_up_since_version_9():
    document = a_release().document
    facts = {"noise multiplier": 2.00000987, "noise multipliers": (2.00000987,), "rows": 2.00000987}
    of_9 = document.mechanisms.model_copy(update={"facts": facts})
    older = Mechanisms(noise="secure", seed="none", facts=facts)
    assert [line.split(": ")[1] for line in item_lines(of_9)[3:6]] == ["2", "2", "2.00001"]
    assert [line.split(": ")[1] for line in item_lines(older)[3:6]] == ["2.00001"] * 3


def test_the_advantage_and_the_words_are_those_of_the_guarantee():
    release = a_release()
    assert "- advantage: 0.382925\n" in section(release.card(), 6)
    assert f"- in words: {release.guarantee.in_words()}\n" in section(release.card(), 9)
    assert release.guarantee.in_words() in release.card().split("\n## ")[0]


def test_seeded_noise_is_a_premise_of_the_words():
    model = tacit.NoisySumPrototypes(classes=2, noise="research", random_state=0).fit(
        np.eye(2), [0, 1]
    )
    assert Release.of(model).document.accounting.in_words.startswith(
        "Were its seeded noise secret and exact: Including"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (2.0, "2"),
        (4.886554117, "4.88656"),
        (0.1 + 0.2, "0.3"),
        (0.0, "0"),
        (1.0000011e-5, "1.00001e-05"),
    ],
)
def test_rounding_up_keeps_what_is_exact(value, text):
    assert rounded_up(value) == text


def test_the_card_follows_from_the_document_alone():
    release = a_release(name="a")
    again = Document.model_validate_json(release.document.model_dump_json())
    assert render_card(again) == release.card()


def test_markup_in_facts_stays_text():
    card = a_release(
        name="*n* <script>", description="[x](http://a) `code` <!-- hidden", curator="a < b"
    ).card()
    assert card.startswith("# \\*n\\* \\<script>\n")
    assert "[x\\](http://a) \\`code\\` \\<!-- hidden" in card
    assert "- curator: a < b" in card


def test_long_class_lists_are_cut_and_names_are_quoted():
    assert "- classes: 50, namely 0, 1, " in a_release(classes=50).card()
    assert "19, ...\n" in a_release(classes=50).card()
    assert '- classes: 2, namely "a", "é"\n' in a_release(classes=["a", "é"]).card()


def test_the_card_says_what_was_added_up_for_each_group():
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=2, noise="secure").fit(np.eye(2), [0, 1])
    document = Release.of(learner).document
    groups = (("high", Gaussian(1.0)), ("low", Gaussian(4.0)))

    def composition(event, groups=groups):
        guarantee = Guarantee(Unit.ADD_REMOVE, event, groups=groups)
        return accounting_item(
            guarantee, document.parameters, document.profile, "secure"
        ).composition

    alone = "; ".join(f"for records of group {name} {event.describe()}" for name, event in groups)
    assert composition(compose([])) == alone
    assert not lacking(
        composition(Exponential(1.0)), "every record", Exponential(1.0).describe(), alone
    )
    assert composition(Gaussian(1.0), ()) == Gaussian(1.0).describe()

"""What recipes were computed from, and what still holds a part that leaves."""

import warnings

import numpy as np
import pytest

import tacit
from releases.test_summary import PUBLIC, summary_of
from tacit.errors import InputError
from tacit.releases.release import Release
from tacit.releases.sources import Leaving, sources_of, sources_of_centre

A, B = summary_of("hospital A"), summary_of("B")
OF_A = sources_of("centre", A)


def test_a_source_states_the_parts_of_a_release_and_what_that_has_seen():
    (source,) = OF_A
    assert source.model_dump() == {
        "what": "centre",
        "release": "summary of hospital A",
        "parts": ("hospital A",),
    }
    seen = summary_of("B", sources=OF_A)
    combined = tacit.combine([seen], name="first")
    for released in (seen, combined):
        own, earlier = sources_of("budget", released)
        assert own.parts == ("B",)
        assert earlier == OF_A[0].model_copy(update={"what": "budget"})
    assert combined.document.pattern.sources == OF_A
    assert "parts = hospital A" in combined.card()
    with pytest.raises(InputError, match=r"is no part of a recipe; choose from: centre"):
        sources_of("weights", A)
    with pytest.raises(InputError, match="is no summary or release"):
        sources_of("centre", 3)


def test_a_release_of_a_fit_states_no_parts_and_so_may_hold_any():
    fit = Release.of(tacit.NoisySumPrototypes(classes=2).fit(np.eye(2), [0, 1]))
    assert sources_of("classes", fit)[0].parts == ()
    assert sources_of_centre({"synthetic": {"release": "drawn"}})[0].release == "drawn"
    assert sources_of_centre({}) == ()
    (holding,) = tacit.holders_of("A", [summary_of("B", sources=sources_of("classes", fit))])
    assert not holding.certain
    assert "nothing shows that it does not hold 'A'" in holding.sentence("A")


def test_a_part_is_found_in_sums_and_in_what_was_computed_from_them(tmp_path):
    seen = summary_of("C", sources=OF_A)
    folder = (seen + B).save(tmp_path / "s")
    release = tacit.combine([A], name="r").save(tmp_path / "r")
    holdings = tacit.holders_of("Hospital  a", [A, B, folder, release])
    assert [(one.where, one.what, one.source) for one in holdings] == [
        ("summary of hospital A", "sums", ""),
        (str(folder), "centre", "summary of hospital A"),
        (str(release), "sums", ""),
    ]
    assert holdings[1].sentence("hospital A") == (
        f"{folder}: its centre was computed from 'summary of hospital A', which holds 'hospital A'"
    )


def test_a_combination_leaves_parts_out_and_warns_of_what_has_seen_them(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = tacit.combine([A, B], without=["Hospital a"])
    alone = tacit.combine([B])
    assert without.guarantee == alone.guarantee
    for name, array in alone.arrays.items():
        assert np.array_equal(without.arrays[name], array)
    seen = summary_of("C", sources=OF_A).save(tmp_path / "c")
    with pytest.warns(UserWarning, match=r"its centre was computed from .* holds 'hospital A'"):
        tacit.combine([A, B, seen], without=["hospital A"])
    # also where the part's own summaries are gone
    with pytest.warns(UserWarning, match="which holds"):
        tacit.combine([seen], without=["hospital A"])


def test_the_centre_of_a_summary_that_leaves_is_that_of_the_others():
    """They may not state from what it was computed; a budget is that of one summary alone."""
    for what, sentences in (
        ("budget", []),
        (
            "centre",
            [
                "summary of D, of which the others have the centre: its centre was computed from"
                " 'summary of hospital A', which holds 'hospital A'"
            ],
        ),
    ):
        seen = summary_of("D", public=PUBLIC, sources=sources_of(what, A))
        leaving = Leaving(["hospital A", "D"])
        list(leaving.remaining([A, seen, summary_of("B", public=PUBLIC)]))
        assert [holding.sentence(part) for part, holding in leaving.holdings] == sentences


@pytest.mark.parametrize(
    ("summaries", "without", "message"),
    [
        ([A + B], ["B"], "cannot be taken out of summary of 2 parts, which adds up 2 summaries"),
        ([A, B], ["hospital B"], "without='hospital B' is no part of the summaries"),
        ([A, B], ["B", "hospital A"], "no summary remains"),
        ([A, B], "B", "must be a list"),
        ([A, B], ["B "], "spaces at its ends"),
    ],
)
def test_what_cannot_be_left_out_is_refused(summaries, without, message):
    with pytest.raises(InputError, match=message):
        tacit.combine(summaries, without=without)


def test_summaries_of_one_part_leave_together_and_others_stay():
    again = summary_of("hospital a")
    leaving = Leaving(["hospital A"])
    assert list(leaving.remaining([A + again, B])) == [B]
    assert leaving.left_out == [("summary of 2 parts", "hospital a")]
    assert leaving.holdings == []


def test_sources_survive_saving(tmp_path):
    one = summary_of("C", public=PUBLIC, sources=OF_A)
    assert tacit.Summary.load(one.save(tmp_path / "c")).verify().recipe.sources == OF_A
    release = tacit.combine([one], public=PUBLIC).save(tmp_path / "r")
    assert Release.load(release).verify().document.pattern.sources == OF_A

import warnings
from unicodedata import normalize

import numpy as np
import pytest

from messages import stating
from tacit.data.person_ids import as_texts, canonical_ids, case_message, case_variants
from tacit.data.persons import Persons, person_codes, persons_under
from tacit.errors import InputError
from tacit.privacy.unit import Unit


def test_equal_ids_and_no_others_have_equal_codes():
    texts = ["b", "a", "b\0", "a", "b", "A"]
    assert person_codes(texts, 6).tolist() == [0, 1, 2, 1, 0, 3]
    numbers = person_codes(np.array([2**53 + 1, 7, 2**53, 7]), 4)
    assert len(set(numbers.tolist())) == 3
    assert numbers[1] == numbers[3]


@pytest.mark.parametrize("kind", ["pandas", "object", "uint64", "text"])
def test_ids_of_every_kind(kind):
    pandas = pytest.importorskip("pandas")
    ids = {
        "pandas": pandas.Series(["x", "y", "x"]),
        "object": np.array([3, 4, 3], dtype=object),
        "uint64": np.array([2**63 + 1, 2**63, 2**63 + 1], dtype=np.uint64),
        "text": np.array(["x", "y", "x"]),
    }[kind]
    first, second, third = person_codes(ids, 3)
    assert first == third != second


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["p7731", "p7732"], "2 ids for 3 records"),
        (["p7731"] * 4, "4 ids for 3 records"),
        ([["p7731"]] * 3, "several dimensions"),
        (np.zeros((3, 1), int), "2 dimensions"),
        (["p7731", None, "p7731"], "missing or of several types"),
        (["p7731", 7731, "p7731"], "missing or of several types"),
        (["p7731", "", "p7731"], "empty id"),
        ([7731, float("nan"), 7731], stating("missing", "row 1")),
        (["p7731", " \t", "p7731"], stating("empty id", "row 1")),
        ([7731, 7731.5, 7731], stating("fraction", "row 1")),
        (np.array([1.0, 7731.5, 1.0]), stating("fraction", "row 1")),
        (np.array([1.0, 2.0**53, 7731.0]), stating("2^53", "row 1")),
        (np.array([1.0, 2.0**24, 7731.0], dtype=np.float32), stating("2^24", "row 1")),
        ([7731, np.float32(2**24 + 1)], stating("2^24", "row 1")),
        ([np.float16(2049)], stating("2^11", "row 0")),
        ([7731, 2.0**53, 1], stating("2^53", "row 1")),
        ([7731, float("-inf"), 1], stating("2^53", "row 1")),
        (["7731", "9007199254740992.0", "1"], stating("2^53", "row 1")),
        (["7731", "9" * 5000 + ".0", "1"], stating("2^53", "row 1")),
        (np.array([7731 + 1j, 1, 2]), "of type complex128"),
        ([True, False, True], "missing or of several types"),
        (np.array([7731.0, np.nan, 1.0]), stating("missing", "row 1")),
        ("p77", "is a str"),
        (7731, "is a int"),
        ({7731, 7732, 7733}, "is a set"),
        ({7731: 0, 7732: 1, 7733: 2}, "is a dict"),
        (np.ma.array([7731, 7732, 7733], mask=[False, True, False]), "masked entries"),
    ],
)
def test_bad_ids_are_refused_and_not_shown(ids, said):
    with pytest.raises(InputError, match=said) as caught:
        person_codes(ids, 3)
    assert "7731" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ids", [[3, 1, 3, 2, 1, 3, 9], [1, 1, 2, 3, 3, 3, 4]])
def test_parts_hold_whole_persons_and_every_record_once(ids):
    persons = Persons.of(ids, 7)
    for most in range(1, 9):
        seen = []
        for at, ends in persons.parts(most):
            records = np.arange(7)[at]
            assert ends[-1] == len(records)
            assert len(records) <= most or len(ends) == 1
            for own in np.split(records, ends[:-1]):
                assert len({ids[i] for i in own}) == 1
                assert len(own) == ids.count(ids[own[0]])
                assert np.all(np.diff(own) > 0)
            seen.extend(records)
        assert sorted(seen) == list(range(7))


def test_sizes_and_selections():
    persons = Persons.of(list("abacab"), 6)
    assert persons.number == 3
    assert persons.of_same_person.tolist() == [3, 2, 3, 1, 3, 2]
    assert persons.at([1, 3, 5]).sizes.tolist() == [2, 1]


def test_places_follow_the_first_records():
    for ids in ([30, 10, 30, 20, 10], ["z", "a", "z", "b", "a"]):
        assert Persons.of(ids, 5).places.tolist() == [0, 1, 0, 2, 1]


COMPOSED, DECOMPOSED = (normalize(form, "Zoé-1") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("spellings", "person"),
    [
        (["P1", "P1 ", "\tP1", "\u00a0P1\u2003"], "P1"),
        ([COMPOSED, DECOMPOSED, f" {DECOMPOSED}"], COMPOSED),
        (["17", "17.0", " 17.0 "], "17"),
        (["-3", "-3.0"], "-3"),
        (["0", "0.0", "-0.0"], "0"),
        ([17, 17.0, np.float32(17), np.int8(17)], 17),
        (np.array([17.0, 17.0]), 17),
        (np.array([17.0, 17.0], dtype=np.float16), 17),
        (np.array(["17", "17.0"]), "17"),
    ],
)
def test_spellings_of_one_id_are_one_person(spellings, person):
    assert canonical_ids(spellings).tolist() == [person] * len(spellings)
    assert set(person_codes(spellings, len(spellings)).tolist()) == {0}


def test_ids_that_may_be_two_persons_stay_two():
    texts = [
        "7",
        "007",
        "07",
        "7e0",
        "1e3",
        "1000",
        "P1",
        "p1",
        "007.0",
        "7.5",
        "7.00",
        "+7",
        "P 1",
        "b",
        "b\0",
        ".0",
    ]
    assert canonical_ids(texts).tolist() == texts
    assert len(set(person_codes(texts, len(texts)).tolist())) == len(texts)
    numbers = [2**53 - 1, 2**53, 2**53 + 1, 2**70, 2**70 + 1]
    assert canonical_ids(numbers).tolist() == numbers
    assert canonical_ids(["9007199254740991.0"]).tolist() == [str(2**53 - 1)]


def test_a_number_and_its_text_are_one_person():
    for number, text in ((17, "17"), (-5, "-5.0"), (2**62 + 1, str(2**62 + 1))):
        assert (
            as_texts(canonical_ids([number])).tolist() == as_texts(canonical_ids([text])).tolist()
        )


def test_the_form_of_an_id_is_its_own_form():
    texts = ["P1 ", "17.0", DECOMPOSED, "007", "-0.0"]
    once = canonical_ids(texts)
    assert canonical_ids(once).tolist() == once.tolist()


def test_ids_that_differ_by_case_are_counted_and_not_shown():
    ids = ["Anna", "anna", "anna", "ANNA", "Bert", "straße", "STRASSE"]
    assert case_variants(ids) == 5
    message = case_message(canonical_ids(ids))
    assert message.startswith("5 person ids differ from another only by case")
    assert not any(name in message for name in ids)
    with pytest.warns(UserWarning, match="5 person ids") as caught:
        persons = persons_under(Unit.ADD_REMOVE_PERSON, ids, 7, offered=(), stacklevel=1)
    assert caught[0].filename == __file__
    assert persons.number == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for others in (["Anna", "Bert", "Anna"], [1, 2, 1]):
            assert case_message(canonical_ids(others)) is None
            persons_under(Unit.ADD_REMOVE_PERSON, others, 3, offered=(), stacklevel=1)

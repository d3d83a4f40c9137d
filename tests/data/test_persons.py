import numpy as np
import pytest

from tacit.data.persons import Persons, person_codes
from tacit.errors import InputError


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
        ([7731, float("nan"), 7731], "missing or of several types"),
        ([True, False, True], "missing or of several types"),
        (np.array([7731.0, np.nan, 1.0]), "of type float64"),
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

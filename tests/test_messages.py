import re

from messages import lacking, stating

TEXT = "row 13 of x.npy has 2.5 columns\ntwo lines: --force"


def test_facts_are_found_in_any_order_and_on_one_line():
    assert re.search(stating("x.npy", "row 13"), TEXT)
    assert lacking(TEXT, "x.npy", "row 13") == []
    assert not re.search(stating("row 13", "--force"), TEXT)
    assert lacking(TEXT, "row 13", "x.npy", "--force") == ["--force"]


def test_a_fact_is_no_part_of_a_longer_word_or_number():
    for fact in ("row 1", "3 of", "2", "5 columns", "x.np", "line"):
        assert not re.search(stating(fact), TEXT)
        assert lacking(TEXT, fact) == [fact]
    assert lacking(TEXT, "2.5", ".npy", 13) == []


def test_an_empty_text_states_nothing():
    assert lacking("", "row 13") == ["row 13"]

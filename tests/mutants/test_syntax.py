"""Which places a pattern matches, and what a replacement makes of them."""

import ast

import pytest

from contracts.mutants import NoSuchPlace, mutated

SOURCE = '''
from math import sqrt

SLACK = 2.0

def event(noise, shares):
    """Return the event."""
    total = sum(shares)
    if noise < 0:
        raise ValueError("noise")
    return Gaussian(noise / sqrt(total), unit="record", count=_count(shares))

def _count(values):
    return len(values) + SLACK

class Mechanism:
    def price(self, noise):
        self._price = noise / 2
        return self._price * 3
'''


@pytest.mark.parametrize(
    ("at", "old", "new", "was", "becomes"),
    [
        # layout, quotes and order of keywords do not matter
        (
            "event",
            "Gaussian(noise/sqrt(total),\n count=_count(shares), unit='record')",
            "shares",
            "Gaussian(noise / sqrt(total), unit='record', count=_count(shares))",
            "shares",
        ),
        # names of local variables, private functions and private attributes do not matter
        ("event", "n / sqrt(t)", "t / n", "noise / sqrt(total)", "total / noise"),
        ("event", "_n(all_shares)", "2 * _n(all_shares)", "_count(shares)", "2 * _count(shares)"),
        ("Mechanism.price", "this._cost * 3", "this._cost", "self._price * 3", "self._price"),
        # the rest
        (
            "event",
            "Gaussian(..., unit='record')",
            "Gaussian(..., unit='person')",
            "unit='record'",
            "unit='person'",
        ),
        (
            "event",
            "if ...: ...",
            "pass",
            "if noise < 0:\n        raise ValueError('noise')",
            "pass",
        ),
        (
            "event",
            "total = ...\n...\nreturn ...",
            "total = 2 * ...\n...\nreturn ...",
            "sum(shares)",
            "2 * sum(shares)",
        ),
        # the whole module
        ("", "len(values) + SLACK", "len(values)", "len(values) + SLACK", "len(values)"),
        ("", "SLACK = 2.0", "SLACK = 1.0", "SLACK = 2.0", "SLACK = 1.0"),
    ],
)
def test_the_one_place_that_matches_is_replaced(at, old, new, was, becomes):
    source = ast.unparse(ast.parse(SOURCE))
    assert source.count(was) == 1
    assert mutated(SOURCE, at, old, new) == source.replace(was, becomes)


@pytest.mark.parametrize(
    ("at", "old", "new", "fault"),
    [
        ("event", "_root(total)", "1", "2 places"),  # of _count and of another private function
        ("event", "count(shares)", "1", "0 places"),  # a private function
        ("event", "log(noise / 2)", "1", "0 places"),
        ("event", "sum(x) + x", "1", "0 places"),
        ("event", "SLACK", "1", "0 places"),
        ("event", "Gaussian(..., unit='person')", "1", "0 places"),
        ("event", "Gaussian(x / sqrt(y), unit='record')", "1", "0 places"),  # has another keyword
        ("event", "noise / sqrt(noise)", "1", "0 places"),  # one name for two variables
        ("", "noise / ...", "noise", "2 places"),
        ("", "3", "3.0 if noise else 3", "uses noise"),
        ("", "SLACK = 2.0", "SLACK = 2.0", "changes nothing"),
        ("event", "Gaussian(..., unit=...)", "Gaussian(...)", "as many"),
        ("_count", "len(values)", "1", "private"),
        ("events", "1", "2", "not defined"),
        ("event.total", "1", "2", "not defined"),
    ],
)
def test_no_place_several_places_and_unsafe_names_are_refused(at, old, new, fault):
    source = SOURCE.replace(
        "_count(shares)", "_count(shares) + _second(total) + sum(shares) + total"
    )
    with pytest.raises(NoSuchPlace, match=fault):
        mutated(source, at, old, new)

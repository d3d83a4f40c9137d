"""`check` refuses what `fit` refuses of the shape of the data, before there are any."""

import pytest

from contracts.learners import METHODS, make
from messages import stating
from tacit.errors import InputError


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("n", "width", "named"),
    [(0, 3, "n=0"), (-1, 3, "n=-1"), (5, 0, "width=0"), (5, "3", "width='3'"), (True, 3, "n=True")],
)
def test_shapes_that_cannot_be_are_refused_in_one_line(method, n, width, named):
    with pytest.raises(InputError, match=stating(named, "whole number", "1")) as caught:
        make(method).check(n, width)
    assert "\n" not in str(caught.value)

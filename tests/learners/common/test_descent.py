import numpy as np
import pytest

from messages import stating
from tacit.errors import InputError
from tacit.learners.common.descent import descend


def test_a_descent_that_diverges_says_at_which_step_and_what_helps():
    with pytest.raises(InputError, match=stating("step 2 of 5", "diverged")):
        descend(lambda theta: 1e60 * theta, np.ones((2, 3)), rate=1.0, steps=5)

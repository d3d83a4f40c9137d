"""Randomized response by words: which of the 2^64 words give which output, one by one at every
boundary.
"""

import numpy as np
import pytest

from mechanisms.given_words import Words
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.randomized_response import WORDS, Responses, outside, words_of


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("label", range(7))
@pytest.mark.parametrize("prior", ["alone", "second"])
def test_as_many_words_as_stated_give_each_output(label, k, prior):
    """Words in a row give one output: its first and its last word do, and the rows are as long as
    `words_of` states.
    """
    order = np.array([4, 2, 6, 0, 1, 5, 3])
    own, other = words_of(1.0, k, 7)
    stated, each = (own, own[1]) if label in order[:k] else (other, outside(k))
    starts = sorted(
        {place * each for place in range(k + 1)} - {WORDS} | set(range(k * outside(k), WORDS))
    )
    ends = [start - 1 for start in starts[1:]] + [WORDS - 1]
    priors = {
        "alone": (order[None], [k], None),
        "second": (np.array([np.arange(7), order]), [1, k], [1]),
    }[prior]
    responses = Responses(1.0, priors[0], np.array(priors[1]))

    def respond(words):
        which = None if priors[2] is None else np.repeat(priors[2], len(words))
        return responses.sample(np.full(len(words), label), which, Words(words))

    outputs = respond(starts)
    assert np.array_equal(outputs, respond(ends))
    found = dict.fromkeys(order[:k].tolist(), 0)
    for start, end, output in zip(starts, ends, outputs.tolist(), strict=True):
        found[output] += end + 1 - start
    places = order[:k].tolist()
    if label in places:
        places.remove(label)
        places.insert(0, label)
    assert [found[place] for place in places] == stated


@pytest.mark.parametrize("k", [[5, 2], [2, 5], [5, 1]])
def test_every_label_is_answered_by_its_own_prior(k):
    """Outputs are among the first k of the prior's order, whatever the other priors are."""
    orders = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    labels, which = np.tile(np.arange(5), 2000), np.repeat([0, 1], 5000)
    found = Responses(1.0, orders, np.array(k)).sample(labels, which, ResearchNoise(0))
    for prior in (0, 1):
        assert set(found[which == prior]) == set(orders[prior][: k[prior]])

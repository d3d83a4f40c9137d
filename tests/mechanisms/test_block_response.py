"""Answers with blocks by words: which of the 2^64 words give which block, one by one at every
boundary.
"""

import numpy as np
import pytest

from mechanisms.given_words import Words
from tacit.mechanisms import block_response
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.randomized_response import WORDS, inside, words_of
from tacit.privacy.events import RandomizedResponse

BLOCKS = np.array([[0, 1, 1, 0, 1], [2, 1, 0, 0, 2], [0, 1, 2, 3, 4]], dtype=np.uint8)
COUNTS = np.array([2, 3, 5])


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("label", range(5))
@pytest.mark.parametrize("partition", range(3))
def test_as_many_words_as_stated_give_each_block(partition, label, alone):
    g, own = int(COUNTS[partition]), int(BLOCKS[partition, label])
    part = slice(partition, partition + 1) if alone else slice(None)
    responses = block_response.BlockResponses(1.0, BLOCKS[part], COUNTS[part])

    def answer(words):
        which = None if alone else np.full(len(words), partition)
        return responses.sample(np.full(len(words), label), which, Words(words))

    m = inside(1.0, g)
    starts = [place * m for place in range(g + 1)]
    ends = [start - 1 for start in starts[1:]] + [WORDS - 1]
    answers = answer(starts)
    assert np.array_equal(answers, answer(ends))
    found = dict.fromkeys(range(g), 0)
    for start, end, block in zip(starts, ends, answers.tolist(), strict=True):
        found[block] += end + 1 - start
    stated, _ = words_of(1.0, g, g)
    assert found == {block: stated[0] if block == own else stated[1] for block in range(g)}


def test_the_event_has_the_smallest_number_of_blocks():
    assert block_response.event(0.5, COUNTS) == RandomizedResponse(0.5, 2)
    assert block_response.event(0.5, COUNTS[1:]) == RandomizedResponse(0.5, 3)
    assert block_response.event(0.5, np.array([1])) == RandomizedResponse(0.5, 2)  # a single class


def test_every_label_is_answered_by_its_own_partition():
    labels, which = np.tile(np.arange(5), 3000), np.repeat(np.arange(3), 5000)
    answers = block_response.BlockResponses(12.0, BLOCKS, COUNTS).sample(
        labels, which, ResearchNoise(0)
    )
    assert np.mean(answers == BLOCKS[which, labels]) > 0.999


@pytest.mark.parametrize("label", [-1, 5])
def test_a_label_that_is_no_class_is_refused(label):
    with pytest.raises(IndexError):
        block_response.BlockResponses(1.0, BLOCKS, COUNTS).sample(
            np.array([label]), np.array([0]), ResearchNoise(0)
        )

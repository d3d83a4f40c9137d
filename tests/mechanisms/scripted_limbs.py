"""Limbs that are scripted, so that all courses of a sampler can be enumerated with their
probabilities, and seeded streams.
"""

import heapq
import subprocess
import sys
from fractions import Fraction

import numpy as np

from tacit.mechanisms.expansions import Expansion
from tacit.mechanisms.limbs import Limbs


class MoreNeeded(Exception):
    """A sampler asks for a choice that the script does not have: its values and probabilities."""

    def __init__(self, options):
        self.options = options


class Rejected(Exception):
    """A round of a sampler ends without a result."""


class Script:
    """A stream whose limbs, and coins of known probability, are those of a script."""

    def __init__(self, choices=(), width=4):
        self.width = width
        self.choices = choices
        self.position = 0
        self.tails = 0

    def read(self):
        chance = Fraction(1, 1 << self.width)
        return self.choose([(limb, chance) for limb in range(1 << self.width)])

    def flip(self, probability):
        """A coin of this probability, in place of a part that is enumerated on its own."""
        return self.choose([(True, probability), (False, 1 - probability)])

    def choose(self, options):
        if self.position == len(self.choices):
            raise MoreNeeded(options)
        self.position += 1
        return self.choices[self.position - 1]


def enumerated(sampler, remainder=Fraction(1, 10**6), width=4):
    """Lower bounds of the probability of each outcome of `sampler(script)`, which together lack at
    most `remainder`.
    """
    bounds = {}
    undecided = Fraction(1)
    courses = [(-1.0, 0, (), Fraction(1))]
    n = 0
    while undecided > remainder:
        _, _, choices, mass = heapq.heappop(courses)
        try:
            outcome = sampler(Script(choices, width))
        except Rejected:
            undecided -= mass
        except MoreNeeded as needed:
            for value, chance in needed.options:
                if chance:
                    n += 1
                    share = mass * chance
                    heapq.heappush(courses, (-float(share), n, (*choices, value), share))
        else:
            bounds[outcome] = bounds.get(outcome, 0) + mass
            undecided -= mass
    return bounds


class Fixed(Expansion):
    """The number of these limbs; all others are 0."""

    def __init__(self, limbs, width=4):
        self._limbs = [*limbs, *[0] * 40]
        self.value = Fraction(
            int("".join(f"{limb:0{width}b}" for limb in limbs), 2), 1 << (width * len(limbs))
        )


def block(limbs):
    """Limbs as compiled loops read them; other types would be compiled anew."""
    limbs = np.array(limbs, dtype=np.uint16)
    limbs.setflags(write=False)
    return limbs


def seeded(seed, width=4, n=64):
    """A stream of pseudorandom limbs."""
    generator = np.random.default_rng(seed)

    def source(size):
        return block(generator.integers(0, 1 << width, size))

    return Limbs(n, width, source)


def in_new_process(module, code):
    """Bytes that code with a module of mechanisms prints as hexadecimal digits."""
    lines = f"import numpy as np\nfrom tacit.mechanisms import {module}\n{code}"
    run = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    return bytes.fromhex(run.stdout)

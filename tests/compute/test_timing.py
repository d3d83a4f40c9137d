"""Phases: collected by name where somebody listens, each second once."""

import time

from tacit.compute.timing import phase, timing


@phase("inner")
def inner():
    time.sleep(0.01)


def test_seconds_add_up_by_name_and_a_phase_within_another_is_part_of_it():
    started = time.perf_counter()
    with timing() as seconds:
        inner()
        inner()
        with phase("outer"):
            inner()
    whole = time.perf_counter() - started
    assert list(seconds) == ["inner", "outer"]
    assert seconds["inner"] >= 0.02
    assert seconds["outer"] >= 0.01
    assert sum(seconds.values()) <= whole


def test_nothing_is_collected_outside():
    inner()
    with timing() as seconds:
        pass
    inner()
    assert seconds == {}


def test_a_phase_that_fails_is_timed_and_the_next_one_too():
    with timing() as seconds:
        try:
            with phase("failing"):
                raise ValueError
        except ValueError:
            inner()
    assert list(seconds) == ["failing", "inner"]

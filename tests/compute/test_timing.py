"""Phases: collected by name where somebody listens, each second once."""

import pytest

from tacit.compute import timing as module
from tacit.compute.timing import phase, timing


class Clock:
    """Stands in for the module `time`; `inner` moves it."""

    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(module, "time", Clock())


@phase("inner")
def inner():
    module.time.now += 0.25


def test_seconds_add_up_by_name_and_a_phase_within_another_is_part_of_it():
    with timing() as seconds:
        inner()
        inner()
        with phase("outer"):
            inner()
            module.time.now += 1
    assert seconds == {"inner": 0.5, "outer": 1.25}
    assert list(seconds) == ["inner", "outer"]


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
    assert seconds == {"failing": 0.0, "inner": 0.25}
    assert list(seconds) == ["failing", "inner"]

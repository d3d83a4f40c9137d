"""Work in threads: order, faults, interrupts, and how many there are."""

import threading

import pytest

from tacit.compute import threads
from tacit.compute.engines.workers import one_thread_each
from tacit.compute.threads import in_threads, thread_count


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_order_and_items_are_taken_as_needed(count, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    taken = []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    found = in_threads(lambda item: (item, threading.get_ident()), items())
    assert next(found)[0] == 0
    assert len(taken) <= 2 * threads.AHEAD * count
    rest = list(found)
    assert [item for item, _ in rest] == list(range(1, 100))
    assert len({thread for _, thread in rest}) <= count


@pytest.mark.parametrize("count", [1, 3])
def test_a_fault_is_raised_where_results_are_asked_for(count, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    found = in_threads(lambda item: 1 // item, [2, 1, 0, 5])
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_limits_that_overlap_are_taken_back_when_the_last_ends():
    import numpy as np  # loads a BLAS  # noqa: F401
    import torch
    from threadpoolctl import threadpool_info, threadpool_limits

    def now():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threadpool_limits(2, user_api="blas"):
            first, second = one_thread_each(), one_thread_each()
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            assert now() == {1}
            second.__exit__(None, None, None)
            assert now() == {2}
    finally:
        torch.set_num_threads(before)


def test_torch_has_its_threads_back_in_threads_that_start_later(monkeypatch):
    import torch

    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert set(in_threads(lambda item: torch.get_num_threads(), range(10))) == {1}
        found = []
        later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert (found, torch.get_num_threads()) == ([3], 3)
    finally:
        torch.set_num_threads(before)


def test_the_environment_limits_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert thread_count() >= 1

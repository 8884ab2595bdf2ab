"""The figures of an extension's calls, in virtual time."""

from __future__ import annotations

import tracemalloc

import pytest

from becket.host.metrics import WINDOW, ExtensionMetrics, MetricsRecorder


def meter_of(*calls: tuple[float, float]) -> MetricsRecorder:
    meter = MetricsRecorder()
    for began, ended in calls:
        meter.record(began, ended, failed=False)
    return meter


def test_without_calls_there_are_no_figures() -> None:
    assert MetricsRecorder().snapshot(100.0) == ExtensionMetrics()


def test_calls_and_failures_are_counted_for_all_time() -> None:
    meter = MetricsRecorder()
    for second in range(100):
        meter.record(second, second + 0.5, failed=second % 4 == 0)

    figures = meter.snapshot(1_000.0)

    assert (figures.calls, figures.failures) == (100, 25)


def test_the_rate_is_that_of_the_window() -> None:
    meter = meter_of(*[(n / 20, n / 20) for n in range(20 * 100)])

    assert meter.snapshot(100.0).per_second == pytest.approx(20, abs=1)


def test_shortly_after_the_first_call_the_rate_is_that_of_the_time_since() -> None:
    assert meter_of(*[(5.0, 5.0)] * 8).snapshot(7.0).per_second == 4
    assert meter_of(*[(5.0, 5.0)] * 8).snapshot(5.0).per_second == 8


def test_calls_that_have_left_the_window_count_for_no_rate_and_no_latency() -> None:
    figures = meter_of((0.0, 1.0), (0.0, 2.0)).snapshot(2.0 + WINDOW + 0.1)

    assert figures == ExtensionMetrics(2, 0)


def test_latencies_are_the_median_and_the_95th_of_a_hundred() -> None:
    figures = meter_of(*[(10.0 - n / 1000, 10.0) for n in range(1, 101)]).snapshot(10.0)

    assert figures.latency_p50 == pytest.approx(0.051)
    assert figures.latency_p95 == pytest.approx(0.096)


def test_memory_does_not_grow_with_the_number_of_calls() -> None:
    meter = meter_of(*[(n / 100, n / 100) for n in range(100 * 20)])
    tracemalloc.start()
    try:
        for n in range(100 * 20, 100 * 500):
            meter.record(n / 100, n / 100, failed=False)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert grown < 64 * 1024


def test_calls_to_the_host_are_shown_with_their_rate_since_earlier_readings() -> None:
    meter = MetricsRecorder()

    assert meter.snapshot(100.0, 50) == ExtensionMetrics(inbound_calls=50)
    assert meter.snapshot(100.1, 52).inbound_per_second == 2  # the first second counts as a whole one
    assert meter.snapshot(104.0, 90).inbound_per_second == 10
    assert meter.snapshot(108.0, 90).inbound_per_second == 5


def test_readings_older_than_the_window_do_not_count() -> None:
    meter = MetricsRecorder()
    meter.snapshot(0.0, 0)
    meter.snapshot(95.0, 1_000)

    assert meter.snapshot(100.0, 1_050).inbound_per_second == 10
    assert meter.snapshot(200.0, 1_050).inbound_per_second == 0


def test_frequent_snapshots_need_no_more_memory_and_have_the_same_rate() -> None:
    meter = MetricsRecorder()

    rates = {meter.snapshot(n / 1000, n // 10).inbound_per_second for n in range(100_000)}

    assert max(rates) == pytest.approx(100, abs=2)

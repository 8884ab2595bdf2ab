"""The report of pytest is read, a run without one counts as a failure, and rounds of several runs add up."""

from __future__ import annotations

import pytest
from tests.proofs.load import count_rounds, read_report

FAILURES = """
FAILED tests/host/test_a.py::test_one[asyncio] - TimeoutError
ERROR tests/host/test_b.py::test_two
1 failed, 2628 passed, 3 skipped, 1 error in 512.20s (0:08:32)
"""


@pytest.mark.parametrize(
    ("text", "passed", "failed"),
    [
        ("2630 passed, 12 skipped in 300.11s (0:05:00)", 2630, ()),
        (FAILURES, 2628, ("tests/host/test_a.py::test_one[asyncio]", "tests/host/test_b.py::test_two")),
        ("INTERNALERROR> Traceback", 0, ("pytest itself",)),
    ],
)
def test_a_report_gives_passed_and_failed_tests(text: str, passed: int, failed: tuple[str, ...]) -> None:
    assert read_report(text) == (passed, failed)


def test_only_rounds_without_a_failure_and_with_enough_load_count() -> None:
    rows = [
        "| 2026-11-16 | 4 | 10,520 | 0 | 9.1 |",
        "| 2026-11-17 | 8 | 21,039 | 1 | 9.4 |",
        "| 2026-11-18 | 16 | 42,080 | 0 | 3.0 |",
        "| 2026-11-19 | 5 | 13,150 | 0 | 8.0 |",
    ]

    assert count_rounds(rows) == 9

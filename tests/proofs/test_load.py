"""The report of pytest is read, and a run that never reported counts as a failure."""

from __future__ import annotations

import pytest
from tests.proofs.load import read_report

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

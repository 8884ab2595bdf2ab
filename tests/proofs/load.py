"""Runs the tests that start child processes again and again on a machine that is far too busy, and counts failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import mean

from msgspec import Struct
from tests.proofs.proof import Proof

__all__ = ["Round", "prove_tests_hold_under_load", "read_report"]

BUSY = 8  # processes that want a core, for each core
SPINNERS = 2  # of them, for each core, that never wait; the others are workers of pytest
SAMPLE = 5.0  # seconds between two looks at the load
ROOT = Path(__file__).parents[2]
SPIN = [sys.executable, "-c", "while True: pass"]
TESTS = [sys.executable, "-X", "warn_default_encoding", "-m", "pytest", "-q", "-m", "process", "-p", "no:cacheprovider"]


class Round(Struct, frozen=True):
    """What came of all tests run once: how many passed, which failed, and the mean load meanwhile."""

    passed: int
    failed: tuple[str, ...]
    load: float


def prove_tests_hold_under_load(rounds: int) -> Proof:
    """Returns a table with a row for each round, and which tests failed."""
    cores = len(os.sched_getaffinity(0))
    spinners = [subprocess.Popen(SPIN) for _ in range(SPINNERS * cores)]
    try:
        ran = [run_tests((BUSY - SPINNERS) * cores * 2) for _ in range(rounds)]
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    failures = Counter(name for one in ran for name in one.failed)
    rows = [f"| {n} | {one.passed:,} | {len(one.failed)} | {one.load / cores:.1f} |" for n, one in enumerate(ran, 1)]
    lines = [
        "The tests that start child processes, on a machine that is far too busy: at least",
        f"{BUSY} processes want each of its {cores} cores (mean of the load average). Nothing may fail.",
        "",
        "| round | passed | failed | processes that want each core |",
        "|--:|--:|--:|--:|",
        *rows,
        *(["", *(f"- `{name}` failed {count} times" for name, count in failures.items())] if failures else []),
    ]
    return Proof(lines, holds=not failures and all(one.load >= BUSY * cores for one in ran))


def run_tests(workers: int) -> Round:
    """Runs the tests once with so many workers: half of the time one of them waits for a child process."""
    load: list[float] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [*TESTS, "-n", str(workers), "--dist", "worksteal"]
        tests = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while tests.poll() is None:
            time.sleep(SAMPLE)
            load.append(float(Path("/proc/loadavg").read_text(encoding="ascii").split()[0]))
        output.seek(0)
        passed, failed = read_report(output.read())
    print(f"{passed} passed, {len(failed)} failed at a load of {mean(load):.1f}: {' '.join(failed)}", flush=True)
    return Round(passed, failed, mean(load))


def read_report(text: str) -> tuple[int, tuple[str, ...]]:
    """Returns how many tests passed, and the names of those that failed; a run without a summary is a failure."""
    summary = re.search(r"(\d+) passed.* in [\d.]+s", text)
    failed = tuple(re.findall(r"^(?:FAILED|ERROR) (\S+)", text, flags=re.MULTILINE))
    return (int(summary[1]), failed) if summary else (0, failed or ("pytest itself",))

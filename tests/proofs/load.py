"""Runs the tests that start child processes again and again on a machine that is far too busy, and counts failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

from tests.proofs.proof import Proof

__all__ = ["count_rounds", "prove_tests_hold_under_load", "read_report"]

ROUNDS = 20  # in all, without a failure
BUSY = 8  # processes that want a core, for each core
SPINNERS = 1  # for each core, that never wait
SAMPLE = 5.0  # seconds between two looks at the load
ROOT = Path(__file__).parents[2]
SPIN = [sys.executable, "-c", "while True: pass"]
TESTS = [sys.executable, "-X", "warn_default_encoding", "-m", "pytest", "-q", "-m", "process", "-p", "no:cacheprovider"]
REPEAT = ["-p", "tests.proofs.repeat", "--rounds"]
TABLE = ["| measured | rounds | passed | failed | processes that want each core |", "|---|--:|--:|--:|--:|"]


def prove_tests_hold_under_load(rounds: int, earlier: str) -> Proof:
    """Adds a row to the table, and returns it with the tests that failed."""
    cores = len(os.sched_getaffinity(0))
    spinners = [subprocess.Popen(SPIN) for _ in range(SPINNERS * cores)]
    try:
        passed, failed, load = run_tests(rounds, workers=BUSY * cores)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    row = f"| {datetime.now(UTC):%Y-%m-%d} | {rounds} | {passed:,} | {len(failed)} | {load / cores:.1f} |"
    rows = [*re.findall(r"^\| 2.*$", earlier, flags=re.MULTILINE), row]
    lines = [
        f"The tests that start child processes, on a machine that is far too busy: at least {BUSY} processes want each",
        f"of its {cores} cores (mean of the load average). In {ROUNDS} rounds nothing may fail.",
        "",
        *TABLE,
        *rows,
        *(["", *(f"- `{name}` failed {count} times" for name, count in Counter(failed).items())] if failed else []),
    ]
    return Proof(lines, holds=count_rounds(rows) >= ROUNDS and not failed)


def count_rounds(rows: list[str]) -> int:
    """Returns how many rounds had no failure and enough load, of all rows of the table."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return sum(int(rounds) for _, rounds, _, failed, load in cells if failed == "0" and float(load) >= BUSY)


def run_tests(rounds: int, workers: int) -> tuple[int, tuple[str, ...], float]:
    """Runs the tests so often, and returns how many passed, which failed, and the mean load meanwhile."""
    load: list[float] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [*TESTS, *REPEAT, str(rounds), "-n", str(workers), "--dist", "worksteal"]
        tests = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while tests.poll() is None:
            time.sleep(SAMPLE)
            load.append(float(Path("/proc/loadavg").read_text(encoding="ascii").split()[0]))
        output.seek(0)
        text = output.read()
    print(text, flush=True)
    return (*read_report(text), mean(load))


def read_report(text: str) -> tuple[int, tuple[str, ...]]:
    """Returns how many tests passed, and the names of those that failed; a run without a summary is a failure."""
    summary = re.search(r"(\d+) passed.* in [\d.]+s", text)
    failed = tuple(re.findall(r"^(?:FAILED|ERROR) (\S+)", text, flags=re.MULTILINE))
    return (int(summary[1]), failed) if summary else (0, failed or ("pytest itself",))

"""Where things are and where they run: interpreters, folders, and the core that a process is pinned to."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

__all__ = [
    "ENTRANTS",
    "ENVIRONMENT",
    "NODE_MODULES",
    "RESULTS",
    "ROOT",
    "environment",
    "interpreter",
    "pin_to_core",
    "spare_cores",
    "take_snapshot",
]

ROOT = Path(__file__).resolve().parent.parent
ENTRANTS = ROOT / "benchmarks" / "entrants"
ENVIRONMENT = ROOT / ".venv-bench"
RESULTS = ROOT / "benchmarks" / "results"
SNAPSHOT = RESULTS / "src"
NODE_MODULES = ROOT / "benchmarks" / "node" / "node_modules"


def interpreter() -> str:
    """Returns the Python of the benchmarks' own environment, or this one where there is none."""
    own = ENVIRONMENT / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def take_snapshot() -> None:
    """Copies becket as it is now: a run takes long, and its rounds must not measure what is being edited meanwhile."""
    shutil.rmtree(SNAPSHOT, ignore_errors=True)
    shutil.copytree(ROOT / "src", SNAPSHOT, ignore=shutil.ignore_patterns("__pycache__"))


def environment() -> dict[str, str]:
    """Returns the variables that hosts run with. Byte code is cached: compiling is no part of a start."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SNAPSHOT)])
    variables["NODE_PATH"] = str(NODE_MODULES)
    return variables


def spare_cores() -> tuple[int, int] | None:
    """Returns a core for the host and one for the child; None where a process cannot be pinned."""
    if not hasattr(os, "sched_getaffinity") or shutil.which("taskset") is None:
        return None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[-2], cores[-1]) if len(cores) > 1 else None


def pin_to_core(command: list[str], core: int | None, nice: int = 0) -> list[str]:
    """Returns the command on that core and at that priority.

    Done by the command itself and not by its parent, so that it holds for every library's way of starting a
    child. Linux weighs whole sessions against each other, so that a session's priority is what counts; some libraries
    put a child into a session of its own.
    """
    pinned = command if core is None else ["taskset", "-c", str(core), *command]
    if nice == 0:
        return pinned
    return ["sh", "-c", f'echo {nice} > /proc/self/autogroup; exec "$@"', "sh", *pinned]

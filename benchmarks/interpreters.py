"""Chooses the Python that the entrants run on: a build with profile-guided optimisation where the PATH has one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Interpreter", "choose_interpreter", "inspect_interpreter"]

NAMES = ("python3.11", "python3.12", "python3.13", "python3.14", "python3")
OLDEST = (3, 11)
# Debian builds the Python of the system with it, and leaves the option out of what the build records.
PROBE = """
import ensurepip, json, platform, sys, sysconfig, venv
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
print(json.dumps({
    "path": sys.executable,
    "version": platform.python_version(),
    "is_optimised": "--enable-optimizations" in options or sys.base_prefix == "/usr",
}))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: str
    is_optimised: bool

    def __str__(self) -> str:
        return f"{self.version} ({'' if self.is_optimised else 'not '}an optimised build)"


def choose_interpreter() -> Interpreter:
    """Returns the first optimised one on the PATH, else the first one there, else this one."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [Path(folder, name) for name in NAMES for folder in folders]
    found = [one for path in paths if path.is_file() and (one := inspect_interpreter(str(path)))]
    usable = [one for one in found if tuple(map(int, one.version.split(".")[:2])) >= OLDEST]
    optimised = [one for one in usable if one.is_optimised]
    return [*optimised, *usable, Interpreter(sys.executable, platform.python_version(), is_optimised=False)][0]


def inspect_interpreter(path: str) -> Interpreter | None:
    """Returns the description of a Python; None where it does not start, or cannot make environments."""
    try:
        run = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=True, timeout=30)
        return Interpreter(**json.loads(run.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None

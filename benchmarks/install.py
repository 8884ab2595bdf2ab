"""Installs what the entrants need: a virtual environment of their own, and the packages of Node."""

from __future__ import annotations

import shutil
import subprocess

from benchmarks.interpreters import choose_interpreter, inspect_interpreter
from benchmarks.paths import ENVIRONMENT, NODE_MODULES, ROOT
from benchmarks.run import say

__all__ = ["install"]


def install(python: str | None = None) -> None:
    """Makes or updates both, with `python` or an optimised one. Node's are left out where there is no npm.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
    """
    if not ENVIRONMENT.exists():
        chosen = choose_interpreter() if python is None else inspect_interpreter(python)
        if chosen is None:
            raise SystemExit(f"{python} does not start, or has no `venv`: give another one with `--python`")
        say(f"environment of the entrants: Python {chosen}")
        subprocess.run([chosen.path, "-m", "venv", ENVIRONMENT], check=True)
    install_packages = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    requirements = ROOT / "benchmarks" / "requirements.txt"
    subprocess.run([*install_packages, "-e", f"{ROOT}[trio,uvloop]", "-r", requirements], check=True)
    npm = shutil.which("npm")
    if npm is None:
        say("there is no `npm`: the entrants of Node that need packages will be skipped")
    else:
        subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"],
            cwd=NODE_MODULES.parent,
            check=True,
        )

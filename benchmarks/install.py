"""Installs what the entrants need: a virtual environment of their own, and the packages of Node."""

from __future__ import annotations

import shutil
import subprocess
import venv

from benchmarks.places import ENVIRONMENT, NODE_MODULES, ROOT
from benchmarks.run import say

__all__ = ["install"]


def install() -> None:
    """Makes or updates both. Node's are left out, with a word, where there is no npm.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
    """
    if not ENVIRONMENT.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    requirements = ROOT / "benchmarks" / "requirements.txt"
    subprocess.run([ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "-q", "-r", requirements], check=True)
    npm = shutil.which("npm")
    if npm is None:
        say("there is no `npm`: the entrants of Node that need packages will be skipped")
    else:
        subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"],
            cwd=NODE_MODULES.parent,
            check=True,
        )

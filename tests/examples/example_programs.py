"""Runs an example as its reader would: in a process of its own, from another folder, in bounded time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Unpack

from becket.host.starting.becket_toml import load_manifest
from becket.host.starting.connect import ExtensionConnector, ExtensionOptions, connect_extension
from becket.host.starting.manifest import Manifest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXTENSIONS = EXAMPLES / "extensions"
PATIENCE = 100  # seconds


def run_example(name: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Returns how the example ended and what it printed. Nothing on stderr is part of any example."""
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | variables
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def printed_by(name: str, *arguments: str, folder: Path) -> list[str]:
    """Returns the lines of an example that succeeds."""
    done = run_example(name, *arguments, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# -- extensions


def manifest_of(name: str) -> Manifest:
    """Returns the manifest of an extension."""
    return load_manifest(EXTENSIONS / name / "becket.toml")


def started(name: str, **options: Unpack[ExtensionOptions]) -> ExtensionConnector:
    """Starts an extension as its manifest defines, in its folder, with all requested permissions and this Python."""
    manifest = manifest_of(name)
    program, *arguments = manifest.command
    command = [sys.executable if program == "python3" else program, *arguments]
    requested: ExtensionOptions = {"root": EXTENSIONS / name, "grants": manifest.permissions}
    return connect_extension(command, id=manifest.id, **{**requested, **options})

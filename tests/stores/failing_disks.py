"""Programs on disks that are full or fail, really: a small file system of their own, system calls that go wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("programs")
MOUNT = 'mount -t tmpfs -o size=$0 tmpfs "$1" && shift && exec "$@"'


def run_on_small_disk(program: str, folder: Path, size: str) -> Any:
    """Returns the output of a program that has `folder` as a private disk of this size."""
    return run([*with_small_disk(folder, size), sys.executable, str(PROGRAMS / program), str(folder)])


def with_small_disk(folder: Path, size: str) -> list[str]:
    """Returns the prefix of a command that has `folder` as a private disk of this size."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    command = [*unshare, "sh", "-c", MOUNT, size, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False, stderr=-3).returncode != 0:
        pytest.skip("no small disk can be had here: it takes `unshare` and a mount")
    return command


def run_with_failing_syncs(program: str, which: str, *arguments: object) -> Any:
    """Returns the output of a program, some of whose syncs fail: `3` for the third of each thread, `3+` from it on."""
    inject = f"inject=fdatasync,fsync:error=EIO:when={which}"
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync,fsync", "-e", inject]
    if shutil.which("strace") is None or subprocess.run([*command, "true"], check=False, stderr=-3).returncode != 0:
        pytest.skip("no sync can be made to fail here: it takes `strace`")
    return run([*command, sys.executable, str(PROGRAMS / program), *map(str, arguments)])


def run(command: list[str]) -> Any:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == 0
    return json.loads(done.stdout)

"""A full disk is reported in one line, with the file and what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.commands import BECKET, PATIENCE, write_extension
from tests.stores.failing_disks import with_small_disk

from becket.cli.support.exit_codes import ExitCode

pytestmark = pytest.mark.process

FILL = 'dd if=/dev/zero of="$0/fill" bs=1k 2>/dev/null; exec "$@"'


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["run", "root", "--once", "--yes", "--data", "disk/data"], "disk/data/store.sqlite"),
        (["call", "quiet", "info.get", "--root", "root", "--yes", "--data", "disk/data"], "disk/data/store.sqlite"),
        (["config", "set", "quiet", "pace", "1", "--data", "disk/data"], "disk/data/store.sqlite"),
        (["grant", "quiet", "--root", "root", "--yes", "--data", "disk/data"], "disk/data/grants.toml"),
        (["new", "disk/notes"], "disk/notes/becket.toml"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_full_disk_is_one_line_with_the_file_and_what_to_do(tmp_path: Path, words: list[str], file: str) -> None:
    write_extension(tmp_path / "root", "quiet", "")
    disk = tmp_path / "disk"
    disk.mkdir()

    done = subprocess.run(
        [*with_small_disk(disk, "64k"), "sh", "-c", FILL, str(disk), *BECKET, *words],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == ExitCode.FILES
    (line,) = done.stderr.splitlines()
    assert file in line
    assert "the disk is full" in line
    assert "free space" in line


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is full")
def test_output_to_a_full_disk_is_one_line(tmp_path: Path) -> None:
    write_extension(tmp_path, "quiet", "")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*BECKET, "list", ".", "--no-data"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    assert done.returncode == ExitCode.FILES
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: stdout: the disk is full")

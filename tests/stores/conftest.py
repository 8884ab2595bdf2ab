"""Folders in which stores are tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

MEMORY = "/dev/shm"  # a file system like any other, on which a sync costs nothing


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, on a quick file system where there is one."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as path:
        yield Path(path)

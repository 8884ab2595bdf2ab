"""Folders of extensions for tests, and a user without permission to read one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


def write_extension(folder: Path, id: str, more: str = "", *, files: dict[str, str] | None = None) -> Path:
    """Makes an extension with a short manifest and returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = f'id = "{id}"\nversion = "1.0.0"\ncommand = ["python3", "main.py"]\n{more}'
    (folder / "becket.toml").write_text(manifest, encoding="utf-8")
    for name, text in ({"main.py": "print()\n"} | (files or {})).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@contextmanager
def open_folder() -> Iterator[Path]:
    """Gives a folder that every user may read: those of pytest are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Runs a block as a user to whom modes apply; all but root are such."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)

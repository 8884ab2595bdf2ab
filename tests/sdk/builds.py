"""Whether a program of a kit is built of the sources as they are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_current"]


def is_current(program: Path, *sources: Path) -> bool:
    """Returns whether a program is there and no file in these folders is newer."""
    files = [file for folder in sources for file in folder.rglob("*") if file.is_file()]
    return program.exists() and program.stat().st_mtime >= max(file.stat().st_mtime for file in files)

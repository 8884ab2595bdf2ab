"""Writes the results as one HTML page without references to other files.

All text goes into one JSON element, which the page's own script shows as text: nothing that a program sent becomes
markup or code. The page has at most 500 KB; long texts of the conversations are truncated until it fits.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import msgspec

from becket import __version__
from becket._text import truncate
from becket.conformance.report import Run, count_verdicts
from becket.conformance.runner import CaseResult

__all__ = ["build_page", "write_page"]

TEMPLATE: Final = Path(__file__).with_name("report_page.html")
PLACEHOLDER: Final = "$DATA$"
MAX_BYTES: Final = 500_000
SIZES: Final = ((1_000, 60), (400, 40), (200, 24), (100, 16), (60, 8))
"""Characters of one entry and entries of one conversation, from the most detailed page to the shortest."""


def write_page(path: Path, run: Run) -> None:
    """Writes the page to a file.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(build_page(run), encoding="utf-8")


def build_page(run: Run) -> str:
    """Returns the page, of at most 500 KB."""
    template = TEMPLATE.read_text(encoding="utf-8")
    for length, entries in SIZES:
        page = template.replace(PLACEHOLDER, encode_data(run, length, entries))
        if len(page.encode()) <= MAX_BYTES:
            return page
    return template.replace(PLACEHOLDER, encode_data(run, 0, 0))


def encode_data(run: Run, length: int, entries: int) -> str:
    """Returns the results as JSON that is safe inside a script element: it has no `<`, `>` and `&`."""
    data: dict[str, Any] = {
        "dialect": run.dialect,
        "role": run.role,
        "command": shlex.join(run.command),
        "version": __version__,
        "counts": count_verdicts(run.results),
        "cases": [to_row(result, length, entries) for result in run.results],
    }
    text = msgspec.json.encode(data).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def to_row(result: CaseResult, length: int, entries: int) -> dict[str, Any]:
    case = result.case
    shown = result.conversation[:entries]
    return {
        "id": case.id,
        "title": case.title,
        "clause": case.clause,
        "family": case.family,
        "verdict": result.verdict,
        "reason": truncate(result.reason, 600),
        "seconds": result.seconds,
        "script": case.script.strip(),
        "conversation": [[entry.at, entry.sender, truncate(entry.text, length)] for entry in shown],
        "dropped": len(result.conversation) - len(shown),
    }

"""Checks a commit message: `component: imperative summary`, at most 72 characters, and a body that says why.

`python -m tools.commit_message FILE` prints one line for each problem; the hook `commit-msg` of pre-commit runs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["message_problems"]

MAX_SUMMARY = 72  # what `git log --oneline` shows on a terminal of 80 columns
SUMMARY = re.compile(r"[a-z][a-z0-9_-]*: \S.*")
WRITTEN_BY_GIT = ("Merge ", "fixup! ", "squash! ", "amend! ")
SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)  # `git commit --verbose` has the diff below


def message_problems(message: str) -> Iterator[str]:
    """Yields what is wrong with a message. Comments are not part of it, and messages that git writes are accepted."""
    lines = [line for line in SCISSORS.sub("", message).splitlines() if not line.startswith("#")]
    summary, *rest = "\n".join(lines).strip().split("\n")
    if summary.startswith(WRITTEN_BY_GIT):
        return
    if not SUMMARY.fullmatch(summary):
        yield f"the first line must be `component: summary`, with one word before the colon: {summary!r}"
    if len(summary) > MAX_SUMMARY:
        yield f"the first line has {len(summary)} characters, and may have {MAX_SUMMARY}"
    if rest and rest[0].strip():
        yield "the second line must be empty"
    if not any(line.strip() for line in rest):
        yield "there is no body: say below an empty line why the change is made"


def main(file: str) -> int:
    """Prints the problems of the message in a file, and returns the exit code."""
    problems = [f"commit message: {problem}" for problem in message_problems(Path(file).read_text(encoding="utf-8"))]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

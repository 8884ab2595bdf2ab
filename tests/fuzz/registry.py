"""All targets of the fuzzer, in the order in which they run. A new one is a list of its own file, added here."""

from __future__ import annotations

from tests.fuzz import foreign_files, framings, messages, written_files
from tests.fuzz.target import Target

TARGETS: list[Target] = [
    *framings.TARGETS,
    *messages.TARGETS,
    *written_files.TARGETS,
    *foreign_files.TARGETS,
]

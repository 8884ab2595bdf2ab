"""What is wrong with an extension, as data: which one, where, why, and what to do about it.

Problems that an operator can mend are gathered in reports, so that one bad extension never stops the others and all
of them are seen at once. What a caller must handle is an exception; see `becket.errors`.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

__all__ = ["Diagnostic", "Severity"]


class Severity(StrEnum):
    """How much a diagnostic matters."""

    ERROR = "error"  # the extension does not run
    WARNING = "warning"  # it runs, or another takes its place; somebody should look
    NOTE = "note"  # as it was asked for


class Diagnostic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem. `extension` is its id where that is known; `path` is the file or the folder that is meant."""

    problem: str
    extension: str | None = None
    path: str | None = None
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """Returns one line: what happened, to what, and what to do."""
        where = ": ".join(part for part in (self.extension, self.path) if part)
        said = f"{where}: {self.problem}" if where else self.problem
        return f"{said} ({self.hint})" if self.hint else said

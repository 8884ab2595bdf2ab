"""`Diagnostic`: one problem for the operator, with extension, path, severity and hint.

Problems that an operator can fix are collected in reports, so that one bad extension never stops the others and all
problems are seen at once. Errors for callers are exceptions; see `becket.errors`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

__all__ = ["REFUSAL_SEVERITIES", "Diagnostic", "ProblemCode", "Severity", "without_id"]


class Severity(StrEnum):
    """How much a diagnostic matters."""

    ERROR = "error"  # the extension does not run
    WAITING = "waiting"  # it starts once the user has consented
    WARNING = "warning"  # it runs, or another one is used instead; the operator should check
    NOTE = "note"  # as configured


class ProblemCode(StrEnum):
    """The kind of problem, for programs. Codes are added, and keep their meaning."""

    OTHER = "other"
    # files and folders
    ROOT_MISSING = "root_missing"
    FOLDER_UNREADABLE = "folder_unreadable"
    LINK_NOT_FOLLOWED = "link_not_followed"
    MANIFEST_INVALID = "manifest_invalid"
    CONFIG_FILE_INVALID = "config_file_invalid"
    # which extensions there are
    ID_INVALID = "id_invalid"
    ID_TAKEN = "id_taken"
    ID_MISMATCH = "id_mismatch"
    NESTED = "nested"
    NOT_EXECUTABLE = "not_executable"
    NOT_SUPPORTED = "not_supported"
    NOT_FOUND = "not_found"
    NOT_ALLOWED = "not_allowed"
    DISABLED = "disabled"
    # whether one may start
    CONSENT_MISSING = "consent_missing"
    CONSENT_REFUSED = "consent_refused"
    PERMISSION_UNDECIDED = "permission_undecided"
    PERMISSION_UNKNOWN = "permission_unknown"
    PERMISSION_NOT_REQUESTED = "permission_not_requested"
    PERMISSION_NOT_GRANTED = "permission_not_granted"
    COMMAND_INVALID = "command_invalid"
    PROGRAM_MISSING = "program_missing"
    VARIABLE_MISSING = "variable_missing"
    VARIABLE_FORBIDDEN = "variable_forbidden"
    VARIABLES_VISIBLE = "variables_visible"
    SETTING_INVALID = "setting_invalid"
    DIALECT_UNKNOWN = "dialect_unknown"
    NOT_COPYABLE = "not_copyable"
    DEPENDENCY_MISSING = "dependency_missing"
    DEPENDENCY_CYCLE = "dependency_cycle"
    REFUSED = "refused"
    # while it runs
    START_FAILED = "start_failed"
    RELOAD_FAILED = "reload_failed"
    CONSENT_FAILED = "consent_failed"
    CONSENT_NOT_PERSISTENT = "consent_not_persistent"
    HOOK_UNRESPONSIVE = "hook_unresponsive"
    HOOK_LEFT_OUT = "hook_left_out"
    HOOK_ORDER = "hook_order"
    TOOL_RENAMED = "tool_renamed"
    TOOL_LEFT_OUT = "tool_left_out"
    PROVIDER_LEFT_OUT = "provider_left_out"
    # the host's own files
    DATA_EXPOSED = "data_exposed"
    DATA_NOT_WRITABLE = "data_not_writable"
    STORE_UNAVAILABLE = "store_unavailable"
    GRANTS_INVALID = "grants_invalid"
    TRUST_INVALID = "trust_invalid"
    AUDIT_BROKEN = "audit_broken"
    AUDIT_NOT_WRITABLE = "audit_not_writable"
    REVOCATION_NOT_PERSISTENT = "revocation_not_persistent"
    REVOCATION_PERSISTENT = "revocation_persistent"
    SECRETS_MOVED = "secrets_moved"
    SECRETS_NOT_MOVED = "secrets_not_moved"
    COPIES_NOT_REMOVED = "copies_not_removed"
    UNGUARDED = "unguarded"


REFUSAL_SEVERITIES: Final = {
    ProblemCode.CONSENT_MISSING: Severity.WAITING,
    ProblemCode.CONSENT_REFUSED: Severity.NOTE,
}
"""The severity of a refused start by its reason; any other reason is an error."""


class Diagnostic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem. `extension` is its id if known; `path` is the file or the folder concerned.

    `code` is the kind of problem, for programs: texts may change, codes do not."""

    problem: str
    extension: str | None = None
    path: str | None = None
    hint: str = ""
    severity: Severity = Severity.ERROR
    code: ProblemCode = ProblemCode.OTHER

    def to_dict(self) -> dict[str, str | None]:
        """Returns all members as JSON values."""
        return {
            "problem": self.problem,
            "extension": self.extension,
            "path": self.path,
            "hint": self.hint,
            "severity": str(self.severity),
            "code": str(self.code),
        }

    def __str__(self) -> str:
        """Returns one line: what happened, to what, and what to do."""
        where = ": ".join(part for part in (self.extension, self.path) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        return f"{text} ({self.hint})" if self.hint else text


def without_id(id: str, text: str) -> str:
    """Returns a text about an extension without its id at the beginning."""
    return text.removeprefix(f"{id}: ")

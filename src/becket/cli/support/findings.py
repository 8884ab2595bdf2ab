"""`Finding`: the result of one check, with level, text and hint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from becket.contract.tools import Tool
from becket.permissions.names import PERMISSIONS

__all__ = [
    "NOTHING_DECLARED",
    "CheckSubject",
    "Finding",
    "FindingLevel",
    "describe_exit",
    "has_no_errors",
    "has_responded",
]

NOTHING_DECLARED: Final = "it declares nothing"


class FindingLevel(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"


class Finding(Struct, frozen=True):
    """The result of one check."""

    check: str
    level: FindingLevel
    text: str
    hint: str = ""


class CheckSubject(Struct, frozen=True, kw_only=True):
    """The program to check, with its id, environment and timeouts.

    `manifest_id`, `permissions`, `config` and `extra` come from its manifest; without one it may declare anything that
    any permission allows. `timeout` applies to the handshake, `call_timeout` to every later response. Tools that are
    not marked as read-only are called only with `calls_tools`. `line` is the command to run, with its arguments."""

    command: tuple[str, ...]
    id: str
    env: Mapping[str, str]
    cwd: str | None = None
    root: str = ""
    timeout: float = 10.0
    call_timeout: float = 10.0
    manifest_id: str | None = None
    permissions: Collection[str] = PERMISSIONS
    config: Mapping[str, Any] = {}
    extra: Any = None
    calls_tools: bool = False
    line: tuple[str, ...] | None = None
    has_commands: bool = False

    def tools_to_call(self, tools: Iterable[Tool]) -> list[Tool]:
        """Returns the tools that may be called."""
        return [tool for tool in tools if self.calls_tools or tool.read_only]


def has_no_errors(findings: Sequence[Finding]) -> bool:
    """Returns whether there are findings and none is an error."""
    return bool(findings) and all(finding.level is not FindingLevel.ERROR for finding in findings)


def has_responded(findings: Sequence[Finding]) -> bool:
    """Returns whether the program has responded in this dialect at all."""
    return any(finding.check == "response" and finding.level is not FindingLevel.ERROR for finding in findings)


def describe_exit(code: int | None) -> str:
    """Returns how a process has exited, as a predicate: `exited with code 1`."""
    code = code or 0
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"

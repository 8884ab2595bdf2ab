"""A candidate: an extension that discovery has found, with what its operator has set for it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from becket._text import quote_path
from becket.contract.handshake import Capabilities
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.starting.manifest import Environment, Manifest

__all__ = ["Candidate", "OperatorSettings", "build_diagnostic"]


class OperatorSettings(Struct, frozen=True, kw_only=True):
    """What the operator alone decides about one extension, in `[extensions.ID]` of the host's configuration.

    `environment` are variables that it gets in any case, and `allow_variables` those that it gets if its manifest
    requests them. With `in_place` it runs from its own folder instead of a copy."""

    environment: Environment = Environment()
    allow_variables: tuple[str, ...] = ()
    in_place: bool = False


class Candidate(Struct, frozen=True):
    """An extension that was found. `folder` is absolute and free of links; `root` is the number of its root.

    `is_operator_defined` means that its command is that of the operator, who may run any program. `extra` is what a
    reader has found beyond the manifest, in a class of the dialect's. One that shares its folder has `files`, those
    that are its own. One in a list, or a program without any file, `is_listed`: its command is not in its folder; if it
    `owns_folder`, its manifest is. `cwd` is its requested working directory, if not its dialect's. `declared` is all
    that it offers, if known before it runs. `operator` is what no manifest can set. `shared_variables` could hold
    values of its configuration or of another's, and are not read."""

    manifest: Manifest
    folder: str
    manifest_path: str
    root: int
    is_operator_defined: bool = False
    extra: Any = None
    files: tuple[str, ...] | None = None
    is_listed: bool = False
    owns_folder: bool = False
    cwd: str | None = None
    declared: Capabilities | None = None
    operator: OperatorSettings = OperatorSettings()
    shared_variables: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The id of the extension."""
        return self.manifest.id


def build_diagnostic(
    candidate: Candidate, code: ProblemCode, problem: str, hint: str, severity: Severity = Severity.NOTE
) -> Diagnostic:
    """Returns a diagnostic about a candidate and its manifest."""
    path = quote_path(candidate.manifest_path)
    return Diagnostic(code=code, extension=candidate.id, path=path, problem=problem, hint=hint, severity=severity)

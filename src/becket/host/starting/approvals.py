"""Approvals: the subject of the last consent to an extension, stored to detect what has changed since.

`grants.toml` has the grants, with the digest of the files. An approval names these files, so that others which an
extension adds beside them while it runs in place do not count. Without it they do, and a prompt shows less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct

from becket._text import quote_path
from becket.conversion.files.reader import load_bytes, replace_file
from becket.errors import JSON_ERRORS, BadFile
from becket.host.redaction import redact_command, redact_text
from becket.host.starting.consent_request import DIGEST_PREFIX, ConsentChanges
from becket.host.starting.environment import is_secret_name

__all__ = ["Approval", "find_changes", "load_approval", "save_approval"]

LARGEST: Final = 16 * 1024 * 1024  # the names of as many files as an extension may have


class Approval(Struct, frozen=True, kw_only=True):
    """The subject of a consent. `variables` are those that are set, and `files` those of the extension, each with a
    short digest. No secret is stored: secrets in the command are hidden, and a variable that looks like one, by its
    name or its value, is stored as a digest."""

    digest: str
    command: tuple[str, ...] = ()
    working_directory: str = ""
    variables: dict[str, str] = {}
    permissions: tuple[str, ...] = ()
    files: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        *,
        digest: str,
        command: Sequence[str],
        working_directory: str,
        variables: Mapping[str, str],
        permissions: Iterable[str],
        files: Mapping[str, str],
    ) -> Self:
        """Returns the approval of these values, without secrets."""
        return cls(
            digest=digest,
            command=tuple(map(quote_path, redact_command(command))),
            working_directory=quote_path(working_directory),
            variables={name: hide_secret(name, value) for name, value in variables.items()},
            permissions=tuple(sorted({*permissions})),
            files=dict(files),
        )


def hide_secret(name: str, value: str) -> str:
    if not is_secret_name(name) and redact_text(value) == value:
        return value
    return f"{DIGEST_PREFIX}{sha256(value.encode(errors='surrogateescape')).hexdigest()[:16]}"


def load_approval(path: Path) -> Approval | None:
    """Returns the approval in a file; None if there is none, or it cannot be read."""
    try:
        return msgspec.json.decode(load_bytes(path, LARGEST), type=Approval)
    except (BadFile, *JSON_ERRORS):
        return None


def save_approval(path: Path, approval: Approval) -> None:
    """Stores an approval.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    replace_file(path, msgspec.json.encode(approval))


def find_changes(before: Approval | None, now: Approval, *, digest: str) -> ConsentChanges | None:
    """Returns the changes since the consent to the files with this digest, None if there was none; `before` is its
    stored approval."""
    if before is None or not digest or before.digest != digest:
        return None
    added, changed, removed = compare(before.files, now.files)
    new, other, gone = compare(before.variables, now.variables)
    return ConsentChanges(
        added_files=added,
        changed_files=changed,
        removed_files=removed,
        command=before.command if before.command != now.command else None,
        working_directory=before.working_directory if before.working_directory != now.working_directory else None,
        variables={name: before.variables.get(name) for name in sorted((*new, *other))},
        removed_variables=gone,
        added_permissions=tuple(sorted({*now.permissions} - {*before.permissions})),
        removed_permissions=tuple(sorted({*before.permissions} - {*now.permissions})),
    )


def compare(
    before: Mapping[str, str], now: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns the names that are new, those with another value, and those that are gone."""
    added = tuple(sorted(now.keys() - before.keys()))
    changed = tuple(sorted(name for name in now.keys() & before.keys() if now[name] != before[name]))
    return added, changed, tuple(sorted(before.keys() - now.keys()))

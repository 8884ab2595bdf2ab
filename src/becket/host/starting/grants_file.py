"""Reads and edits `grants.toml`: granted and denied permissions by extension and digest.

One program at a time changes it, atomically, and comments of a person stay. Revocations that could not be written yet
(`pending_revocations`) count as written. The start check decides by it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Set as AbstractSet
from contextlib import contextmanager
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from becket._text import join_pointer, quote_path
from becket.contract.audit import Digest
from becket.conversion.files.reader import load_bytes, replace_file, writing
from becket.conversion.files.toml import TOKEN, parse_toml
from becket.conversion.problems import find_problems
from becket.errors import BadFile, Problem
from becket.host.starting.manifest import Id
from becket.host.starting.manifest_problems import explain_patterns
from becket.host.starting.pending_revocations import load_pending, remove_pending
from becket.limits import DEFAULT_LIMITS
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, find_name_problems

__all__ = ["FILE_NAME", "GrantEntry", "edit_grants", "load_grants", "rewrite_grants"]

FILE_NAME: Final = "grants.toml"
LOCK_TIMEOUT: Final = 5.0  # seconds for another program that changes the file: it takes milliseconds
LOCK_POLL_INTERVAL: Final = 0.01
MAX_LINE_WIDTH: Final = 100
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


# Other systems, and the program `env`, set variables of any name.
VariableName = Annotated[str, Meta(pattern=r"\A[^=\x00]+\Z", max_length=256)]


class GrantEntry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The grants of one extension. `digest` is that of the approved files; empty means any.

    `variables` are those of the host that it may have, and those that it may set although they load code. `refused` is
    the digest of a refused consent request; a grant of anything ends that."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    digest: Digest = ""
    variables: tuple[VariableName, ...] = ()
    refused: Digest = ""

    @property
    def grants(self) -> Grants:
        """The permissions alone."""
        return Grants(frozenset(self.allow), frozenset(self.deny))

    def with_grants(self, permissions: Iterable[str], digest: str = "", variables: Iterable[str] = ()) -> GrantEntry:
        """Returns the entry with these permissions and variables granted, for the files of the digest if there is one.

        Variables that were granted to other files are not granted to these."""
        names = set(permissions)
        allow, deny = {*self.allow, *names}, set(self.deny) - names
        remaining = self.variables if self.digest in ("", digest or self.digest) else ()
        visible = tuple(sorted({*remaining, *variables}))
        return GrantEntry(tuple(sorted(allow)), tuple(sorted(deny)), digest or self.digest, visible)

    def with_denials(self, permissions: Iterable[str]) -> GrantEntry:
        """Returns the entry with these permissions revoked and denied."""
        names = set(permissions)
        allow, deny = set(self.allow) - names, {*self.deny, *names}
        return replace(self, allow=tuple(sorted(allow)), deny=tuple(sorted(deny)))


Entries = dict[Id, GrantEntry]
EMPTY_ENTRY: Final = GrantEntry()


# -- reading


def load_grants(path: str | os.PathLike[str], *, known: AbstractSet[str] = PERMISSIONS) -> dict[str, GrantEntry]:
    """Returns the entries of all extensions; none if there is no file. `known` are the permissions that exist.

    Raises:
        BadFile: it cannot be read, or is invalid; all problems, each with its JSON pointer. No extension has any grants
            then: the file may deny something.
    """
    entries = parse_grants(load_text(path), path, known)
    for extension, names in load_pending(path).items():
        entries[extension] = entries.get(extension, EMPTY_ENTRY).with_denials(names)
    return entries


def load_text(path: str | os.PathLike[str]) -> bytes:
    try:
        return load_bytes(path)
    except BadFile as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return b""
        raise


def parse_grants(data: bytes, path: str | os.PathLike[str], known: AbstractSet[str]) -> dict[str, GrantEntry]:
    table = parse_toml(data, path)
    try:
        entries: dict[str, GrantEntry] = msgspec.convert(table, Entries)
    except msgspec.ValidationError as error:
        raise BadFile(quote_path(path), explain_patterns(find_problems(table, Entries))) from error
    problems = find_unknown_names(entries, known)
    if problems:
        raise BadFile(quote_path(path), problems)
    return entries


def find_unknown_names(entries: dict[str, GrantEntry], known: AbstractSet[str]) -> list[Problem]:
    problems: list[Problem] = []
    for id, entry in entries.items():
        problems += find_name_problems([*entry.allow], f"{join_pointer('', id)}/allow", known)
        problems += find_name_problems([*entry.deny], f"{join_pointer('', id)}/deny", known)
    return problems


# -- changing


def edit_grants(
    path: str | os.PathLike[str],
    extension: str,
    change: Callable[[GrantEntry], GrantEntry | None],
    *,
    known: AbstractSet[str] = PERMISSIONS,
) -> GrantEntry | None:
    """Changes the entry of one extension and returns it; None removes it. On return it is safe on disk.

    `change` gets the current entry, or an empty one. It is called while no other program can change the file.

    Raises:
        BadFile: the file cannot be read or written, or another program keeps it locked.
    """
    path = os.path.realpath(path)  # a link to the file stays one
    with writing(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with lock_file(path):
        data = load_text(path)
        before = parse_grants(data, path, known)
        found = before.get(extension, EMPTY_ENTRY)
        pending = load_pending(path).get(extension)
        entry = change(found.with_denials(pending) if pending else found)
        if entry != before.get(extension):
            write_entry(path, data, extension, entry, known)
        if pending:
            with writing(path):
                remove_pending(path, extension)
    return entry


def write_entry(path: str, data: bytes, extension: str, entry: GrantEntry | None, known: AbstractSet[str]) -> None:
    text = rewrite_grants(data.decode(), extension, entry).encode()
    parse_grants(text, path, known)  # what cannot be read again is not written
    if len(text) > DEFAULT_LIMITS.manifest:
        raise BadFile(quote_path(path), [("", f"would become larger than {DEFAULT_LIMITS.manifest} bytes")])
    with writing(path):
        replace_file(path, text)


@contextmanager
def lock_file(path: str) -> Generator[None]:
    """Locks a file against changes by other programs; the end of a program releases its lock."""
    import fcntl  # not on Windows

    with writing(path):
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise BadFile(quote_path(path), [("", "another program is changing it")]) from error
                time.sleep(LOCK_POLL_INTERVAL)
            except OSError as error:
                raise BadFile(quote_path(path), [("", f"cannot be locked: {error.strerror}")]) from error
        yield
    finally:
        os.close(lock)


# -- the text, with its comments


def rewrite_grants(text: str, extension: str, entry: GrantEntry | None) -> str:
    """Returns the text of a file with the entry of one extension changed, or removed.

    All else stays unchanged, comments too. If the text has a form in which this is impossible, all entries are
    rewritten.
    """
    after = {id: one for id, one in read_entries(text).items() if id != extension}
    if entry is not None:
        after[extension] = entry
    edited = edit_text(text, extension, entry_members(entry))
    try:
        if read_entries(edited) == after:
            return edited
    except BadFile:
        pass
    return "\n".join(format_table(id, entry_members(after[id]) or {}) for id in sorted(after))


def read_entries(text: str) -> dict[str, GrantEntry]:
    return msgspec.convert(parse_toml(text.encode(), FILE_NAME), dict[str, GrantEntry])


def entry_members(entry: GrantEntry | None) -> dict[str, str] | None:
    """Returns the value of each key of an entry, as text."""
    if entry is None:
        return None
    table: dict[str, Any] = msgspec.to_builtins(entry)
    return {key: format_value(key, value) for key, value in table.items()}


def edit_text(text: str, extension: str, members: dict[str, str] | None) -> str:
    lines = logical_lines(text)
    start = next((number for number, line in enumerate(lines) if is_header_of(line, extension)), None)
    if start is None:
        if members is None:
            return text
        above = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{above}\n{format_table(extension, members)}" if above else format_table(extension, members)
    end = next((number for number in range(start + 1, len(lines)) if is_header(lines[number])), len(lines))
    keys = {number: key for number in range(start + 1, end) if (key := key_of(lines[number])) is not None}
    last = max(keys, default=start)
    if members is None:
        return "".join([*lines[:start], *lines[last + 1 :]])
    body = [
        line if number not in keys else rewrite_line(line, keys[number], members)
        for number, line in enumerate(lines[start + 1 : last + 1], start + 1)
    ]
    new = [f"{key} = {value}\n" for key, value in members.items() if key not in keys.values()]
    whole = [*lines[:start], lines[start], *body, *new, *lines[last + 1 :]]
    return "".join(line if line.endswith("\n") or not line else f"{line}\n" for line in whole)


def logical_lines(text: str) -> list[str]:
    """Returns the lines of a TOML text; brackets and strings are one line, however long they are."""
    lines: list[str] = []
    start = levels = 0
    for token in TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                levels += 1
            case "close":
                levels -= 1
            case "end" if token.group() == "\n" and levels == 0:
                lines.append(text[start : token.end()])
                start = token.end()
            case _:
                pass
    return [*lines, text[start:]] if start < len(text) else lines


def is_header(line: str) -> bool:
    return line.lstrip().startswith("[")


def is_header_of(line: str, extension: str) -> bool:
    return is_header(line) and parse_toml(line.encode(), FILE_NAME) == {extension: {}}


def key_of(line: str) -> str | None:
    """Returns the key that a line assigns, None if there is none."""
    return next(iter(parse_toml(line.encode(), FILE_NAME)), None)


def rewrite_line(line: str, key: str, members: dict[str, str]) -> str:
    """Returns the line with the key's current value; an unchanged one as it is, with its comments."""
    table = parse_toml(line.encode(), FILE_NAME)
    if key not in members:
        return ""
    if format_value(key, table[key]) == members[key]:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    comments = [token.group() for token in TOKEN.finditer(line) if token.lastgroup == "comment"]
    is_behind = bool(comments) and line.rstrip("\r\n").endswith(comments[-1])
    return f"{indent}{key} = {members[key]}{f'  {comments[-1]}' if is_behind else ''}\n"


def format_table(extension: str, members: dict[str, str]) -> str:
    name = extension if BARE_KEY.fullmatch(extension) else format_string(extension)
    return "".join([f"[{name}]\n", *(f"{key} = {value}\n" for key, value in members.items())])


def format_value(key: str, value: Any) -> str:
    if isinstance(value, str):
        return format_string(value)
    names = [format_string(name) for name in value]
    line = f"[{', '.join(names)}]"
    if len(key) + len(line) <= MAX_LINE_WIDTH:
        return line
    return "".join(["[\n", *(f"    {name},\n" for name in names), "]"])


def format_string(text: str) -> str:
    return msgspec.json.encode(text).decode()  # a JSON string is a TOML string

"""Reads the extensions that a `morphir.toml` lists, with durations and sizes.

Tolerant like Morphir: unknown members are ignored, and the file may have other tables. An invalid entry does not affect
the others. An extension runs in the folder of the file, like Morphir itself.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from becket._text import quote_path
from becket.adapters.morphir.messages import MorphirPermissions, MorphirSettings
from becket.contract.json_narrowing import is_array, is_object
from becket.contract.tools import TOOLS_PERMISSION
from becket.conversion.problems import find_problems
from becket.errors import ManifestError, Problem
from becket.host.restart import RestartStrategy
from becket.host.starting.becket_toml import parse_manifest, parse_table
from becket.host.starting.manifest import Manifest, build_id
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ManifestReader, ScopedFiles

__all__ = ["FILE_NAME", "READER", "MorphirManifestReader", "parse_duration", "parse_size"]

FILE_NAME: Final = "morphir.toml"
VERSION: Final = "0.0.0"  # unknown
MAX_NAME_LENGTH: Final = 64
DAY: Final = 86_400.0  # `max_retries` has no window; the count is reset after some uptime anyway
MAX_RETRIES: Final = 1000
MIN_DELAY: Final = 0.001  # a manifest may not set a delay of 0

PROCESS: Final = "process"
STDIO: Final = "stdio"
SOURCES: Final = ("http", "grpc", PROCESS, "wasm", "wasmcomponent")


# -- tables of the file


class MorphirSource(Struct, frozen=True):
    """Source of an extension. Types other than `process` have other members."""

    type: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class MorphirPermissionTable(Struct, frozen=True):
    """Permissions and resource limits."""

    network: bool = False
    filesystem: tuple[str, ...] = ()
    max_memory: str | int | None = None
    max_execution_time: str | int | float | None = None


class MorphirRestart(Struct, frozen=True):
    """Restart policy."""

    strategy: RestartStrategy = RestartStrategy.NEVER
    initial_delay: str | int | float | UnsetType = UNSET
    max_delay: str | int | float | UnsetType = UNSET
    max_retries: int | UnsetType = UNSET


class MorphirEntry(Struct, frozen=True):
    """One extension."""

    name: str
    source: MorphirSource
    enabled: bool = True
    protocol: str = STDIO
    permissions: MorphirPermissionTable = MorphirPermissionTable()
    restart: MorphirRestart = MorphirRestart()
    config: dict[str, Any] = {}


# -- reading


class MorphirManifestReader(ManifestReader):
    """The reader of `morphir.toml`."""

    dialect = "morphir"
    list_names = (FILE_NAME,)

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the extensions of the file, which may have none."""
        entries = parse_table(data, path).get("extensions", [])
        if not is_array(entries):
            raise ManifestError(quote_path(path), [("/extensions", "is not a list: write `[[extensions]]`")])
        found: list[FoundExtension] = []
        problems: list[Problem] = []
        off: list[str] = []
        for index, entry in enumerate(entries):
            try:
                one = parse_entry(entry, path, nearby.folder)
            except InvalidMorphirEntry as error:
                problems += [(f"/extensions/{index}{pointer}", text) for pointer, text in error.problems]
                continue
            if one is not None:
                found.append(one)
                if not entry.get("enabled", True):
                    off.append(one.manifest.id)
        return ExtensionList(extensions=tuple(found), problems=tuple(problems), disabled=tuple(off))

    def hint_for(self, problem: Problem) -> str:
        """Returns a hint for a problem of the file."""
        pointer, _ = problem
        if pointer.endswith(("/source/type", "/protocol")):
            return "run it with Morphir, or set `enabled = false`"
        return ""


READER: Final = MorphirManifestReader()


class InvalidMorphirEntry(Exception):
    """An entry that cannot be started; has all problems, with pointers into the entry."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems


def parse_entry(table: Any, path: str, folder: str) -> FoundExtension | None:
    """Returns an extension; None for a disabled one that is not a process.

    Raises:
        InvalidMorphirEntry: it cannot be started.
    """
    if is_object(table) and table.get("enabled") is False and not is_process(table):
        return None
    try:
        entry = msgspec.convert(table, MorphirEntry)
    except msgspec.ValidationError as error:
        raise InvalidMorphirEntry(find_problems(table, MorphirEntry)) from error
    problems = [*find_source_problems(entry)]
    settings = MorphirSettings(config=entry.config, permissions=parse_permissions(entry.permissions, problems))
    restart = parse_restart(entry.restart, problems)
    if problems:
        raise InvalidMorphirEntry(problems)
    return FoundExtension(manifest=build_manifest(entry, restart, path), extra=settings, cwd=folder)


def is_process(table: dict[str, Any]) -> bool:
    source = table.get("source")
    return is_object(source) and source.get("type") == PROCESS


def find_source_problems(entry: MorphirEntry) -> list[Problem]:
    """Returns why this host cannot run an entry; an empty list if it can."""
    source = entry.source
    if source.type not in SOURCES:
        return [("/source/type", f"`{entry.name}` has a source of unknown type: {source.type}")]
    if source.type != PROCESS:
        return [("/source/type", f"`{entry.name}` is not runnable here: its source is `{source.type}`, not a process")]
    if entry.protocol != STDIO:
        return [
            ("/protocol", f"`{entry.name}` is not runnable here: its protocol is `{entry.protocol}`, not `{STDIO}`")
        ]
    return [] if source.command.strip() else [("/source/command", "must not be blank")]


def parse_permissions(table: MorphirPermissionTable, problems: list[Problem]) -> MorphirPermissions:
    memory, seconds = table.max_memory, table.max_execution_time
    return MorphirPermissions(
        network=table.network,
        filesystem=table.filesystem,
        max_memory=None if memory is None else parse_or_report(parse_size, memory, "/permissions/max_memory", problems),
        max_execution_time=(
            None
            if seconds is None
            else parse_or_report(parse_duration, seconds, "/permissions/max_execution_time", problems)
        ),
    )


def parse_restart(restart: MorphirRestart, problems: list[Problem]) -> dict[str, Any]:
    """Returns the restart policy as a table of a native manifest."""
    policy: dict[str, Any] = {"strategy": restart.strategy}
    if restart.strategy is RestartStrategy.NEVER:
        return policy
    for name, value, ours in (
        ("initial_delay", restart.initial_delay, "delay"),
        ("max_delay", restart.max_delay, "longest_delay"),
    ):
        if value is not UNSET:
            seconds = parse_or_report(parse_duration, value, f"/restart/{name}", problems)
            policy[ours] = max(seconds or 0.0, MIN_DELAY)
    if restart.max_retries is not UNSET:
        if 0 <= restart.max_retries <= MAX_RETRIES:
            policy |= {"most": restart.max_retries, "window": DAY}
        else:
            problems.append(("/restart/max_retries", f"must be between 0 and {MAX_RETRIES}"))
    return policy


def build_manifest(entry: MorphirEntry, restart: dict[str, Any], path: str) -> Manifest:
    """Returns the entry as a native manifest.

    Raises:
        InvalidMorphirEntry: a value is not allowed in a native manifest.
    """
    table = {
        "id": build_id(entry.name),
        "version": VERSION,
        "name": entry.name[:MAX_NAME_LENGTH],
        "command": [entry.source.command, *entry.source.args],
        "dialect": "morphir",
        "permissions": [TOOLS_PERMISSION],
        "environment": {"set": entry.source.env},
        "restart": restart,
    }
    try:
        return parse_manifest(table, path)
    except ManifestError as error:
        raise InvalidMorphirEntry([(to_entry_pointer(pointer), text) for pointer, text in error.problems]) from error


def to_entry_pointer(pointer: str) -> str:
    """Returns the pointer into an entry for a pointer into the native manifest."""
    if pointer.startswith("/command/"):
        number = int(pointer.removeprefix("/command/"))
        return f"/source/args/{number - 1}" if number else "/source/command"
    if pointer.startswith("/environment/set"):
        return "/source/env" + pointer.removeprefix("/environment/set")
    return "/name" if pointer == "/id" else pointer


# -- durations and sizes


def parse_or_report(parse: Any, value: Any, pointer: str, problems: list[Problem]) -> Any:
    """Returns the parsed value; on failure adds a problem and returns None."""
    try:
        return parse(value)
    except ValueError as error:
        problems.append((pointer, str(error)))
        return None


SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": DAY,
}
BYTES: Final = {
    "": 1,
    "b": 1,
    **{f"{letter}{suffix}": 1000**power for power, letter in enumerate("kmgt", 1) for suffix in ("", "b")},
    **{f"{letter}{suffix}": 1024**power for power, letter in enumerate("kmgt", 1) for suffix in ("i", "ib")},
}
MAX_QUANTITY_LENGTH: Final = 64  # characters of a duration or size
PART: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_duration(duration: str | int | float) -> float:
    """Returns the seconds of a duration such as `30s`, `500ms` or `1m 30s`; a bare number is seconds.

    Raises:
        ValueError: it is not a duration.
    """
    return sum_units(duration, SECONDS | {"": 1.0}, "is not a duration such as `30s`")


def parse_size(size: str | int) -> int:
    """Returns the bytes of a size such as `100MB` or `1GiB`; a bare number is bytes.

    Raises:
        ValueError: it is not a size.
    """
    return int(sum_units(size, BYTES, "is not a size such as `100MB`"))


def sum_units(quantity: str | int | float, units: dict[str, Any], problem: str) -> float:
    text = str(quantity)
    total = 0.0
    position = 0
    while position < len(text) <= MAX_QUANTITY_LENGTH:
        part = PART.match(text, position)
        if part is None or part[2].lower() not in units:
            break
        total += float(part[1]) * units[part[2].lower()]
        position = part.end()
    if not text or position < len(text):
        raise ValueError(problem)
    return total

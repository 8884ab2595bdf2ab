"""Reads MCP servers from `.mcp.json` and from the `mcp_servers` table of a manifest.

The member may be `mcpServers` or `mcp_servers`. Unknown members are ignored, because other programs define their own.
Only servers that are programs can be started; those with a URL are reported as problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from becket._text import join_pointer, quote_path, truncate
from becket.contract.json_narrowing import is_object
from becket.conversion.problems import find_problems
from becket.errors import JSON_ERRORS, ManifestError, Problem
from becket.host.starting.manifest import ArgumentText, Environment, Manifest, Permission, Variable, build_id, is_id
from becket.host.starting.manifest_reader import ExtensionList, FoundExtension, ManifestReader, ScopedFiles

__all__ = ["FILE_NAME", "READER", "McpManifestReader", "parse_servers"]

FILE_NAME: Final = ".mcp.json"
MEMBERS: Final = ("mcpServers", "mcp_servers")
VERSION: Final = "0.0.0"  # unknown until the server runs
PERMISSIONS: Final = ("tools.register",)
STDIO: Final = "stdio"
MAX_NAME_LENGTH: Final = 64
PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}")  # includes forms of other programs: `${KEY:-else}`, `${input:key}`


class McpServerEntry(Struct, frozen=True, kw_only=True):
    """One server. `permissions` is an extension of becket: further requested permissions."""

    command: Annotated[ArgumentText, Meta(min_length=1)] | None = None
    args: Annotated[tuple[ArgumentText, ...], Meta(max_length=255)] = ()
    env: dict[Variable, ArgumentText] = {}
    cwd: ArgumentText | None = None
    type: str = STDIO
    url: str | None = None
    disabled: bool = False
    permissions: tuple[Permission, ...] = ()


class McpManifestReader(ManifestReader):
    """The reader of `.mcp.json`."""

    dialect = "mcp"
    list_names = (FILE_NAME,)
    bundle_table = "mcp_servers"

    def read_list(self, data: bytes, path: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the servers of the file; an invalid entry does not affect the others.

        Raises:
            ManifestError: the file is not a JSON object.
        """
        try:
            file: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        except JSON_ERRORS as error:
            raise ManifestError(quote_path(path), [("", f"is not a JSON object: {error}")]) from error
        for member in MEMBERS:
            if member in file:
                return parse_servers(file[member], f"/{member}", "", nearby)
        return ExtensionList()

    def read_bundle(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Returns the servers of a `.mcp.json` beside a manifest."""
        file: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        tables = [msgspec.convert(file.get(member, {}), dict[str, dict[str, Any]]) for member in MEMBERS]
        return next(filter(None, tables), tables[0])

    def list_bundle(self, table: Mapping[str, Any], prefix: str, nearby: ScopedFiles) -> ExtensionList:
        """Returns the servers of a manifest."""
        return parse_servers(table, f"/{self.bundle_table}", prefix, nearby)

    def hint_for(self, problem: Problem) -> str:
        """Returns a hint for a problem of the file."""
        _, message = problem
        return "start it through a program that forwards to it over stdin and stdout" if "URL" in message else ""


READER: Final = McpManifestReader()


def parse_servers(table: Any, at: str, prefix: str, nearby: ScopedFiles) -> ExtensionList:
    """Returns the servers of a table by name, as extensions whose ids begin with `prefix`.

    A server with a `cwd` owns that folder: consent covers its files."""
    if not is_object(table):
        return ExtensionList(problems=((at, "is not an object of servers by name"),))
    found: dict[str, FoundExtension] = {}
    problems: list[Problem] = []
    disabled: list[str] = []
    for name, server in table.items():
        pointer = join_pointer(at, name)
        id = build_id(f"{prefix}{name}")
        wrong = [*find_entry_problems(server, id, found)]
        if wrong:
            problems += [(f"{pointer}{place}", text) for place, text in wrong]
            continue
        entry = msgspec.convert(server, McpServerEntry)
        try:
            folder = None if entry.cwd is None else nearby.find(entry.cwd)
        except ManifestError as error:
            problems += [(f"{pointer}/cwd", text) for _, text in error.problems]
            continue
        found[id] = FoundExtension(manifest=build_manifest(id, name, entry), folder=folder)
        disabled += [id] if entry.disabled else []
    return ExtensionList(extensions=tuple(found.values()), problems=tuple(problems), disabled=tuple(disabled))


def find_entry_problems(server: Any, id: str, taken: Mapping[str, FoundExtension]) -> Iterator[Problem]:
    """Yields the problems of one server."""
    if not is_id(id):
        yield "", "has a name that cannot be an id"
    elif id in taken:
        yield "", f"would have the same id as another server: {id}"
    if wrong := find_problems(server, McpServerEntry):
        yield from wrong
        return
    entry = msgspec.convert(server, McpServerEntry)
    if entry.url is not None or entry.type != STDIO:
        yield "", "has a URL, and is not a program that could be started"
    elif entry.command is None:
        yield "/command", "is missing"
    words = {"/command": entry.command or "", **{f"/args/{n}": word for n, word in enumerate(entry.args)}}
    for place, text in words.items():
        if PLACEHOLDER.search(text):
            yield place, f"has a variable, which is supported only in `env`: `{truncate(text)}`"
    for name, value in entry.env.items():
        if PLACEHOLDER.search(value) and not is_passthrough(name, value):
            yield f"/env/{name}", f"must be a text, or `${{{name}}}` for the host's own value"


def is_passthrough(name: str, value: str) -> bool:
    """Returns whether a variable gets the host's own value."""
    return value == f"${{{name}}}"


def build_manifest(id: str, name: str, entry: McpServerEntry) -> Manifest:
    """Returns the manifest of a server. It always requests a permission, so that it never starts without consent."""
    passed = tuple(variable for variable, value in entry.env.items() if is_passthrough(variable, value))
    return Manifest(
        id=id,
        version=VERSION,
        name=name[:MAX_NAME_LENGTH],
        description="An MCP server.",
        command=(entry.command or "", *entry.args),
        dialect="mcp",
        permissions=tuple(dict.fromkeys((*PERMISSIONS, *entry.permissions))),
        environment=Environment(
            passed=passed, set={variable: value for variable, value in entry.env.items() if variable not in passed}
        ),
    )

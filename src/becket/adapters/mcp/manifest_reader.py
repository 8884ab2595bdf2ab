"""Reads MCP servers from `.mcp.json` and from the `mcp_servers` table of a manifest.

Both spellings of the member are read, `mcpServers` and `mcp_servers`. Members that nobody here knows are passed over:
other programs have some of their own. Only servers that are programs can be started; those behind a URL are told of.
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
from becket.host.starting.manifest import (
    ArgumentText,
    Environment,
    ExtensionList,
    FoundExtension,
    Manifest,
    ManifestReader,
    Permission,
    ScopedFiles,
    Variable,
    is_id,
    normalize_id,
)

__all__ = ["FILE_NAME", "READER", "McpManifestReader", "parse_servers"]

FILE_NAME: Final = ".mcp.json"
MEMBERS: Final = ("mcpServers", "mcp_servers")
VERSION: Final = "0.0.0"  # the file says none; the server itself does, once it runs
PERMISSIONS: Final = ("tools.register",)
STDIO: Final = "stdio"
MAX_NAME_LENGTH: Final = 64
PLACEHOLDER: Final = re.compile(
    r"\$\{[^}]*\}"
)  # other programs fill in `${KEY:-else}`, `${input:key}` and the like, too


class McpServerEntry(Struct, frozen=True, kw_only=True):
    """One server. `permissions` is ours: what it asks for besides that its tools are called."""

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
        """Returns the servers that the file lists; one that cannot be used is a problem, and the others are there.

        Raises:
            ManifestError: it is no JSON, or no object.
        """
        try:
            file: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        except JSON_ERRORS as error:
            raise ManifestError(quote_path(path), [("", f"is no JSON object: {error}")]) from error
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
        """Returns the servers that a manifest lists."""
        return parse_servers(table, f"/{self.bundle_table}", prefix, nearby)

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem of the file."""
        _, message = problem
        return "start it through a program that speaks with it over stdin and stdout" if "URL" in message else ""


READER: Final = McpManifestReader()


def parse_servers(table: Any, at: str, prefix: str, nearby: ScopedFiles) -> ExtensionList:
    """Returns the servers of a table by name, as extensions whose ids begin with `prefix`.

    One with a `cwd` has that folder for its own: what it runs there is what was agreed to."""
    if not is_object(table):
        return ExtensionList(problems=((at, "is no object of servers by name"),))
    found: dict[str, FoundExtension] = {}
    problems: list[Problem] = []
    disabled: list[str] = []
    for name, given in table.items():
        pointer = join_pointer(at, name)
        id = normalize_id(f"{prefix}{name}")
        wrong = [*find_entry_problems(given, id, found)]
        if wrong:
            problems += [(f"{pointer}{place}", text) for place, text in wrong]
            continue
        entry = msgspec.convert(given, McpServerEntry)
        try:
            folder = None if entry.cwd is None else nearby.find(entry.cwd)
        except ManifestError as error:
            problems += [(f"{pointer}/cwd", text) for _, text in error.problems]
            continue
        found[id] = FoundExtension(manifest=build_manifest(id, name, entry), folder=folder)
        disabled += [id] if entry.disabled else []
    return ExtensionList(extensions=tuple(found.values()), problems=tuple(problems), disabled=tuple(disabled))


def find_entry_problems(given: Any, id: str, taken: Mapping[str, FoundExtension]) -> Iterator[Problem]:
    """Yields what is wrong with one server."""
    if not is_id(id):
        yield "", "has no name that an extension could have"
    elif id in taken:
        yield "", f"would have the same id as another one: {id}"
    if wrong := find_problems(given, McpServerEntry):
        yield from wrong
        return
    entry = msgspec.convert(given, McpServerEntry)
    if entry.url is not None or entry.type != STDIO:
        yield "", "is behind a URL, and no program that could be started"
    elif entry.command is None:
        yield "/command", "is missing"
    words = {"/command": entry.command or "", **{f"/args/{n}": word for n, word in enumerate(entry.args)}}
    for place, text in words.items():
        if PLACEHOLDER.search(text):
            yield place, f"takes a variable: `{truncate(text)}`, which is only done in `env`"
    for name, value in entry.env.items():
        if PLACEHOLDER.search(value) and not is_passthrough(name, value):
            yield f"/env/{name}", f"must be a text, or `${{{name}}}` for the value that the host itself has"


def is_passthrough(name: str, value: str) -> bool:
    """Returns whether a variable is to have the value that it has in the host itself."""
    return value == f"${{{name}}}"


def build_manifest(id: str, name: str, entry: McpServerEntry) -> Manifest:
    """Returns the extension that a server is. It always asks for something: none starts that nobody has agreed to."""
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

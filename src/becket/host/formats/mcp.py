"""The files in which MCP servers are listed: `.mcp.json`, as many programs write and read it, and the table
`mcp_servers` of a manifest. Each server becomes an extension that speaks `mcp`.

Both spellings of the member are read, `mcpServers` and `mcp_servers`. Members that nobody here knows are passed over:
other programs have some of their own. Only servers that are programs can be started; those behind a URL are told of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from becket.contract.shapes import is_object
from becket.errors import ManifestError, Problem
from becket.host.manifest import (
    Environment,
    Found,
    Listing,
    Manifest,
    ManifestReader,
    Nearby,
    Permission,
    Variable,
    Word,
    is_id,
    nearest_id,
)
from becket.typed.problems import below, cut, find_problems
from becket.typed.small_files import show_path

__all__ = ["FILE_NAME", "READER", "McpJson", "read_servers"]

FILE_NAME: Final = ".mcp.json"
MEMBERS: Final = ("mcpServers", "mcp_servers")
VERSION: Final = "0.0.0"  # the file says none; the server itself does, once it runs
PERMISSIONS: Final = ("tools.register",)
PROGRAM: Final = "stdio"
LONGEST_NAME: Final = 64
PLACE: Final = re.compile(r"\$\{[^}]*\}")  # other programs fill in `${KEY:-else}`, `${input:key}` and the like, too


class Entry(Struct, frozen=True, kw_only=True):
    """One server. `permissions` is ours: what it asks for besides that its tools are called."""

    command: Annotated[Word, Meta(min_length=1)] | None = None
    args: Annotated[tuple[Word, ...], Meta(max_length=255)] = ()
    env: dict[Variable, Word] = {}
    cwd: Word | None = None
    type: str = PROGRAM
    url: str | None = None
    disabled: bool = False
    permissions: tuple[Permission, ...] = ()


class McpJson(ManifestReader):
    """The reader of `.mcp.json`."""

    dialect = "mcp"
    list_names = (FILE_NAME,)

    def read_list(self, data: bytes, path: str, nearby: Nearby) -> Listing:
        """Returns the servers that the file lists; one that cannot be used is a problem, and the others are there.

        Raises:
            ManifestError: it is no JSON, or no object.
        """
        try:
            file: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ManifestError(show_path(path), [("", f"is no JSON object: {error}")]) from error
        for member in MEMBERS:
            if member in file:
                return read_servers(file[member], f"/{member}", "", nearby)
        return Listing()

    def hint_for(self, problem: Problem) -> str:
        """Returns what to do about a problem of the file."""
        _, message = problem
        return "start it through a program that speaks with it over stdin and stdout" if "URL" in message else ""


READER: Final = McpJson()


def read_servers(table: Any, at: str, prefix: str, nearby: Nearby) -> Listing:
    """Returns the servers of a table by name, as extensions whose ids begin with `prefix`.

    One with a `cwd` has that folder for its own: what it runs there is what was agreed to."""
    if not is_object(table):
        return Listing(problems=((at, "is no object of servers by name"),))
    found: dict[str, Found] = {}
    problems: list[Problem] = []
    disabled: list[str] = []
    for name, given in table.items():
        pointer = below(at, name)
        id = nearest_id(f"{prefix}{name}")
        wrong = [*find_entry_problems(given, id, found)]
        if wrong:
            problems += [(f"{pointer}{place}", text) for place, text in wrong]
            continue
        entry = msgspec.convert(given, Entry)
        try:
            folder = None if entry.cwd is None else nearby.find(entry.cwd)
        except ManifestError as error:
            problems += [(f"{pointer}/cwd", text) for _, text in error.problems]
            continue
        found[id] = Found(manifest=describe(id, name, entry), folder=folder)
        disabled += [id] if entry.disabled else []
    return Listing(extensions=tuple(found.values()), problems=tuple(problems), disabled=tuple(disabled))


def find_entry_problems(given: Any, id: str, taken: Mapping[str, Found]) -> Iterator[Problem]:
    """Yields what is wrong with one server."""
    if not is_id(id):
        yield "", "has no name that an extension could have"
    elif id in taken:
        yield "", f"would have the same id as another one: {id}"
    if wrong := find_problems(given, Entry):
        yield from wrong
        return
    entry = msgspec.convert(given, Entry)
    if entry.url is not None or entry.type != PROGRAM:
        yield "", "is behind a URL, and no program that could be started"
    elif entry.command is None:
        yield "/command", "is missing"
    words = {"/command": entry.command or "", **{f"/args/{n}": word for n, word in enumerate(entry.args)}}
    for place, text in words.items():
        if PLACE.search(text):
            yield place, f"takes a variable: `{cut(text)}`, which is only done in `env`"
    for name, value in entry.env.items():
        if PLACE.search(value) and not is_passed(name, value):
            yield f"/env/{name}", f"must be a text, or `${{{name}}}` for the value that the host itself has"


def is_passed(name: str, value: str) -> bool:
    """Returns whether a variable is to have the value that it has in the host itself."""
    return value == f"${{{name}}}"


def describe(id: str, name: str, entry: Entry) -> Manifest:
    """Returns the extension that a server is. It always asks for something: none starts that nobody has agreed to."""
    passed = tuple(variable for variable, value in entry.env.items() if is_passed(variable, value))
    return Manifest(
        id=id,
        version=VERSION,
        name=name[:LONGEST_NAME],
        description="An MCP server.",
        command=(entry.command or "", *entry.args),
        dialect="mcp",
        permissions=tuple(dict.fromkeys((*PERMISSIONS, *entry.permissions))),
        environment=Environment(
            passed=passed, set={variable: value for variable, value in entry.env.items() if variable not in passed}
        ),
    )

"""A client's side of the first exchange, and what it makes of a server's tools. Pure; whoever drives it sends.

The names, descriptions and schemas of tools are made to fit the contract, which asks for more than MCP does: nobody
here can mend a server, and one odd name is no reason to do without it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from becket.contract.handshake import Capabilities
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo
from becket.contract.names import LONGEST_ID, find_id_problem, trim
from becket.contract.shapes import is_object
from becket.contract.tools import Tool as DeclaredTool
from becket.dialects.handshakes import Greeted, Greeting, Introduction
from becket.dialects.mcp.lifecycle import (
    INITIALIZE,
    INITIALIZED,
    LATEST,
    VERSIONS,
    ClientCapabilities,
    Implementation,
    Initialize,
    Initialized,
    ServerCapabilities,
)
from becket.dialects.mcp.prompts import PROMPTS_LIST, Prompt, PromptsPage
from becket.dialects.mcp.tools import TOOLS_LIST, Tool, ToolsPage, is_object_schema
from becket.dialects.mcp.words import Page
from becket.dialects.phrases import Saying, Tale
from becket.errors import BadCapabilities, HandshakeFailed, RemoteError, VersionMismatch

__all__ = ["MOST_PAGES", "Server", "declare_tools", "greet", "introduce", "list_pages", "list_tools"]

MOST_PAGES: Final = 100  # of one list: a server that never comes to an end must not hold up its client for ever
DIGITS: Final = 6  # of the digest at the end of a name that was too long

W = TypeVar("W", bound=Struct)
Steps = Generator[Saying | Tale, Raw, W]


class Server(Struct, frozen=True, eq=False):
    """What a server has told of itself. `names` has its own name for each tool whose name had to be changed."""

    version: str
    info: Implementation
    capabilities: ServerCapabilities
    instructions: str | None = None
    names: dict[str, str] = field(default_factory=dict[str, str])  # others, once the tools have changed
    prompts: Mapping[str, Prompt] = {}


def greet(introduction: Introduction) -> Greeting:
    """Shakes hands and lists the tools and prompts. A `ClientCapabilities` among the particulars is what is offered."""
    given = introduction.particulars
    offered = given if isinstance(given, ClientCapabilities) else ClientCapabilities()
    client = Implementation(introduction.host.name, introduction.host.version)
    answer = yield from introduce(introduction.extension, client, offered)
    tools, names = declare_tools((yield from list_tools(introduction.extension, answer.capabilities)))
    prompts = yield from list_prompts(introduction.extension, answer.capabilities)
    server = Server(
        answer.protocol_version, answer.server_info, answer.capabilities, answer.instructions, names, prompts
    )
    return Greeted(declared=Capabilities(tools), about=describe(server), particulars=server, tolerates_schemas=True)


def introduce(extension: str, client: Implementation, offered: ClientCapabilities) -> Steps[Initialized]:
    """Says who the client is and what it offers; returns what the server answers.

    Raises:
        VersionMismatch: it speaks no version that is spoken here.
        BadCapabilities: its answer cannot be read.
    """
    try:
        raw = yield Saying(INITIALIZE, Initialize(LATEST, offered, client))
    except RemoteError as error:  # it should answer with a version of its own, and some name theirs in an error
        older = version_in(error)
        if older is None:
            raise
        raw = yield Saying(INITIALIZE, Initialize(older, offered, client))
    check_version(extension, raw)
    answer = read(extension, raw, Initialized)
    yield Tale(INITIALIZED.name)
    return answer


class Supported(Struct):
    supported: tuple[str, ...]


def version_in(error: RemoteError) -> str | None:
    """Returns the newest version that both sides speak, where an error says which the server does."""
    try:
        theirs = msgspec.convert(error.data, Supported).supported
    except msgspec.ValidationError:
        return None
    return next((version for version in reversed(VERSIONS) if version in theirs), None)


class Spoken(Struct, rename="camel"):
    protocol_version: Any = None


def check_version(extension: str, raw: Raw) -> None:
    """Looks at the version before all else: an answer of another version may have any shape."""
    given = read(extension, raw, Spoken).protocol_version
    if isinstance(given, str) and given not in VERSIONS:
        because = f"it speaks version {given[:40]} of MCP, and none of these: {', '.join(VERSIONS)}"
        raise VersionMismatch(extension, because, given=given, supported=LATEST)


def read(extension: str, raw: Raw, kind: type[W]) -> W:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCapabilities(extension, explain(raw, kind, error)) from error


def explain(raw: Raw, kind: type[Struct], error: Exception) -> list[tuple[str, str]]:
    from becket.typed.problems import find_problems, problem_of  # dear, and needed only now

    try:
        return find_problems(msgspec.json.decode(raw), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [problem_of(error)]


# -- lists


def list_tools(extension: str, capabilities: ServerCapabilities) -> Steps[ToolsPage]:
    """Asks for all tools, page by page."""
    if capabilities.tools is None:
        return ToolsPage(())
    pages = yield from list_pages(extension, Saying(TOOLS_LIST), ToolsPage)
    return ToolsPage(tuple(tool for page in pages for tool in page.tools))


def list_prompts(extension: str, capabilities: ServerCapabilities) -> Generator[Saying | Tale, Raw, dict[str, Prompt]]:
    """Asks for all prompts. They are no reason to do without a server whose prompts cannot be had."""
    if capabilities.prompts is None:
        return {}
    try:
        pages = yield from list_pages(extension, Saying(PROMPTS_LIST), PromptsPage)
    except (HandshakeFailed, RemoteError):
        return {}
    return {prompt.name: prompt for page in pages for prompt in page.prompts}


def list_pages(extension: str, saying: Saying, kind: type[W]) -> Generator[Saying | Tale, Raw, list[W]]:
    """Asks for a list until its last page has come.

    Raises:
        BadCapabilities: a page cannot be read.
        HandshakeFailed: there is no end to it.
    """
    pages: list[W] = []
    cursor: str | None = None
    while len(pages) < MOST_PAGES:
        raw = yield Saying(saying.method, None if cursor is None else Page(cursor))
        page: Any = read(extension, raw, kind)
        pages.append(page)
        if not page.next_cursor or page.next_cursor == cursor:
            return pages
        cursor = page.next_cursor
    raise HandshakeFailed(extension, f"its `{saying.method.name}` has more than {MOST_PAGES} pages")


# -- tools as the contract has them


def declare_tools(page: ToolsPage) -> tuple[tuple[DeclaredTool, ...], dict[str, str]]:
    """Returns the tools as the contract has them, and the server's own names for those that are named otherwise.

    A tool whose name the contract allows keeps it, wherever it is listed; the others get names that none has."""
    listed: dict[str, Tool] = {}
    for tool in page.tools:
        listed.setdefault(tool.name, tool)
    allowed = {name for name in listed if find_id_problem(name) is None}
    taken = set(allowed)
    declared: dict[str, DeclaredTool] = {}
    names: dict[str, str] = {}
    for own, tool in listed.items():
        name = own
        if own not in allowed:
            name = derive_name(own, taken)
            names[name] = own
            taken.add(name)
        is_read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
        output = tool.output_schema
        declared[name] = DeclaredTool(
            name,
            describe_tool(tool, name),
            fit_schema(tool.input_schema),
            is_read_only,
            output if is_object(output) and is_object_schema(output) else None,
        )
    return tuple(declared.values()), names


def derive_name(name: str, taken: AbstractSet[str]) -> str:
    """Returns a name that the contract allows, that is not taken, and that tells the tool it is derived from."""
    from hashlib import sha256

    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-.") else "_" for letter in name)

    def attempt(number: int) -> str:
        text = name + " " * number
        mark = "_" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
        return safe[: LONGEST_ID - len(mark)] + mark

    return next(derived for derived in map(attempt, count()) if derived not in taken)


def describe_tool(tool: Tool, name: str) -> str:
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None)
    return next((text for text in (tool.description, title) if text and trim(text)), f"The tool {name}.")


def fit_schema(schema: Any) -> Any:
    return schema if is_object(schema) else {"type": "object"}


def describe(server: Server) -> ExtensionInfo:
    """Returns what a server tells of itself as the contract has it."""
    offered = [name for name in ServerCapabilities.__struct_fields__ if getattr(server.capabilities, name) is not None]
    capabilities = tuple(CapabilityInfo("mcp", name) for name in offered)
    return ExtensionInfo(BuildInfo(server.info.name, version=server.info.version), capabilities)

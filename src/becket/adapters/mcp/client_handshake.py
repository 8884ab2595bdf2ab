"""MCP client handshake: initialize, list tools and prompts, and convert tools to the contract.

Names, descriptions and schemas of tools are adapted to the contract, which is stricter than MCP, so that a server with
an unusual name is still usable.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Set as AbstractSet
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from becket._text import truncate
from becket.adapters.mcp.messages.base import PaginatedParams
from becket.adapters.mcp.messages.lifecycle import (
    INITIALIZE,
    INITIALIZED,
    LATEST_VERSION,
    PROTOCOL_VERSIONS,
    ClientCapabilities,
    Implementation,
    McpInitializeParams,
    McpInitializeResult,
    ServerCapabilities,
)
from becket.adapters.mcp.messages.prompts import PROMPTS_LIST, ListPromptsResult, Prompt
from becket.adapters.mcp.messages.tools import TOOLS_LIST, ListToolsResult, McpTool, is_object_schema
from becket.contract.handshake import Capabilities
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo
from becket.contract.json_narrowing import is_object
from becket.contract.names import MAX_ID_LENGTH, find_id_problem, strip_whitespace
from becket.contract.tools import Tool as DeclaredTool
from becket.dialects.handshake import ClientHandshake, HandshakeContext, HandshakeResult
from becket.dialects.link_state import WireNotification, WireRequest
from becket.errors import JSON_ERRORS, BadCapabilities, HandshakeFailed, RemoteError, VersionMismatch

__all__ = [
    "MAX_PAGES",
    "McpServerInfo",
    "client_handshake",
    "convert_tools",
    "initialize_server",
    "request_pages",
    "request_tools",
]

MAX_PAGES: Final = 100  # of one list; bounds a server that returns pages without end
DIGEST_LENGTH: Final = 6  # characters of the digest at the end of a derived name

W = TypeVar("W", bound=Struct)
HandshakeSteps = Generator[WireRequest | WireNotification, Raw, W]


class McpServerInfo(Struct, frozen=True, eq=False):
    """Result of the handshake. `names` maps changed tool names to the server's own."""

    version: str
    info: Implementation
    capabilities: ServerCapabilities
    instructions: str | None = None
    names: dict[str, str] = field(default_factory=dict[str, str])  # updated when the tools change
    prompts: Mapping[str, Prompt] = {}


def client_handshake(context: HandshakeContext) -> ClientHandshake:
    """Initializes a server and lists its tools and prompts. `extra` may be the `ClientCapabilities` to announce."""
    extra = context.extra
    offered = extra if isinstance(extra, ClientCapabilities) else ClientCapabilities()
    client = Implementation(context.host.name, context.host.version)
    result = yield from initialize_server(context.extension, client, offered)
    tools, names = convert_tools((yield from request_tools(context.extension, result.capabilities)))
    prompts = yield from request_prompts(context.extension, result.capabilities)
    server = McpServerInfo(
        result.protocol_version, result.server_info, result.capabilities, result.instructions, names, prompts
    )
    return HandshakeResult(
        capabilities=Capabilities(tools), info=build_extension_info(server), extra=server, allows_invalid_schemas=True
    )


def initialize_server(
    extension: str, client: Implementation, offered: ClientCapabilities
) -> HandshakeSteps[McpInitializeResult]:
    """Sends `initialize` and `initialized`; returns the server's result.

    Raises:
        VersionMismatch: the server supports none of our versions.
        BadCapabilities: its result is malformed.
    """
    try:
        raw = yield WireRequest(INITIALIZE, McpInitializeParams(LATEST_VERSION, offered, client))
    except RemoteError as error:  # some servers list their versions in an error instead of choosing one
        older = find_common_version(error)
        if older is None:
            raise
        raw = yield WireRequest(INITIALIZE, McpInitializeParams(older, offered, client))
    check_version(extension, raw)
    result = decode_result(extension, raw, McpInitializeResult)
    yield WireNotification(INITIALIZED.name)
    return result


class SupportedVersions(Struct):
    supported: tuple[str, ...]


def find_common_version(error: RemoteError) -> str | None:
    """Returns the newest common version if an error lists those of the server."""
    try:
        theirs = msgspec.convert(error.data, SupportedVersions).supported
    except msgspec.ValidationError:
        return None
    return next((version for version in reversed(PROTOCOL_VERSIONS) if version in theirs), None)


class McpVersionProbe(Struct, rename="camel"):
    protocol_version: Any = None


def check_version(extension: str, raw: Raw) -> None:
    """Checks the version first, because a result of another version may have any shape."""
    version = decode_result(extension, raw, McpVersionProbe).protocol_version
    if isinstance(version, str) and version not in PROTOCOL_VERSIONS:
        because = f"it uses version {truncate(version)} of MCP, which is not one of: {', '.join(PROTOCOL_VERSIONS)}"
        raise VersionMismatch(extension, because, given=version, supported=LATEST_VERSION)


def decode_result(extension: str, raw: Raw, kind: type[W]) -> W:
    try:
        return msgspec.json.decode(raw, type=kind)
    except JSON_ERRORS as error:
        raise BadCapabilities(extension, find_decode_problems(raw, kind, error)) from error


def find_decode_problems(raw: Raw, kind: type[Struct], error: Exception) -> list[tuple[str, str]]:
    from becket.conversion.problems import find_problems, to_problem  # dear, and needed only now

    try:
        return find_problems(msgspec.json.decode(raw), kind)
    except JSON_ERRORS:
        return [to_problem(error)]


# -- lists


def request_tools(extension: str, capabilities: ServerCapabilities) -> HandshakeSteps[ListToolsResult]:
    """Requests all tools, page by page."""
    if capabilities.tools is None:
        return ListToolsResult(())
    pages = yield from request_pages(extension, WireRequest(TOOLS_LIST), ListToolsResult)
    return ListToolsResult(tuple(tool for page in pages for tool in page.tools))


def request_prompts(
    extension: str, capabilities: ServerCapabilities
) -> Generator[WireRequest | WireNotification, Raw, dict[str, Prompt]]:
    """Requests all prompts; returns none if that fails, because the server's tools are still usable."""
    if capabilities.prompts is None:
        return {}
    try:
        pages = yield from request_pages(extension, WireRequest(PROMPTS_LIST), ListPromptsResult)
    except (HandshakeFailed, RemoteError):
        return {}
    return {prompt.name: prompt for page in pages for prompt in page.prompts}


def request_pages(
    extension: str, request: WireRequest, kind: type[W]
) -> Generator[WireRequest | WireNotification, Raw, list[W]]:
    """Requests all pages of a list.

    Raises:
        BadCapabilities: a page is malformed.
        HandshakeFailed: there are more than `MAX_PAGES`.
    """
    pages: list[W] = []
    cursor: str | None = None
    while len(pages) < MAX_PAGES:
        raw = yield WireRequest(request.method, None if cursor is None else PaginatedParams(cursor))
        page: Any = decode_result(extension, raw, kind)
        pages.append(page)
        if not page.next_cursor or page.next_cursor == cursor:
            return pages
        cursor = page.next_cursor
    raise HandshakeFailed(extension, f"its `{request.method.name}` has more than {MAX_PAGES} pages")


# -- conversion of tools


def convert_tools(page: ListToolsResult) -> tuple[tuple[DeclaredTool, ...], dict[str, str]]:
    """Returns the tools for the contract, and the server's own names of renamed tools.

    A tool whose name the contract allows keeps it, regardless of its position; the others get unused names."""
    listed: dict[str, McpTool] = {}
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
            choose_description(tool, name),
            normalize_schema(tool.input_schema),
            is_read_only,
            output if is_object(output) and is_object_schema(output) else None,
        )
    return tuple(declared.values()), names


def derive_name(name: str, taken: AbstractSet[str]) -> str:
    """Returns an allowed and unused name that resembles the given one."""
    from hashlib import sha256

    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-.") else "_" for letter in name)

    def attempt(number: int) -> str:
        text = name + " " * number
        mark = "_" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
        return safe[: MAX_ID_LENGTH - len(mark)] + mark

    return next(derived for derived in map(attempt, count()) if derived not in taken)


def choose_description(tool: McpTool, name: str) -> str:
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None)
    return next((text for text in (tool.description, title) if text and strip_whitespace(text)), f"The tool {name}.")


def normalize_schema(schema: Any) -> Any:
    return schema if is_object(schema) else {"type": "object"}


def build_extension_info(server: McpServerInfo) -> ExtensionInfo:
    """Returns the server's info in the form of the contract."""
    offered = [name for name in ServerCapabilities.__struct_fields__ if getattr(server.capabilities, name) is not None]
    capabilities = tuple(CapabilityInfo("mcp", name) for name in offered)
    return ExtensionInfo(BuildInfo(server.info.name, version=server.info.version), capabilities)

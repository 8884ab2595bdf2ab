"""The first exchange of nexo from both sides, and how a program is told to end.

There is no version to agree on: a host tells its own and the id by which it knows the extension, and the extension
answers with its tools and hooks, or with nothing at all.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from becket.contract.handshake import PROTOCOL_VERSION, Capabilities, HostInfo, Initialize, Initialized
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.contract.shapes import cut
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.nexo.hooks import hook_kinds_of, hook_names_of
from becket.dialects.nexo.particulars import NexoManifest, Particulars
from becket.dialects.nexo.words import (
    INITIALIZE,
    SHUTDOWN,
    TOOLS_LIST,
    Farewell,
    Hello,
    ListedTool,
    ListedTools,
    Offer,
    tools_of,
)
from becket.dialects.phrases import Saying, Scene
from becket.errors import HandshakeFailed, InvalidParams
from becket.typed.problems import problem_of

__all__ = ["WELCOME", "clean_reason", "greet", "say_goodbye"]

LONGEST_REASON = 200  # characters
USUAL_REASON = "client shutdown"
HOST_NAME = "nexo"  # the hosts of that system do not tell their name

UNREADABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)


# -- the host's side


def greet(introduction: Introduction) -> Greeting:
    """Says who the host is, and returns what the extension offers.

    Raises:
        HandshakeFailed: its answer cannot be read.
    """
    host = introduction.host
    raw = yield Saying(INITIALIZE, Hello(host.version, introduction.extension))
    offer = read_offer(raw, introduction.extension)
    kinds, unknown = hook_kinds_of(offer.hooks)
    known = introduction.particulars
    manifest = known if isinstance(known, NexoManifest) else NexoManifest()
    version = offer.server_version
    return Greeted(
        declared=Capabilities(tools_of(offer.tools)),
        hooks=kinds,
        about=None if version is None else ExtensionInfo(BuildInfo("cpu", version=version)),
        particulars=Particulars(agent_id=host.name, server_version=version, manifest=manifest),
        notes=tuple(f"the hook `{cut(name)}` is unknown, and passed over" for name in unknown),
        tolerates_schemas=True,  # that system looks at no input at all
    )


def read_offer(raw: Raw, extension: str) -> Offer:
    """Returns what an extension offers; null is nothing at all."""
    try:
        return msgspec.json.decode(raw, type=Offer | None) or Offer()
    except UNREADABLE as error:
        raise HandshakeFailed(extension, f"undecodable handshake payload: {cut(str(error))}") from error


def say_goodbye(scene: Scene) -> Saying:
    """Returns the request that ends an extension, with the reason."""
    return Saying(SHUTDOWN, Farewell(clean_reason(scene.farewell) or USUAL_REASON))


def clean_reason(reason: str) -> str:
    """Returns a reason as it may stand in a log: without control characters, and not too long."""
    return "".join(letter for letter in reason if not is_control(letter))[:LONGEST_REASON]


def is_control(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f"


# -- the extension's side


def read_hello(given: Any, scene: Scene) -> Initialize:
    """Returns the host's first words as the contract would have said them: there is no folder and no configuration.

    Raises:
        InvalidParams: they are of another shape.
    """
    try:
        said = Hello() if given is None else msgspec.convert(given, Hello)
    except msgspec.ValidationError as error:
        raise InvalidParams([problem_of(error)]) from error
    return Initialize(
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=said.extension_id or scene.extension,
        plugin_root=None,
        config={},
        host=HostInfo(HOST_NAME, said.agent_version),
    )


def reply(initialized: Initialized, scene: Scene) -> Offer:
    """Returns the answer to the first words."""
    return Offer(scene.version or None, list_tools(initialized.capabilities), hook_names_of(scene.hooks))


def list_tools(declared: Capabilities) -> tuple[ListedTool, ...]:
    return tuple(ListedTool(tool.name, tool.description, tool.input_schema) for tool in declared.tools)


WELCOME = Welcome(
    opening=INITIALIZE,
    read=read_hello,
    reply=reply,
    queries={TOOLS_LIST.name: lambda _, scene: ListedTools(list_tools(scene.declared))},
    farewell={"ok": True},
)

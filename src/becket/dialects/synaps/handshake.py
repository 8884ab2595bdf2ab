"""The first exchange: `initialize`, as the contract has it, without what becket has added to it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from becket.contract.handshake import INITIALIZE, PROTOCOL_VERSION, Initialize, Initialized
from becket.contract.handshake_rules import parse_initialized
from becket.contract.shapes import is_object
from becket.dialects.handshakes import Greeted, Greeting, Introduction, Welcome
from becket.dialects.phrases import Saying, Scene
from becket.dialects.synaps.manifest import Plugin
from becket.errors import InvalidParams, Meaning, RpcError
from becket.methods.descriptors import Method
from becket.methods.permissions import PERMISSIONS, Grants

__all__ = ["SYNAPS_VERSION", "WELCOME", "greet", "name_of"]

SYNAPS_VERSION: Final = "0.1.0"  # which extensions are told; nothing depends on it


def greet(introduction: Introduction) -> Greeting:
    """Introduces the host, and returns what the extension declares once it has passed every rule of the contract."""
    words = Initialize(
        synaps_version=SYNAPS_VERSION,
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=name_of(introduction),
        plugin_root=introduction.cwd if introduction.root is None else introduction.root,
        config=dict(introduction.config),
    )
    raw = yield Saying(INITIALIZE, words)
    initialized = parse_initialized(
        introduction.extension,
        raw,
        grants=Grants(introduction.grants),
        config=introduction.config,
        known=PERMISSIONS | introduction.grants,
        reads_hooks=False,  # the hooks of these programs stand in their manifests
    )
    return Greeted(declared=initialized.capabilities)


def name_of(known: Introduction | Scene) -> str:
    """Returns the id by which an extension knows itself: its folder may have a name that is no id in this host."""
    plugin = known.particulars
    return plugin.id if isinstance(plugin, Plugin) and plugin.id else known.extension


def read_initialize(given: Any, scene: Scene) -> Initialize:
    version = given.get("extension_protocol_version") if is_object(given) else None
    if isinstance(version, int) and version != PROTOCOL_VERSION:
        text = f"{scene.extension} speaks version {PROTOCOL_VERSION} of the extension protocol, not {version}"
        raise RpcError(Meaning.INCOMPATIBLE, text)
    try:
        return replace(msgspec.convert(given, Initialize), host=None, features=())
    except msgspec.ValidationError as error:
        from becket.typed.problems import find_problems

        raise InvalidParams(find_problems(given, Initialize)) from error


def reply(initialized: Initialized, scene: Scene) -> Initialized:
    return Initialized(initialized.protocol_version, initialized.capabilities)


OPENING: Final[Method[Any, Any]] = Method(INITIALIZE.name, Any, Any)  # the version is looked at before the rest
WELCOME: Final = Welcome(opening=OPENING, read=read_initialize, reply=reply)

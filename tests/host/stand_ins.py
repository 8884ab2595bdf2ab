"""Extensions for the tests of this folder: a peer with handlers, and one whose messages the test sends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from tests.peer.scripted import Message, Script, refusal, response

from becket import Peer
from becket.contract.handshake import FEATURES
from becket.host.extension import Extension
from becket.host.starting.connect import connect_extension_over
from becket.host.timeouts import Timeouts
from becket.testing import memory_transports

SOON = Timeouts(shutdown=0.05)
ECHO = {"name": "echo", "description": "Says it again.", "input_schema": {"type": "object"}}
LOCAL = {
    "id": "local",
    "display_name": "Local",
    "description": "A model of our own.",
    "models": [{"id": "small", "capabilities": {"streaming": True}}],
}
ALL = ("tools.register", "providers.register", "memory.read", "memory.write", "config.write", "config.subscribe")


def initialized(
    *, version: object = 1, features: Sequence[str] | None = None, **capabilities: object
) -> dict[str, object]:
    """Returns a response to `initialize`."""
    result: dict[str, object] = {"protocol_version": version, "capabilities": capabilities}
    return result if features is None else {**result, "features": list(features)}


@asynccontextmanager
async def hosted(
    *,
    tools: Sequence[object] = (ECHO,),
    providers: Sequence[object] = (LOCAL,),
    features: Sequence[str] = FEATURES,
    limits: Any = None,
    **options: Any,
) -> AsyncGenerator[tuple[Extension, Peer], None]:
    """Yields the handle on an extension and the extension itself, a peer whose handlers the test adds.

    Without `features` it is an old one, which supports only the first version of the contract."""
    ours, theirs = memory_transports()
    is_new = bool(features)
    async with Peer.over(theirs, dialect="native" if is_new else "plain") as child:
        if is_new:
            child.limit_features(())

        @child.handle("initialize")
        def initialize(params: Any) -> Any:
            if is_new:
                child.limit_features(params["features"])
            return initialized(features=features or None, tools=tools, providers=providers)

        @child.handle("shutdown")
        def shutdown() -> None: ...

        options = {"grants": ALL, "timeouts": SOON, "id": "notes"} | options
        if "gate" in options:
            del options["grants"]
        if limits is not None:
            options["limits"] = limits
        async with connect_extension_over(ours, **options) as extension:
            yield extension, child


@asynccontextmanager
async def played(result: object = None, **options: Any) -> AsyncGenerator[tuple[Extension, Script], None]:
    """Yields the handle on an extension whose messages the test sends, after the handshake of an old one."""
    script = Script()
    options = {"grants": ALL, "timeouts": SOON, "id": "notes"} | options
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(introduce, script, initialized(tools=[ECHO], providers=[LOCAL]) if result is None else result)
        async with connect_extension_over(script, **options) as extension:
            yield extension, script


async def introduce(script: Script, result: object) -> Message:
    """Responds to `initialize`, and to `info.get` with method not found."""
    called: Message = await script.receive()
    script.send(response(called, result))
    declared = result.get("capabilities") if isinstance(result, dict) else None
    if declared and any(declared.values()):
        script.send(refusal(await script.receive(), -32601))
    return called

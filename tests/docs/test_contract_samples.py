"""The conversations on the contract page match the messages of a host and an extension."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.docs.contract_extension import Bells, Notes, build_store, options_for, perform
from tests.docs.pages import ROOT, read_blocks
from tests.docs.schemas import check_message, check_value
from tests.docs.tapes import MessageTape

from becket.errors import CallCancelled
from becket.extension import ExtensionServer
from becket.host.starting.connect import connect_extension_over
from becket.json_schema.validator import preload
from becket.testing import run_in_virtual_time

PAGE = ROOT / "docs" / "contract.md"
BY_ITSELF = {"initialize", "info.get"}  # what a host sends at the start by itself


class Line(NamedTuple):
    """One message and its sender."""

    who: str
    message: dict[str, Any]

    @property
    def is_started_by_host(self) -> bool:
        return self.who == ">" and self.message.get("method", "initialize") not in BY_ITSELF


def read_conversation(*words: str) -> list[Line]:
    blocks = [block for block in read_blocks(PAGE) if block.language == "talk" and block.words == words]
    return [line for block in blocks for line in read_lines(block.text)]


def read_lines(text: str) -> Iterator[Line]:
    for part in re.split(r"^(?=[<>] )", text, flags=re.MULTILINE)[1:]:
        yield Line(part[0], {"jsonrpc": "2.0", **msgspec.json.decode(part[2:])})


CONVERSATIONS: dict[str, tuple[type[ExtensionServer], list[Line]]] = {
    "in the words of the contract": (Notes, read_conversation()),
    "with features": (Bells, read_conversation("native")),
}
conversations = pytest.mark.parametrize(("kind", "lines"), CONVERSATIONS.values(), ids=CONVERSATIONS)


@conversations
def test_every_message_follows_the_schemas(kind: type[ExtensionServer], lines: list[Line]) -> None:
    assert len(lines) > 10
    requested: dict[tuple[str, int], str] = {}
    for who, message in lines:
        method = message.get("method", "")
        if "method" in message and "id" in message:
            requested[who, message["id"]] = method
        elif "id" in message:
            method = requested.pop(("<" if who == ">" else ">", message["id"]))
        if method.startswith("$/"):
            check_value(message, "envelope")
        else:
            check_message(message, method)
    assert requested == {}


@conversations
def test_a_host_sends_what_is_shown(kind: type[ExtensionServer], lines: list[Line]) -> None:
    preload()  # in virtual time nothing waits for a thread

    async def play() -> None:
        tape, store, extension = MessageTape(), build_store(), kind()
        connecting = connect_extension_over(tape, id=extension.id, **options_for(extension, store))
        starting = asyncio.ensure_future(connecting.__aenter__())
        work: dict[int | None, asyncio.Task[None]] = {}
        for line in lines:
            who, message = line
            if who == "<":
                tape.put_message(message)
                continue
            if line.is_started_by_host:
                host = await starting
                if message.get("method") == "$/cancelRequest":
                    work[message["params"]["id"]].cancel()
                elif "method" in message:
                    work[message.get("id")] = asyncio.create_task(perform(host, store, message))
            assert await tape.take_message() == message
        for task in work.values():
            with suppress(asyncio.CancelledError, CallCancelled):
                await task

    run_in_virtual_time(play)


@conversations
def test_an_extension_sends_what_is_shown(kind: type[ExtensionServer], lines: list[Line]) -> None:
    async def play() -> None:
        tape = MessageTape()
        announces = "features" in lines[1].message["result"]
        async with kind().over(tape):
            for who, message in lines:
                if who == "<":
                    assert await tape.take_message() == message
                    continue
                # The kit supports all features, and announces them where the host does.
                tape.put_message(message if announces else without_features(message))
            assert await tape.take_message() is None

    run_in_virtual_time(play)


def without_features(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("method") != "initialize":
        return message
    params = {name: value for name, value in message["params"].items() if name != "features"}
    return {**message, "params": params}

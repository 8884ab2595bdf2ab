"""The wire samples match what a peer writes and reads, byte for byte, as host and as child."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, NamedTuple

import anyio
import jsonschema
import msgspec
import pytest
from msgspec import Struct
from tests.docs.pages import PAGES, ROOT, Block, read_blocks, read_table
from tests.docs.tapes import Tape

from becket import BatchCall, BatchNotify, Context, Limits, Peer, Registry
from becket.framing import ContentLength, FramingFactory, JsonLines, LengthPrefixed
from becket.json_schema.files import load_schema
from becket.testing import run_in_virtual_time

SAMPLES = [block for page in PAGES for block in read_blocks(page) if block.language == "wire"]
FRAMINGS: dict[str, FramingFactory] = {"json-lines": JsonLines, "length-prefixed": LengthPrefixed}
PARTS = {"host": ">", "child": "<"}
DIALECTS = {"native"}
WIRE_PAGE = ROOT / "docs" / "wire.md"

samples = pytest.mark.parametrize("sample", SAMPLES, ids=str)


class Turn(NamedTuple):
    """What one peer writes before the other does."""

    who: str
    data: bytes


class Numbers(Struct):
    numbers: list[int]


class Pair(Struct):
    a: int
    b: int


class Count(Struct):
    to: int


def build_methods() -> Registry:
    """Returns the methods that the samples call."""
    methods = Registry()

    @methods.handle("echo")
    def echo(params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in params.items() if name != "_meta"}

    @methods.handle("total")
    async def total(params: Numbers, ctx: Context) -> int:
        a, b = params.numbers
        result: int = await ctx.call("host/add", {"a": a, "b": b})
        return result

    @methods.handle("host/add")
    def add(params: Pair) -> int:
        return params.a + params.b

    @methods.handle("count")
    async def count(params: Count, ctx: Context) -> str:
        for number in range(1, params.to + 1):
            await ctx.progress(number)
        return "done"

    @methods.handle("sleep")
    async def sleep() -> None:
        await anyio.sleep_forever()

    return methods


# -- the form of a sample


def read_turns(sample: Block) -> list[Turn]:
    turns: list[Turn] = []
    for line in sample.text.splitlines():
        who, data = line[0], unescape(line[2:])
        if turns and turns[-1].who == who:
            data = turns.pop().data + data
        turns.append(Turn(who, data))
    return turns


def unescape(line: str) -> bytes:
    data = line.encode().replace(b"\\r", b"\r").replace(b"\\n", b"\n")
    data = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), data)
    assert b"\\" not in data, "no other escapes in samples"
    return data


def framing_of(sample: Block) -> FramingFactory:
    return next((FRAMINGS[word] for word in sample.words if word in FRAMINGS), ContentLength)


def dialect_of(sample: Block) -> str:
    return next((word for word in sample.words if word in DIALECTS), "plain")


def messages_in(data: bytes, factory: FramingFactory) -> list[Any]:
    framing = factory(Limits())
    frames = framing.feed(data)
    assert framing.end() is None
    return [msgspec.json.decode(frame) for frame in frames if isinstance(frame, bytes | bytearray)]


@samples
def test_a_sample_names_the_roles_of_its_messages(sample: Block) -> None:
    assert set(sample.words) <= PARTS.keys() | FRAMINGS.keys() | DIALECTS
    assert set(sample.words) & PARTS.keys()


@samples
def test_a_sample_is_made_of_whole_frames_that_follow_the_schema(sample: Block) -> None:
    validator = jsonschema.Draft202012Validator(load_schema("envelope"))
    for turn in read_turns(sample):
        messages = messages_in(turn.data, framing_of(sample))
        assert messages
        for message in messages:
            validator.validate(message)


# -- a peer that plays a part


class Actions:
    """What a host does by itself, so that its peer writes the messages of a sample."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._calls: dict[int, asyncio.Task[object]] = {}

    def do(self, message: Any) -> None:
        match message:
            case list():
                self._begin(0, self._peer.batch([self._member(member) for member in message]))
            case {"method": "$/cancelRequest", "params": {"id": id}}:
                self._calls[id].cancel()
            case {"method": "$/ping", "id": id}:
                self._begin(id, self._peer.ping())
            case {"method": method, "id": id}:
                self._begin(id, self._peer.call(method, without_meta(message.get("params"))))
            case {"method": method}:
                self._peer.notify_nowait(method, message.get("params"))
            case _:
                pass  # a response: the handler returns it

    def _begin(self, id: int, work: Coroutine[Any, Any, object]) -> None:
        self._calls[id] = asyncio.create_task(work)

    def _member(self, message: Any) -> BatchCall | BatchNotify:
        kind = BatchCall if "id" in message else BatchNotify
        return kind(message["method"], message.get("params"))

    async def end(self) -> None:
        with anyio.fail_after(60):
            await asyncio.gather(*self._calls.values(), return_exceptions=True)


def without_meta(params: Any) -> Any:
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name != "_meta"} or None
    return params


@samples
@pytest.mark.parametrize("part", PARTS)
def test_a_peer_writes_the_bytes_of_its_part(sample: Block, part: str) -> None:
    if part not in sample.words:
        pytest.skip(f"becket does not play the {part} in this sample")

    async def play() -> None:
        tape = Tape()
        options: dict[str, Any] = {"dialect": dialect_of(sample), "framing": framing_of(sample)}
        async with Peer.over(tape, methods=build_methods(), **options) as peer:
            actions = Actions(peer)
            for turn in read_turns(sample):
                if turn.who != PARTS[part]:
                    tape.put(turn.data)
                    continue
                if part == "host":
                    for message in messages_in(turn.data, framing_of(sample)):
                        actions.do(message)
                        await anyio.lowlevel.checkpoint()
                assert await tape.take(len(turn.data)) == turn.data
            await actions.end()

    run_in_virtual_time(play)  # so that the sent milliseconds are the requested ones


@pytest.mark.parametrize(("body", "code", "id"), read_table(WIRE_PAGE, "Invalid messages"), ids=lambda cell: str(cell))
def test_a_wrong_message_gets_the_response_of_the_table(body: str, code: str, id: str) -> None:
    async def play() -> None:
        tape = Tape()
        async with Peer.over(tape, methods=build_methods(), framing=JsonLines) as peer:
            tape.put(body.strip("`").encode() + b"\n")
            response = msgspec.json.decode(await tape.take(1), type=dict[str, msgspec.Raw])
            assert bytes(response["id"]) == id.encode()
            assert msgspec.json.decode(response["error"])["code"] == int(code)
            assert not peer.is_closed

    run_in_virtual_time(play)

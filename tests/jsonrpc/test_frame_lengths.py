"""Frames without params or a result whose other members have the same length are distinguished."""

from __future__ import annotations

import anyio
import pytest
from tests.peer.scripted import scripted

from becket import BadReply
from becket.errors import Meaning
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.messages import Invalid, Message, NotificationMessage, Request


def decode(text: str) -> Message:
    return JsonCodec().decode(text.encode())


@pytest.mark.parametrize("member", ['"x":12345', '"trace":1', '"a":[1,2]', '"x":1', '"longer":{}'])
def test_an_unknown_member_in_the_position_of_params_is_skipped(member: str) -> None:
    request = decode(f'{{"jsonrpc":"2.0","id":7,"method":"m",{member}}}')
    assert isinstance(request, Request)
    assert request.params is None
    notification = decode(f'{{"jsonrpc":"2.0","method":"m",{member}}}')
    assert isinstance(notification, NotificationMessage)
    assert notification.params is None


@pytest.mark.parametrize("second", ["7777", "8888"])
def test_a_second_id_in_the_position_of_params_is_refused(second: str) -> None:
    message = decode(f'{{"jsonrpc":"2.0","id":7777,"method":"m","id":{second}}}')
    assert isinstance(message, Invalid)
    assert message.meaning is Meaning.INVALID_REQUEST


@pytest.mark.parametrize("member", ['"error":5', '"result":1', '"error":null'])
def test_a_request_that_is_a_response_too_is_refused(member: str) -> None:
    assert isinstance(decode(f'{{"jsonrpc":"2.0","id":7,"method":"m",{member}}}'), Invalid)
    assert isinstance(decode(f'{{"jsonrpc":"2.0","method":"m",{member}}}'), Invalid)


@pytest.mark.parametrize("id", [1, 12, 123, 1234, 12345])
async def test_a_request_under_the_name_of_a_subscribed_event_gets_a_response_whatever_its_id(id: int) -> None:
    async with scripted() as (peer, script), peer.stream("x", events={"tick": object}):
        await script.receive()
        script.send({"jsonrpc": "2.0", "id": id, "method": "tick"})
        assert (await script.receive())["id"] == id


async def test_a_response_with_a_one_digit_error_code_is_an_error() -> None:
    async with scripted() as (peer, script), anyio.create_task_group() as tasks:

        async def call() -> None:
            with pytest.raises(BadReply, match="error"):
                await peer.call("q")

        tasks.start_soon(call)
        called = await script.receive()
        script.send({"jsonrpc": "2.0", "id": called["id"], "error": 5})

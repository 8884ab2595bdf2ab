"""Deviations of real programs are accepted; sent messages have the form that all of them accept."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.conversation import CHILD, Conversation

from becket import CallTimeout, Limits, Peer
from becket.framing import ContentLength, JsonLines
from becket.testing import memory_pair, run_in_virtual_time

pytestmark = pytest.mark.process

RUNTIMES = ["asyncio", "blocking"]
PROGRAMS = [(runtime, framing) for runtime in RUNTIMES for framing in ("content-length", "json-lines")]


every_program = pytest.mark.parametrize("arguments", PROGRAMS, ids=[" ".join(arguments) for arguments in PROGRAMS])


@pytest.fixture(scope="module", params=PROGRAMS, ids=[" ".join(arguments) for arguments in PROGRAMS])
def program(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    """One program for most tests of this file: whatever it received before, it must continue."""
    with Conversation(*request.param) as conversation:
        yield conversation


def called_back(program: Conversation, id: object, method: str = "asked", **params: object) -> Any:
    """Lets the program call us back, and returns the id under which it does."""
    program.send(request(id, "ask", params={"method": method, **params}))
    call = program.receive()
    assert call == request(call["id"], method, **params)
    return call["id"]


def request(id: object, method: str = "echo", **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **members}


def success(id: object, result: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


# -- what we send


@every_program
def test_sent_messages_have_the_safe_form_to_the_byte(arguments: tuple[str, str]) -> None:
    wanted = [
        '{"jsonrpc":"2.0","method":"said"}',
        '{"jsonrpc":"2.0","method":"said","params":{"a":"\u2028é"}}',
        '{"jsonrpc":"2.0","id":1,"method":"asked"}',
        '{"jsonrpc":"2.0","id":2,"method":"asked","params":[1]}',
        '{"jsonrpc":"2.0","id":3,"method":"asked","params":{}}',
    ]
    with Conversation(*arguments) as program:
        program.send(request("outer", "talk"))
        for text in wanted:
            # One header, its name in this form, one space; integer ids from 1; no params where there are none.
            assert program.receive_raw() == program.frame(text)
            if '"id":' in text:
                program.send(success(int(text.split('"id":')[1][0]), "yes"))
        assert program.receive_raw() == program.frame('{"jsonrpc":"2.0","id":"outer","result":["yes","yes","yes"]}')


def test_a_call_that_is_given_up_is_cancelled_once() -> None:
    with Conversation("asyncio", "content-length") as program:
        program.send(request("outer", "give up"))
        assert program.receive() == request(1, "never answered")
        assert program.receive() == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
        assert program.receive() == success("outer", "given up")
        assert program.is_silent_after(success(1, "late"))


# -- what we accept


@pytest.mark.parametrize("id", [0, "a", "", "c56a4180-65aa-42ec-a945-5fd21dec0538", 2**31, 2**53 + 1, -1, 1.5, None])
def test_ids_of_every_kind_get_responses(program: Conversation, id: object) -> None:
    assert program.call(request(id)) == success(id)


def test_an_incoming_id_may_equal_an_outgoing_one(program: Conversation) -> None:
    ours = called_back(program, "a")
    theirs = called_back(program, ours + 1)
    assert theirs == ours + 1
    assert program.call(success(theirs, 42)) == success(theirs, 42)
    assert program.call(success(ours, 43)) == success("a", 43)


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":{}', ',"params":[]'])
def test_absent_and_null_and_empty_params_are_no_params(program: Conversation, params: str) -> None:
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"told"' + params + "}") == success(1, [])
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"told","params":[1]}')["error"]["code"] == -32602


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        "Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n",
        'Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset="UTF-8"\r\n\r\n',
        "content-length:%d\r\n\r\n",
        "CONTENT-LENGTH:   %d  \r\n\r\n",
        "X-Other: 1\r\nContent-Length: %d\r\n\r\n",
    ],
)
def test_headers_of_every_usual_form_are_read(program: Conversation, header: str) -> None:
    if program.framing == "json-lines":
        pytest.skip("it speaks without headers")
    body = b'{"jsonrpc":"2.0","id":1,"method":"echo"}'
    program.write((header % len(body)).encode() + body)
    assert program.receive() == success(1)


def test_lines_may_end_with_crlf_and_be_blank(program: Conversation) -> None:
    if program.framing == "content-length":
        pytest.skip("it speaks with headers")
    program.write(b'\r\n\n{"jsonrpc":"2.0","id":1,"method":"echo"}\r\n\n')
    assert program.receive() == success(1)


@pytest.mark.parametrize(
    "error",
    [
        '{"code":0,"message":"zero"}',
        '{"code":-32601}',
        '{"message":"no code"}',
        '"a string"',
        '{"code":1,"message":null,"data":{"stack":"..."}}',
    ],
)
def test_an_error_of_any_shape_settles_only_its_call(program: Conversation, error: str) -> None:
    response = program.call(f'{{"jsonrpc":"2.0","id":{called_back(program, "outer")},"error":{error}}}')
    assert (response["id"], response["error"]["code"]) == ("outer", -32603)
    assert program.call(request(5)) == success(5)


def test_a_response_without_an_id_settles_nothing_and_ends_nothing(program: Conversation) -> None:
    ours = called_back(program, "outer")
    program.send('{"jsonrpc":"2.0","error":{"code":0,"message":"which one?"}}')
    program.send('{"jsonrpc":"2.0","result":1}')
    program.send('{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":"which one?"}}')
    assert program.call(success(ours, "this one")) == success("outer", "this one")


@pytest.mark.parametrize("id", ["true", "%d.0", '"%d"', "[%d]", "{}"])
def test_a_response_whose_id_differs_in_type_settles_nothing(program: Conversation, id: str) -> None:
    ours = called_back(program, "outer")
    program.send('{"jsonrpc":"2.0","id":' + id.replace("%d", str(ours)) + ',"result":"wrong"}')
    assert program.call(success(ours, "right")) == success("outer", "right")


def test_an_object_as_an_id_is_refused_and_not_fatal(program: Conversation) -> None:
    response = program.call('{"jsonrpc":"2.0","id":{"a":1},"method":"echo"}')
    assert (response["id"], response["error"]["code"]) == (None, -32600)
    assert program.call(request(1)) == success(1)


def test_requests_may_come_before_the_response_to_initialize(program: Conversation) -> None:
    program.write(
        program.frame(request(1, "initialize", params={})) + program.frame(request(2)) + program.frame(request(3))
    )
    assert program.receive() == success(1, {"capabilities": {}})
    assert [program.receive(), program.receive()] == [success(2), success(3)]


@every_program
def test_messages_in_the_pipe_before_the_program_runs_reach_its_handlers(arguments: tuple[str, str]) -> None:
    with Conversation(*arguments) as program:
        # Nothing was waited for: the bytes are there before Python has even started.
        assert program.call(request(1, "initialize", params={})) == success(1, {"capabilities": {}})
        assert called_back(program, 2) == 1


def test_progress_without_a_request_is_ignored(program: Conversation) -> None:
    for token in (1, "a", None, {}):
        params = {"token": token, "value": {"kind": "begin"}}
        assert program.is_silent_after({"jsonrpc": "2.0", "method": "$/progress", "params": params})
    assert program.is_silent_after({"jsonrpc": "2.0", "method": "$/progress"})


def test_progress_of_a_call_that_was_given_up_is_ignored() -> None:
    with Conversation("asyncio", "content-length") as program:
        program.send(request("outer", "give up"))
        assert program.receive() == request(1, "never answered")
        assert program.receive()["method"] == "$/cancelRequest"
        assert program.receive() == success("outer", "given up")
        progress = {"jsonrpc": "2.0", "method": "$/progress", "params": {"token": 1, "value": {"kind": "report"}}}
        assert program.is_silent_after(progress)
        assert program.is_silent_after(success(1, "late"))
        assert program.is_silent_after(progress)


def test_an_editor_may_respond_to_a_call_inside_its_own_request(program: Conversation) -> None:
    outer = called_back(program, 1, "window/show", params={"text": "?"})
    inner = called_back(program, 2, "window/show")
    assert program.call(success(inner, "inner")) == success(2, "inner")
    assert program.call(success(outer, "outer")) == success(1, "outer")


def test_no_other_line_end_cuts_a_line_in_two(program: Conversation) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    program.send('{"jsonrpc":"2.0","id":1,"method":"echo","params":["a\u2028b\u2029c\u0085d\\u000be\\u000cf\\u001cg"]}')
    raw = program.receive_raw()
    assert "a\u2028b\u2029c\u0085d".encode() in raw
    program.send(request(2, params=[text]))
    assert program.receive() == success(2, [text])


def test_a_stray_print_does_not_reach_the_wire(program: Conversation) -> None:
    program.send(request(1, "print"))
    assert program.receive_raw() == program.frame('{"jsonrpc":"2.0","id":1,"result":null}')
    assert program.call(request(2)) == success(2)


# -- our host with foreign programs


@pytest.mark.parametrize("framing", [ContentLength, JsonLines])
async def test_a_banner_before_the_first_frame_is_skipped_if_requested(framing: Any) -> None:
    name = "content-length" if framing is ContentLength else "json-lines"
    script = 'echo; echo "> start"; echo "> node server.js"; echo; exec "$@"'
    command = ["/bin/sh", "-c", script, "sh", sys.executable, str(CHILD), "asyncio", name]
    async with Peer.connect_process(command, framing=functools.partial(framing, skip_stray=True)) as peer:
        assert await peer.call("echo", [1], timeout=15) == [1]


def test_every_call_has_a_timeout_unless_it_was_given_up() -> None:
    async def wait() -> None:
        async with memory_pair() as (caller, server):
            stuck: list[object] = []
            server.on("never")(lambda params: stuck.append(params))

            @server.handle("silent")
            async def silent(params: Any) -> None:
                import anyio

                await anyio.sleep_forever()

            with pytest.raises(CallTimeout) as caught:
                await caller.call("silent")
            assert caught.value.seconds == Limits().call_timeout

    run_in_virtual_time(wait)


# -- the three meanings of cancelling


@pytest.mark.parametrize("framing", ["content-length", "json-lines"])
def test_with_the_rule_of_lsp_a_cancelled_call_gets_a_response_with_an_error(framing: str) -> None:
    with Conversation("asyncio", framing, "sent") as program:
        program.send(request(7, "wait"))
        assert program.receive()["params"] == {"token": 7, "value": "waiting"}
        response = program.call({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}})
        assert (response["id"], response["error"]["code"]) == (7, -32800)
        assert program.is_silent_after({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}})


def test_with_the_rule_of_mcp_a_cancelled_call_never_gets_a_response() -> None:
    with Conversation("asyncio", "json-lines", "never sent") as program:
        program.send(request(7, "wait"))
        assert program.receive()["method"] == "$/progress"
        assert program.is_silent_after({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}})
        assert program.call(request(7)) == success(7)  # its id is free again


def test_with_the_rule_of_acp_the_handler_of_a_cancelled_call_responds() -> None:
    with Conversation("asyncio", "json-lines", "sent by the handler") as program:
        program.send(request(7, "wait"))
        assert program.receive()["method"] == "$/progress"
        assert program.call({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}) == success(
            7, "stopped"
        )


@pytest.mark.parametrize("method", ["echo", "wait", "none"])
def test_a_request_and_its_cancellation_may_arrive_together(method: str) -> None:
    with Conversation("asyncio", "content-length") as program:
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}
        program.write(program.frame(request(7, method)) + program.frame(cancel))
        response = program.receive()
        if response.get("method") == "$/progress":  # it had begun where its request was read
            response = program.receive()
        assert response["id"] == 7
        assert response.get("error", {}).get("code") == {"echo": None, "wait": -32800, "none": -32601}[method]
        assert program.call(request(8)) == success(8)


# -- the end


@every_program
def test_the_end_of_its_input_ends_a_program_in_good_order(arguments: tuple[str, str]) -> None:
    program = Conversation(*arguments)
    assert program.call(request(1)) == success(1)
    assert program.close() == 0


# -- one member twice


@pytest.mark.parametrize(
    ("method", "params", "pointer"),
    [
        ("move", '{"x":1,"x":2}', "/x"),
        ("move", '{"x":1,"more":[{"a":1,"a":2}]}', "/more/0/a"),
        ("ask", '{"method":"asked","method":"other"}', "/method"),
    ],
)
def test_a_member_that_occurs_twice_in_typed_params_is_refused(
    program: Conversation, method: str, params: str, pointer: str
) -> None:
    reply = program.call(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}')
    assert reply["error"]["code"] == -32602
    assert [problem["pointer"] for problem in reply["error"]["data"]["problems"]] == [pointer]


def test_in_untyped_params_the_last_value_counts(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":1,"x":2}}') == success(1, {"x": 2})

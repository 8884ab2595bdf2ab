"""A becket program on real pipes follows JSON-RPC 2.0 in every corner case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.conformance.conversation import Conversation

pytestmark = pytest.mark.process

PROGRAMS = [(runtime, framing) for runtime in ("asyncio", "blocking") for framing in ("content-length", "json-lines")]


@pytest.fixture(scope="module", params=PROGRAMS, ids=[" ".join(program) for program in PROGRAMS])
def program(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    """One program for all tests of this file: whatever it received before, it must continue."""
    conversation = Conversation(*request.param)
    yield conversation
    assert conversation.close() == 0


def success(id: object, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def code_and_id(response: Any) -> tuple[object, object]:
    assert set(response) == {"jsonrpc", "id", "error"}
    assert response["jsonrpc"] == "2.0"
    assert isinstance(response["error"]["message"], str)
    return response["error"]["code"], response["id"]


def test_a_request_without_params_is_handled(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"echo"}') == success(1, None)


def test_params_of_either_kind_are_handled(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1]}}') == success(1, {"a": [1]})
    assert program.call('{"jsonrpc":"2.0","id":1,"method":"echo","params":[1,{}]}') == success(1, [1, {}])


def test_unknown_members_are_tolerated(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":2,"method":"echo","params":[],"extra":{"a":1}}') == success(2, [])


@pytest.mark.parametrize(
    "text", ["{", '{"jsonrpc":"2.0","id":1,"method":', "hello", '{"a":NaN}', "[1,]", '{"a":1}{"b":2}']
)
def test_invalid_json_is_a_parse_error_under_the_null_id(program: Conversation, text: str) -> None:
    assert code_and_id(program.call(text)) == (-32700, None)


def test_utf_16_is_a_parse_error(program: Conversation) -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"echo"}'.encode("utf-16-le").replace(b"\n", b"")
    assert code_and_id(program.call(text)) == (-32700, None)


def test_text_that_is_not_utf_8_is_a_parse_error(program: Conversation) -> None:
    response = program.call(b'{"jsonrpc":"2.0","id":7,"method":"echo","params":["\xff"]}')
    assert code_and_id(response) == (-32700, 7)


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_frame_is_a_parse_error(program: Conversation, text: str) -> None:
    if program.framing == "json-lines":
        assert program.is_silent_after(text)  # a blank line, which is no frame
    else:
        assert code_and_id(program.call(text)) == (-32700, None)


@pytest.mark.parametrize("text", ["1", '"hello"', "null", "true"])
def test_a_bare_scalar_is_an_invalid_request_under_the_null_id(program: Conversation, text: str) -> None:
    assert code_and_id(program.call(text)) == (-32600, None)


@pytest.mark.parametrize("version", ["", '"jsonrpc":"1.0",', '"jsonrpc":2.0,', '"jsonrpc":null,', '"jsonrpc":"2",'])
def test_a_missing_or_other_version_is_an_invalid_request(program: Conversation, version: str) -> None:
    assert code_and_id(program.call("{" + version + '"id":3,"method":"echo"}')) == (-32600, 3)


@pytest.mark.parametrize("method", ["1", "null", "[]", '""', '{"name":"echo"}'])
def test_a_method_that_is_no_name_is_an_invalid_request(program: Conversation, method: str) -> None:
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":4,"method":' + method + "}")) == (-32600, 4)


@pytest.mark.parametrize("params", ["1", '"a"', "true", "1.5"])
@pytest.mark.parametrize("method", ["echo", "move", "told"])
def test_scalar_params_are_invalid(program: Conversation, params: str, method: str) -> None:
    response = program.call(f'{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}')
    assert code_and_id(response) == (-32602, 5)


def test_null_params_count_as_absent(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":5,"method":"echo","params":null}') == success(5, None)


def test_a_null_id_gets_a_response_under_the_null_id(program: Conversation) -> None:
    assert program.call('{"jsonrpc":"2.0","id":null,"method":"echo","params":[1]}') == success(None, [1])
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":null,"method":"none"}')) == (-32601, None)


@pytest.mark.parametrize(
    "id", ["1.5", "0", "-7", "1.0", "1e2", '""', '"a"', '"\\u0041"', '"é\u2028"', "9007199254740993"]
)
def test_an_id_is_returned_as_it_was_written(program: Conversation, id: str) -> None:
    program.send('{"jsonrpc":"2.0","id":' + id + ',"method":"echo"}')
    body = b'{"jsonrpc":"2.0","id":' + id.encode() + b',"result":null}'
    assert program.receive_raw() == program.frame(body)


@pytest.mark.parametrize("id", ["{}", '{"a":1}', "[]", "[1]", "true", "false", '"' + "x" * 300 + '"'])
def test_other_ids_are_invalid_under_the_null_id(program: Conversation, id: str) -> None:
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":' + id + ',"method":"echo"}')) == (-32600, None)


def test_a_batch_of_two_gets_a_response_with_an_array(program: Conversation) -> None:
    responses = program.call([{"jsonrpc": "2.0", "id": n, "method": "echo", "params": [n]} for n in (1, 2)])
    assert sorted(responses, key=lambda response: response["id"]) == [success(1, [1]), success(2, [2])]


def test_an_empty_batch_is_one_invalid_request(program: Conversation) -> None:
    assert code_and_id(program.call("[]")) == (-32600, None)


def test_each_member_of_a_batch_that_is_no_request_is_one_error(program: Conversation) -> None:
    assert [code_and_id(response) for response in program.call("[1]")] == [(-32600, None)]
    assert [code_and_id(response) for response in program.call("[1,2,[]]")] == [(-32600, None)] * 3


def test_a_batch_that_is_no_json_is_one_parse_error(program: Conversation) -> None:
    assert code_and_id(program.call('[{"jsonrpc":"2.0","method":"echo","id":1},{"jsonrpc":"2.0","method"]')) == (
        -32700,
        None,
    )


def test_a_batch_of_notifications_gets_no_response(program: Conversation) -> None:
    assert program.is_silent_after('[{"jsonrpc":"2.0","method":"tell"},{"jsonrpc":"2.0","method":"unknown"}]')


def test_the_example_of_the_specification_with_all_kinds_in_one_batch(program: Conversation) -> None:
    responses = program.call(
        '[{"jsonrpc":"2.0","method":"echo","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method":"tell","params":[7]},'
        '{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},'
        '{"jsonrpc":"2.0","method":"echo","id":"9"}]'
    )
    by_id = {response["id"]: response for response in responses}
    assert len(responses) == 4
    assert by_id["1"] == success("1", [1, 2, 4])
    assert by_id["9"] == success("9", None)
    assert code_and_id(by_id["5"]) == (-32601, "5")
    assert code_and_id(by_id[None]) == (-32600, None)


@pytest.mark.parametrize("depth", [100, 5_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_an_error(program: Conversation, depth: int, opening: str, closing: str) -> None:
    text = opening * depth + "1" + closing * depth
    code, id = code_and_id(program.call('{"jsonrpc":"2.0","id":6,"method":"echo","params":' + text + "}"))
    assert code == 1004
    assert id == (6 if depth == 100 else id)


def test_an_unknown_method_is_not_found(program: Conversation) -> None:
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":8,"method":"none"}')) == (-32601, 8)
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":8,"method":"rpc.none"}')) == (-32601, 8)
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":8,"method":"$/none"}')) == (-32601, 8)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","method":"tell","params":[1]}',
        '{"jsonrpc":"2.0","method":"unknown"}',
        '{"jsonrpc":"2.0","method":"$/unknown"}',
        '{"jsonrpc":"2.0","method":"fail"}',
        '{"jsonrpc":"2.0","method":"move","params":{"x":"wrong"}}',
        '{"jsonrpc":"2.0","method":"echo","params":5}',
        '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999}}',
        '{"jsonrpc":"2.0","method":"$/cancelRequest"}',
    ],
)
def test_a_notification_never_gets_a_response_whatever_its_outcome(program: Conversation, text: str) -> None:
    assert program.is_silent_after(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":77,"result":1}',
        '{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"no"}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
        '{"jsonrpc":"2.0","error":{"code":0,"message":"no id"}}',
        '{"jsonrpc":"2.0","id":77,"error":"no object"}',
        '{"jsonrpc":"2.0","id":{},"result":1}',
        '{"jsonrpc":"2.0","result":1}',
        '[{"jsonrpc":"2.0","id":77,"result":1}]',
    ],
)
def test_a_response_never_gets_a_response_however_malformed(program: Conversation, text: str) -> None:
    assert program.is_silent_after(text)


def test_a_member_that_stands_twice_is_an_invalid_request(program: Conversation) -> None:
    assert code_and_id(program.call('{"jsonrpc":"2.0","id":1,"method":"echo","method":"told"}')) == (-32600, 1)


def test_an_internal_error_has_its_number_and_hides_its_cause(program: Conversation) -> None:
    program.send('{"jsonrpc":"2.0","id":9,"method":"fail"}')
    raw = program.receive_raw()
    assert b'"code":-32603' in raw
    assert b"canary" not in raw
    assert b"ValueError" not in raw


def test_invalid_params_are_reported_with_their_pointers(program: Conversation) -> None:
    response = program.call('{"jsonrpc":"2.0","id":9,"method":"move","params":{"y":"a"}}')
    assert code_and_id(response) == (-32602, 9)
    assert [problem["pointer"] for problem in response["error"]["data"]["problems"]] == ["/x", "/y"]


def test_an_array_where_names_are_needed_is_reported(program: Conversation) -> None:
    response = program.call('{"jsonrpc":"2.0","id":9,"method":"move","params":[1,2]}')
    assert code_and_id(response) == (-32602, 9)
    assert [problem["pointer"] for problem in response["error"]["data"]["problems"]] == [""]


def test_a_thousand_unknown_params_are_ignored_or_reported_by_name(program: Conversation) -> None:
    many = {f"unknown{n}": n for n in range(1_000)}
    assert program.call({"jsonrpc": "2.0", "id": 9, "method": "move", "params": {"x": 1, **many}}) == success(
        9, {"x": 2, "y": 1}
    )
    response = program.call({"jsonrpc": "2.0", "id": 9, "method": "turn", "params": {"degrees": 90, **many}})
    assert code_and_id(response) == (-32602, 9)
    problems = response["error"]["data"]["problems"]
    assert problems[0]["pointer"] == "/unknown0"
    assert len(problems) <= 100


def test_an_object_is_returned_unchanged(program: Conversation) -> None:
    odd = {
        "type_name": 1,
        "not an identifier": 2,
        "class": 3,
        "": 4,
        "nested": {"jsonrpc": "2.0", "id": 1, "method": "echo"},
    }
    assert program.call({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": odd}) == success(1, odd)


def test_white_space_and_the_order_of_members_do_not_matter(program: Conversation) -> None:
    text = ' { "params" : [ 1 ] , "method" : "echo" , "id" : 1 , "jsonrpc" : "2.0" } '
    assert program.call(text) == success(1, [1])


def test_notifications_are_handled_in_order(program: Conversation) -> None:
    mark = uuid4().hex  # of this test: others use the same program
    for n in range(50):
        program.send({"jsonrpc": "2.0", "method": "tell", "params": [mark, n]})
    received = program.call({"jsonrpc": "2.0", "id": 1, "method": "told"})["result"]
    assert [entry[1] for entry in received if entry and entry[0] == mark] == list(range(50))


def test_a_mebibyte_is_returned_whole(program: Conversation) -> None:
    text = 'é\u2028😀\\"' * 100_000
    import threading  # the pipes hold less than this: another thread must write while we read

    writer = threading.Thread(
        target=program.send, args=[{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": [text]}]
    )
    writer.start()
    response = program.receive()
    writer.join()
    assert response == success(1, [text])

"""Bytes held for a peer count against a budget: running requests, and responses of unfinished batches."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from tests.jsonrpc.links import LOST, codes, failure, frame, link, read, receive, receive_request, request, success

from becket.errors import ERROR_CODES, Busy, Meaning, RpcError
from becket.jsonrpc.budget import Budget, SharedBudget, measure_params, small_enough
from becket.jsonrpc.calls import InboundRequest
from becket.jsonrpc.connection import SMALL_RESPONSE, Connection
from becket.limits import Limits

TOO_LARGE = ERROR_CODES[Meaning.TOO_LARGE]
SMALL = {"frame": 1_000, "inbound_bytes": 2_000}
TEXT = {"text": "a" * 600}  # and 64 bytes for each of two values


# -- the budget itself


def test_a_request_that_does_not_fit_is_refused_until_bytes_are_released() -> None:
    budget = Budget(100)
    assert budget.take(60) is None
    assert budget.take(41) is budget
    assert budget.take(40) is None
    budget.give_back(60)
    assert budget.take(60) is None
    assert budget.used == 100


def test_one_always_fits_an_empty_budget() -> None:
    budget = Budget(100)
    assert budget.take(1_000) is None
    assert budget.take(1) is budget
    budget.give_back(1_000)
    assert budget.take(1) is None


def test_a_part_takes_from_the_whole_and_is_refused_by_it() -> None:
    whole = SharedBudget(100, "bytes of all")
    first, second = Budget(80, shared=whole), Budget(80, shared=whole)
    assert first.take(70) is None
    assert second.take(40) is whole
    assert (second.used, whole.used) == (0, 70)
    first.give_back(70)
    assert second.take(40) is None
    assert whole.used == 40


def test_a_part_that_is_closed_gives_everything_back_once() -> None:
    whole = SharedBudget(100)
    part = Budget(80, shared=whole)
    part.take(70)
    whole.take(10)
    part.close()
    part.give_back(70)  # by who held it, later
    assert (part.used, whole.used) == (0, 10)


# -- what is counted


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ([1] * 10, 11),
        ([[], {}] * 300, 601),
        ([{"a": 1, "b": [True, None]}] * 200, 1_001),
        (["a,b,{[" * 200], 2),
        (['"a,\\"', "b,{"] * 300, 601),
    ],
)
def test_each_value_counts_beside_the_text(params: Any, values: int) -> None:
    text = json.dumps(params).encode()
    assert measure_params(text) == len(text) + values * 64


def test_only_in_large_params_are_commas_and_brackets_in_strings_excluded() -> None:
    """Up to 512 they are counted as if they were values: looking for strings would cost more than it saves."""
    for commas, values in ((510, 512), (511, 2)):
        text = b'["%b"]' % (b"," * commas)
        assert measure_params(text) == len(text) + values * 64


@pytest.mark.parametrize(
    ("text", "width"),
    [("a", 1), ("é", 2), ("中", 2), ("😀", 4)],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_one_wide_character_makes_a_whole_string_wide(text: str, width: int, escaped: bool) -> None:
    body = json.dumps([text + "a" * 1_000], ensure_ascii=escaped).encode()
    assert measure_params(body) == len(body) * width + 2 * 64


@pytest.mark.parametrize(
    "params",
    [
        ["a" * 100_000],
        ["😀" + "a" * 100_000],
        [{}] * 5_000,
        [[]] * 5_000,
        [1.5] * 5_000,
        ["x"] * 5_000,
    ],
)
def test_no_params_take_much_more_memory_than_is_counted(params: Any) -> None:
    body = json.dumps(params).encode()
    tracemalloc.start()
    try:
        kept = json.loads(body)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept == params
    assert taken < 1.5 * measure_params(body)


# -- requests


def hold(connection: Connection, id: int, params: Any = TEXT) -> InboundRequest:
    served = receive_request(connection, id, params=params)
    connection.hold(served)
    return served


def test_a_request_that_does_not_fit_is_busy() -> None:
    connection = link(limits=SMALL)
    hold(connection, 1)
    hold(connection, 2)
    with pytest.raises(Busy) as caught:
        hold(connection, 3)
    assert str(caught.value) == "busy: bytes held for you, the limit is 2000"
    assert (caught.value.what, caught.value.limit) == ("bytes held for you", 2_000)


@pytest.mark.parametrize("ended", ["answer", "refuse", "forget"])
def test_a_request_that_has_ended_counts_no_more(ended: str) -> None:
    connection = link(limits=SMALL)
    for id in range(20):
        served = hold(connection, id)
        match ended:
            case "answer":
                connection.respond(served, b"1")
            case "refuse":
                connection.reject(served, RpcError(Meaning.INTERNAL))
            case _:
                connection.drop_request(served)
    assert connection.budget.used == 0


def test_a_request_that_is_closed_twice_is_given_back_once() -> None:
    connection = link(limits=SMALL)
    first, second = hold(connection, 1), hold(connection, 2)
    connection.respond(first, b"1")
    held = connection.budget.used
    connection.respond(first, b"1")
    assert connection.budget.used == held == second.held > 0


def test_a_request_that_got_an_early_response_counts_until_its_handler_ends() -> None:
    connection = link(limits=SMALL)
    served = hold(connection, 1)
    held = connection.budget.used
    connection.respond_early(served, b"1")
    assert connection.budget.used == served.held == held > 600
    connection.drop_request(served)
    assert connection.budget.used == 0


@pytest.mark.parametrize(("more", "is_counted"), [(0, False), (1, True)])
def test_params_count_from_the_first_size_at_which_all_requests_would_exceed_half(more: int, is_counted: bool) -> None:
    connection = link()
    size = small_enough(connection.budget.limit, Limits().inbound_requests) + more
    served = hold(connection, 1, ["a" * (size - len('[""]'))])
    assert len(served.params or b"") == size
    assert (connection.budget.used > 0) is is_counted


def test_the_budget_is_never_less_than_two_frames() -> None:
    connection = link(limits={"frame": 1_000, "inbound_bytes": 1})
    assert connection.budget.limit == 2_000


def test_by_default_it_is_16_mib_or_two_frames() -> None:
    assert link().budget.limit == 16 * 1024**2 == Limits().inbound_bytes
    assert link(limits={"frame": 32 * 1024**2}).budget.limit == 64 * 1024**2


def test_small_requests_are_bounded_by_their_number_alone() -> None:
    connection = link()
    for id in range(256):
        hold(connection, id, ["a" * 980])
    assert connection.budget.used == 0
    assert 256 * measure_params(json.dumps([1] * 495, separators=(",", ":")).encode()) < connection.budget.limit / 2
    connection = link(limits={"inbound_requests": 512})
    hold(connection, 1, ["a" * 1_000])
    assert connection.budget.used > 1_000


def test_a_link_that_ends_gives_everything_back_to_the_budget_of_all_links() -> None:
    whole = SharedBudget(2_300)
    connection, other = link(limits=SMALL, budget=whole), link(limits=SMALL, budget=whole)
    hold(connection, 1)
    hold(connection, 2)
    hold(other, 1)
    with pytest.raises(Busy):
        hold(other, 2)
    connection.close(LOST)
    hold(other, 3)


def test_other_members_of_a_request_are_not_held_with_its_params() -> None:
    connection = link()
    tracemalloc.start()
    try:
        requests = [receive_request(connection, id, params={"a": 1}, junk="x" * 1_000_000) for id in range(10)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [bytes(one.params or b"") for one in requests] == [b'{"a":1}'] * 10
    assert taken < 1_000_000


# -- batches


def receive_batch(connection: Connection, *ids: int) -> list[InboundRequest]:
    events = connection.receive(frame([request(id) for id in ids]))
    return [event for event in events if isinstance(event, InboundRequest)]


def test_responses_of_unfinished_batches_count() -> None:
    connection = link(limits=SMALL)
    result = json.dumps("a" * 600).encode()
    for id in (10, 20, 30):
        first, _ = receive_batch(connection, id, id + 1)
        assert connection.respond(first, result) == b""
    held = connection.budget.used
    assert 1_200 < held <= 2_000
    with pytest.raises(Busy):
        hold(connection, 1)


def test_a_result_that_does_not_fit_beside_unfinished_batches_is_an_error_of_its_own() -> None:
    connection = link(limits=SMALL)
    result = json.dumps("a" * 700).encode()
    slow: list[InboundRequest] = []
    for id in (10, 20, 30, 40):
        first, last = receive_batch(connection, id, id + 1)
        connection.respond(first, result)
        slow.append(last)
    responded = [read(connection.respond(last, b"1"))[0] for last in slow]
    assert [responses[0].get("result") for responses in responded[:2]] == ["a" * 700] * 2
    assert [codes([responses[0]]) for responses in responded[2:]] == [[(30, TOO_LARGE)], [(40, TOO_LARGE)]]
    size = len(connection.codec.encode_success(b"30", result))
    problem = f"the result has {size} bytes, the limit is 2000 bytes held for you: call it outside a batch"
    assert [responses[0]["error"]["message"] for responses in responded[2:]] == [problem] * 2
    assert [responses[1] for responses in responded] == [success(id, 1) for id in (11, 21, 31, 41)]
    assert connection.budget.used == 0


def test_a_batch_that_has_ended_gives_back_no_more_than_its_own_bytes() -> None:
    connection = link(limits=SMALL)
    hold(connection, 1)
    held = connection.budget.used
    for result in (b"1", json.dumps("a" * 600).encode()):
        for one in receive_batch(connection, 10, 11):
            connection.respond(one, result if one.id == b"10" else b"2")
        assert connection.budget.used == held


def test_a_batch_that_cannot_be_sent_any_more_holds_nothing() -> None:
    connection = link(limits=SMALL)
    requests = receive_batch(connection, 1, 2, 3)
    for one in requests[:2]:
        assert connection.respond(one, json.dumps("a" * 600).encode()) == b""
    assert connection.budget.used == 0
    (responses,) = read(connection.respond(requests[2], b"1"))
    assert codes(responses) == [(1, TOO_LARGE), (2, TOO_LARGE), (3, TOO_LARGE)]


def test_a_batch_that_cannot_be_sent_any_more_gives_back_its_own_bytes_alone() -> None:
    connection = link(limits=SMALL)
    other = hold(connection, 9)
    for one in receive_batch(connection, 1, 2, 3, 4):
        connection.respond(one, json.dumps("a" * 600).encode())
    assert connection.budget.used == other.held > 0


def test_a_batch_that_is_sent_gives_back_all_its_responses() -> None:
    connection = link(limits=SMALL)
    first, second, last = receive_batch(connection, 1, 2, 3)
    result = json.dumps("a" * 300).encode()
    connection.respond(first, result)
    connection.respond(second, result)
    assert connection.budget.used > 600
    (responses,) = read(connection.respond(last, b"1"))
    assert [response["result"] for response in responses] == ["a" * 300, "a" * 300, 1]
    assert connection.budget.used == 0


@pytest.mark.parametrize(("more", "used"), [(0, 0), (1, SMALL_RESPONSE + 1)])
def test_a_response_no_larger_than_the_error_in_its_place_is_not_counted(more: int, used: int) -> None:
    connection = link(limits=SMALL)
    first, _ = receive_batch(connection, 1, 2)
    text = "a" * (SMALL_RESPONSE + more - len(connection.codec.encode_success(b"1", b'""')))
    connection.respond(first, json.dumps(text).encode())
    assert connection.budget.used == used


def test_a_batch_of_notifications_and_errors_holds_nothing() -> None:
    connection = link(limits=SMALL)
    receive(connection, [request(1, "x"), failure(7)])
    assert connection.budget.used == 0


def test_a_budget_has_a_description_of_what_it_counts() -> None:
    assert (Budget(1).what, SharedBudget(1).what) == ("bytes held for you", "bytes held for you and others")
    assert (Budget(1, "frames").what, SharedBudget(1, "frames").what) == ("frames", "frames")


@pytest.mark.parametrize(
    ("limit", "requests", "size"), [(6_600, 1, 100), (6_600, 0, 100), (6_701, 1, 101), (66_000, 10, 100)]
)
def test_params_need_no_count_while_all_requests_together_take_half_of_the_budget(
    limit: int, requests: int, size: int
) -> None:
    found = small_enough(limit, requests)
    assert (found, type(found)) == (size, int)

"""Memory: the wire form, valid records and queries, and lenient decoding of params."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.contract.memory import (
    MEMORY_APPEND,
    MEMORY_QUERY,
    Append,
    Appended,
    Query,
    Record,
    Records,
    check_owner,
    decode_append,
    decode_query,
    find_append_problems,
    find_namespace_problem,
)
from becket.errors import InvalidParams
from becket.limits import Limits

KIB = 1024


def wire(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def problems_of(call: Any, *arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidParams) as caught:
        call(*arguments)
    return dict(caught.value.problems)


# -- the wire form


def test_absent_members_are_not_sent() -> None:
    assert wire(Append("notes", "milk")) == {"namespace": "notes", "content": "milk"}
    assert wire(Query("notes")) == {"namespace": "notes"}
    assert wire(Appended(True, 5)) == {"ok": True, "timestamp_ms": 5}


def test_the_tags_of_a_record_are_always_sent_and_its_meta_where_there_is_one() -> None:
    assert wire(Record("notes", 5, "milk", ())) == {
        "namespace": "notes",
        "timestamp_ms": 5,
        "content": "milk",
        "tags": [],
    }
    assert wire(Record("notes", 5, "milk", ("a",), {"b": 1}, 7))["meta"] == {"b": 1}


def test_records_are_sent_in_an_object() -> None:
    assert wire(Records(())) == {"records": []}


def test_append_needs_the_write_permission_and_query_the_read_permission() -> None:
    assert (MEMORY_APPEND.name, MEMORY_APPEND.requires) == ("memory.append", "memory.write")
    assert (MEMORY_QUERY.name, MEMORY_QUERY.requires) == ("memory.query", "memory.read")
    assert {MEMORY_APPEND.direction, MEMORY_QUERY.direction} == {"to-host"}


# -- namespaces


def test_an_extension_stores_and_finds_records_in_its_own_namespace() -> None:
    check_owner("notes", "notes")


@pytest.mark.parametrize("namespace", ["other", "Notes", "", "notes "])
def test_the_namespace_of_another_is_refused(namespace: str) -> None:
    expected = f"namespace must equal extension id 'notes' (got '{namespace}')"

    assert problems_of(check_owner, namespace, "notes") == {"/namespace": expected}


def test_a_namespace_without_end_is_not_quoted_whole() -> None:
    problem = problems_of(check_owner, "x" * 100_000, "notes")["/namespace"]

    assert len(problem) < 300


@pytest.mark.parametrize("namespace", ["notes", "a.b", "a-b_c", "é" * 32, "x" * 64, "a:b", "\x1c"])
def test_these_namespaces_are_valid(namespace: str) -> None:
    assert find_namespace_problem(namespace) is None


@pytest.mark.parametrize(
    "namespace", ["", "a/b", "a\\b", "..", "a..b", "has space", "tab\there", "\u3000", "x" * 65, "é" * 33]
)
def test_these_namespaces_are_refused(namespace: str) -> None:
    assert find_namespace_problem(namespace) == f"invalid namespace: {msgspec.json.encode(namespace).decode()}"


# -- sizes


def test_a_record_of_exactly_the_allowed_size_may_be_stored() -> None:
    largest = Append("notes", "é" * (8 * KIB), ("é" * 128,) * 64, "x" * (64 * KIB - 2), "k" * 256)

    assert find_append_problems(largest) == []


@pytest.mark.parametrize(
    ("append", "pointer", "problem"),
    [
        (Append("notes", "x" * 16 * KIB + "x"), "/content", "content too large: 16385 bytes (max 16384)"),
        (Append("notes", "é" * 8 * KIB + "x"), "/content", "content too large: 16385 bytes (max 16384)"),
        (Append("notes", "", ("t",) * 65), "/tags", "too many tags: 65 (max 64)"),
        (Append("notes", "", ("t", "é" * 129)), "/tags/1", "tag too large: 258 bytes (max 256)"),
        (Append("notes", "", (), "x" * (64 * KIB - 1)), "/meta", "meta too large: 65537 bytes (max 65536)"),
        (Append("notes", "", idem=""), "/idem", "idem must have 1 to 256 bytes"),
        (Append("notes", "", idem="é" * 129), "/idem", "idem must have 1 to 256 bytes"),
        (Append("a b", ""), "/namespace", 'invalid namespace: "a b"'),
    ],
)
def test_a_larger_record_is_refused(append: Append, pointer: str, problem: str) -> None:
    assert find_append_problems(append) == [(pointer, problem)]


def test_all_problems_are_reported_together() -> None:
    append = Append("a b", "x" * 11, ("t", "u"), "meta", "k" * 5)
    limits = Limits(memory_content=10, memory_tags=1, memory_meta=5, memory_idem=4)

    pointers = [pointer for pointer, _ in find_append_problems(append, limits)]

    assert pointers == ["/namespace", "/content", "/tags", "/meta", "/idem"]


def test_null_tags_count_as_absent() -> None:
    append = msgspec.json.decode(b'{"namespace":"notes","content":"milk","tags":null}', type=Append)

    assert append == Append("notes", "milk")
    assert append.tags == ()


# -- loose params


def test_loose_params_may_hold_null_where_something_is_optional() -> None:
    raw = b'{"namespace":"notes","content":"milk","tags":null,"meta":null,"more":1}'

    assert decode_append(raw) == Append("notes", "milk")


def test_loose_params_are_read_whole() -> None:
    raw = b'{"namespace":"notes","content":"milk","tags":["a","b"],"meta":{"c":[1]}}'

    assert decode_append(raw) == Append("notes", "milk", ("a", "b"), {"c": [1]})


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"null", "missing or invalid 'namespace' parameter"),
        (b"[]", "missing or invalid 'namespace' parameter"),
        (b'{"content":1,"tags":1}', "missing or invalid 'namespace' parameter"),
        (b'{"namespace":1}', "missing or invalid 'namespace' parameter"),
        (b'{"namespace":"notes","content":null,"tags":1}', "missing or invalid 'content' parameter"),
        (b'{"namespace":"notes","content":"","tags":"a"}', "tags must be an array of strings"),
        (b'{"namespace":"notes","content":"","tags":["a",1]}', "tags must be an array of strings"),
    ],
)
def test_loose_params_are_refused_for_the_first_problem(raw: bytes, problem: str) -> None:
    assert [*problems_of(decode_append, raw).values()] == [problem]


def test_a_condition_of_the_wrong_type_counts_as_absent_in_a_loose_query() -> None:
    raw = (
        b'{"namespace":"notes","content_contains":1,"tag_prefix":["a"],"since_ms":-1,"until_ms":true,"limit":"5","m":1}'
    )

    assert decode_query(raw) == Query("notes")


def test_a_loose_query_is_read_whole() -> None:
    raw = b'{"namespace":"notes","content_contains":"a","tag_prefix":"b","since_ms":0,"until_ms":9,"limit":5}'

    assert decode_query(raw) == Query("notes", "a", "b", 0, 9, 5)


def test_a_loose_query_needs_a_namespace() -> None:
    assert problems_of(decode_query, b"{}") == {"/namespace": "missing or invalid 'namespace' parameter"}

"""Messages round-trip between JSON and the bytes of cigen; invalid bytes are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from becket.adapters.cigen import (
    CigenDiagnostic,
    CigenHello,
    CigenResource,
    CigenSchema,
    CommandDefinition,
    CommandParameter,
    CustomStep,
    Dependency,
    DependencyType,
    Fragment,
    GenerateRequest,
    GenerateResult,
    GitInfo,
    JobDefinition,
    Level,
    MatrixRow,
    MatrixValue,
    MergeStrategy,
    PlanRequest,
    PlanResult,
    PluginInfo,
    RepoSnapshot,
    ResourceType,
    RunStep,
    SkipConfig,
    SourceLocation,
    Step,
    StringList,
    UsesStep,
    WorkflowCondition,
    WorkflowConditionKind,
    WorkflowDefinition,
)
from becket.adapters.cigen.messages import CigenMessage, proto_name
from becket.adapters.cigen.protobuf import get_codec
from becket.errors import BadMessage, Unencodable
from becket.limits import DEFAULT_LIMITS

ROOTS: list[type[CigenMessage]] = [CigenHello, PluginInfo, PlanRequest, PlanResult, GenerateRequest, GenerateResult]
FEW = DEFAULT_LIMITS.but(nodes=10)


def encode(message: CigenMessage) -> bytes:
    return get_codec(type(message)).encode(msgspec.json.encode(message))


def decode(kind: type[Any], data: bytes, limits: Any = DEFAULT_LIMITS) -> Any:
    return msgspec.json.decode(get_codec(kind).decode(data, limits), type=kind)


# -- bytes


def test_a_hello_has_the_bytes_that_every_plugin_expects() -> None:
    assert encode(CigenHello(1, "0.2.0")) == bytes.fromhex("08011205302e322e30")


@pytest.mark.parametrize("kind", ROOTS)
def test_a_message_of_defaults_has_no_bytes(kind: type[CigenMessage]) -> None:
    assert encode(kind()) == b""
    assert decode(kind, b"") == kind()


def test_keys_of_a_map_are_sorted_so_that_the_same_message_has_the_same_bytes() -> None:
    assert encode(CigenHello(env={"b": "2", "a": "1"})) == b"\x1a\x06\n\x01a\x12\x011\x1a\x06\n\x01b\x12\x012"
    many = CigenHello(env={str(number): "" for number in range(100)})
    assert [*decode(CigenHello, encode(many)).env] == sorted(many.env)


def test_an_enum_is_encoded_as_its_number() -> None:
    assert encode(PlanResult(resources=(CigenResource("x", ResourceType.CACHE),))) == b"\n\x05\n\x01x\x10\x03"


def test_an_unknown_enum_number_is_decoded_as_unspecified() -> None:
    for number in (b"\x63", b"\xff" * 9 + b"\x01"):  # 99 and -1
        assert decode(PlanResult, b"\n" + bytes([1 + len(number)]) + b"\x10" + number) == PlanResult((CigenResource(),))


def test_a_member_of_a_newer_program_is_skipped() -> None:
    assert decode(CigenHello, b"\x08\x01\xa2\x06\x03new\x12\x011") == CigenHello(1, "1")


def test_an_empty_nested_message_differs_from_an_absent_one() -> None:
    data = encode(PlanRequest(schema=CigenSchema()))

    assert data == b"\x1a\x00"
    assert decode(PlanRequest, data) == PlanRequest(schema=CigenSchema())


def test_the_last_of_two_alternatives_of_one_field_counts() -> None:
    steps = b"\x0a\x00\x12\x00"  # run and uses
    job = b"\x2a" + bytes([len(steps)]) + steps
    schema = b"\x22" + bytes([len(job)]) + job

    request = decode(PlanRequest, b"\x1a" + bytes([len(schema)]) + schema)

    assert request.schema.jobs[0].steps == (Step(uses=UsesStep()),)


FULL_PLAN = PlanRequest(
    capabilities=("provider:github",),
    facts={"ruby": "3.3"},
    schema=CigenSchema(
        version="1",
        jobs=(
            JobDefinition(
                id="test",
                matrix={"ruby": MatrixValue(("3.2", "3.3"))},
                steps=(
                    Step(run=RunStep("tests", "make test", {"CI": "1"}, condition="always()")),
                    Step(uses=UsesStep(module="lang/ruby", inputs={"version": "3.3"})),
                    Step(custom=CustomStep("store", "path: logs")),
                    Step(),
                ),
                skip_if=SkipConfig(branch=("main",)),
                matrix_rows=(MatrixRow({"os": "linux"}), MatrixRow()),
                stage="build",
            ),
        ),
        workflows=(
            WorkflowDefinition("ci", run_when=(WorkflowCondition(WorkflowConditionKind.EXPRESSION, expression="x"),)),
        ),
        source_file_groups={"ruby": StringList(("**/*.rb",))},
        commands={"setup": CommandDefinition(parameters={"fast": CommandParameter("bool")})},
        raw_config_yaml="a: ü\n",
    ),
    repo=RepoSnapshot("/repo", ("a", "b"), GitInfo("main", is_dirty=True), {"Gemfile": b"\xff\x00"}),
)


@pytest.mark.parametrize(
    "message",
    [
        FULL_PLAN,
        PlanResult(
            (CigenResource("job:test", ResourceType.JOB, {"image": "alpine"}),),
            (Dependency("a", "b", DependencyType.OPTIONAL),),
            (CigenDiagnostic(Level.WARNING, "W1", "title", "message", "hint", SourceLocation("a.yml", 3, 5, "x:")),),
        ),
        GenerateRequest("github", (CigenResource("r"),), {"test": b"\x00\xfe"}, CigenSchema("1"), {"a": "b"}),
        GenerateResult((Fragment(".ci.yml", "on: push\n", MergeStrategy.APPEND, -2, "yaml"),)),
        PluginInfo("provider/x", "1.0.0", 1, ("provider:x",), ("lang:*",), ("provider:*",), {"k": "v"}),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_full_message_is_decoded_unchanged(message: CigenMessage) -> None:
    assert decode(type(message), encode(message)) == message


# -- what is refused


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        (CigenHello, b'{"core_protocol":-1}'),
        (CigenHello, b'{"core_protocol":4294967296}'),
        (CigenHello, b'{"core_versoin":"1"}'),
        (CigenHello, b"[]"),
        (GenerateResult, b'{"fragments":[{"strategy":"blend"}]}'),
        (PlanRequest, b'{"schema":{"jobs":[{"steps":[{"run":{},"uses":{}}]}]}}'),
    ],
)
def test_an_invalid_message_is_refused_before_it_is_sent(kind: type[CigenMessage], json: bytes) -> None:
    with pytest.raises(Unencodable) as caught:
        get_codec(kind).encode(json)
    assert proto_name(kind) in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"\x0a\x05x", b"\x12\x01\xff", b"\x08", b"\xff" * 12, b"\x0b\x0c\x0d"],
    ids=["cut off", "no UTF-8", "within a number", "an endless number", "a group"],
)
def test_bytes_that_are_not_a_message_are_refused(data: bytes) -> None:
    with pytest.raises(BadMessage):
        get_codec(CigenHello).decode(data, DEFAULT_LIMITS)


def test_more_values_than_a_message_may_hold_are_refused_before_they_are_parsed() -> None:
    assert len(decode(PlanResult, b"\n\x00" * 10, FEW).resources) == 10
    with pytest.raises(BadMessage, match="more than 10 values"):
        get_codec(PlanResult).decode(b"\n\x00" * 11, FEW)


def test_values_within_messages_and_maps_are_counted_too() -> None:
    entries = encode(CigenResource("x", attributes={str(key): "" for key in range(9)}))
    for kind, data in (
        (PlanResult, b"\n" + bytes([len(entries)]) + entries),
        (PlanRequest, b"\x1a\x18" + b"\x2a\x00" * 12),
        (PlanRequest, encode(PlanRequest(schema=CigenSchema(source_file_groups={"a": StringList(("b",) * 12)})))),
    ):
        with pytest.raises(BadMessage, match="values"):
            get_codec(kind).decode(data, FEW)


def test_a_large_message_of_few_values_is_accepted() -> None:
    text = "x" * 1_000

    assert decode(GenerateResult, encode(GenerateResult((Fragment(content=text),))), FEW).fragments[0].content == text


@pytest.mark.parametrize(
    "rest",
    [b"\x01" + b"\0" * 8, b"\x15" + b"\0" * 4, b"\x0b", b"\x0a\xff", b"\x80"],
    ids=["eight bytes", "four bytes", "a group", "beyond the end", "within a number"],
)
def test_counting_accepts_any_bytes_that_the_parser_must_refuse(rest: bytes) -> None:
    for data in (b"\x08\x01" * 3 + rest + b"\x08\x01" * 10, b"\x12\x10" + b"x" * 16 + b"\x08\x01" + rest):
        try:
            get_codec(CigenHello).decode(data, FEW)
        except BadMessage:
            pass


@given(st.sampled_from(ROOTS), st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(kind: type[CigenMessage], data: bytes) -> None:
    try:
        message = decode(kind, data, FEW)
    except BadMessage:
        return
    assert decode(kind, encode(message)) == message

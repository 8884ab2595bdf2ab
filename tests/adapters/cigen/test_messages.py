"""The classes of cigen match `schemas/cigen.proto`: names, numbers and kinds of every member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from becket.adapters.cigen import CigenDiagnostic, GenerateResult, Level, PlanResult, PluginInfo
from becket.adapters.cigen.messages import CigenHello, GenerateRequest, PlanRequest
from becket.adapters.cigen.protobuf import build_file_descriptor, collect_messages, list_fields

SCHEMAS = Path(__file__).parents[3] / "schemas"
ROOTS = (CigenHello, PluginInfo, PlanRequest, PlanResult, GenerateRequest, GenerateResult)
FieldProto = descriptor_pb2.FieldDescriptorProto


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> descriptor_pb2.FileDescriptorProto:
    """Returns what the compiler of protobuf makes of the file."""
    protoc = pytest.importorskip("grpc_tools.protoc", reason="the compiler of protobuf is not installed")
    target = tmp_path_factory.mktemp("cigen") / "cigen.binpb"
    assert protoc.main(["protoc", f"-I{SCHEMAS}", f"--descriptor_set_out={target}", "cigen.proto"]) == 0
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file
    return file


def shape_of(file: descriptor_pb2.FileDescriptorProto) -> dict[str, Any]:
    """Returns all messages and what is in them; an enum is a number there, as it is on the wire."""
    return {message.name: members_in(message) for message in file.message_type}


def members_in(message: descriptor_pb2.DescriptorProto) -> dict[str, Any]:
    entries = {nested.name: members_in(nested) for nested in message.nested_type if nested.options.map_entry}
    return {field.name: kind_of(field, entries) for field in message.field}


def kind_of(field: descriptor_pb2.FieldDescriptorProto, entries: dict[str, Any]) -> tuple[Any, ...]:
    name = field.type_name.rpartition(".")[2]
    if field.type == FieldProto.TYPE_ENUM:
        return field.number, FieldProto.TYPE_INT32, field.label, "", field.HasField("oneof_index")
    return field.number, field.type, field.label, entries.get(name, name), field.HasField("oneof_index")


def test_every_message_that_is_sent_has_the_members_of_the_protocol_file(
    compiled: descriptor_pb2.FileDescriptorProto,
) -> None:
    ours, theirs = shape_of(build_file_descriptor(*ROOTS)), shape_of(compiled)

    assert ours == {name: theirs[name] for name in ours}


def test_the_other_messages_of_the_file_belong_to_requests_that_are_never_sent(
    compiled: descriptor_pb2.FileDescriptorProto,
) -> None:
    besides = shape_of(compiled).keys() - shape_of(build_file_descriptor(*ROOTS)).keys()

    beginnings = ("Detect", "Validate", "Preflight", "RepoState", "FileChange")
    assert besides
    assert all(name.startswith(beginnings) for name in besides)


def test_the_names_of_every_enum_stand_in_the_order_of_their_numbers(
    compiled: descriptor_pb2.FileDescriptorProto,
) -> None:
    enums = [*compiled.enum_type, *(enum for message in compiled.message_type for enum in message.enum_type)]
    theirs = {enum.name: [value.name for value in sorted(enum.value, key=lambda value: value.number)] for enum in enums}
    found: dict[str, Any] = {}
    for root in ROOTS:
        collect_messages(root, found)
    ours = {
        member.kind.__name__: [one.name for one in member.kind]
        for kind in found.values()
        for member in list_fields(kind)
        if member.is_enum
    }

    assert ours.keys() == theirs.keys() - {"ChangeType"}
    for name, names in ours.items():
        prefix = theirs[name][0].removesuffix("UNSPECIFIED")
        assert [prefix + one for one in names] == theirs[name]


# -- values derived from messages


@pytest.mark.parametrize(("name", "target"), [("provider/github", "github"), ("github", "github"), ("", "")])
def test_the_target_of_a_plugin_is_behind_the_slash_of_its_name(name: str, target: str) -> None:
    assert PluginInfo(name).target == target


@pytest.mark.parametrize("kind", [PlanResult, GenerateResult])
def test_only_diagnostics_of_level_error_are_errors(kind: Any) -> None:
    bad = CigenDiagnostic(Level.ERROR, message="no such job")
    result = kind(diagnostics=(CigenDiagnostic(Level.WARNING), bad, CigenDiagnostic(Level.INFO), CigenDiagnostic()))

    assert result.errors == (bad,)

"""Converts between JSON and protobuf for the cigen message types; the one importer of protobuf.

The protobuf messages are built from the classes in `messages` on first use, so that there is no generated code that
depends on the version of the library. Enums are declared as integers, which is the same on the wire: unknown numbers of
newer programs decode as unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from becket._extras import needs_extra
from becket.adapters.cigen.messages import CigenMessage, Signed, Unsigned, proto_name
from becket.errors import BadMessage, Unencodable
from becket.limits import Limits

with needs_extra("cigen"):
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

__all__ = ["ProtobufCodec", "build_file_descriptor", "get_codec"]

PACKAGE: Final = "cigen.plugin.v1"
FILE: Final = "cigen.proto"

FieldProto = descriptor_pb2.FieldDescriptorProto
SCALARS: Final[Mapping[Any, int]] = {
    str: FieldProto.TYPE_STRING,
    bytes: FieldProto.TYPE_BYTES,
    bool: FieldProto.TYPE_BOOL,
    Unsigned: FieldProto.TYPE_UINT32,
    Signed: FieldProto.TYPE_INT32,
}


# -- fields


class ProtobufField(Struct, frozen=True):
    """One field of a message: names, number and type."""

    attribute: str
    name: str
    number: int
    kind: Any
    is_repeated: bool = False
    is_map: bool = False

    @property
    def is_message(self) -> bool:
        """Whether its values are messages."""
        return isinstance(self.kind, type) and issubclass(self.kind, CigenMessage)

    @property
    def is_enum(self) -> bool:
        """Whether its values are enum members, which are sent as numbers."""
        return isinstance(self.kind, type) and issubclass(self.kind, StrEnum)


@cache
def list_fields(kind: type[CigenMessage]) -> tuple[ProtobufField, ...]:
    """Returns the fields of a message, sorted by number."""
    return tuple(
        build_field(field.name, field.encode_name, number, field.type)
        for number, field in enumerate(msgspec.structs.fields(kind), 1)
    )


def build_field(attribute: str, name: str, number: int, hint: Any) -> ProtobufField:
    parts = get_args(hint)
    if get_origin(hint) is tuple:
        return ProtobufField(attribute, name, number, parts[0], is_repeated=True)
    if get_origin(hint) is dict:
        return ProtobufField(attribute, name, number, parts[1], is_map=True)
    # The rest is a scalar, or an optional message.
    return ProtobufField(attribute, name, number, hint if hint in SCALARS or not parts else parts[0])


def collect_messages(kind: type[CigenMessage], found: dict[str, type[CigenMessage]]) -> dict[str, type[CigenMessage]]:
    """Adds a message and its nested messages to `found` and returns it."""
    if proto_name(kind) not in found:
        found[proto_name(kind)] = kind
        for member in list_fields(kind):
            if member.is_message:
                collect_messages(member.kind, found)
    return found


# -- descriptors


def build_file_descriptor(*kinds: type[CigenMessage]) -> descriptor_pb2.FileDescriptorProto:
    """Returns the descriptor of these messages and their nested messages."""
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    found: dict[str, type[CigenMessage]] = {}
    for kind in kinds:
        collect_messages(kind, found)
    for kind in found.values():
        fill_message_descriptor(file.message_type.add(name=proto_name(kind)), kind)
    return file


def fill_message_descriptor(described: Any, kind: type[CigenMessage]) -> None:
    is_one_of = getattr(kind, "is_one_of", False)
    if is_one_of:
        described.oneof_decl.add(name="one")
    for member in list_fields(kind):
        field = described.field.add(name=member.name, number=member.number, label=FieldProto.LABEL_OPTIONAL)
        if is_one_of:
            field.oneof_index = 0
        if member.is_map:
            entry = described.nested_type.add(name=map_entry_name(member.name))
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=FieldProto.LABEL_OPTIONAL, type=FieldProto.TYPE_STRING)
            fill_field_descriptor(entry.field.add(name="value", number=2, label=FieldProto.LABEL_OPTIONAL), member)
            field.type = FieldProto.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{proto_name(kind)}.{entry.name}"
        else:
            fill_field_descriptor(field, member)
        if member.is_map or member.is_repeated:
            field.label = FieldProto.LABEL_REPEATED


def fill_field_descriptor(field: Any, member: ProtobufField) -> None:
    if member.is_message:
        field.type = FieldProto.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{proto_name(member.kind)}"
    else:
        field.type = FieldProto.TYPE_INT32 if member.is_enum else SCALARS[member.kind]


def map_entry_name(name: str) -> str:
    """Returns the name that protobuf requires for the entries of a map."""
    return "".join(part.capitalize() for part in name.split("_")) + "Entry"


# -- codec


class ProtobufCodec:
    """Converts one type of message between JSON and protobuf."""

    def __init__(self, kind: type[CigenMessage]) -> None:
        self.kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        pool = descriptor_pool.DescriptorPool()
        pool.Add(build_file_descriptor(kind))
        described = pool.FindMessageTypeByName(f"{PACKAGE}.{proto_name(kind)}")
        self._message: Any = message_factory.GetMessageClass(described)
        self._counted = find_nested_fields(kind)

    def encode(self, json: bytes) -> bytes:
        """Returns the protobuf bytes of a JSON message.

        Raises:
            Unencodable: it does not match the type.
        """
        message = self._message()
        try:
            encode_fields(message, self._decode(json))
        except ValueError as error:  # includes msgspec's; also a step with two kinds
            raise Unencodable(f"not a valid {proto_name(self.kind)}: {error}") from error
        data: bytes = message.SerializeToString(deterministic=True)
        return data

    def decode(self, data: bytes, limits: Limits) -> Raw:
        """Returns the JSON of a protobuf message.

        Raises:
            BadMessage: the bytes are invalid, or have too many values.
        """
        # A value has at least two bytes, so a small message cannot have too many values. Values are counted before
        # parsing, because a value of two bytes can take hundreds of bytes of memory.
        if len(data) > 2 * limits.nodes and count_values(memoryview(data), self._counted, limits.nodes) < 0:
            raise BadMessage(f"{proto_name(self.kind)} has more than {limits.nodes} values")
        try:
            message = self._message.FromString(data)
        except (DecodeError, UnicodeDecodeError) as error:  # the latter is raised by the pure Python library
            raise BadMessage(f"not a valid {proto_name(self.kind)}: {error}") from error
        return Raw(msgspec.json.encode(decode_fields(message, self.kind)))


@cache
def get_codec(kind: type[CigenMessage]) -> ProtobufCodec:
    """Returns the codec of a message, built on first use."""
    return ProtobufCodec(kind)


def encode_fields(message: Any, values: CigenMessage) -> None:
    names: list[str] = []
    for member in list_fields(type(values)):
        value: Any = getattr(values, member.attribute)
        if value is None or value == () or value == {}:
            continue
        names.append(member.name)
        place = getattr(message, member.name)
        if member.is_map and member.is_message:
            for key, one in value.items():
                encode_fields(place[key], one)
        elif member.is_map:
            place.update(value)
        elif member.is_repeated and member.is_message:
            for one in value:
                encode_fields(place.add(), one)
        elif member.is_repeated:
            place.extend(value)
        elif member.is_message:
            place.SetInParent()
            encode_fields(place, value)
        else:
            setattr(message, member.name, enum_number(value) if member.is_enum else value)
    if getattr(values, "is_one_of", False) and len(names) > 1:
        raise ValueError(f"a {type(values).__name__} is one of {', '.join(names)}, not several")


def decode_fields(message: Any, kind: type[CigenMessage]) -> dict[str, Any]:
    members = list_fields(kind)
    fields: list[tuple[Any, Any]] = message.ListFields()  # without fields that have their default
    return {field.name: decode_field(members[int(field.number) - 1], value) for field, value in fields}


def decode_field(member: ProtobufField, value: Any) -> Any:
    if member.is_map:
        keys: list[str] = sorted(value)  # their order is random
        return {key: decode_value(member, value[key]) for key in keys}
    if member.is_repeated:
        return [decode_value(member, one) for one in value]
    return decode_value(member, value)


def decode_value(member: ProtobufField, value: Any) -> Any:
    if member.is_message:
        return decode_fields(value, member.kind)
    return enum_name(member.kind, value) if member.is_enum else value


def enum_number(name: StrEnum) -> int:
    return [*type(name)].index(name)


def enum_name(kind: type[StrEnum], number: int) -> str:
    names: list[str] = [*kind]
    return names[number] if 0 <= number < len(names) else names[0]


# -- counting values before parsing

NestedFields = dict[int, "NestedFields | None"]


@cache
def find_nested_fields(kind: type[CigenMessage]) -> NestedFields:
    """Returns the numbers of fields that hold messages, each with the same for its message."""
    counted: NestedFields = {}
    for member in list_fields(kind):
        inner = find_nested_fields(member.kind) if member.is_message else None
        if member.is_map:
            counted[member.number] = {2: inner}
        elif inner is not None:
            counted[member.number] = inner
    return counted


def count_values(data: memoryview, counted: NestedFields, most: int) -> int:
    """Returns `most` minus the number of values in a message; negative if there are too many.

    Counting stops at invalid bytes, which the parser rejects."""
    position = 0
    try:
        while position < len(data) and most >= 0:
            most -= 1
            tag, position = read_varint(data, position)
            match tag & 7:
                case 0:
                    _, position = read_varint(data, position)
                case 1:
                    position += 8
                case 2:
                    size, position = read_varint(data, position)
                    inner = counted.get(tag >> 3)
                    if inner is not None:
                        most = count_values(data[position : position + size], inner, most)
                    position += size
                case 5:
                    position += 4
                case _:
                    break
    except IndexError:  # truncated varint
        pass
    return most


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7

"""JSON into the protobuf messages of cigen and back. The one module that imports protobuf.

The messages are made of the classes in `messages` when the first link needs them, so that nothing generated has to fit
the version of the library. A number takes the place of each enum, which is the same on the wire: numbers that only a
newer program knows read as unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final, get_args, get_origin

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from msgspec import Raw, Struct

from becket.dialects.cigen.messages import Message, Signed, Unsigned
from becket.errors import BadMessage, Unencodable
from becket.limits import Limits

__all__ = ["Form", "describe_messages", "form_of"]

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


# -- what the classes say


class Member(Struct, frozen=True):
    """One member of a message: how it is called, and what its values are, one or many of them."""

    attribute: str
    name: str
    number: int
    kind: Any
    is_repeated: bool = False
    is_map: bool = False

    @property
    def is_message(self) -> bool:
        """Whether its values are messages themselves."""
        return isinstance(self.kind, type) and issubclass(self.kind, Message)

    @property
    def is_enum(self) -> bool:
        """Whether its values are names that travel as numbers."""
        return isinstance(self.kind, type) and issubclass(self.kind, StrEnum)


@cache
def members_of(kind: type[Message]) -> tuple[Member, ...]:
    """Returns the members of a message, in the order of their numbers."""
    return tuple(
        read_member(field.name, field.encode_name, number, field.type)
        for number, field in enumerate(msgspec.structs.fields(kind), 1)
    )


def read_member(attribute: str, name: str, number: int, hint: Any) -> Member:
    parts = get_args(hint)
    if get_origin(hint) is tuple:
        return Member(attribute, name, number, parts[0], is_repeated=True)
    if get_origin(hint) is dict:
        return Member(attribute, name, number, parts[1], is_map=True)
    # What is left with parts is a message or None, or a number between bounds.
    return Member(attribute, name, number, hint if hint in SCALARS or not parts else parts[0])


def messages_below(kind: type[Message], found: dict[str, type[Message]]) -> dict[str, type[Message]]:
    """Adds a message and all that it is made of to those that were found, and returns them."""
    if kind.__name__ not in found:
        found[kind.__name__] = kind
        for member in members_of(kind):
            if member.is_message:
                messages_below(member.kind, found)
    return found


# -- the same for protobuf


def describe_messages(*kinds: type[Message]) -> descriptor_pb2.FileDescriptorProto:
    """Returns what protobuf must know of these messages and of all that they are made of."""
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    found: dict[str, type[Message]] = {}
    for kind in kinds:
        messages_below(kind, found)
    for kind in found.values():
        describe_message(file.message_type.add(name=kind.__name__), kind)
    return file


def describe_message(described: Any, kind: type[Message]) -> None:
    is_one_of = getattr(kind, "is_one_of", False)
    if is_one_of:
        described.oneof_decl.add(name="one")
    for member in members_of(kind):
        field = described.field.add(name=member.name, number=member.number, label=FieldProto.LABEL_OPTIONAL)
        if is_one_of:
            field.oneof_index = 0
        if member.is_map:
            entry = described.nested_type.add(name=entry_name(member.name))
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=FieldProto.LABEL_OPTIONAL, type=FieldProto.TYPE_STRING)
            describe_values(entry.field.add(name="value", number=2, label=FieldProto.LABEL_OPTIONAL), member)
            field.type = FieldProto.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{kind.__name__}.{entry.name}"
        else:
            describe_values(field, member)
        if member.is_map or member.is_repeated:
            field.label = FieldProto.LABEL_REPEATED


def describe_values(field: Any, member: Member) -> None:
    if member.is_message:
        field.type = FieldProto.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{member.kind.__name__}"
    else:
        field.type = FieldProto.TYPE_INT32 if member.is_enum else SCALARS[member.kind]


def entry_name(name: str) -> str:
    """Returns the name that protobuf wants for the entries of a map."""
    return "".join(part.capitalize() for part in name.split("_")) + "Entry"


# -- one kind of message


class Form:
    """One kind of message: its JSON into bytes, and its bytes into JSON."""

    def __init__(self, kind: type[Message]) -> None:
        self.kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        pool = descriptor_pool.DescriptorPool()
        pool.Add(describe_messages(kind))
        described = pool.FindMessageTypeByName(f"{PACKAGE}.{kind.__name__}")
        self._message: Any = message_factory.GetMessageClass(described)
        self._counted = counted_in(kind)

    def encode(self, json: bytes) -> bytes:
        """Returns the message that this JSON stands for.

        Raises:
            Unencodable: it stands for none.
        """
        message = self._message()
        try:
            fill(message, self._decode(json))
        except ValueError as error:  # so is msgspec's; a step of two kinds is one too
            raise Unencodable(f"this is no {self.kind.__name__}: {error}") from error
        data: bytes = message.SerializeToString(deterministic=True)
        return data

    def decode(self, data: bytes, limits: Limits) -> Raw:
        """Returns the JSON of a message.

        Raises:
            BadMessage: these bytes are none, or hold more values than a message may.
        """
        # A value takes two bytes or more, so a small message cannot hold too many. One of two bytes may take hundreds
        # once it is parsed: they are counted before.
        if len(data) > 2 * limits.nodes and count_values(memoryview(data), self._counted, limits.nodes) < 0:
            raise BadMessage(f"no {self.kind.__name__} of a sensible size: more than {limits.nodes} values")
        try:
            message = self._message.FromString(data)
        except (DecodeError, UnicodeDecodeError) as error:  # the latter where the library is pure Python
            raise BadMessage(f"no {self.kind.__name__}: {error}") from error
        return Raw(msgspec.json.encode(read(message, self.kind)))


@cache
def form_of(kind: type[Message]) -> Form:
    """Returns the form of a message, made when it is first needed."""
    return Form(kind)


def fill(message: Any, values: Message) -> None:
    given: list[str] = []
    for member in members_of(type(values)):
        value: Any = getattr(values, member.attribute)
        if value is None or value == () or value == {}:
            continue
        given.append(member.name)
        place = getattr(message, member.name)
        if member.is_map and member.is_message:
            for key, one in value.items():
                fill(place[key], one)
        elif member.is_map:
            place.update(value)
        elif member.is_repeated and member.is_message:
            for one in value:
                fill(place.add(), one)
        elif member.is_repeated:
            place.extend(value)
        elif member.is_message:
            place.SetInParent()
            fill(place, value)
        else:
            setattr(message, member.name, number_of(value) if member.is_enum else value)
    if getattr(values, "is_one_of", False) and len(given) > 1:
        raise ValueError(f"a {type(values).__name__} is one of {', '.join(given)}, not several")


def read(message: Any, kind: type[Message]) -> dict[str, Any]:
    members = members_of(kind)
    given: list[tuple[Any, Any]] = message.ListFields()  # without those that have their defaults
    return {field.name: read_values(members[int(field.number) - 1], value) for field, value in given}


def read_values(member: Member, value: Any) -> Any:
    if member.is_map:
        keys: list[str] = sorted(value)  # they have no order of their own, and come in another one each time
        return {key: read_value(member, value[key]) for key in keys}
    if member.is_repeated:
        return [read_value(member, one) for one in value]
    return read_value(member, value)


def read_value(member: Member, value: Any) -> Any:
    if member.is_message:
        return read(value, member.kind)
    return name_of(member.kind, value) if member.is_enum else value


def number_of(name: StrEnum) -> int:
    return [*type(name)].index(name)


def name_of(kind: type[StrEnum], number: int) -> str:
    names: list[str] = [*kind]
    return names[number] if 0 <= number < len(names) else names[0]


# -- how many values there are, without parsing

Counted = dict[int, "Counted | None"]


@cache
def counted_in(kind: type[Message]) -> Counted:
    """Returns which members of a message hold messages, by number, and the same of each of them."""
    counted: Counted = {}
    for member in members_of(kind):
        inner = counted_in(member.kind) if member.is_message else None
        if member.is_map:
            counted[member.number] = {2: inner}
        elif inner is not None:
            counted[member.number] = inner
    return counted


def count_values(data: memoryview, counted: Counted, most: int) -> int:
    """Returns how many values a message may hold beyond these; negative once it holds too many. What is no protobuf is
    counted up to where it ends to be some: the parser refuses it."""
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
    except IndexError:  # it ends within a number
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

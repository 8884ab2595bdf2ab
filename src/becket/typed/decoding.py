"""Raw JSON into the type that a handler or a caller asked for; when that fails, every problem with its JSON pointer.

The decode itself is msgspec's, strict by nature, and the check at run time. Only when it fails is the value decoded
again without a type, and walked beside the type to collect all that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from becket.errors import InvalidParams, Problem

__all__ = ["decoder_for", "find_problems", "result_decoder"]

decode_json = msgspec.json.Decoder().decode
UNDECODABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
SCALARS = (str, int, float, bool, bytes, type(None))


def decoder_for(annotation: Any) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to a value of the annotated type.

    Raises:
        TypeError: params cannot be of this type.
    """
    if annotation is Any or annotation is object:
        return decode_plain
    if annotation in SCALARS:
        raise TypeError(f"params are an object or an array, never a {annotation.__name__}")
    typed = msgspec.json.Decoder(annotation).decode

    def decode(raw: Raw | None) -> Any:
        try:
            return typed(b"{}" if raw is None else raw)
        except UNDECODABLE as error:
            if raw is None:
                try:
                    return msgspec.convert(None, annotation)
                except msgspec.ValidationError:
                    raise InvalidParams(find_problems({}, annotation) or [("", "params are required")]) from error
            raise InvalidParams(collect(raw, annotation, error)) from error

    return decode


def decode_plain(raw: Raw | None) -> Any:
    """Returns params as plain JSON values."""
    if raw is None:
        return None
    try:
        value = decode_json(raw)
    except UNDECODABLE as error:
        raise InvalidParams([("", str(error))]) from error
    if not isinstance(value, dict | list):
        raise InvalidParams([("", "params are an object or an array")])
    return value


RESULT_DECODERS: dict[Any, Callable[[Raw], Any]] = {Any: decode_json}


def result_decoder(type: Any) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to a value of `type`. It raises what msgspec raises."""
    try:
        known = RESULT_DECODERS.get(type)
    except TypeError:  # an unhashable type expression
        return msgspec.json.Decoder(type).decode
    if known is None:
        known = RESULT_DECODERS[type] = msgspec.json.Decoder(type).decode
    return known


def collect(raw: Raw, annotation: Any, error: Exception) -> list[Problem]:
    try:
        value = decode_json(raw)
    except UNDECODABLE as malformed:
        return [("", str(malformed))]
    return find_problems(value, annotation) or [("", str(error))]


def find_problems(value: object, annotation: Any) -> list[Problem]:
    """Returns all that is wrong with a JSON value for a type, each with its JSON pointer; empty when nothing is."""
    problems: list[Problem] = []
    walk(value, msgspec.inspect.type_info(annotation), annotation, "", problems)
    return problems


def walk(value: object, info: Any, annotation: Any, pointer: str, problems: list[Problem]) -> None:
    inspect = msgspec.inspect
    match info:
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() if isinstance(value, dict):
            names = set[str]()
            for field in info.fields:
                names.add(field.encode_name)
                inner = f"{pointer}/{escape(field.encode_name)}"
                if field.encode_name in value:
                    walk(value[field.encode_name], field.type, None, inner, problems)
                elif field.required:
                    problems.append((inner, "is missing"))
            if getattr(info, "forbid_unknown_fields", False):
                unknown = sorted(str(name) for name in value if name not in names)
                problems.extend((f"{pointer}/{escape(name)}", "is unknown") for name in unknown)
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType() if isinstance(value, list):
            for index, element in enumerate(value):
                walk(element, info.item_type, None, f"{pointer}/{index}", problems)
        case inspect.DictType() if isinstance(value, dict):
            for name, member in value.items():
                walk(member, info.value_type, None, f"{pointer}/{escape(str(name))}", problems)
        case _:
            check(value, info, annotation, pointer, problems)


def check(value: object, info: Any, annotation: Any, pointer: str, problems: list[Problem]) -> None:
    """Asks msgspec about one value that cannot be taken apart further."""
    try:
        msgspec.convert(value, annotation if annotation is not None else type_of(info))
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        problems.append((pointer + pointer_of(path.rstrip("`")), message[:1].lower() + message[1:]))


def type_of(info: Any) -> Any:
    """Returns a type expression for what msgspec.inspect says of a field."""
    inspect = msgspec.inspect
    match info:
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() | inspect.EnumType():
            return info.cls
        case inspect.UnionType():
            members = [type_of(member) for member in info.types]
            union = members[0]
            for member in members[1:]:
                union = union | member
            return union
        case inspect.LiteralType():
            from typing import Literal

            return Literal[tuple(info.values)]
        case inspect.ListType():
            return list[type_of(info.item_type)]
        case inspect.SetType():
            return set[type_of(info.item_type)]
        case inspect.VarTupleType():
            return tuple[type_of(info.item_type), ...]
        case inspect.DictType():
            return dict[type_of(info.key_type), type_of(info.value_type)]
        case inspect.IntType() | inspect.FloatType() | inspect.StrType() if limits := constraints(info):
            from typing import Annotated

            return Annotated[PLAIN_TYPES[type(info).__name__], msgspec.Meta(**limits)]
        case _:
            return PLAIN_TYPES.get(type(info).__name__, Any)


PLAIN_TYPES: dict[str, Any] = {
    "NoneType": None,
    "BoolType": bool,
    "IntType": int,
    "FloatType": float,
    "StrType": str,
    "BytesType": bytes,
}


def constraints(info: Any) -> dict[str, Any]:
    names = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")
    return {name: value for name in names if (value := getattr(info, name, None)) is not None}


def pointer_of(path: str) -> str:
    """Returns the JSON pointer of a msgspec path such as `.a[0].b`."""
    return "".join(f"/{escape(part)}" for part in path.replace("[", ".").replace("]", "").split(".") if part)


def escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

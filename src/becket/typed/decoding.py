"""Raw JSON into the type that a handler or a caller asked for.

The decode is msgspec's, strict by nature, and the check at run time. Only classes that msgspec would not build as they
ask for it (attrs classes with converters, validators or aliases, unions of classes) go through `convert`, which takes
four times as long. Params in which an object has one member twice are refused, which is `duplicates`'. What is wrong
with a value that does not fit is found by `problems`, which is imported only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from becket.errors import BadValue, InvalidParams, Meaning, RpcError
from becket.typed.converted import Converted
from becket.typed.duplicates import check_duplicates, refusing_duplicates
from becket.typed.type_parts import is_shaped, name_of, walk, walk_types

__all__ = ["bare_decoder", "decode_json", "decoder_for", "result_decoder"]

Decode = Callable[[Raw | bytes], Any]

decode_json = msgspec.json.Decoder().decode
UNDECODABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
NO_PARAMS = b"{}"
SHAPE = "params are an object or an array"
UNTYPED = (Raw, dict, list, dict[str, Any], list[Any])  # besides Any and object


MOST_KEPT = 1_024  # types, of params and of results: a program that makes new ones all the time shall not grow
D = TypeVar("D")


def made_once(decoders: dict[Any, D], type: Any, make: Callable[[Any], D]) -> D:
    """Returns the decoder of a type, which is made when it is first asked for."""
    try:
        known = decoders.get(type)
    except TypeError:  # an unhashable type expression
        return make(type)
    if known is None:
        if len(decoders) >= MOST_KEPT:
            decoders.clear()
        known = decoders[type] = make(type)
    return known


# -- params


def decoder_for(annotation: Any) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to a value of the annotated type.

    Raises:
        TypeError: params cannot be of this type.
    """
    return made_once(PARAMS_DECODERS, annotation, params_decoder)


PARAMS_DECODERS: dict[Any, Callable[[Raw | None], Any]] = {}


def params_decoder(annotation: Any) -> Callable[[Raw | None], Any]:
    if annotation is Any or annotation is object:
        return decode_plain
    if isinstance(annotation, Converted):
        return reading_decoder(annotation.read)
    if may_be_shaped(annotation):
        return converting_decoder(annotation)
    try:
        strict = strict_decoder(annotation)
    except (TypeError, NotImplementedError):
        if not is_shaped(annotation):
            raise
        return converting_decoder(annotation)
    typed: Decode

    def look_once(raw: Raw | bytes) -> Any:  # at the first call: an extension does not pay for it at start
        nonlocal typed
        typed = unique_decoder(annotation, strict)
        return typed(raw)

    typed = look_once

    def decode(raw: Raw | None) -> Any:
        try:
            return typed(NO_PARAMS if raw is None else raw)
        except UNDECODABLE as error:
            if raw is None:
                return decode_absent(annotation, error)
            raise explain(raw, annotation, error) from error

    return decode


def bare_decoder(annotation: Any) -> Decode | None:
    """Returns what `decoder_for` decodes with, without what it says of params that do not fit: it raises what msgspec
    raises. None for a type that is not msgspec's to build, and for one that leaves the params as they are."""
    if annotation is Any or annotation is object or isinstance(annotation, Converted) or may_be_shaped(annotation):
        return None
    try:
        strict = strict_decoder(annotation)
    except (TypeError, NotImplementedError):
        return None
    return unique_decoder(annotation, strict)


def unique_decoder(annotation: Any, strict: Decode) -> Decode:
    """Returns a decoder that refuses objects with one member twice, of which msgspec would take the last."""
    is_raw = holds_raw(annotation)
    if annotation in UNTYPED:
        return whole(strict) if is_raw else strict
    if not is_raw:
        return refusing_duplicates(annotation, strict)

    def decode(raw: Raw | bytes) -> Any:  # what stays raw may be sent on, and must be JSON then
        check_duplicates(bytes(raw), decode_json(raw))
        return strict(raw)

    return decode


def strict_decoder(annotation: Any) -> Decode:
    strict: Decode = msgspec.json.Decoder(annotation).decode
    return strict if is_surely_container(annotation) else containers_only(annotation, strict)


def converting_decoder(annotation: Any) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to a value of a type that is not msgspec's to build.

    Raises:
        TypeError: params cannot be of this type.
    """
    from becket.typed.convert import check_type, convert

    check_type(annotation)

    def read(value: Any) -> Any:
        return convert(value, annotation, forbid_unknown=False)

    return reading_decoder(read)


def reading_decoder(read: Callable[[Any], Any]) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to what `read` makes of plain JSON values. Absent ones are tried as an empty
    object, and then as null."""

    def decode(raw: Raw | None) -> Any:
        value: Any = {}
        if raw is not None:
            value = decode_plain(raw)
            check_duplicates(bytes(raw), value)
        try:
            return read(value)
        except BadValue as error:
            problems, cause = error.problems, error
        if raw is None:
            try:
                return read(None)
            except BadValue:
                if not all(pointer for pointer, _ in problems):
                    problems = (("", "params are required"),)
        raise InvalidParams(problems) from cause

    return decode


def decode_plain(raw: Raw | None) -> Any:
    """Returns params as plain JSON values."""
    if raw is None:
        return None
    try:
        value: Any = decode_json(raw)
    except UNDECODABLE as error:
        raise explain(raw, Any, error) from error
    if not is_container(value):
        raise InvalidParams([("", SHAPE)])
    return value


def decode_absent(annotation: Any, error: Exception) -> Any:
    """Returns None where the type allows it; absent params have been tried as an empty object already."""
    from becket.typed.problems import find_problems

    try:
        return msgspec.convert(None, annotation)
    except msgspec.ValidationError:
        problems = find_problems({}, annotation)
        if problems and all(pointer for pointer, _ in problems):
            raise InvalidParams(problems) from error
        raise InvalidParams([("", "params are required")]) from error


def explain(raw: Raw, annotation: Any, error: Exception) -> RpcError:
    """Returns the answer to params that could not be decoded."""
    from becket.typed.problems import find_problems, problem_of

    try:
        value: Any = decode_json(raw)
    except msgspec.ValidationError as beyond:  # a number that Python has no room for
        return InvalidParams([problem_of(beyond)])
    except UNDECODABLE as malformed:
        # The envelope was read without looking into strings: text that is not UTF-8 shows only here.
        return RpcError(Meaning.PARSE_ERROR, f"parse error: not JSON: {malformed}")
    if not is_container(value):
        return InvalidParams([("", SHAPE)])
    return InvalidParams(find_problems(value, annotation) or [problem_of(error)])


def is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


# -- results and events


def result_decoder(type: Any) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to a value of `type`. It raises what msgspec raises."""
    return made_once(RESULT_DECODERS, type, checked_decoder)


RESULT_DECODERS: dict[Any, Callable[[Raw], Any]] = {Any: decode_json}


def checked_decoder(type: Any) -> Callable[[Raw], Any]:
    if isinstance(type, Converted):
        return reading_result_decoder(type.read)
    if may_be_shaped(type):
        return converting_result_decoder(type)
    try:
        strict = msgspec.json.Decoder(type).decode
    except (TypeError, NotImplementedError):
        if not is_shaped(type):
            raise
        return converting_result_decoder(type)
    return whole(strict) if holds_raw(type) else strict


def converting_result_decoder(type: Any) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to a value of a type that is not msgspec's to build."""
    from becket.typed.convert import check_type, convert

    check_type(type)

    def read(value: Any) -> Any:
        return convert(value, type, forbid_unknown=False)

    return reading_result_decoder(read)


def reading_result_decoder(read: Callable[[Any], Any]) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to what `read` makes of plain JSON values."""

    def decode(raw: Raw) -> Any:
        try:
            return read(decode_json(raw))
        except BadValue as error:
            raise msgspec.ValidationError(str(error)) from error

    return decode


# -- what msgspec lets through


def whole(strict: Decode) -> Decode:
    """Returns a decoder that reads all of a value first: what stays raw may be sent on, and must be JSON then."""

    def decode(raw: Raw | bytes) -> Any:
        decode_json(raw)
        return strict(raw)

    return decode


def containers_only(annotation: Any, strict: Decode) -> Decode:
    """Returns a decoder that refuses scalars, which are no params even where the type has room for them."""
    inspect = msgspec.inspect
    info = inspect.type_info(annotation)
    for part in walk_types(info):
        if isinstance(part, inspect.CustomType):
            raise TypeError(f"JSON cannot become a `{name_of(part.cls)}`: use a Struct, a dataclass or a TypedDict")
    while isinstance(info, inspect.Metadata):
        info = info.type
    containers = (
        inspect.CollectionType,
        inspect.TupleType,
        inspect.DictType,
        inspect.TypedDictType,
        inspect.NamedTupleType,
        inspect.DataclassType,
        inspect.StructType,
        inspect.RawType,
    )
    members = info.types if isinstance(info, inspect.UnionType) else (info,)
    if not any(isinstance(member, containers) for member in members) and not isinstance(info, inspect.NoneType):
        raise TypeError(f"{SHAPE}, never a `{name_of(annotation)}`")
    if all(isinstance(member, containers) and not isinstance(member, inspect.RawType) for member in members):
        return strict

    def decode(raw: Raw | bytes) -> Any:
        if memoryview(raw)[0] not in STARTS:
            raise msgspec.ValidationError(SHAPE)
        return strict(raw)

    return decode


STARTS = b"{["


def may_be_shaped(annotation: Any) -> bool:
    """Returns whether msgspec must not build this type. Where attrs was never imported there is nothing to look for."""
    return "attr" in sys.modules and is_shaped(annotation)


def is_surely_container(annotation: Any) -> bool:
    """Tells the usual types at a glance; looking into a type expression takes a hundred times as long."""
    return isinstance(annotation, type) and (annotation in (dict, list) or issubclass(annotation, Struct))


def holds_raw(annotation: Any) -> bool:
    """Returns whether a value of this type can hold JSON that nobody has looked into."""
    return any(part is Raw for part in walk(annotation, into_members=True))

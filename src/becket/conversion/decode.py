"""Builds msgspec decoders for handler params and call results, cached by type.

msgspec decodes and validates strictly. Only classes that msgspec would not build correctly (attrs classes with
converters, validators or aliases, unions of classes) go through `convert`, which takes four times as long. Params
with a duplicate member are rejected by `duplicates`. `problems` explains values that do not fit, and is imported
only then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from becket.conversion.custom_type import CustomType
from becket.conversion.introspect import get_type_name, needs_cattrs, walk_annotation, walk_type_info
from becket.errors import JSON_ERRORS, BadValue, InvalidParams, Meaning, RpcError

__all__ = ["decode_json", "get_msgspec_decoder", "get_params_decoder", "get_result_decoder"]

Decoder = Callable[[Raw | bytes], Any]

decode_json = msgspec.json.Decoder().decode
EMPTY_PARAMS = b"{}"
NOT_A_CONTAINER = "params are an object or an array"
UNTYPED = (Raw, dict, list, dict[str, Any], list[Any])  # besides Any and object


MAX_CACHED_DECODERS = 1_024  # types; bounds the memory of a program that keeps making new ones
D = TypeVar("D")


def get_or_build(decoders: dict[Any, D], type: Any, make: Callable[[Any], D]) -> D:
    """Returns the cached decoder of a type, building it at first use."""
    try:
        known = decoders.get(type)
    except TypeError:  # an unhashable type expression
        return make(type)
    if known is None:
        if len(decoders) >= MAX_CACHED_DECODERS:
            decoders.clear()
        known = decoders[type] = make(type)
    return known


# -- params


def get_params_decoder(annotation: Any) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to a value of the annotated type.

    Raises:
        TypeError: params cannot be of this type.
    """
    return get_or_build(PARAMS_DECODERS, annotation, build_params_decoder)


PARAMS_DECODERS: dict[Any, Callable[[Raw | None], Any]] = {}


def build_params_decoder(annotation: Any) -> Callable[[Raw | None], Any]:
    if annotation is Any or annotation is object:
        return decode_untyped
    if isinstance(annotation, CustomType):
        return build_custom_params_decoder(annotation.from_json)
    if may_need_cattrs(annotation):
        return build_cattrs_params_decoder(annotation)
    try:
        strict = build_strict_decoder(annotation)
    except (TypeError, NotImplementedError):
        if not needs_cattrs(annotation):
            raise
        return build_cattrs_params_decoder(annotation)
    typed: Decoder

    def look_once(raw: Raw | bytes) -> Any:  # built at the first call, so that extensions start faster
        nonlocal typed
        typed = unique_decoder(annotation, strict)
        return typed(raw)

    typed = look_once

    def decode(raw: Raw | None) -> Any:
        try:
            return typed(EMPTY_PARAMS if raw is None else raw)
        except JSON_ERRORS as error:
            if raw is None:
                return decode_absent(annotation, error)
            raise build_params_error(raw, annotation, error) from error

    return decode


def get_msgspec_decoder(annotation: Any) -> Decoder | None:
    """Returns the decoder that `get_params_decoder` uses; it raises what msgspec raises. None for a type that
    msgspec does not build, and for one that leaves the params undecoded."""
    if annotation is Any or annotation is object or isinstance(annotation, CustomType) or may_need_cattrs(annotation):
        return None
    try:
        strict = build_strict_decoder(annotation)
    except (TypeError, NotImplementedError):
        return None
    return unique_decoder(annotation, strict)


def unique_decoder(annotation: Any, strict: Decoder) -> Decoder:
    """Returns a decoder that rejects objects with a duplicate member, of which msgspec would keep the last."""
    is_raw = contains_raw(annotation)
    if annotation in UNTYPED:
        return validate_raw(strict) if is_raw else strict
    from becket.conversion.duplicates import check_duplicates, refusing_duplicates  # not before the first typed params

    if not is_raw:
        return refusing_duplicates(annotation, strict)

    def decode(raw: Raw | bytes) -> Any:  # raw parts may be forwarded, and must then be JSON
        check_duplicates(bytes(raw), decode_json(raw))
        return strict(raw)

    return decode


def build_strict_decoder(annotation: Any) -> Decoder:
    strict: Decoder = msgspec.json.Decoder(annotation).decode
    return strict if is_known_container(annotation) else reject_scalars(annotation, strict)


def build_cattrs_params_decoder(annotation: Any) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to a value of a type that msgspec does not build.

    Raises:
        TypeError: params cannot be of this type.
    """
    from becket.conversion.attrs_classes import check_type, convert

    check_type(annotation)

    def read(value: Any) -> Any:
        return convert(value, annotation, forbid_unknown=False)

    return build_custom_params_decoder(read)


def build_custom_params_decoder(read: Callable[[Any], Any]) -> Callable[[Raw | None], Any]:
    """Returns a function from raw params to what `read` makes of plain JSON values. Absent params are tried as an
    empty object, and then as null."""
    from becket.conversion.duplicates import check_duplicates

    def decode(raw: Raw | None) -> Any:
        value: Any = {}
        if raw is not None:
            value = decode_untyped(raw)
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


def decode_untyped(raw: Raw | None) -> Any:
    """Decodes params as plain JSON values."""
    if raw is None:
        return None
    try:
        value: Any = decode_json(raw)
    except JSON_ERRORS as error:
        raise build_params_error(raw, Any, error) from error
    if not is_container(value):
        raise InvalidParams([("", NOT_A_CONTAINER)])
    return value


def decode_absent(annotation: Any, error: Exception) -> Any:
    """Returns None if the type allows it; absent params were already tried as an empty object."""
    from becket.conversion.problems import find_problems

    try:
        return msgspec.convert(None, annotation)
    except msgspec.ValidationError:
        problems = find_problems({}, annotation)
        if problems and all(pointer for pointer, _ in problems):
            raise InvalidParams(problems) from error
        raise InvalidParams([("", "params are required")]) from error


def build_params_error(raw: Raw, annotation: Any, error: Exception) -> RpcError:
    """Returns the error response for params that could not be decoded."""
    from becket.conversion.problems import find_problems, to_problem

    try:
        value: Any = decode_json(raw)
    except msgspec.ValidationError as beyond:  # a number outside Python's range
        return InvalidParams([to_problem(beyond)])
    except JSON_ERRORS as malformed:
        # The envelope was parsed without looking into strings: invalid UTF-8 shows only here.
        return RpcError(Meaning.PARSE_ERROR, f"parse error: not JSON: {malformed}")
    if not is_container(value):
        return InvalidParams([("", NOT_A_CONTAINER)])
    return InvalidParams(find_problems(value, annotation) or [to_problem(error)])


def is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


# -- results and events


def get_result_decoder(type: Any) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to a value of `type`. It raises what msgspec raises."""
    return get_or_build(RESULT_DECODERS, type, build_result_decoder)


RESULT_DECODERS: dict[Any, Callable[[Raw], Any]] = {Any: decode_json}


def build_result_decoder(type: Any) -> Callable[[Raw], Any]:
    if isinstance(type, CustomType):
        return build_custom_result_decoder(type.from_json)
    if may_need_cattrs(type):
        return build_cattrs_result_decoder(type)
    try:
        strict = msgspec.json.Decoder(type).decode
    except (TypeError, NotImplementedError):
        if not needs_cattrs(type):
            raise
        return build_cattrs_result_decoder(type)
    return validate_raw(strict) if contains_raw(type) else strict


def build_cattrs_result_decoder(type: Any) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to a value of a type that msgspec does not build."""
    from becket.conversion.attrs_classes import check_type, convert

    check_type(type)

    def read(value: Any) -> Any:
        return convert(value, type, forbid_unknown=False)

    return build_custom_result_decoder(read)


def build_custom_result_decoder(read: Callable[[Any], Any]) -> Callable[[Raw], Any]:
    """Returns a function from a raw result to what `read` makes of plain JSON values."""

    def decode(raw: Raw) -> Any:
        try:
            return read(decode_json(raw))
        except BadValue as error:
            raise msgspec.ValidationError(str(error)) from error

    return decode


# -- checks beyond msgspec's


def validate_raw(strict: Decoder) -> Decoder:
    """Returns a decoder that parses the whole value first: raw parts may be forwarded, and must then be JSON."""

    def decode(raw: Raw | bytes) -> Any:
        decode_json(raw)
        return strict(raw)

    return decode


def reject_scalars(annotation: Any, strict: Decoder) -> Decoder:
    """Returns a decoder that rejects scalars, which are not params even if the type allows them."""
    inspect = msgspec.inspect
    info = inspect.type_info(annotation)
    for part in walk_type_info(info):
        if isinstance(part, inspect.CustomType):
            name = get_type_name(part.cls)
            raise TypeError(f"JSON cannot become a `{name}`: use a Struct, a dataclass or a TypedDict")
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
        raise TypeError(f"{NOT_A_CONTAINER}, never a `{get_type_name(annotation)}`")
    if all(isinstance(member, containers) and not isinstance(member, inspect.RawType) for member in members):
        return strict

    def decode(raw: Raw | bytes) -> Any:
        if memoryview(raw)[0] not in CONTAINER_OPENERS:
            raise msgspec.ValidationError(NOT_A_CONTAINER)
        return strict(raw)

    return decode


CONTAINER_OPENERS = b"{["


def may_need_cattrs(annotation: Any) -> bool:
    """Returns whether the type needs cattrs. Returns at once if attrs was never imported."""
    return "attr" in sys.modules and needs_cattrs(annotation)


def is_known_container(annotation: Any) -> bool:
    """Recognises the usual types quickly; inspecting a type expression takes a hundred times as long."""
    return isinstance(annotation, type) and (annotation in (dict, list) or issubclass(annotation, Struct))


def contains_raw(annotation: Any) -> bool:
    """Returns whether a value of this type can contain unparsed JSON."""
    return any(part is Raw for part in walk_annotation(annotation, into_members=True))

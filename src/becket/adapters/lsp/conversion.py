"""Converts between JSON values and lsprotocol types, strictly, with JSON pointers for problems.

cattrs builds the hook of a type on first use and caches it. lsprotocol's converter coerces values (`"5"` becomes 5,
null becomes the text `None`); here the hooks of str, int, float and bool are strict. Problems of a value that does not
match are found by a second converter with detailed validation, which takes 1.5 times as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any

from attrs import fields_dict, has
from cattrs import Converter, transform_error
from lsprotocol import types
from lsprotocol.converters import get_converter

from becket._text import join_pointer
from becket.conversion.custom_type import CustomType
from becket.conversion.introspect import get_type_name
from becket.conversion.problems import MAX_PROBLEMS
from becket.errors import BadValue, Problem

__all__ = ["build_custom_type", "convert", "params_type", "result_type", "unstructure"]


# -- types of a method


def params_type(method: str) -> Any:
    """Returns the type of a method's params, or None without params."""
    request: Any = types.METHOD_TO_TYPES[method][0]
    params = fields_dict(request).get("params")
    return None if params is None or params.type is NoneType else params.type


def result_type(method: str) -> Any:
    """Returns the type of a request's result."""
    response: Any = types.METHOD_TO_TYPES[method][1]
    return fields_dict(response)["result"].type


# -- conversion


def build_custom_type(type: Any) -> CustomType[Any]:
    """Returns an lsprotocol type for use in a descriptor."""
    if type is NoneType:
        return CustomType(type, from_json=discard_value, to_json=discard_value)
    hook: Callable[[Any, Any], Any] | None = None

    def read(value: Any) -> Any:
        nonlocal hook
        if hook is None:
            hook = CONVERTER.get_structure_hook(type)
        try:
            return hook(value, type)
        except Exception as error:  # hooks raise many kinds of errors for a value of another shape
            raise BadValue(describe(type), find_problems(value, type) or [("", str(error))]) from error

    return CustomType(type, from_json=read, to_json=unstructure)


def convert(value: object, type: Any) -> Any:
    """Returns plain JSON values as an object of this type.

    Raises:
        BadValue: they do not match.
    """
    return cached_custom_type(type).from_json(value)


@cache
def cached_custom_type(type: Any) -> CustomType[Any]:
    return build_custom_type(type)


def discard_value(_: object) -> None:
    """Ignores a value where none is expected: some servers return an empty object or `true`."""
    return


def describe(type: Any) -> str:
    return get_type_name(type) if has(type) else "value of its type"


# -- the converter


def build_converter(*, explains: bool) -> Converter:
    converter = Converter(detailed_validation=explains)
    for kind in (str, bool, float, int):
        converter.register_structure_hook(kind, structure_exact)
    get_converter(converter)
    # The only type in server capabilities for which lsprotocol has no hook.
    missing = fields_dict(types.NotebookDocumentFilterWithCells)["notebook"].type

    def notebook(value: Any, _: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        return converter.structure(value, next(kind for name, kind in FILTERS.items() if name in value))

    def code_action(value: Any, _: Any) -> Any:  # lsprotocol decodes an action that has a command as a command
        is_command = isinstance(value["command"], str) if "command" in value else False
        return converter.structure(value, types.Command if is_command else types.CodeAction)

    def symbols(value: Any, _: Any) -> Any:  # lsprotocol checks only the first symbol, but servers mix both classes
        if value is None:
            return None
        kind = types.SymbolInformation if all(map(is_symbol_information, value)) else types.WorkspaceSymbol
        return [converter.structure(item, kind) for item in value]

    converter.register_structure_hook_func(lambda kind: kind == missing, notebook)
    converter.register_structure_hook(types.Command | types.CodeAction, code_action)
    converter.register_structure_hook(result_type(types.WORKSPACE_SYMBOL), symbols)
    return converter


def structure_exact(value: Any, type: Any) -> Any:
    """Returns a value of exactly this type. Also called for enums, which are subclasses of str and int."""
    if value.__class__ is type:
        return value
    if type is float and value.__class__ is int:
        return float(value)
    if type is int and value.__class__ is float and value.is_integer():  # languages with one number type write 1.0
        return int(value)
    if issubclass(type, Enum):
        return type(value)
    raise ValueError(f"is no {get_type_name(type)}")


def is_symbol_information(symbol: Any) -> bool:
    """Returns whether a symbol is a `SymbolInformation` and has no members of `WorkspaceSymbol` only."""
    return "deprecated" in symbol or ("data" not in symbol and "range" in symbol["location"])


FILTERS = {
    "notebookType": types.NotebookDocumentFilterNotebookType,
    "scheme": types.NotebookDocumentFilterScheme,
    "pattern": types.NotebookDocumentFilterPattern,
}
CONVERTER = build_converter(explains=False)
unstructure: Callable[[Any], Any] = CONVERTER.unstructure


# -- problems


@cache
def detailed_converter() -> Converter:
    return build_converter(explains=True)


def find_problems(value: object, type: Any) -> list[Problem]:
    """Returns why a value is not of this type, each problem with its JSON pointer."""
    if has(type) and not isinstance(value, dict):
        return [("", "is no object")]
    try:
        detailed_converter().structure(value, type)
    except Exception as error:
        return list(parse_cattrs_errors(transform_error(error, format_exception=format_cattrs_error)))[:MAX_PROBLEMS]
    return []


def parse_cattrs_errors(lines: list[str]) -> Iterator[Problem]:
    """Yields cattrs errors such as `is missing @ $.text_document.uri` as problems with the names of the wire."""
    for line in lines:
        message, _, path = line.rpartition(" @ $")
        pointer = ""
        for name, at in re.findall(r"\.([^.\[]+)|\[([^\]]+)\]", path):
            pointer = join_pointer(pointer, to_camel_case(name) if name else at.strip("'"))
        yield pointer, message


def format_cattrs_error(error: BaseException, type: type | None) -> str:
    if isinstance(error, KeyError):
        return "is missing"
    return str(error) or error.__class__.__name__


def to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)

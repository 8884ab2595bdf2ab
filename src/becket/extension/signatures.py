"""The input of a tool from the signature of its function: its JSON Schema, and JSON values as arguments.

Types, defaults and `Annotated[..., Meta(...)]` say what is allowed, the section `Args:` of the docstring says what it
means. A function with a single parameter that is a class of the author's takes that class as its whole input. Values
are read strictly, and all that is wrong with them is told at once; the signature is the check at run time. Members that
a class does not know are wrong, at any depth and whatever kind of class it is. Only whole numbers have two forms: 3.0
is an integer in JSON Schema, and becomes one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from becket.contract.shapes import is_array, is_object
from becket.errors import BadValue, InvalidParams, Problem, Unencodable
from becket.extension.declarations import OF_PARAMETERS, unwrapped
from becket.methods.registry import describe, resolve
from becket.rpc.json_values import encode_json
from becket.typed.type_parts import (
    UNIONS,
    Field,
    bare,
    fields_of,
    is_a,
    is_class,
    is_model,
    is_path,
    is_shaped,
    is_typed_dict,
    member_types,
    name_of,
    walk,
)

__all__ = [
    "REFERENCE",
    "Parameter",
    "Schemas",
    "ToolInput",
    "annotation_of",
    "describe_parameters",
    "has_members",
    "read_tool_input",
    "reader_of",
    "simple_schema",
]

REFERENCE: Final = "#/$defs/"
AT: Final = "/input"  # where the input stands in the params of `tool.call`
CONTEXTS: Final = ("Context", "BlockingContext")

Read = Callable[[Any], Any]


class Parameter(Struct, frozen=True, eq=False):
    """One argument of a tool: how a JSON value becomes it."""

    name: str
    type: Any
    schema: dict[str, Any]
    read: Any
    is_required: bool


class ToolInput:
    """What a tool takes: `schema` tells others, `read` turns an input into the arguments of its function."""

    def __init__(
        self,
        derived: dict[str, Any],
        given: dict[str, Any] | None,
        parameters: tuple[Parameter, ...],
        *,
        whole: Parameter | None,
        context: str | None,
    ) -> None:
        self.schema = derived if given is None else given
        self.context = context  # the parameter that gets the context of the call, None if the function takes none
        self._parameters = parameters
        self._whole = whole
        self._definitions: dict[str, Any] = derived.get("$defs", {})
        # A schema that is given may allow more than there are parameters; a class knows all of its members.
        self._known = known = derived if given is None or whole is not None else opened(derived, given)
        self._names = frozenset(known["properties"])
        self._is_closed = known["additionalProperties"] is False
        self._holds_classes = any("properties" in definition for definition in self._definitions.values())

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of the function.

        Raises:
            InvalidParams: the input does not fit; all problems, each with its pointer into the params of the call.
        """
        problems: list[Problem] = []
        arguments: dict[str, Any] = {}
        if self._whole is not None:
            self._take(self._whole, given, AT, arguments, problems)
        for parameter in self._parameters:
            at = f"{AT}/{parameter.name}"
            if parameter.name in given:
                self._take(parameter, given[parameter.name], at, arguments, problems)
            elif parameter.is_required:
                problems.append((at, "is missing"))
        if self._holds_classes or (self._is_closed and not given.keys() <= self._names):
            problems += [problem for problem in self._find_unknown(given) if problem not in problems]
        if problems:
            raise InvalidParams(problems)
        return arguments

    def _take(
        self, parameter: Parameter, value: Any, at: str, arguments: dict[str, Any], problems: list[Problem]
    ) -> None:
        try:
            arguments[parameter.name] = parameter.read(value)
        except (msgspec.ValidationError, BadValue):
            from becket.extension.whole_numbers import with_whole_numbers

            value = with_whole_numbers(value, parameter.schema, self._definitions)
            take(parameter, value, at, arguments, problems)

    def _find_unknown(self, given: dict[str, Any]) -> list[Problem]:
        if self._holds_classes:
            from becket.extension.unknown_members import find_unknown_members

            return find_unknown_members(given, self._known, AT)
        return [(pointer_to(name), "is unknown") for name in given if name not in self._names]


def opened(derived: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of the parameters with the names beside them that a schema which was given allows."""
    ours: dict[str, Any] = derived["properties"]
    if given.get("additionalProperties") is not False or "patternProperties" in given:
        return {**derived, "additionalProperties": {}}
    return {**derived, "properties": {name: ours.get(name, {}) for name in given.get("properties", ())}}


def pointer_to(name: str) -> str:
    from becket.typed.problems import below, cut

    return cut(below(AT, name))


def take(parameter: Parameter, value: Any, at: str, arguments: dict[str, Any], problems: list[Problem]) -> None:
    try:
        arguments[parameter.name] = parameter.read(value)
    except msgspec.ValidationError as error:
        from becket.typed.problems import find_problems, problem_of

        found = find_problems(value, parameter.type) or [problem_of(error)]
        problems += [(at + pointer, text) for pointer, text in found]
    except BadValue as error:
        problems += [(at + pointer, text) for pointer, text in error.problems]


# -- from a function


def read_tool_input(function: Any, given_schema: Any = None) -> ToolInput:
    """Returns what a method of a class takes as a tool, `self` excepted. A schema that is given replaces our own.

    Raises:
        TypeError: JSON cannot become the type of a parameter, or an annotation names nothing.
    """
    target = unwrapped(function)
    types = {name: annotation_of(name, target, function) for name in parameter_names(target)}
    context = next((name for name, kind in types.items() if is_context(kind)), None)
    if context is not None:
        del types[context]
    required = [name for name in types if name not in defaults_of(target)]
    schemas = Schemas(function)
    if len(types) == 1 and len(required) == 1 and has_members(bare(types[required[0]])):
        name = required[0]
        schema = schemas.of_whole(types[name])
        whole = Parameter(name, types[name], schema, reader_of(types[name], schemas), True)
        return ToolInput(schema, given_schema, (), whole=whole, context=context)
    schema = schemas.of_parameters(types, defaults_of(target), describe_parameters(target.__doc__ or ""))
    parameters = tuple(
        Parameter(name, kind, schema["properties"][name], reader_of(kind, schemas), name in required)
        for name, kind in types.items()
    )
    return ToolInput(schema, given_schema, parameters, whole=None, context=context)


def parameter_names(target: Any) -> tuple[str, ...]:
    code = target.__code__
    return tuple(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def defaults_of(target: Any) -> dict[str, Any]:
    values = target.__defaults__ or ()
    code = target.__code__
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(target.__kwdefaults__ or {})}


def annotation_of(name: str, target: Any, function: Any) -> Any:
    annotation = target.__annotations__.get(name, Any)
    if isinstance(annotation, str):
        annotation = resolve(annotation, target, function)
    return Any if annotation is object else annotation


def is_context(kind: Any) -> bool:
    # By name: importing the class of the other face would cost what this one saves.
    return isinstance(kind, type) and kind.__name__ in CONTEXTS and kind.__module__.startswith("becket.peer.")


def has_members(kind: Any) -> bool:
    """Returns whether a class is an object in JSON, as a whole input is."""
    made: Any = get_origin(kind) or kind
    if is_a(made, Struct):
        return not made.__struct_config__.array_like
    if is_model(made):
        return not getattr(made, "__pydantic_root_model__", False)
    return is_class(kind) or is_typed_dict(kind)


def reader_of(kind: Any, schemas: Schemas) -> Read:
    if kind is Any:
        return as_it_is
    if is_shaped(kind):
        from becket.typed.convert import check_type, convert

        with_reason(schemas.function, kind, lambda: check_type(kind))
        return lambda value: convert(value, kind)
    return lambda value: msgspec.convert(value, kind, str_keys=True)


def as_it_is(value: Any) -> Any:
    return value


def with_reason(function: Any, kind: Any, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (TypeError, NotImplementedError, RecursionError) as error:
        # In one line, which a host shows of a failed start: in those before it msgspec tells of its own options.
        because = str(error).strip().rpartition("\n")[2]
        reason = f"no input of a tool can be a `{name_of(kind)}`, as {describe(function)} asks for: {because}"
        raise TypeError(reason) from error


# -- schemas


class Schemas:
    """The schemas of one tool, with all classes that they name in one place."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._definitions: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def of_parameters(
        self, types: dict[str, Any], defaults: dict[str, Any], descriptions: dict[str, str]
    ) -> dict[str, Any]:
        properties = {name: self._of_parameter(name, kind, defaults, descriptions) for name, kind in types.items()}
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name in types if name not in defaults]
        if required:
            schema["required"] = required
        return self._with_definitions(schema)

    def _of_parameter(
        self, name: str, kind: Any, defaults: dict[str, Any], descriptions: dict[str, str]
    ) -> dict[str, Any]:
        schema = self.of(kind)
        if name in descriptions:
            schema.setdefault("description", descriptions[name])
        if name in defaults:
            add_default(schema, defaults[name])
        return schema

    def of_whole(self, kind: Any) -> dict[str, Any]:
        schema = self.of(kind)
        reference = schema.get("$ref", "")
        if reference:
            name = reference.removeprefix(REFERENCE)
            schema = dict(self._definitions[name])
            if not mentions(self._definitions, reference):
                del self._definitions[name]
        schema.setdefault("additionalProperties", False)
        schema.pop("title", None)
        return self._with_definitions(schema)

    def of_result(self, kind: Any) -> dict[str, Any]:
        """Returns the schema of a result that is no object with members of its own."""
        return self._with_definitions(self.of(kind))

    def _with_definitions(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "$defs": self._definitions} if self._definitions else schema

    def of(self, kind: Any) -> dict[str, Any]:
        simple = simple_schema(kind)
        if simple is not None:
            return simple
        if not is_shaped(kind):
            return self._of_plain(kind)
        kind = bare(kind)
        if is_path(kind):
            return {"type": "string"}
        if is_model(kind):
            return self._of_model(kind)
        if is_class(kind):
            return self._of_class(kind)
        origin, parts = get_origin(kind), get_args(kind)
        if not parts:
            from becket.typed.convert import check_type

            with_reason(self.function, kind, lambda: check_type(kind))  # it holds a class that it would not build
        if origin in UNIONS:
            return {"anyOf": [self.of(part) for part in parts]}
        if origin is tuple and parts[-1] is not ...:
            items = [self.of(part) for part in parts]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if len(parts) == 2 and parts[-1] is not ...:
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        return {"type": "array", "items": self.of(parts[0])}

    def _of_plain(self, kind: Any) -> dict[str, Any]:
        with_reason(self.function, kind, lambda: check_not_raw(kind))
        (schema,), definitions = with_reason(
            self.function, kind, lambda: msgspec.json.schema_components((kind,), ref_template=REFERENCE + "{name}")
        )
        for name, definition in definitions.items():
            self._define(name, closed(definition))
        return dict(schema)

    def _of_class(self, kind: Any) -> dict[str, Any]:
        """Returns a reference to a class that msgspec does not build: its members have names of their own."""
        if kind not in self._names:
            name = self._names[kind] = name_of(get_origin(kind) or kind)
            types = member_types(kind)
            fields = fields_of(kind)
            schema: dict[str, Any] = {
                "title": name,
                **documentation_of(kind),
                "type": "object",
                "properties": {field.alias: self._of_member(types.get(field.name, Any), field) for field in fields},
                "additionalProperties": False,
            }
            required = [field.alias for field in fields if field.is_required]
            if required:
                schema["required"] = required
            self._define(name, schema)
        return {"$ref": REFERENCE + self._names[kind]}

    def _of_model(self, kind: Any) -> dict[str, Any]:
        """Returns a reference to a pydantic model, which says itself what it takes."""
        from becket.typed.models import find_model

        schema: dict[str, Any] = with_reason(self.function, kind, lambda: find_model(kind).schema("validation"))
        for name, definition in schema.pop("$defs", {}).items():
            self._define(name, closed(definition))
        if "$ref" in schema:  # it holds itself, and stands among the definitions
            return schema
        name = name_of(kind)
        self._define(name, closed(schema))
        return {"$ref": REFERENCE + name}

    def _of_member(self, kind: Any, field: Field) -> dict[str, Any]:
        schema = self.of(kind) if field.converter is None else self._of_converted(kind, field)
        if field.default is not ...:
            add_default(schema, field.default)
        return schema

    def _of_converted(self, kind: Any, field: Field) -> dict[str, Any]:
        from becket.typed.convert import input_type

        try:
            return self.of(input_type(field.converter, kind))
        except TypeError:  # what the converter takes is its own affair
            return {}

    def _define(self, name: str, definition: Any) -> None:
        if self._definitions.setdefault(name, definition) != definition:
            raise TypeError(f"two classes in the input of {describe(self.function)} are named `{name}`")


def check_not_raw(kind: Any) -> None:
    if any(part is Raw for part in walk(kind, into_members=True)):
        raise TypeError("JSON that nobody has looked into is no input: use `Any`")


def simple_schema(kind: Any) -> dict[str, Any] | None:
    """Returns the schema of a text, a number, a boolean, and of a list of such or `None`; msgspec would say the same.
    To ask it takes the start of an extension three milliseconds, and most tools take nothing else."""
    if isinstance(kind, type):
        name = SIMPLE.get(kind)
        return None if name is None else {"type": name}
    parts = get_args(kind)
    if get_origin(kind) is list and parts:
        items = simple_schema(parts[0])
        return None if items is None else {"type": "array", "items": items}
    if get_origin(kind) in UNIONS and len(parts) == 2 and parts[1] is NoneType:
        member = simple_schema(parts[0])
        return None if member is None else {"anyOf": [member, {"type": "null"}]}
    return None


SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def add_default(schema: dict[str, Any], default: Any) -> None:
    try:
        plain = msgspec.to_builtins(default, str_keys=True)
        encode_json(plain)
    except (TypeError, ValueError, Unencodable):
        return  # what JSON cannot say is the function's own affair
    schema.setdefault("default", plain)


def documentation_of(kind: Any) -> dict[str, str]:
    """Returns the docstring of a class as a part of its schema; what a dataclass writes for itself is none."""
    made: Any = get_origin(kind) or kind
    text = (made.__doc__ or "").strip()
    if not text or text.startswith(f"{made.__name__}("):
        return {}
    from inspect import cleandoc  # which whoever makes such classes has imported

    return {"description": cleandoc(made.__doc__)}


def closed(definition: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a class without room for members that it does not know, unless it says otherwise."""
    is_open = "properties" in definition and "additionalProperties" not in definition
    return {**definition, "additionalProperties": False} if is_open else definition


def mentions(schema: Any, reference: str) -> bool:
    if is_object(schema):
        return schema.get("$ref") == reference or any(mentions(part, reference) for part in schema.values())
    return is_array(schema) and any(mentions(part, reference) for part in schema)


# -- docstrings


def describe_parameters(docstring: str) -> dict[str, str]:
    """Returns what the section `Args:` of a docstring says of each parameter."""
    lines = docstring.expandtabs().splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip().lower() in OF_PARAMETERS), None)
    if start is None:
        return {}
    found: dict[str, list[str]] = {}
    outer, inner = indent_of(lines[start]), None
    current: list[str] = []
    for line in lines[start + 1 :]:
        if not line.strip():
            continue
        indent = indent_of(line)
        if indent <= outer:
            break
        inner = indent if inner is None else inner
        head, colon, text = line.strip().partition(":")
        name = head.partition("(")[0].strip().lstrip("*")
        if indent <= inner and colon and name.isidentifier():
            current = found[name] = [text.strip()]
        else:
            current.append(line.strip())
    return {name: " ".join(filter(None, texts)) for name, texts in found.items()}


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())

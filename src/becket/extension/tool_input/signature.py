"""Builds a tool's input from its function's signature and decodes JSON into arguments.

Types, defaults and `Annotated[..., Meta(...)]` define what is allowed, and the section `Args:` of the docstring
describes it. A function with a single parameter that is a class of the author's takes that class as its whole input.
Values are decoded strictly, and all problems are reported at once; the signature is the check at run time. Unknown
members of a class are problems, at any depth and for any kind of class. Only whole numbers have two forms: 3.0 is an
integer in JSON Schema, and becomes one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from becket._text import join_pointer, truncate
from becket.contract.json_narrowing import is_array, is_object
from becket.conversion.introspect import (
    UNIONS,
    InitField,
    get_field_types,
    get_init_fields,
    get_type_name,
    is_attrs_or_dataclass,
    is_model,
    is_path,
    is_subclass,
    is_typed_dict,
    needs_cattrs,
    unwrap_annotation,
    walk_annotation,
)
from becket.errors import BadValue, InvalidParams, Problem, Unencodable
from becket.extension.decorators import PARAMETER_SECTIONS, unwrap
from becket.jsonrpc.json_values import encode_json
from becket.methods.registry import describe_function, resolve_annotation

__all__ = [
    "DEFINITIONS_PREFIX",
    "Parameter",
    "ToolInput",
    "ToolSchemaBuilder",
    "is_object_type",
    "parameter_annotation",
    "parameter_decoder",
    "parse_parameter_docs",
    "read_tool_input",
    "simple_schema",
]

DEFINITIONS_PREFIX: Final = "#/$defs/"
INPUT_POINTER: Final = "/input"  # the position of the input in the params of `tool.call`
CONTEXT_CLASSES: Final = ("Context", "BlockingContext")

ValueDecoder = Callable[[Any], Any]


class Parameter(Struct, frozen=True, eq=False):
    """One argument of a tool: how a JSON value becomes it."""

    name: str
    type: Any
    schema: dict[str, Any]
    decode: Any
    is_required: bool


class ToolInput:
    """The input of a tool: `schema` describes it, `decode` turns it into the arguments of its function."""

    def __init__(
        self,
        derived: dict[str, Any],
        schema: dict[str, Any] | None,
        parameters: tuple[Parameter, ...],
        *,
        whole: Parameter | None,
        context: str | None,
    ) -> None:
        self.schema = derived if schema is None else schema
        self.context = context  # the parameter that gets the context of the call, None if the function takes none
        self._parameters = parameters
        self._whole_parameter = whole
        self._definitions: dict[str, Any] = derived.get("$defs", {})
        # A given schema may allow more than the parameters; a class has all of its members.
        self._known_schema = known = (
            derived if schema is None or whole is not None else allow_declared_properties(derived, schema)
        )
        self._names = frozenset(known["properties"])
        self._is_closed = known["additionalProperties"] is False
        self._holds_classes = any("properties" in definition for definition in self._definitions.values())

    def decode(self, input: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of the function.

        Raises:
            InvalidParams: the input does not fit; all problems, each with its pointer into the params of the call.
        """
        problems: list[Problem] = []
        arguments: dict[str, Any] = {}
        if self._whole_parameter is not None:
            self._decode_parameter(self._whole_parameter, input, INPUT_POINTER, arguments, problems)
        for parameter in self._parameters:
            at = f"{INPUT_POINTER}/{parameter.name}"
            if parameter.name in input:
                self._decode_parameter(parameter, input[parameter.name], at, arguments, problems)
            elif parameter.is_required:
                problems.append((at, "is missing"))
        if self._holds_classes or (self._is_closed and not input.keys() <= self._names):
            problems += [problem for problem in self._find_unknown(input) if problem not in problems]
        if problems:
            raise InvalidParams(problems)
        return arguments

    def _decode_parameter(
        self, parameter: Parameter, value: Any, at: str, arguments: dict[str, Any], problems: list[Problem]
    ) -> None:
        try:
            arguments[parameter.name] = parameter.decode(value)
        except (msgspec.ValidationError, BadValue):
            from becket.extension.tool_input.checks import coerce_integers

            value = coerce_integers(value, parameter.schema, self._definitions)
            decode_parameter(parameter, value, at, arguments, problems)

    def _find_unknown(self, input: dict[str, Any]) -> list[Problem]:
        if self._holds_classes:
            from becket.extension.tool_input.checks import find_unknown_members

            return find_unknown_members(input, self._known_schema, INPUT_POINTER)
        return [(input_pointer(name), "is unknown") for name in input if name not in self._names]


def allow_declared_properties(derived: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of the parameters with the further names that a given schema allows."""
    ours: dict[str, Any] = derived["properties"]
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return {**derived, "additionalProperties": {}}
    return {**derived, "properties": {name: ours.get(name, {}) for name in schema.get("properties", ())}}


def input_pointer(name: str) -> str:
    return truncate(join_pointer(INPUT_POINTER, name))


def decode_parameter(
    parameter: Parameter, value: Any, at: str, arguments: dict[str, Any], problems: list[Problem]
) -> None:
    try:
        arguments[parameter.name] = parameter.decode(value)
    except msgspec.ValidationError as error:
        from becket.conversion.problems import find_problems, to_problem

        found = find_problems(value, parameter.type) or [to_problem(error)]
        problems += [(at + pointer, text) for pointer, text in found]
    except BadValue as error:
        problems += [(at + pointer, text) for pointer, text in error.problems]


# -- from a function


def read_tool_input(function: Any, given_schema: Any = None) -> ToolInput:
    """Returns the tool input of a method, without `self`. A given schema replaces the derived one.

    Raises:
        TypeError: JSON cannot become the type of a parameter, or an annotation names nothing.
    """
    target = unwrap(function)
    types = {name: parameter_annotation(name, target, function) for name in parameter_names(target)}
    context = next((name for name, kind in types.items() if is_context(kind)), None)
    if context is not None:
        del types[context]
    required = [name for name in types if name not in parameter_defaults(target)]
    schemas = ToolSchemaBuilder(function)
    if len(types) == 1 and len(required) == 1 and is_object_type(unwrap_annotation(types[required[0]])):
        name = required[0]
        schema = schemas.build_for_class(types[name])
        whole = Parameter(name, types[name], schema, parameter_decoder(types[name], schemas), True)
        return ToolInput(schema, given_schema, (), whole=whole, context=context)
    schema = schemas.build_for_parameters(types, parameter_defaults(target), parse_parameter_docs(target.__doc__ or ""))
    parameters = tuple(
        Parameter(name, kind, schema["properties"][name], parameter_decoder(kind, schemas), name in required)
        for name, kind in types.items()
    )
    return ToolInput(schema, given_schema, parameters, whole=None, context=context)


def parameter_names(target: Any) -> tuple[str, ...]:
    code = target.__code__
    return tuple(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def parameter_defaults(target: Any) -> dict[str, Any]:
    values = target.__defaults__ or ()
    code = target.__code__
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(target.__kwdefaults__ or {})}


def parameter_annotation(name: str, target: Any, function: Any) -> Any:
    annotation = target.__annotations__.get(name, Any)
    if isinstance(annotation, str):
        annotation = resolve_annotation(annotation, target, function)
    return Any if annotation is object else annotation


def is_context(kind: Any) -> bool:
    # By name: importing the class of the other runtime would cost what this one saves.
    return isinstance(kind, type) and kind.__name__ in CONTEXT_CLASSES and kind.__module__.startswith("becket.peer.")


def is_object_type(kind: Any) -> bool:
    """Returns whether a class is an object in JSON, as a whole input is."""
    made: Any = get_origin(kind) or kind
    if is_subclass(made, Struct):
        return not made.__struct_config__.array_like
    if is_model(made):
        return not getattr(made, "__pydantic_root_model__", False)
    return is_attrs_or_dataclass(kind) or is_typed_dict(kind)


def parameter_decoder(kind: Any, schemas: ToolSchemaBuilder) -> ValueDecoder:
    if kind is Any:
        return identity
    if needs_cattrs(kind):
        from becket.conversion.attrs_classes import check_type, convert

        explain_type_error(schemas.function, kind, lambda: check_type(kind))
        return lambda value: convert(value, kind)
    return lambda value: msgspec.convert(value, kind, str_keys=True)


def identity(value: Any) -> Any:
    return value


def explain_type_error(function: Any, kind: Any, build: Callable[[], Any]) -> Any:
    try:
        return build()
    except (TypeError, NotImplementedError, RecursionError) as error:
        # The last line alone, which a host shows of a failed start: the others are about msgspec's own options.
        because = str(error).strip().rpartition("\n")[2]
        reason = (
            f"the input of a tool cannot be a `{get_type_name(kind)}`, as in {describe_function(function)}: {because}"
        )
        raise TypeError(reason) from error


# -- schemas


class ToolSchemaBuilder:
    """The schemas of one tool, with one set of definitions."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._definitions: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def build_for_parameters(
        self, types: dict[str, Any], defaults: dict[str, Any], descriptions: dict[str, str]
    ) -> dict[str, Any]:
        properties = {name: self._build_parameter(name, kind, defaults, descriptions) for name, kind in types.items()}
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name in types if name not in defaults]
        if required:
            schema["required"] = required
        return self._with_definitions(schema)

    def _build_parameter(
        self, name: str, kind: Any, defaults: dict[str, Any], descriptions: dict[str, str]
    ) -> dict[str, Any]:
        schema = self.build(kind)
        if name in descriptions:
            schema.setdefault("description", descriptions[name])
        if name in defaults:
            add_default(schema, defaults[name])
        return schema

    def build_for_class(self, kind: Any) -> dict[str, Any]:
        schema = self.build(kind)
        reference = schema.get("$ref", "")
        if reference:
            name = reference.removeprefix(DEFINITIONS_PREFIX)
            schema = dict(self._definitions[name])
            if not contains_reference(self._definitions, reference):
                del self._definitions[name]
        schema.setdefault("additionalProperties", False)
        schema.pop("title", None)
        return self._with_definitions(schema)

    def of_result(self, kind: Any) -> dict[str, Any]:
        """Returns the schema of a result that is not an object with members of its own."""
        return self._with_definitions(self.build(kind))

    def _with_definitions(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "$defs": self._definitions} if self._definitions else schema

    def build(self, kind: Any) -> dict[str, Any]:
        simple = simple_schema(kind)
        if simple is not None:
            return simple
        if not needs_cattrs(kind):
            return self._build_with_msgspec(kind)
        kind = unwrap_annotation(kind)
        if is_path(kind):
            return {"type": "string"}
        if is_model(kind):
            return self._of_model(kind)
        if is_attrs_or_dataclass(kind):
            return self._build_class(kind)
        origin, parts = get_origin(kind), get_args(kind)
        if not parts:
            from becket.conversion.attrs_classes import check_type

            explain_type_error(
                self.function, kind, lambda: check_type(kind)
            )  # it holds a class that msgspec does not build
        if origin in UNIONS:
            return {"anyOf": [self.build(part) for part in parts]}
        if origin is tuple and parts[-1] is not ...:
            items = [self.build(part) for part in parts]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if len(parts) == 2 and parts[-1] is not ...:
            return {"type": "object", "additionalProperties": self.build(parts[1])}
        return {"type": "array", "items": self.build(parts[0])}

    def _build_with_msgspec(self, kind: Any) -> dict[str, Any]:
        explain_type_error(self.function, kind, lambda: check_not_raw(kind))
        (schema,), definitions = explain_type_error(
            self.function,
            kind,
            lambda: msgspec.json.schema_components((kind,), ref_template=DEFINITIONS_PREFIX + "{name}"),
        )
        for name, definition in definitions.items():
            self._define(name, closed(definition))
        return dict(schema)

    def _build_class(self, kind: Any) -> dict[str, Any]:
        """Returns a reference to a class that msgspec does not build: its members have names of their own."""
        if kind not in self._names:
            name = self._names[kind] = get_type_name(get_origin(kind) or kind)
            types = get_field_types(kind)
            fields = get_init_fields(kind)
            schema: dict[str, Any] = {
                "title": name,
                **class_description(kind),
                "type": "object",
                "properties": {field.alias: self._build_member(types.get(field.name, Any), field) for field in fields},
                "additionalProperties": False,
            }
            required = [field.alias for field in fields if field.is_required]
            if required:
                schema["required"] = required
            self._define(name, schema)
        return {"$ref": DEFINITIONS_PREFIX + self._names[kind]}

    def _of_model(self, kind: Any) -> dict[str, Any]:
        """Returns a reference to a pydantic model, which has its own schema."""
        from becket.conversion.pydantic_models import find_model

        schema: dict[str, Any] = explain_type_error(self.function, kind, lambda: find_model(kind).schema("validation"))
        for name, definition in schema.pop("$defs", {}).items():
            self._define(name, closed(definition))
        if "$ref" in schema:  # it is recursive, and is among the definitions
            return schema
        name = get_type_name(kind)
        self._define(name, closed(schema))
        return {"$ref": DEFINITIONS_PREFIX + name}

    def _build_member(self, kind: Any, field: InitField) -> dict[str, Any]:
        schema = self.build(kind) if field.converter is None else self._build_converted(kind, field)
        if field.default is not ...:
            add_default(schema, field.default)
        return schema

    def _build_converted(self, kind: Any, field: InitField) -> dict[str, Any]:
        from becket.conversion.attrs_classes import converter_input_type

        try:
            return self.build(converter_input_type(field.converter, kind))
        except TypeError:  # the converter defines what it accepts
            return {}

    def _define(self, name: str, definition: Any) -> None:
        if self._definitions.setdefault(name, definition) != definition:
            raise TypeError(f"two classes in the input of {describe_function(self.function)} are named `{name}`")


def check_not_raw(kind: Any) -> None:
    if any(part is Raw for part in walk_annotation(kind, into_members=True)):
        raise TypeError("undecoded JSON cannot be an input: use `Any`")


def simple_schema(kind: Any) -> dict[str, Any] | None:
    """Returns the schema of a text, a number, a boolean, and of a list of such or `None`, as msgspec would.

    Importing that part of msgspec adds three milliseconds to the start, and most tools need nothing else."""
    if isinstance(kind, type):
        name = SIMPLE_TYPES.get(kind)
        return None if name is None else {"type": name}
    parts = get_args(kind)
    if get_origin(kind) is list and parts:
        items = simple_schema(parts[0])
        return None if items is None else {"type": "array", "items": items}
    if get_origin(kind) in UNIONS and len(parts) == 2 and parts[1] is NoneType:
        member = simple_schema(parts[0])
        return None if member is None else {"anyOf": [member, {"type": "null"}]}
    return None


SIMPLE_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def add_default(schema: dict[str, Any], default: Any) -> None:
    try:
        plain = msgspec.to_builtins(default, str_keys=True)
        encode_json(plain)
    except (TypeError, ValueError, Unencodable):
        return  # a default without a JSON form is left to the function
    schema.setdefault("default", plain)


def class_description(kind: Any) -> dict[str, str]:
    """Returns the docstring of a class as a part of its schema, unless a dataclass has generated it."""
    made: Any = get_origin(kind) or kind
    text = (made.__doc__ or "").strip()
    if not text or text.startswith(f"{made.__name__}("):
        return {}
    from inspect import cleandoc  # such classes have imported it

    return {"description": cleandoc(made.__doc__)}


def closed(definition: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a class without unknown members, unless it allows them."""
    is_open = "properties" in definition and "additionalProperties" not in definition
    return {**definition, "additionalProperties": False} if is_open else definition


def contains_reference(schema: Any, reference: str) -> bool:
    if is_object(schema):
        return schema.get("$ref") == reference or any(contains_reference(part, reference) for part in schema.values())
    return is_array(schema) and any(contains_reference(part, reference) for part in schema)


# -- docstrings


def parse_parameter_docs(docstring: str) -> dict[str, str]:
    """Returns the description of each parameter in the section `Args:` of a docstring."""
    lines = docstring.expandtabs().splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip().lower() in PARAMETER_SECTIONS), None)
    if start is None:
        return {}
    found: dict[str, list[str]] = {}
    outer, inner = indentation(lines[start]), None
    current: list[str] = []
    for line in lines[start + 1 :]:
        if not line.strip():
            continue
        indent = indentation(line)
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


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())

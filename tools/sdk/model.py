"""Reads the schema bundle and the catalogue of methods into a small model, which the emitters write as source code.

The order of types is that of the bundle, the order of methods that of the catalogue.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, TypeGuard

import msgspec
from msgspec import UNSET, Struct, UnsetType
from tools.sdk.bundle import FILE, describe, pick
from tools.sdk.types import ENTRIES, Entry, Json

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.handshake import FEATURES, PROTOCOL_VERSION
from becket.errors import ERROR_CODES
from becket.methods.descriptors import Direction, Method, Notification
from becket.methods.streams import Stream

__all__ = [
    "Alias",
    "ArrayOf",
    "Choice",
    "ContractMethod",
    "Enumeration",
    "Field",
    "JsonObject",
    "JsonValue",
    "MapOf",
    "Model",
    "Named",
    "Record",
    "Scalar",
    "TaggedUnion",
    "TypeDefinition",
    "TypeUse",
    "is_stream",
    "load_model",
]


# -- uses of types


class Scalar(Struct, frozen=True, tag=True):
    """A JSON scalar. `minimum` and `maximum` are those of an integer, where it has some."""

    kind: Literal["string", "integer", "number", "boolean", "null"]
    minimum: int | None = None
    maximum: int | None = None


class JsonValue(Struct, frozen=True, tag=True):
    """Any JSON value, null included."""


class JsonObject(Struct, frozen=True, tag=True):
    """Any JSON object."""


class ArrayOf(Struct, frozen=True, tag=True):
    """An array of items of one type."""

    items: TypeUse


class MapOf(Struct, frozen=True, tag=True):
    """An object whose members are all of one type."""

    values: TypeUse


class Named(Struct, frozen=True, tag=True):
    """A type of the model."""

    name: str


TypeUse: TypeAlias = Scalar | JsonValue | JsonObject | ArrayOf | MapOf | Named


# -- definitions of types


class Field(Struct, frozen=True, kw_only=True):
    """A member of a record. One that is not required may be absent, and where it is nullable, null means the same.

    `default` is the value that an absent member has, unset where it has none."""

    name: str
    doc: str
    type: TypeUse
    required: bool
    nullable: bool
    default: Any | UnsetType = UNSET


class Record(Struct, frozen=True, kw_only=True):
    """An object. A case of a tagged union has a `tag`: the member and its constant value, which `fields` omit.

    Members besides the fields are kept where it is `open`, an error where it is `closed`, and else ignored."""

    name: str
    doc: str
    family: str
    fields: tuple[Field, ...]
    tag: tuple[str, str] | None = None
    open: bool = False
    closed: bool = False


class Enumeration(Struct, frozen=True, kw_only=True):
    """A string with these values only."""

    name: str
    doc: str
    family: str
    values: tuple[str, ...]


class TaggedUnion(Struct, frozen=True, kw_only=True):
    """One of several records, distinguished by the value of the member `tag`. `cases` maps each value to its record."""

    name: str
    doc: str
    family: str
    tag: str
    cases: dict[str, str]


class Choice(Struct, frozen=True, kw_only=True):
    """A value of one of several JSON types, distinguished by that type alone."""

    name: str
    doc: str
    family: str
    choices: tuple[TypeUse, ...]


class Alias(Struct, frozen=True, kw_only=True):
    """A string with rules of its own: `pattern` is a regular expression of the RE2 subset."""

    name: str
    doc: str
    family: str
    pattern: str | None = None
    max_length: int | None = None


TypeDefinition: TypeAlias = Record | Enumeration | TaggedUnion | Choice | Alias


# -- the whole


class ContractMethod(Struct, frozen=True, kw_only=True):
    """A request or a notification. Without params it has none; a result that may be anything is a `JsonValue`.

    `events` are the notifications that belong to it while it runs. Times are in seconds, None where the link's default
    applies."""

    name: str
    doc: str
    kind: Literal["request", "notification"]
    direction: Direction | Literal["both"]
    params: TypeUse | None
    result: TypeUse | None = None
    events: tuple[str, ...] = ()
    timeout: float | None = None
    idle_timeout: float | None = None
    permission: str | None = None


class Model(Struct, frozen=True, kw_only=True):
    """The contract: its types and methods, the version, the names of features, and the numbers of errors."""

    types: tuple[TypeDefinition, ...]
    methods: tuple[ContractMethod, ...]
    protocol_version: int
    features: tuple[str, ...]
    errors: dict[str, int]

    def find(self, name: str) -> TypeDefinition:
        """Returns the definition of this name; raises KeyError where there is none."""
        for definition in self.types:
            if definition.name == name:
                return definition
        raise KeyError(name)


def load_model() -> Model:
    """Reads the bundle as it is in `schemas/`, and the catalogue."""
    bundle: Json = msgspec.json.decode(FILE.read_bytes())
    definitions: Json = bundle["$defs"]
    return Model(
        types=tuple(read_definition(entry, definitions) for entry in ENTRIES),
        methods=(*map(read_method, METHODS), *map(read_notification, NOTIFICATIONS), *LINK_METHODS),
        protocol_version=PROTOCOL_VERSION,
        features=FEATURES,
        errors={meaning.name.lower(): number for meaning, number in ERROR_CODES.items()},
    )


# -- reading


def read_definition(entry: Entry, definitions: Json) -> TypeDefinition:
    name, family, schema = entry.name, entry.family, definitions[entry.name]
    # The bundle has the texts of untyped members elsewhere.
    described = describe(entry)
    members = described.get("properties", {})
    doc = described.get("description", "")
    if "oneOf" in schema:
        names = [name_of(choice) for choice in schema["oneOf"]]
        tags = [tag for case in names if (tag := find_tag(definitions[case]))]
        return TaggedUnion(
            name=name,
            doc=doc,
            family=family,
            tag=tags[0][0],
            cases={value: case for (_, value), case in zip(tags, names, strict=True)},
        )
    if "anyOf" in schema:
        return Choice(name=name, doc=doc, family=family, choices=tuple(map(read_use, schema["anyOf"])))
    if "enum" in schema:
        return Enumeration(name=name, doc=doc, family=family, values=tuple(schema["enum"]))
    if schema["type"] == "string":
        return Alias(
            name=name, doc=doc, family=family, pattern=schema.get("pattern"), max_length=schema.get("maxLength")
        )
    tag = find_tag(schema)
    required = schema.get("required", ())
    return Record(
        name=name,
        doc=doc,
        family=family,
        fields=tuple(
            read_field(member, {**pick(members.get(member), "description"), **value}, required=member in required)
            for member, value in schema["properties"].items()
            if tag is None or member != tag[0]
        ),
        tag=tag,
        open=schema.get("additionalProperties") is True,
        closed=schema.get("additionalProperties") is False,
    )


def find_tag(schema: Json) -> tuple[str, str] | None:
    """Returns the member of a record that has a constant value, and the value."""
    for member, value in schema["properties"].items():
        if "const" in value:
            return member, value["const"]
    return None


def read_field(name: str, schema: Json, *, required: bool) -> Field:
    use, nullable = read_optional(schema)
    return Field(
        name=name,
        doc=schema.get("description", ""),
        type=use,
        required=required,
        nullable=nullable,
        default=schema.get("default", UNSET),
    )


def read_optional(schema: Json) -> tuple[TypeUse, bool]:
    """Returns the type of a member, and whether it may be null."""
    match schema:
        case {"anyOf": [one, {"type": "null"}]}:
            return read_use(one), True
        case {"type": [kind, "null"]}:
            return read_use({**schema, "type": kind}), True
        case _:
            return read_use(schema), False


def read_use(schema: Json) -> TypeUse:
    if "$ref" in schema:
        return Named(name_of(schema))
    match schema.get("type"):
        case None:
            return JsonValue()
        case "array":
            return ArrayOf(read_use(schema["items"])) if "items" in schema else ArrayOf(JsonValue())
        case "object" if "additionalProperties" in schema:
            return MapOf(read_use(schema["additionalProperties"]))
        case "object":
            return JsonObject()
        case kind:
            return Scalar(kind, schema.get("minimum"), schema.get("maximum"))


def name_of(schema: Json) -> str:
    return str(schema["$ref"]).removeprefix("#/$defs/")


NAMES: Final = {entry.type: entry.name for entry in ENTRIES if entry.type is not None}


def is_stream(method: Method[Any, Any]) -> TypeGuard[Stream[Any, Any, Any]]:
    """Returns whether a method has events."""
    return isinstance(method, Stream)


def read_method(method: Method[Any, Any]) -> ContractMethod:
    stream = method if is_stream(method) else None
    return ContractMethod(
        name=method.name,
        doc=method.summary,
        kind="request",
        direction=method.direction,
        params=use_of(method.params),
        result=use_of(method.result),
        events=tuple(stream.events) if stream else (),
        timeout=method.timeout,
        idle_timeout=stream.idle_timeout if stream else None,
        permission=method.requires,
    )


def read_notification(notification: Notification[Any]) -> ContractMethod:
    return ContractMethod(
        name=notification.name,
        doc=notification.summary,
        kind="notification",
        direction=notification.direction,
        params=use_of(notification.params),
        permission=notification.requires,
    )


def use_of(type: Any) -> TypeUse | None:
    if type is None:
        return None
    return JsonValue() if type is Any else Named(NAMES[type])


def link_method(name: str, kind: Literal["request", "notification"], params: str | None, doc: str) -> ContractMethod:
    """Returns a message of the link itself, which either peer may send."""
    return ContractMethod(name=name, doc=doc, kind=kind, direction="both", params=Named(params) if params else None)


LINK_METHODS: Final = (
    link_method("$/cancelRequest", "notification", "CancelParams", "Cancels a request of the sender."),
    link_method("$/progress", "notification", "ProgressParams", "Reports how far a request of the receiver is."),
    link_method("$/credit", "notification", "CreditParams", "Allows further events for a request of the sender."),
    link_method("$/ping", "request", None, "Is answered by the reader, at once, with null."),
)

"""Compares the schema files with the classes: both must accept the same values.

`AGREEMENTS` is the table: what reads a message, and which definition of which schema file says the same. The values are
made from the class and from the examples of the definition, and then spoilt: members go, come and change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import extend
from msgspec import Raw, inspect
from referencing import Registry, Resource

from becket.contract.audit import AuditEvent, AuditRecord, Digest, Natural
from becket.contract.commands import (
    CommandInvoke,
    CommandOutputEvent,
    CommandOutputParams,
    decode_command_output,
    decode_command_output_params,
)
from becket.contract.config import (
    ConfigChanged,
    ConfigGet,
    ConfigSaved,
    ConfigSet,
    ConfigSubscribe,
    ConfigSubscribed,
    ConfigValue,
    Revision,
    check_config_set,
    parse_config_key,
)
from becket.contract.handshake import Capabilities, DeclaredCapability, HostInfo, Initialize, Initialized
from becket.contract.handshake_checks import decode_initialized, find_handshake_problems
from becket.contract.hooks import HookEvent, HookKind, HookMatch, HookResult, HookSubscription
from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo, ModelInfo, SidecarArgs
from becket.contract.log import LogLevel, LogRecord
from becket.contract.memory import (
    Append,
    Appended,
    Query,
    Record,
    Records,
    find_append_problems,
    find_namespace_problem,
)
from becket.contract.providers import (
    DirectEvent,
    Message,
    Model,
    Provider,
    ProviderRequest,
    ProviderResult,
    check_complete_result,
    decode_provider_event,
)
from becket.contract.settings import (
    EditorClosed,
    EditorCommit,
    EditorCommitted,
    EditorKey,
    EditorOpen,
    EditorOpened,
    EditorRender,
    EditorRow,
    EditorTaken,
)
from becket.contract.sidecar import CustomSidecarEvent, KnownSidecarEvent, SidecarCommand, decode_command, decode_event
from becket.contract.tasks import (
    TaskEnded,
    TaskLogged,
    TaskStarted,
    TaskUpdated,
    decode_task_ended,
    decode_task_logged,
    decode_task_started,
    decode_task_updated,
)
from becket.contract.tools import Tool, ToolCall, format_tool_result
from becket.contract.widgets import Name, Position, StyledText, WidgetDismiss, WidgetUpsert
from becket.errors import BecketError
from becket.json_schema.files import load_schema, schema_names
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

EXAMPLES = int(os.environ.get("BECKET_EXAMPLES", "20"))  # values for each definition; `make prove` tries thousands
REFUSALS = (msgspec.MsgspecError, BecketError, ValueError)
"""What a reader may raise; anything else is a fault of its own."""

Json = Any
Read = Callable[[Raw], object]


class Agreement(NamedTuple):
    """A reader, and the definition of what it accepts. `made_from` is the type of most of the values tried."""

    read: Read
    schema: str
    definition: str
    made_from: Any

    def accepts(self, value: Json) -> bool:
        try:
            self.read(Raw(msgspec.json.encode(value)))
        except REFUSALS:
            return False
        return True


def agreement(reader: Any, schema: str, definition: str, *, made_from: Any = None) -> Agreement:
    """Returns a line of the table. The reader is a class, or a function of raw JSON that raises for what it refuses."""
    if isinstance(reader, type) or made_from is None:
        return Agreement(msgspec.json.Decoder(reader).decode, schema, definition, reader)
    return Agreement(reader, schema, definition, made_from)


# -- the readers of the table that are none of the contract's own


class Everything(dict[str, object]):
    """A configuration in which no key is missing: a schema cannot know what is configured."""

    def __contains__(self, key: object) -> bool:
        return True


def read_declaration(raw: Raw) -> Initialized:
    """Reads and checks a handshake as a host does that has granted everything. Names that come twice are let pass: no
    schema can forbid them."""
    initialized = decode_initialized(raw)
    problems = find_handshake_problems("x", initialized, grants=Grants.of(PERMISSIONS), config=Everything())
    serious = [text for _, text in problems if "duplicate" not in text and "already registered" not in text]
    if serious:
        raise ValueError(serious)
    return initialized


def inside(before: str, after: str, read: Read, kind: type | None = None) -> Read:
    """Returns a reader of a part: it is read within its whole, and must come out as this kind."""

    def read_part(raw: Raw) -> object:
        whole = read(Raw(before.encode() + bytes(raw) + after.encode()))
        if kind is not None and not isinstance(whole, kind):
            raise ValueError(f"it is a {type(whole).__name__}")
        return whole

    return read_part


def declared(before: str, after: str) -> Read:
    return inside('{"protocol_version":1,"capabilities":' + before, after + "}", read_declaration)


def read_complete(raw: Raw) -> ProviderResult:
    result = msgspec.json.decode(raw, type=ProviderResult)
    check_complete_result("x", result)
    return result


def read_anything(raw: Raw) -> str:
    return format_tool_result(msgspec.json.decode(raw))


def provider_event(kind: str) -> Agreement:
    part = next((part for part in DirectEvent.__args__ if part.__struct_config__.tag == kind), None)
    reader = inside('{"event":', "}", decode_provider_event)

    def read(raw: Raw) -> object:
        if msgspec.json.decode(raw, type=dict[str, Any]).get("type") != kind:
            raise ValueError("it is of another type")
        return reader(raw)

    return agreement(read, "provider-events", kind, made_from=part or dict[str, Any])


def command_output(kind: str) -> Agreement:
    part = next(part for part in CommandOutputEvent.__args__ if part.__struct_config__.tag == kind)
    reader = inside('{"request_id":"r1","event":', "}", decode_command_output, part)
    return agreement(reader, "command-output", kind, made_from=part)


def read_append(raw: Raw) -> Append:
    append = msgspec.json.decode(raw, type=Append)
    if problems := find_append_problems(append):
        raise ValueError(problems)
    return append


def read_query(raw: Raw) -> Query:
    query = msgspec.json.decode(raw, type=Query)
    if problem := find_namespace_problem(query.namespace):
        raise ValueError(problem)
    return query


def read_config_get(raw: Raw) -> ConfigGet:
    get = msgspec.json.decode(raw, type=ConfigGet)
    parse_config_key(get.key)
    return get


def read_config_set(raw: Raw) -> ConfigSet:
    change = msgspec.json.decode(raw, type=ConfigSet)
    check_config_set(change)
    return change


def tagged(schema: str, union: Any, read: Callable[[bytes], object] | None = None) -> list[Agreement]:
    """Returns a line for each class of a union: what is read must come out as this class."""
    decode: Any = read or msgspec.json.Decoder(union).decode
    return [
        agreement(inside("", "", lambda raw: decode(bytes(raw)), part), schema, tag_of(part), made_from=part)
        for part in union.__args__
    ]


def tag_of(part: Any) -> str:
    return str(part.__struct_config__.tag)


# -- the table

AGREEMENTS = [
    agreement(Initialize, "initialize", "params"),
    agreement(read_declaration, "initialize", "result", made_from=Initialized),
    agreement(HostInfo, "initialize", "host"),
    agreement(tuple[str, ...], "initialize", "features"),
    agreement(declared("", ""), "capabilities", "capabilities", made_from=Capabilities),
    agreement(declared('{"capabilities":[', "]}"), "capabilities", "capability", made_from=DeclaredCapability),
    agreement(
        declared('{"capabilities":[{"kind":"k","name":"n","permissions":[', "]}]}"),
        "capabilities",
        "permission",
        made_from=str,
    ),
    agreement(
        declared('{"tools":[{"description":"d","input_schema":{},"name":', "}]}"), "capabilities", "id", made_from=str
    ),
    agreement(
        declared('{"tools":[{"name":"n","input_schema":{},"description":', "}]}"), "capabilities", "text", made_from=str
    ),
    agreement(declared('{"tools":[', "]}"), "tools", "tool", made_from=Tool),
    agreement(ToolCall, "tools", "call"),
    agreement(read_anything, "tools", "result", made_from=Any),
    agreement(declared('{"providers":[', "]}"), "providers", "provider", made_from=Provider),
    agreement(
        declared('{"providers":[{"id":"p","display_name":"n","description":"d","models":[', "]}]}"),
        "providers",
        "model",
        made_from=Model,
    ),
    agreement(Message, "providers", "message"),
    agreement(ProviderRequest, "providers", "request"),
    agreement(ProviderResult, "providers", "result"),
    agreement(read_complete, "providers", "completed", made_from=ProviderResult),
    agreement(decode_provider_event, "provider-events", "params", made_from=DirectEvent),
    agreement(inside('{"event":', "}", decode_provider_event), "provider-events", "event", made_from=DirectEvent),
    *map(provider_event, ("text", "thinking", "tool_use", "usage", "error", "done")),
    agreement(CommandInvoke, "commands", "params"),
    agreement(read_anything, "commands", "result", made_from=Any),
    agreement(decode_command_output_params, "command-output", "params", made_from=CommandOutputParams),
    agreement(
        inside('{"request_id":"r1","event":', "}", decode_command_output),
        "command-output",
        "event",
        made_from=CommandOutputEvent,
    ),
    *map(command_output, ("text", "system", "error", "table", "done")),
    agreement(decode_task_started, "tasks", "start", made_from=TaskStarted),
    agreement(decode_task_updated, "tasks", "update", made_from=TaskUpdated),
    agreement(decode_task_logged, "tasks", "log", made_from=TaskLogged),
    agreement(decode_task_ended, "tasks", "done", made_from=TaskEnded),
    agreement(inside('{"id":', "}", decode_task_ended), "tasks", "id", made_from=str),
    agreement(HookEvent, "hooks", "event"),
    agreement(HookKind, "hooks", "kind"),
    agreement(HookResult, "hooks", "result"),
    *tagged("hooks", HookResult),
    agreement(HookMatch, "hooks", "match"),
    agreement(declared('{"hooks":[', "]}"), "hooks", "subscription", made_from=HookSubscription),
    agreement(read_append, "memory", "append", made_from=Append),
    agreement(Appended, "memory", "appended"),
    agreement(read_query, "memory", "query", made_from=Query),
    agreement(Records, "memory", "records"),
    agreement(Record, "memory", "record"),
    agreement(inside('{"content":"","namespace":', "}", read_append), "memory", "namespace", made_from=str),
    agreement(inside('{"content":"","namespace":"n","tags":[', "]}", read_append), "memory", "tag", made_from=str),
    agreement(Natural, "memory", "time"),
    agreement(Natural | None, "memory", "record_id"),
    agreement(read_config_get, "config", "get", made_from=ConfigGet),
    agreement(ConfigValue, "config", "value"),
    agreement(read_config_set, "config", "set", made_from=ConfigSet),
    agreement(ConfigSaved, "config", "saved"),
    agreement(ConfigSubscribe, "config", "subscribe"),
    agreement(ConfigSubscribed, "config", "subscribed"),
    agreement(ConfigChanged, "config", "changed"),
    agreement(inside('{"key":', "}", read_config_get), "config", "key", made_from=str),
    agreement(Revision | None, "config", "revision"),
    agreement(EditorOpen, "settings-editor", "open"),
    agreement(EditorKey, "settings-editor", "key"),
    agreement(EditorCommit, "settings-editor", "commit"),
    agreement(EditorOpened, "settings-editor", "opened"),
    agreement(EditorTaken, "settings-editor", "taken"),
    agreement(read_anything, "settings-editor", "result", made_from=Any),
    agreement(EditorRender, "settings-editor", "render"),
    agreement(EditorRow, "settings-editor", "row"),
    agreement(EditorCommitted, "settings-editor", "committed"),
    agreement(EditorClosed, "settings-editor", "close"),
    agreement(LogRecord, "log", "record"),
    agreement(LogLevel, "log", "level"),
    agreement(WidgetUpsert, "widgets", "upsert"),
    agreement(WidgetDismiss, "widgets", "dismiss"),
    agreement(Name, "widgets", "id"),
    agreement(Position, "widgets", "position"),
    agreement(StyledText, "widgets", "styled_text"),
    agreement(ExtensionInfo, "info", "info"),
    agreement(BuildInfo, "info", "build"),
    agreement(CapabilityInfo, "info", "capability"),
    agreement(ModelInfo, "info", "model"),
    agreement(SidecarArgs, "info", "sidecar_args"),
    agreement(inside("", "", lambda raw: decode_command(bytes(raw))), "sidecar", "command", made_from=SidecarCommand),
    agreement(inside("", "", lambda raw: decode_event(bytes(raw))), "sidecar", "event", made_from=KnownSidecarEvent),
    *tagged("sidecar", SidecarCommand, decode_command),
    *tagged("sidecar", KnownSidecarEvent, decode_event),
    agreement(
        inside("", "", lambda raw: decode_event(bytes(raw)), CustomSidecarEvent),
        "sidecar",
        "custom",
        made_from=dict[str, Any],
    ),
    agreement(AuditRecord, "audit-record", "record"),
    agreement(AuditEvent, "audit-record", "event"),
    *tagged("audit-record", AuditEvent),
    agreement(Natural, "audit-record", "time"),
    agreement(Digest, "audit-record", "digest"),
]


# -- the schemas


def is_integer(checker: object, value: object) -> bool:
    # JSON Schema counts 1.0 among the integers; the classes do not, and no schema can distinguish the two.
    return isinstance(value, int) and not isinstance(value, bool)


Validator = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer))


@cache
def registry() -> Registry[Any]:
    schemas = (load_schema(name) for name in schema_names())
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)


@cache
def validator(schema: str, definition: str) -> Any:
    """Returns what checks a value against one definition; references into other files are followed."""
    return Validator(
        {"$ref": f"https://becket.dev/schemas/{schema}.schema.json#/$defs/{definition}"}, registry=registry()
    )


def definition_of(held: Agreement) -> dict[str, Any]:
    found: dict[str, Any] = load_schema(held.schema)["$defs"][held.definition]
    return found


def disagreement(held: Agreement, value: Json) -> str | None:
    """Returns how the two differ about a value, None if they agree."""
    output = validator(held.schema, held.definition).is_valid(value)
    if held.accepts(value) == output:
        return None
    return f"the schema {'accepts' if output else 'refuses'} what the reader does not agree about: {value!r}"


# -- values


class Words(NamedTuple):
    """What a schema file names: members, and values that mean something in it."""

    names: list[str]
    values: list[Json]


@cache
def words_of(schema: str) -> Words:
    names: dict[str, None] = {}
    values: dict[str, Json] = {}
    for part in walk(load_schema(schema)):
        names |= dict.fromkeys(part.get("properties", {}))
        found = [*part.get("enum", ()), *part.get("examples", ()), *([part["const"]] if "const" in part else ())]
        values |= {repr(value): value for value in found}
    return Words(sorted(names) or ["x"], list(values.values()) or [None])


def walk(schema: Json) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for name, part in schema.items():
            if name != "examples":
                yield from walk(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from walk(part)


# Short: 16 characters are at most 64 bytes, and a schema counts characters where an id has a limit of bytes.
TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "a", "a b", "a:b", "\t", "\x1b", "\x85", "\xa0", "\x1c", "\n", " a\n", "é", "A.b/c", "\u3000x"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=16),
)
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64]))
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, FRACTIONS, TEXTS)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


@cache  # making a strategy takes longer than drawing from it
def values(held: Agreement) -> st.SearchStrategy[Json]:
    """Returns values to try on both: good ones, and those with some members gone, new or changed."""
    words = words_of(held.schema)
    examples = definition_of(held).get("examples") or [None]
    good = st.one_of(from_info(inspect.type_info(held.made_from)), st.sampled_from(examples))
    return st.one_of(good, spoilt(good, words), spoilt(spoilt(good, words), words), ANYTHING)


def from_info(info: Any) -> st.SearchStrategy[Json]:
    """Returns a strategy for JSON that a type of msgspec accepts."""
    match info:
        case inspect.Metadata():
            return from_info(info.type)
        case inspect.AnyType() | inspect.RawType():
            return ANYTHING
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            least = -3 if info.ge is None else info.ge
            most = 2**63 if info.le is None else info.le
            return st.one_of(st.integers(least, min(most, least + 9)), st.sampled_from([least, most]))
        case inspect.FloatType():
            return st.one_of(FRACTIONS, st.integers(-3, 3))
        case inspect.StrType():
            return TEXTS.filter(lambda text: len(text) >= (info.min_length or 0))
        case inspect.EnumType():
            return st.sampled_from([member.value for member in info.cls])
        case inspect.LiteralType():
            return st.sampled_from(list(info.values))
        case inspect.TupleType():
            return st.tuples(*map(from_info, info.item_types)).map(list)
        case inspect.CollectionType():
            return st.lists(from_info(info.item_type), min_size=info.min_length or 0, max_size=3)
        case inspect.DictType():
            return st.dictionaries(from_info(info.key_type), from_info(info.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of(*map(from_info, info.types))
        case inspect.StructType():
            tag = {info.tag_field: st.just(info.tag)} if info.tag_field else {}
            fields = {
                field.encode_name: (field.required, st.deferred(lambda kind=field.type: from_info(kind)))
                for field in info.fields
            }
            required = {name: made for name, (needed, made) in fields.items() if needed}
            optional = {name: made for name, (needed, made) in fields.items() if not needed}
            return st.fixed_dictionaries(tag | required, optional=optional)
        case _:
            raise NotImplementedError(f"no values are made for {info}")


@st.composite
def spoilt(draw: st.DrawFn, good: st.SearchStrategy[Json], words: Words) -> Json:
    """Changes one part of a value: it gets another value, loses a member or element, or gains one."""
    value = draw(good)
    path = draw(st.sampled_from(list(paths(value))))
    other = st.one_of(st.sampled_from(words.values), ANYTHING)
    return changed(value, path, lambda part: draw_change(draw, part, other, words))


def draw_change(draw: st.DrawFn, part: Json, other: st.SearchStrategy[Json], words: Words) -> Json:
    changes = ["replace"]
    if isinstance(part, dict | list):
        changes += ["add", "add", *(["drop", "drop"] if part else [])]
    match draw(st.sampled_from(changes)), part:
        case "add", dict():
            name = draw(st.one_of(st.sampled_from(words.names), TEXTS))
            return part | {name: draw(other)}
        case "add", list():
            return [*part, draw(other)]
        case "drop", dict():
            gone = draw(st.sampled_from(sorted(part)))
            return {name: member for name, member in part.items() if name != gone}
        case "drop", list():
            return part[1:]
        case _:
            return draw(other)


def paths(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths(member, (*path, name))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from paths(element, (*path, index))


def changed(value: Json, path: tuple[Any, ...], change: Callable[[Json], Json]) -> Json:
    if not path:
        return change(value)
    if isinstance(value, dict):
        return value | {path[0]: changed(value[path[0]], path[1:], change)}
    return [changed(part, path[1:], change) if index == path[0] else part for index, part in enumerate(value)]

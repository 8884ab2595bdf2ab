"""Compiles a JSON Schema into nodes, or lists why it is invalid or unsafe to apply.

A schema is copied, checked against its meta-schema, and processed once: references become the nodes that they refer
to, patterns are compiled, keywords of draft 7 become those of 2020-12. What could cost too much later is rejected
here. `keywords` applies nodes to values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from math import inf, isfinite
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from becket._text import MAX_TEXT_LENGTH, join_pointer, unescape_pointer
from becket.conversion.problems import MAX_PROBLEMS, is_array, is_object
from becket.errors import BadSchema, Problem
from becket.json_schema.files import load_schema, schema_names
from becket.json_schema.keywords import (
    FALSE_SCHEMA,
    FULL_BUDGET,
    KEYWORDS,
    TRUE_SCHEMA,
    BoundedPattern,
    SchemaNode,
    StepBudget,
    find_problems,
    quote_value,
    sanitize,
    to_hashable,
)

__all__ = [
    "DRAFTS",
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "MAX_ENUM_VALUES",
    "MAX_NODES",
    "MAX_PATTERNS",
    "MAX_PATTERN_LENGTH",
    "compile_root",
]

MAX_NODES = 10_000  # values and containers in a schema; the largest hand-written tool schemas have some hundreds
MAX_CHARACTERS = 256 * 1024  # in all strings and names of a schema together
MAX_ENUM_VALUES = 5_000  # in one `enum`
MAX_PATTERNS = 50  # each may take half a megabyte
MAX_INTEGER_BITS = 1_024  # as many as a double holds
MAX_PATTERN_LENGTH = 1_000
MAX_ENUM_SHOWN = 10  # in a message
MAX_DEPTH = 64  # levels, as in a message
ENTRIES_PER_STEP = 10  # members of a schema that are checked in the time of one step
PATTERN_MEMORY = 512 * 1024


class Draft(NamedTuple):
    """One version of JSON Schema: where it allows subschemas."""

    uri: str
    prefix: str  # of the addresses of its meta-schemas
    in_value: frozenset[str]
    in_list: frozenset[str]
    in_members: frozenset[str]
    unknown: frozenset[str]  # keywords of another draft


SCHEMA_KEYWORDS = {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
SCHEMA_LIST_KEYWORDS = {"allOf", "anyOf", "oneOf"}
SCHEMA_MAP_KEYWORDS = {"definitions", "patternProperties", "properties"}
SCHEMA_KEYWORDS_2020_12 = {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}

DRAFT_2020_12 = Draft(
    uri="https://json-schema.org/draft/2020-12/schema",
    prefix="https://json-schema.org/draft/2020-12/",
    in_value=frozenset(SCHEMA_KEYWORDS | SCHEMA_KEYWORDS_2020_12),
    in_list=frozenset(SCHEMA_LIST_KEYWORDS | {"prefixItems"}),
    in_members=frozenset(SCHEMA_MAP_KEYWORDS | {"$defs", "dependentSchemas"}),
    unknown=frozenset(),
)
DRAFT_7 = Draft(
    uri="http://json-schema.org/draft-07/schema",
    prefix="http://json-schema.org/draft-07/",
    in_value=frozenset(SCHEMA_KEYWORDS | {"additionalItems"}),
    in_list=frozenset(SCHEMA_LIST_KEYWORDS | {"items"}),
    in_members=frozenset(SCHEMA_MAP_KEYWORDS | {"dependencies"}),
    unknown=frozenset(
        SCHEMA_KEYWORDS_2020_12
        | {"$dynamicRef", "dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems"}
    ),
)
DRAFTS = {draft.uri: draft for draft in (DRAFT_2020_12, DRAFT_7)}


def compile_root(schema: object, *, trusted: bool) -> SchemaNode:
    """Returns the node of a schema, ready to be applied.

    Raises:
        BadSchema: the schema is invalid or not safe to apply; lists all problems, each with its JSON pointer.
    """
    if isinstance(schema, bool):
        return TRUE_SCHEMA if schema else FALSE_SCHEMA
    root = SchemaCopier(trusted).copy(schema)
    if not isinstance(root, SchemaNode):
        raise BadSchema([("", "a schema is an object, `true` or `false`")])
    draft = get_draft(root)
    problems = find_problems(get_meta_schema(draft), root)
    if problems:
        raise BadSchema(problems)
    return SchemaCompiler(draft).compile(root)


def get_draft(root: SchemaNode) -> Draft:
    uri = root.get("$schema", DRAFT_2020_12.uri)
    draft = DRAFTS.get(uri.removesuffix("#")) if isinstance(uri, str) else None
    if draft is None:
        known = ", ".join(f"`{uri}`" for uri in DRAFTS)
        raise BadSchema([("/$schema", f"{sanitize(quote_value(uri))} is not known; these are: {known}")])
    return draft


@cache
def get_meta_schema(draft: Draft) -> SchemaNode:
    """Returns the validator of a draft's meta-schema."""
    return SchemaCompiler(draft).compile(load_meta_schema(draft.uri))


def join_pointer_bounded(pointer: str, name: str) -> str:
    """Returns the pointer of a member, with bounded length: hostile names may be long."""
    return pointer if len(pointer) > MAX_TEXT_LENGTH else join_pointer(pointer, name[:MAX_TEXT_LENGTH])


# -- copying


class SchemaCopier:
    """Copies a value of unknown size and type; rejects what is not JSON or too large."""

    def __init__(self, trusted: bool) -> None:
        self._is_trusted = trusted
        self._nodes = 0
        self._characters = 0

    def copy(self, value: Any, pointer: str = "", depth: int = 0) -> Any:
        """Returns a copy of a JSON value, with objects as SchemaNode.

        Raises:
            BadSchema: the value is not JSON, or too large for a schema.
        """
        self._count(pointer, depth)
        if is_object(value):
            return self._copy_object(value, pointer, depth)
        if is_array(value):
            return [
                self.copy(element, join_pointer_bounded(pointer, str(at)), depth + 1)
                for at, element in enumerate(value)
            ]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._check_text(value)
        if isinstance(value, int) and value.bit_length() <= MAX_INTEGER_BITS:
            return int(value)
        if isinstance(value, float) and isfinite(value):
            return float(value)
        is_number = isinstance(value, int | float)
        problem = "is a number that no schema may hold" if is_number else f"is no JSON: `{type(value).__name__}`"
        raise BadSchema([(sanitize(pointer), problem)])

    def _copy_object(self, value: dict[Any, Any], pointer: str, depth: int) -> SchemaNode:
        node = SchemaNode()
        node.applied, node.cost, node.is_trusted = [], 1, self._is_trusted
        for name, member in value.items():
            if not isinstance(name, str):
                raise BadSchema([(sanitize(pointer), "is no JSON: a name is no text")])
            node[self._check_text(name)] = self.copy(member, join_pointer_bounded(pointer, name), depth + 1)
        return node

    def _check_text(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise BadSchema([("", f"has more than {MAX_CHARACTERS} characters")])
        return str(text)

    def _count(self, pointer: str, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise BadSchema([("", f"has more than {MAX_NODES} parts")])
        if depth > MAX_DEPTH:
            raise BadSchema([(sanitize(pointer), f"is nested more than {MAX_DEPTH} levels deep")])


# -- documents: the targets of references


class SchemaDocument:
    """One whole schema, and the locations of its subschemas."""

    def __init__(self, root: SchemaNode, uri: str, draft: Draft) -> None:
        self.root = root
        self.uri = uri
        self.draft = draft
        self.pointers: dict[int, str] = {}
        self.anchors: dict[str, SchemaNode] = {}
        self.dynamic_anchors: dict[str, SchemaNode] = {}

    def index_schemas(self, node: SchemaNode, pointer: str) -> list[SchemaNode]:
        """Registers the schemas at and below a node with their anchors, and returns those that were not known yet."""
        found: list[SchemaNode] = []
        waiting = [(node, pointer)]
        while waiting:
            node, pointer = waiting.pop()
            if id(node) not in self.pointers:
                self.pointers[id(node)] = pointer
                found.append(node)
                self._index_anchors(node)
                inner = iter_subschemas(node, pointer, self.draft)
                waiting += [(schema, at) for schema, at in inner if isinstance(schema, SchemaNode)]
        return found

    def _index_anchors(self, node: SchemaNode) -> None:
        if self.draft is DRAFT_7:
            name = node.get("$id", "")
            if name.startswith("#"):
                self.anchors[name[1:]] = node
            return
        for keyword, names in (("$anchor", self.anchors), ("$dynamicAnchor", self.dynamic_anchors)):
            if keyword in node:
                names[node[keyword]] = node

    def resolve_fragment(self, fragment: str) -> Any:
        """Returns the target of a fragment.

        Raises:
            LookupError: there is none.
        """
        fragment = unquote(fragment)
        if not fragment:
            return self.root
        if not fragment.startswith("/"):
            return self.dynamic_anchors.get(fragment) or self.anchors[fragment]
        target: Any = self.root
        for name in fragment[1:].split("/"):
            name = unescape_pointer(name)
            if is_array(target) and name.isascii() and name.isdigit():
                target = target[int(name)]
            elif is_object(target):
                target = target[name]
            else:
                raise LookupError(name)
        return target


def iter_subschemas(node: SchemaNode, pointer: str, draft: Draft) -> Iterator[tuple[Any, str]]:
    """Yields the direct subschemas of a schema, with their pointers."""
    for keyword, argument in node.items():
        at = join_pointer_bounded(pointer, keyword)
        if is_array(argument) and keyword in draft.in_list:
            yield from ((schema, join_pointer_bounded(at, str(index))) for index, schema in enumerate(argument))
        elif keyword in draft.in_members:
            yield from ((schema, join_pointer_bounded(at, name)) for name, schema in argument.items())
        elif keyword in draft.in_value:
            yield argument, at


def load_meta_schema(uri: str) -> SchemaNode:
    """Loads one of the drafts' meta-schemas.

    Raises:
        LookupError: there is none with this URI.
    """
    registry: Any = import_module("jsonschema_specifications").REGISTRY
    return copy_trusted(registry.contents(uri))


SCHEMA_BASE_URI = "https://becket.dev/schemas/"


def load_referenced_schema(uri: str, draft: Draft) -> SchemaNode:
    """Loads a schema that may be referenced by its URI: a meta-schema of the same draft, or one of becket's.

    Raises:
        LookupError: there is none with this URI.
    """
    if uri.startswith(draft.prefix):
        return load_meta_schema(uri)
    name = uri.removeprefix(SCHEMA_BASE_URI).removesuffix(".schema.json")
    if draft is DRAFT_2020_12 and uri == f"{SCHEMA_BASE_URI}{name}.schema.json" and name in schema_names():
        return copy_trusted(load_schema(name))
    raise LookupError(uri)


def copy_trusted(schema: Any) -> SchemaNode:
    node: SchemaNode = SchemaCopier(trusted=True).copy(schema)
    return node


# -- compiling


class SchemaCompiler:
    """Compiles a schema and all that it refers to."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._problems: set[Problem] = set()
        self._documents: dict[str, SchemaDocument] = {}
        self._waiting: list[tuple[SchemaNode, SchemaDocument]] = []
        self._patterns: dict[tuple[str, bool], BoundedPattern] = {}
        self._run = StepBudget(FULL_BUDGET)  # for the meta-schema, in all unknown locations together
        self._in_place: dict[int, list[SchemaNode]] = {}  # schemas that a schema applies to the same value

    def compile(self, root: SchemaNode) -> SchemaNode:
        """Compiles everything in the root that can ever be applied, and returns it.

        Raises:
            BadSchema: something is invalid or not safe to apply.
        """
        root.pop("$schema", None)
        own = self._open(root, root.get("$id", "").partition("#")[0])
        while self._waiting:
            node, document = self._waiting.pop()
            self._prepare(node, document)
        self._check_cycles(own)
        if self._problems:
            raise BadSchema(sorted(self._problems)[:MAX_PROBLEMS])
        return root

    def _open(self, root: SchemaNode, uri: str) -> SchemaDocument:
        document = self._documents[uri] = SchemaDocument(root, uri, self._draft)
        self._waiting += [(node, document) for node in document.index_schemas(root, "")]
        return document

    def _prepare(self, node: SchemaNode, document: SchemaDocument) -> None:
        pointer = document.pointers[id(node)]
        self._check_identity(node, pointer, document)
        is_reference_alone = self._draft is DRAFT_7 and "$ref" in node
        own = {"$ref": node["$ref"]} if is_reference_alone else node
        known = {keyword: argument for keyword, argument in own.items() if keyword not in self._draft.unknown}
        node.applied = [
            prepared
            for keyword, argument in known.items()
            for prepared in self._prepare_keyword(keyword, argument, node, pointer, document)
        ]
        parts = sum(len(part) for part in known.values() if is_object(part) or is_array(part))
        node.cost = 1 + parts // ENTRIES_PER_STEP
        self._in_place[id(node)] = [inner for applied in node.applied for inner in applied_in_place(*applied)]

    def _check_identity(self, node: SchemaNode, pointer: str, document: SchemaDocument) -> None:
        if node is document.root:
            return
        if node.get("$schema", self._draft.uri).removesuffix("#") != self._draft.uri:
            self._add_problem(join_pointer(pointer, "$schema"), "is another draft than that of the whole schema")
        if not node.get("$id", "#").startswith("#"):
            self._add_problem(join_pointer(pointer, "$id"), "is supported at the root alone")

    def _add_problem(self, pointer: str, message: str) -> None:
        self._problems.add((sanitize(pointer), sanitize(message)))

    # -- keywords

    def _prepare_keyword(
        self, keyword: str, argument: Any, node: SchemaNode, pointer: str, document: SchemaDocument
    ) -> Iterator[tuple[str, Any]]:
        """Yields what to apply for a keyword, as keywords of 2020-12."""
        at = join_pointer_bounded(pointer, keyword)
        match keyword:
            case "$ref" | "$dynamicRef":
                yield keyword, self._resolve_reference(argument, at, document, is_dynamic=keyword == "$dynamicRef")
            case "type":
                yield keyword, (argument,) if isinstance(argument, str) else tuple(argument)
            case "enum":
                yield keyword, self._compile_enum(argument, at)
            case "const":
                yield keyword, self._compile_enum([argument], at)
            case "pattern":
                yield keyword, self._compile_pattern(argument, at, node)
            case "patternProperties":
                yield keyword, list(zip(self._patterns_in(node, pointer), map(as_node, argument.values()), strict=True))
            case "additionalProperties":
                known = frozenset(node.get("properties", ()))
                yield keyword, (as_node(argument), known, self._patterns_in(node, pointer))
            case "properties" | "dependentSchemas":
                yield keyword, [(name, as_node(inner)) for name, inner in argument.items()]
            case "dependencies" if self._draft is DRAFT_7:
                names = {name: part for name, part in argument.items() if is_array(part)}
                yield "dependentRequired", names
                yield "dependentSchemas", [(name, as_node(argument[name])) for name in argument if name not in names]
            case "items" if not is_array(argument):
                yield keyword, (as_node(argument), len(self._get_keyword(node, "prefixItems", ())))
            case "items" | "prefixItems":
                yield "prefixItems", [as_node(inner) for inner in argument]
            case "additionalItems" if self._draft is DRAFT_7 and is_array(node.get("items")):
                yield "items", (as_node(argument), len(node["items"]))
            case "contains":
                least, most = self._get_keyword(node, "minContains", 1), self._get_keyword(node, "maxContains", inf)
                yield keyword, (as_node(argument), least, most)
            case "allOf" | "anyOf" | "oneOf":
                yield keyword, [as_node(inner) for inner in argument]
            case "not" | "propertyNames":
                yield keyword, as_node(argument)
            case "if":
                yield keyword, (as_node(argument), as_node(node.get("then", True)), as_node(node.get("else", True)))
            case "unevaluatedItems" | "unevaluatedProperties":
                yield keyword, (as_node(argument), node)
            case _ if keyword in KEYWORDS:
                yield keyword, argument
            case _:
                pass

    def _get_keyword(self, node: SchemaNode, keyword: str, default: Any) -> Any:
        return default if keyword in self._draft.unknown else node.get(keyword, default)

    def _compile_enum(self, choices: list[Any], at: str) -> tuple[frozenset[Any], str]:
        if len(choices) > MAX_ENUM_VALUES:
            self._add_problem(at, f"has more than {MAX_ENUM_VALUES} choices")
        some = ", ".join(quote_value(choice) for choice in choices[:MAX_ENUM_SHOWN])
        more = ", ..." if len(choices) > MAX_ENUM_SHOWN else ""
        frozen = frozenset(to_hashable(choice, StepBudget(MAX_NODES)) for choice in choices)
        return frozen, f"must be {'one of ' if len(choices) != 1 else ''}{some}{more}"

    # -- references

    def _resolve_reference(self, reference: str, at: str, document: SchemaDocument, *, is_dynamic: bool) -> SchemaNode:
        """Returns the schema that a reference refers to, anywhere in a document."""
        uri, _, fragment = reference.partition("#")
        try:
            home = self._document_at(urljoin(document.uri, uri)) if uri else document
        except (LookupError, ValueError):
            self._add_problem(
                at, f"{quote_value(reference)} is not fetched: refer to `#...`, or to a schema that is known"
            )
            return TRUE_SCHEMA
        try:
            target = home.resolve_fragment(fragment)
        except (LookupError, ValueError):
            self._add_problem(at, f"{quote_value(reference)} leads nowhere")
            return TRUE_SCHEMA
        if is_dynamic and fragment in home.dynamic_anchors:
            # The outermost one counts, and documents are opened from the outside to the inside.
            home = next(each for each in self._documents.values() if fragment in each.dynamic_anchors)
            target = home.dynamic_anchors[fragment]
        if not isinstance(target, SchemaNode | bool):
            self._add_problem(at, f"{quote_value(reference)} leads to no schema")
            return TRUE_SCHEMA
        if isinstance(target, SchemaNode) and id(target) not in home.pointers:
            self._check_unknown_location(target, unquote(fragment), home)
        return as_node(target)

    def _document_at(self, uri: str) -> SchemaDocument:
        return self._documents.get(uri) or self._open(load_referenced_schema(uri, self._draft), uri)

    def _check_unknown_location(self, node: SchemaNode, pointer: str, document: SchemaDocument) -> None:
        """Adds a schema from a location that the meta-schema does not know and has not checked."""
        problems = find_problems(get_meta_schema(self._draft), node, self._run)
        for inner, message in problems:
            self._add_problem(pointer + inner, message)
        if not problems:
            self._waiting += [(found, document) for found in document.index_schemas(node, pointer)]

    def _check_cycles(self, own: SchemaDocument) -> None:
        """Rejects a schema that applies itself to the same value, which would never terminate."""
        finished: set[int] = set()
        for start in list(self._in_place):
            path = {start: iter(self._in_place[start])}
            while path:
                node, inner = next(reversed(path.items()))
                following = next(inner, None)
                if following is None:
                    del path[node]
                    finished.add(node)
                elif id(following) in path:
                    at = own.pointers.get(id(following), "")
                    self._add_problem(at, "comes back to itself without going deeper into the value")
                elif id(following) not in finished:
                    path[id(following)] = iter(self._in_place.get(id(following), ()))

    # -- patterns

    def _patterns_in(self, node: SchemaNode, pointer: str) -> list[BoundedPattern]:
        at = join_pointer(pointer, "patternProperties")
        return [self._compile_pattern(text, join_pointer(at, text), node) for text in node.get("patternProperties", ())]

    def _compile_pattern(self, text: str, at: str, node: SchemaNode) -> BoundedPattern:
        key = (text, node.is_trusted)
        if key not in self._patterns:
            self._patterns[key] = EMPTY_PATTERN
            if len(self._patterns) > MAX_PATTERNS:
                self._add_problem("", f"has more than {MAX_PATTERNS} patterns")
                return EMPTY_PATTERN
            try:
                self._patterns[key] = (
                    compile_trusted_pattern(text) if node.is_trusted else compile_untrusted_pattern(text)
                )
            except ValueError as error:
                self._add_problem(at, str(error))
        return self._patterns[key]


def as_node(schema: Any) -> SchemaNode:
    if isinstance(schema, bool):
        return TRUE_SCHEMA if schema else FALSE_SCHEMA
    node: SchemaNode = schema
    return node


def applied_in_place(keyword: str, argument: Any) -> list[SchemaNode]:
    """Returns the schemas that a keyword may apply to the value itself."""
    match keyword:
        case "$ref" | "$dynamicRef" | "not":
            return [argument]
        case "allOf" | "anyOf" | "oneOf" | "if":
            return [*argument]
        case "dependentSchemas":
            return [node for _, node in argument]
        case _:
            return []


def compile_trusted_pattern(text: str) -> BoundedPattern:
    """Compiles a pattern with Python's `re`.

    Raises:
        ValueError: the pattern is invalid.
    """
    # In JavaScript, whose patterns these are, `$` is the end of the text and `\\w` is ASCII.
    try:
        compiled = re.compile(DOLLAR_TOKENS.sub(lambda part: r"\Z" if part[0] == "$" else part[0], text), re.ASCII)
    except re.error as error:
        raise ValueError(f"{quote_value(text)} is no pattern: {error}") from error
    return BoundedPattern(text, compiled.search, TRUSTED_PATTERN_SIZE)


DOLLAR_TOKENS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\$", re.DOTALL)  # an escape, a set of characters, or an end
TRUSTED_PATTERN_SIZE = 10


def compile_untrusted_pattern(text: str) -> BoundedPattern:
    """Compiles a pattern with google-re2, which takes time linear in the text whatever the pattern.

    Raises:
        ValueError: the pattern is invalid or re2 does not support it, or re2 is not installed.
    """
    if len(text) > MAX_PATTERN_LENGTH:
        raise ValueError(f"a pattern has at most {MAX_PATTERN_LENGTH} characters")
    try:
        re2: Any = import_module("re2")
    except ImportError:
        raise ValueError("a pattern in a schema from outside needs google-re2: install becket[re2]") from None
    options = re2.Options()
    options.log_errors = False  # it would write them to stderr
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY
    try:
        compiled = re2.compile(
            UNICODE_ESCAPES.sub(lambda part: rf"\x{{{part[1]}}}" if part[1] else part[0], text), options
        )
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(
            f"{quote_value(text)} is no pattern that takes linear time: {describe_pattern_error(error)}"
        ) from error
    return BoundedPattern(text, compiled.search, compiled.programsize)


UNICODE_ESCAPES = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)  # an escape; re2 writes characters differently
EMPTY_PATTERN = BoundedPattern("", str, 1)


def describe_pattern_error(error: Exception) -> str:
    detail = error.args[0]
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(error)

"""Keyword checks of JSON Schema, each charged to a step budget.

Those of jsonschema put the whole value into every message, run patterns with `re`, compare every two elements of an
array, and are not bounded. Those here use the messages of `conversion.problems`, take arguments prepared by `compiler`,
and spend each step from a budget.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from math import isfinite
from typing import Any, cast

from becket._text import join_pointer, truncate
from becket.conversion.problems import MAX_PROBLEMS, is_array, is_object
from becket.errors import Problem

__all__ = [
    "FALSE_SCHEMA",
    "FULL_BUDGET",
    "KEYWORDS",
    "SHORT_BUDGET",
    "TRUE_SCHEMA",
    "BoundedPattern",
    "SchemaNode",
    "StepBudget",
    "find_problems",
    "quote_value",
    "sanitize",
    "to_hashable",
]

SHORT_BUDGET = 5_000  # some milliseconds, which an event loop can afford
FULL_BUDGET = 500_000  # about a second; a message of 50,000 values against an ordinary schema takes less


class Mismatch:
    """A keyword that a value violates; `path` is relative to the value being checked."""

    __slots__ = ("keyword", "message", "path")

    def __init__(self, message: str, *path: str | int, keyword: str = "") -> None:
        self.message = message
        self.path = deque(path)
        self.keyword = keyword


Errors = Iterable[Mismatch]
KeywordCheck = Callable[[Any, Any, Any], Errors]
"""Takes the budget, the prepared argument of the keyword and the value."""


class SchemaNode(dict[str, Any]):
    """One schema. `applied` are its keywords with their prepared arguments, `cost` the steps to check them."""

    __slots__ = ("applied", "cost", "is_trusted")

    applied: list[tuple[str, Any]]
    cost: int
    is_trusted: bool


def build_constant_node(*applied: tuple[str, Any]) -> SchemaNode:
    node = SchemaNode()
    node.applied, node.cost, node.is_trusted = list(applied), 1, True
    return node


TRUE_SCHEMA = build_constant_node()  # the schema `true`
FALSE_SCHEMA = build_constant_node(("not", TRUE_SCHEMA))  # the schema `false`


# -- objects of plain values

FLAT_KEYWORDS = {"type", "properties", "required", "additionalProperties"}


class FlatObject:
    """The schema of an object whose properties have only types, as most tools declare their inputs."""

    __slots__ = ("_required", "_types")

    def __init__(self, types: dict[str, frozenset[type]], required: list[str]) -> None:
        self._types = types
        self._required = required

    def fits(self, value: object) -> bool:
        """Returns True if a value certainly fits, in one pass; False if the keywords must be applied."""
        if value.__class__ is not dict:
            return False
        members = cast("dict[str, Any]", value)
        types = self._types
        for name, member in members.items():
            if name not in types or member.__class__ not in types[name]:
                return False
        return all(name in members for name in self._required)


def build_flat_object(root: SchemaNode) -> FlatObject | None:
    """Returns the fast path of a compiled schema; None if it has other rules."""
    applied = dict(root.applied)
    if len(applied) < len(root.applied) or applied.keys() - FLAT_KEYWORDS:
        return None
    if applied.get("type") != ("object",) or "properties" not in applied:
        return None
    types: dict[str, frozenset[type]] = {}
    for name, node in applied["properties"]:
        if [keyword for keyword, _ in node.applied] != ["type"]:
            return None
        names: tuple[str, ...] = node.applied[0][1]
        kinds = {kind for kind, type_name in JSON_TYPES.items() if type_name in names}
        types[name] = frozenset(kinds | {int} if "number" in names else kinds)
    return FlatObject(types, applied.get("required", []))


# -- applying a schema to a value


ERROR_STEPS = 2  # building and returning a problem takes longer than finding none


class BudgetExceeded(Exception):
    """A check took more steps than any legitimate one."""


class StepBudget:
    """The remaining steps of one check."""

    __slots__ = ("_remaining",)

    def __init__(self, steps: int) -> None:
        self._remaining = steps

    def spend(self, steps: int = 1) -> None:
        self._remaining -= steps
        if self._remaining < 0:
            raise BudgetExceeded

    def iter_errors(self, value: Any, node: SchemaNode, name: str | int | None = None) -> Iterator[Mismatch]:
        """Yields the mismatches of a value, which is the member `name` of the current one."""
        self.spend(node.cost)
        for keyword, argument in node.applied:
            for error in KEYWORDS[keyword](self, argument, value):
                self.spend(ERROR_STEPS)
                if name is not None:
                    error.path.appendleft(name)
                yield error

    def is_valid(self, value: Any, node: SchemaNode) -> bool:
        return next(self.iter_errors(value, node), None) is None


def find_problems(root: SchemaNode, value: object, run: StepBudget | None = None) -> list[Problem]:
    """Returns all problems of a value, in the order of the schema, truncated to `MAX_PROBLEMS`."""
    problems: list[Problem] = []
    try:
        return collect_problems(root, value, run or StepBudget(FULL_BUDGET), problems)
    except BudgetExceeded:
        return [*problems, ("", f"takes more than {FULL_BUDGET} steps to be checked against its schema")]


def collect_problems(
    root: SchemaNode, value: object, run: StepBudget, problems: list[Problem] | None = None
) -> list[Problem]:
    """Returns the problems of a value, within the steps of `run`; `problems` holds those found when it raises.

    Raises:
        BudgetExceeded: the steps are used up.
    """
    found = [] if problems is None else problems
    seen: set[Problem] = set()  # several parts of a schema may report the same
    try:
        for error in run.iter_errors(value, root):
            problem = sanitize("".join(join_pointer("", str(name)) for name in error.path)), sanitize(error.message)
            if problem in seen:
                continue
            if len(found) == MAX_PROBLEMS:
                found.append(("", "there are further problems"))
                break
            seen.add(problem)
            found.append(problem)
    except RecursionError:
        found.append(("", "is nested too deeply to be checked against its schema"))
    return found


def sanitize(text: str) -> str:
    """Returns a text without lone surrogates, truncated."""
    return truncate(text.encode("utf-8", "replace").decode())


# -- any value


def check_type(run: StepBudget, types: tuple[str, ...], value: Any) -> Errors:
    kind = json_type(value)
    if kind in types or (kind == "integer" and "number" in types):
        return ()
    if kind == "number" and "integer" in types and is_integral(value):
        return ()
    return (Mismatch(f"expected `{' | '.join(types)}`, got `{kind}`", keyword="type"),)


def json_type(value: Any) -> str:
    kind = JSON_TYPES.get(value.__class__)
    return kind or next((name for kind, name in JSON_TYPES.items() if isinstance(value, kind)), "unknown")


JSON_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def check_enum(run: StepBudget, choices: tuple[frozenset[Hashable], str], value: Any) -> Errors:
    frozen, text = choices
    return () if to_hashable(value, run) in frozen else (Mismatch(text, keyword="enum"),)


def to_hashable(value: Any, run: StepBudget) -> Hashable:
    """Returns a hashable that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not.

    Numbers are written out as bytes: hostile integers could all have the same hash."""
    run.spend()
    if is_object(value):
        return frozenset((name, to_hashable(member, run)) for name, member in value.items())
    if is_array(value):
        return tuple(to_hashable(element, run) for element in value)
    frozen: Hashable = value
    if is_number(value):
        frozen = b"%x" % int(value) if is_integral(value) else float(value).hex().encode()
    return frozen


def quote_value(value: Any) -> str:
    """Returns a value of a schema in a few characters."""
    if is_object(value) or is_array(value):
        return f"an {json_type(value)}"
    if isinstance(value, str):
        return f"`{truncate(value, MAX_VALUE_SHOWN)}`"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:  # Python does not format very long numbers
        return "a huge number"
    return repr(value)


MAX_VALUE_SHOWN = 40
MAX_INTEGER_BITS = 128


# -- numbers


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integral(number: float) -> bool:
    return isinstance(number, int) or number.is_integer()


def build_bound_check(is_beyond: Callable[[Any, Any], bool], words: str) -> KeywordCheck:
    def check(run: StepBudget, limit: float, value: Any) -> Errors:
        return (
            (Mismatch(f"must be {words} {quote_value(limit)}"),) if is_number(value) and is_beyond(value, limit) else ()
        )

    return check


def check_multiple_of(run: StepBudget, divisor: float, value: Any) -> Errors:
    if not is_number(value) or is_multiple(value, divisor):
        return ()
    return (Mismatch(f"must be a multiple of {quote_value(divisor)}"),)


def is_multiple(value: Any, divisor: Any) -> bool:
    """Compares the numbers as they are written: 0.3 is three times 0.1, though not in binary."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor == 0
    if isinstance(value, float) and not isfinite(value):
        return False
    return to_fraction(value) % to_fraction(divisor) == 0


def to_fraction(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


# -- sizes


def build_min_size_check(kind: Any, what: str) -> KeywordCheck:
    def check(run: StepBudget, least: float, value: Any) -> Errors:
        if isinstance(value, kind) and len(value) < least:
            return (Mismatch(f"must have {quote_value(least)} or more {what}"),)
        return ()

    return check


def build_max_size_check(kind: Any, what: str) -> KeywordCheck:
    def check(run: StepBudget, most: float, value: Any) -> Errors:
        if isinstance(value, kind) and len(value) > most:
            return (Mismatch(f"must have {quote_value(most)} or fewer {what}"),)
        return ()

    return check


# -- texts


class BoundedPattern:
    """A compiled pattern. Its steps grow with its size and with the length of the text."""

    __slots__ = ("_search", "_size", "text")

    def __init__(self, text: str, search: Callable[[str], object], size: int) -> None:
        self.text = text
        self._search = search
        self._size = size

    def search(self, text: str, run: StepBudget) -> bool:
        run.spend(1 + len(text) * self._size // PATTERN_STEP)
        try:
            return self._search(text) is not None
        except UnicodeEncodeError:  # lone surrogate: an engine that reads UTF-8 cannot handle it
            return self._search(text.encode("utf-8", "replace").decode()) is not None


PATTERN_STEP = 200  # characters times instructions: re2's work in one or two steps, where it is slowest


def check_pattern(run: StepBudget, pattern: BoundedPattern, value: Any) -> Errors:
    if not isinstance(value, str) or pattern.search(value, run):
        return ()
    return (Mismatch(f"does not match the pattern `{pattern.text}`"),)


# -- objects


def check_properties(run: StepBudget, properties: list[tuple[str, SchemaNode]], value: Any) -> Errors:
    if is_object(value):
        for name, node in properties:
            if name in value:
                yield from run.iter_errors(value[name], node, name)


def check_pattern_properties(
    run: StepBudget, properties: list[tuple[BoundedPattern, SchemaNode]], value: Any
) -> Errors:
    for pattern, node in properties:
        for name in iter_property_names(value, run):
            if pattern.search(name, run):
                yield from run.iter_errors(value[name], node, name)


def check_additional_properties(
    run: StepBudget, argument: tuple[SchemaNode, frozenset[str], list[BoundedPattern]], value: Any
) -> Errors:
    node, known, patterns = argument
    for name in iter_property_names(value, run):
        if name not in known and not any(pattern.search(name, run) for pattern in patterns):
            yield from check_extra_property(run, node, value, name)


def check_extra_property(run: StepBudget, node: SchemaNode, value: Any, name: str) -> Errors:
    return (Mismatch("is unknown", name),) if node is FALSE_SCHEMA else run.iter_errors(value[name], node, name)


def check_property_names(run: StepBudget, node: SchemaNode, value: Any) -> Errors:
    for name in iter_property_names(value, run):
        for error in run.iter_errors(name, node):
            yield Mismatch(f"is no name: {error.message}", name)


def check_required(run: StepBudget, required: list[str], value: Any) -> Errors:
    if is_object(value):
        for name in required:
            if name not in value:
                yield Mismatch("is missing", name)


def check_dependent_required(run: StepBudget, dependent: dict[str, list[str]], value: Any) -> Errors:
    for cause, required in dependent.items() if is_object(value) else ():
        if cause in value:
            run.spend(len(required))
            for name in required:
                if name not in value:
                    yield Mismatch(f"is missing beside {quote_value(cause)}", name)


def check_dependent_schemas(run: StepBudget, dependent: list[tuple[str, SchemaNode]], value: Any) -> Errors:
    for node in get_dependent_nodes(dependent, value):
        yield from run.iter_errors(value, node)


def get_dependent_nodes(dependent: list[tuple[str, SchemaNode]], value: Any) -> list[SchemaNode]:
    return [node for cause, node in dependent if cause in value] if is_object(value) else []


def iter_property_names(value: Any, run: StepBudget) -> Iterable[str]:
    """Returns the names in an object, none for anything else; each name is a step."""
    names: Iterable[str] = value if is_object(value) else ()
    run.spend(len(value) if names else 0)
    return names


# -- arrays


def check_prefix_items(run: StepBudget, nodes: list[SchemaNode], value: Any) -> Errors:
    if is_array(value):
        for index, (element, node) in enumerate(zip(value, nodes, strict=False)):
            yield from run.iter_errors(element, node, index)


def check_items(run: StepBudget, argument: tuple[SchemaNode, int], value: Any) -> Errors:
    node, start = argument
    if is_array(value):
        for index in range(start, len(value)):
            yield from run.iter_errors(value[index], node, index)


def check_contains(run: StepBudget, argument: tuple[SchemaNode, float, float], value: Any) -> Errors:
    node, least, most = argument
    if is_array(value):
        count = sum(run.is_valid(element, node) for element in value)
        if count < least:
            yield Mismatch(f"must have {quote_value(least)} or more elements that fit `contains`, not {count}")
        if count > most:
            yield Mismatch(f"must have {quote_value(most)} or fewer elements that fit `contains`, not {count}")


def check_unique_items(run: StepBudget, is_unique: bool, value: Any) -> Errors:
    if is_unique and is_array(value):
        first: dict[Hashable, int] = {}
        for index, element in enumerate(value):
            earlier = first.setdefault(to_hashable(element, run), index)
            if earlier != index:
                yield Mismatch(f"is the same as element {earlier}", index)


# -- subschemas of the same value


def check_reference(run: StepBudget, target: SchemaNode, value: Any) -> Errors:
    return run.iter_errors(value, target)


def check_all_of(run: StepBudget, nodes: list[SchemaNode], value: Any) -> Errors:
    for node in nodes:
        yield from run.iter_errors(value, node)


def check_any_of(run: StepBudget, nodes: list[SchemaNode], value: Any) -> Errors:
    """If no schema fits, yields the errors of the one that the value was meant for, if that is clear."""
    failures: list[list[Mismatch]] = []
    for node in nodes:
        errors = list(islice(run.iter_errors(value, node), MAX_PROBLEMS + 1))
        if not errors:
            return
        failures.append(errors)
    of_its_type = [errors for errors in failures if not any(map(is_of_another_type, errors))]
    with_its_tag = [errors for errors in of_its_type if not any(map(has_another_tag, errors))]
    meant = with_its_tag or of_its_type
    if len(meant) == 1:
        yield from meant[0]
    else:
        yield Mismatch(f"fits none of {len(nodes)} schemas")


def is_of_another_type(error: Mismatch) -> bool:
    return error.keyword == "type" and not error.path


def has_another_tag(error: Mismatch) -> bool:
    return error.keyword == "enum" and len(error.path) <= 1


def check_one_of(run: StepBudget, nodes: list[SchemaNode], value: Any) -> Errors:
    fitting = sum(run.is_valid(value, node) for node in nodes)
    if fitting == 0:
        yield from check_any_of(run, nodes, value)
    elif fitting > 1:
        yield Mismatch(f"fits {fitting} of {len(nodes)} schemas, of which it must fit one")


def check_not(run: StepBudget, node: SchemaNode, value: Any) -> Errors:
    if not run.is_valid(value, node):
        return ()
    return (Mismatch("is not allowed" if node is TRUE_SCHEMA else "fits a schema that it must not fit"),)


def check_if(run: StepBudget, branches: tuple[SchemaNode, SchemaNode, SchemaNode], value: Any) -> Errors:
    for node in get_branch(run, branches, value)[-1:]:
        yield from run.iter_errors(value, node)


def get_branch(run: StepBudget, branches: tuple[SchemaNode, SchemaNode, SchemaNode], value: Any) -> list[SchemaNode]:
    """Returns the schemas that apply to a value: the condition and `then`, or `else`."""
    condition, then, otherwise = branches
    return [condition, then] if run.is_valid(value, condition) else [otherwise]


# -- unevaluated members


def check_unevaluated_properties(run: StepBudget, argument: tuple[SchemaNode, SchemaNode], value: Any) -> Errors:
    node, whole = argument
    if is_object(value):
        seen = get_evaluated(run, whole, value, but="unevaluatedProperties")
        for name in iter_property_names(value, run):
            if name not in seen:
                yield from check_extra_property(run, node, value, name)


def check_unevaluated_items(run: StepBudget, argument: tuple[SchemaNode, SchemaNode], value: Any) -> Errors:
    node, whole = argument
    if is_array(value):
        seen = get_evaluated(run, whole, value, but="unevaluatedItems")
        for index, element in enumerate(value):
            if index not in seen:
                yield from run.iter_errors(element, node, index)


def get_evaluated(run: StepBudget, node: SchemaNode, value: Any, *, but: str = "") -> set[str | int]:
    """Returns the names or indexes that a keyword of this schema, or of a fitting subschema, has evaluated."""
    run.spend(node.cost)
    seen: set[str | int] = set()
    for keyword, argument in node.applied:
        if keyword != but:
            seen.update(get_evaluated_by_keyword(run, keyword, argument, value))
            for inner in get_in_place_nodes(run, keyword, argument, value):
                if run.is_valid(value, inner):
                    seen |= get_evaluated(run, inner, value)
    return seen


def get_evaluated_by_keyword(run: StepBudget, keyword: str, argument: Any, value: Any) -> Iterable[str | int]:
    match keyword:
        case "properties":
            return [name for name, _ in argument]
        case "patternProperties":
            return [
                name
                for name in iter_property_names(value, run)
                if any(pattern.search(name, run) for pattern, _ in argument)
            ]
        case "additionalProperties" | "unevaluatedProperties":
            return iter_property_names(value, run)
        case "prefixItems":
            return range(len(argument))
        case "items" | "unevaluatedItems":
            run.spend(len(value))
            return range(len(value))
        case "contains" if is_array(value):
            return [index for index, element in enumerate(value) if run.is_valid(element, argument[0])]
        case _:
            return ()


def get_in_place_nodes(run: StepBudget, keyword: str, argument: Any, value: Any) -> list[SchemaNode]:
    """Returns the schemas that a keyword applies to the value itself."""
    match keyword:
        case "$ref" | "$dynamicRef":
            return [argument]
        case "allOf" | "anyOf" | "oneOf":
            nodes: list[SchemaNode] = argument
            return nodes
        case "if":
            return get_branch(run, argument, value)
        case "dependentSchemas":
            return get_dependent_nodes(argument, value)
        case _:
            return []


KEYWORDS: dict[str, KeywordCheck] = {
    "$ref": check_reference,
    "$dynamicRef": check_reference,
    "type": check_type,
    "enum": check_enum,
    "const": check_enum,
    "minimum": build_bound_check(operator.lt, "at least"),
    "maximum": build_bound_check(operator.gt, "at most"),
    "exclusiveMinimum": build_bound_check(operator.le, "more than"),
    "exclusiveMaximum": build_bound_check(operator.ge, "less than"),
    "multipleOf": check_multiple_of,
    "minLength": build_min_size_check(str, "characters"),
    "maxLength": build_max_size_check(str, "characters"),
    "pattern": check_pattern,
    "minProperties": build_min_size_check(dict, "members"),
    "maxProperties": build_max_size_check(dict, "members"),
    "properties": check_properties,
    "patternProperties": check_pattern_properties,
    "additionalProperties": check_additional_properties,
    "propertyNames": check_property_names,
    "required": check_required,
    "dependentRequired": check_dependent_required,
    "dependentSchemas": check_dependent_schemas,
    "minItems": build_min_size_check(list, "elements"),
    "maxItems": build_max_size_check(list, "elements"),
    "prefixItems": check_prefix_items,
    "items": check_items,
    "contains": check_contains,
    "uniqueItems": check_unique_items,
    "allOf": check_all_of,
    "anyOf": check_any_of,
    "oneOf": check_one_of,
    "not": check_not,
    "if": check_if,
    "unevaluatedProperties": check_unevaluated_properties,
    "unevaluatedItems": check_unevaluated_items,
}

"""What each keyword of JSON Schema asks of a value, and one run of a compiled schema over one value.

The validator is jsonschema's; its functions for the keywords are not used. They put the whole value into every message,
run patterns on `re`, compare every two elements of an array, and nothing bounds what they do. Those here say in the
words of `problems` what is wrong and where, take arguments that `schema_compiler` has prepared, and pay for each step
out of a budget.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import islice
from math import isfinite
from typing import Any

from becket.errors import Problem
from becket.typed.problems import MOST_PROBLEMS, below, cut, is_array, is_object

__all__ = [
    "EVERYTHING",
    "FEW_STEPS",
    "KEYWORDS",
    "MOST_STEPS",
    "NOTHING",
    "Node",
    "Pattern",
    "Run",
    "build_engine",
    "find_problems",
    "freeze",
    "readable",
    "show",
]

FEW_STEPS = 5_000  # some milliseconds, in which an event loop may wait
MOST_STEPS = 500_000  # about a second; a message of 50,000 values against an ordinary schema takes less

Errors = Iterable[Any]
Check = Callable[[Any, Any, Any], Errors]
"""Takes the run, the prepared argument of the keyword and the value."""


class Node(dict[str, Any]):
    """One schema. `applied` are its keywords with their prepared arguments, `cost` the steps to look at them."""

    __slots__ = ("applied", "cost", "is_trusted")

    applied: list[tuple[str, Any]]
    cost: int
    is_trusted: bool


def constant(*applied: tuple[str, Any]) -> Node:
    node = Node()
    node.applied, node.cost, node.is_trusted = list(applied), 1, True
    return node


EVERYTHING = constant()  # the schema `true`
NOTHING = constant(("not", EVERYTHING))  # the schema `false`


# -- one run of a schema over a value


ERROR_STEPS = 2  # to make a problem, and to hand it on, takes longer than to find none


class Exhausted(Exception):
    """A run took more steps than any honest one does."""


class Run:
    """The steps that are left to one run."""

    __slots__ = ("_left",)

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise Exhausted

    def descend(self, value: Any, node: Node, name: str | int | None = None) -> Iterator[Any]:
        """Yields what a schema has against a value, which is the member `name` of the one that is looked at.

        jsonschema's own way makes a new validator for each schema, and takes ten times as long."""
        self.spend(node.cost)
        for keyword, argument in node.applied:
            for error in KEYWORDS[keyword](self, argument, value):
                self.spend(ERROR_STEPS)
                if name is not None:
                    error.path.appendleft(name)
                yield error

    def is_valid(self, value: Any, node: Node) -> bool:
        return next(self.descend(value, node), None) is None


def build_engine(root: Node) -> Any:
    """Returns jsonschema's validator for a compiled schema."""
    # The registry is empty, and fetches nothing: references are nodes by now.
    registry: Any = import_module("referencing").Registry()
    return engine_class()(root, registry=registry)


@cache
def engine_class() -> Any:
    def of_jsonschema(check: Check) -> Callable[[Any, Any, Any, Any], Errors]:
        return lambda validator, argument, value, _: check(validator.format_checker, argument, value)

    create: Any = import_module("jsonschema.validators").create
    keywords = {keyword: of_jsonschema(check) for keyword, check in KEYWORDS.items()}
    return create(meta_schema={}, validators=keywords, applicable_validators=operator.attrgetter("applied"))


def find_problems(engine: Any, value: object, run: Run | None = None) -> list[Problem]:
    """Returns all that is wrong with a value, in the order of the schema; more than a page of it is cut."""
    problems: list[Problem] = []
    try:
        return list_problems(engine, value, run or Run(MOST_STEPS), problems)
    except Exhausted:
        return [*problems, ("", f"takes more than {MOST_STEPS} steps to be checked against its schema")]


def list_problems(engine: Any, value: object, run: Run, problems: list[Problem] | None = None) -> list[Problem]:
    """The same within the steps of a run; what was found until they were used up stands in `problems`.

    Raises:
        Exhausted: they were.
    """
    found = [] if problems is None else problems
    seen: set[Problem] = set()  # several parts of a schema may say the same
    # Formats are not asserted: nobody asks for their checker, and its place carries what belongs to this run alone.
    try:
        for error in engine.evolve(format_checker=run).iter_errors(value):
            problem = readable("".join(below("", str(name)) for name in error.path)), readable(error.message)
            if problem in seen:
                continue
            if len(found) == MOST_PROBLEMS:
                found.append(("", "there are further problems"))
                break
            seen.add(problem)
            found.append(problem)
    except RecursionError:
        found.append(("", "is nested too deeply to be checked against its schema"))
    return found


def problem(message: str, *path: str | int, keyword: str = "") -> Any:
    return error_class()(message, path=path, validator=keyword)


@cache
def error_class() -> Any:
    return import_module("jsonschema.exceptions").ValidationError


def readable(text: str) -> str:
    """Returns a text that can be sent: without halves of characters, and not too long."""
    return cut(text.encode("utf-8", "replace").decode())


# -- any value


def check_type(run: Run, types: tuple[str, ...], value: Any) -> Errors:
    kind = kind_of(value)
    if kind in types or (kind == "integer" and "number" in types):
        return ()
    if kind == "number" and "integer" in types and is_whole(value):
        return ()
    return (problem(f"expected `{' | '.join(types)}`, got `{kind}`", keyword="type"),)


def kind_of(value: Any) -> str:
    kind = KINDS.get(value.__class__)
    return kind or next((name for kind, name in KINDS.items() if isinstance(value, kind)), "unknown")


KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def check_choices(run: Run, choices: tuple[frozenset[Hashable], str], value: Any) -> Errors:
    frozen, text = choices
    return () if freeze(value, run) in frozen else (problem(text, keyword="enum"),)


def freeze(value: Any, run: Run) -> Hashable:
    """Returns something that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not.

    Numbers are written out as bytes: whole ones can be chosen by an enemy so that all of them have the same hash."""
    run.spend()
    if is_object(value):
        return frozenset((name, freeze(member, run)) for name, member in value.items())
    if is_array(value):
        return tuple(freeze(element, run) for element in value)
    frozen: Hashable = value
    if is_number(value):
        frozen = b"%x" % int(value) if is_whole(value) else float(value).hex().encode()
    return frozen


def show(value: Any) -> str:
    """Returns a value of a schema in a few characters."""
    if is_object(value) or is_array(value):
        return f"an {kind_of(value)}"
    if isinstance(value, str):
        return f"`{value}`" if len(value) <= LONGEST_WORD else f"`{value[:LONGEST_WORD]}...`"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > MOST_BITS:  # Python refuses to write numbers that are very long
        return "a huge number"
    return repr(value)


LONGEST_WORD = 40
MOST_BITS = 128


# -- numbers


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(number: float) -> bool:
    return isinstance(number, int) or number.is_integer()


def bound(is_beyond: Callable[[Any, Any], bool], words: str) -> Check:
    def check(run: Run, limit: float, value: Any) -> Errors:
        return (problem(f"must be {words} {show(limit)}"),) if is_number(value) and is_beyond(value, limit) else ()

    return check


def check_multiple_of(run: Run, divisor: float, value: Any) -> Errors:
    if not is_number(value) or is_multiple(value, divisor):
        return ()
    return (problem(f"must be a multiple of {show(divisor)}"),)


def is_multiple(value: Any, divisor: Any) -> bool:
    """Returns the answer for the numbers as they are written: 0.3 is three times 0.1, though not for a processor."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor == 0
    if isinstance(value, float) and not isfinite(value):
        return False
    return exact(value) % exact(divisor) == 0


def exact(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


# -- how long, how many


def at_least(kind: Any, what: str) -> Check:
    def check(run: Run, least: float, value: Any) -> Errors:
        if isinstance(value, kind) and len(value) < least:
            return (problem(f"must have {show(least)} or more {what}"),)
        return ()

    return check


def at_most(kind: Any, what: str) -> Check:
    def check(run: Run, most: float, value: Any) -> Errors:
        if isinstance(value, kind) and len(value) > most:
            return (problem(f"must have {show(most)} or fewer {what}"),)
        return ()

    return check


# -- texts


class Pattern:
    """A compiled pattern. The longer it and the text that it is searched in, the more steps it takes."""

    __slots__ = ("_search", "_size", "text")

    def __init__(self, text: str, search: Callable[[str], object], size: int) -> None:
        self.text = text
        self._search = search
        self._size = size

    def is_in(self, text: str, run: Run) -> bool:
        run.spend(1 + len(text) * self._size // PATTERN_STEP)
        try:
            return self._search(text) is not None
        except UnicodeEncodeError:  # half a character: an engine that reads UTF-8 cannot look at it
            return self._search(text.encode("utf-8", "replace").decode()) is not None


PATTERN_STEP = 200  # characters times instructions: what re2 does in the time of a step or two, where it is slowest


def check_pattern(run: Run, pattern: Pattern, value: Any) -> Errors:
    if not isinstance(value, str) or pattern.is_in(value, run):
        return ()
    return (problem(f"does not match the pattern `{pattern.text}`"),)


# -- objects


def check_properties(run: Run, properties: list[tuple[str, Node]], value: Any) -> Errors:
    if is_object(value):
        for name, node in properties:
            if name in value:
                yield from run.descend(value[name], node, name)


def check_pattern_properties(run: Run, properties: list[tuple[Pattern, Node]], value: Any) -> Errors:
    for pattern, node in properties:
        for name in names_in(value, run):
            if pattern.is_in(name, run):
                yield from run.descend(value[name], node, name)


def check_additional_properties(run: Run, argument: tuple[Node, frozenset[str], list[Pattern]], value: Any) -> Errors:
    node, known, patterns = argument
    for name in names_in(value, run):
        if name not in known and not any(pattern.is_in(name, run) for pattern in patterns):
            yield from check_further(run, node, value, name)


def check_further(run: Run, node: Node, value: Any, name: str) -> Errors:
    return (problem("is unknown", name),) if node is NOTHING else run.descend(value[name], node, name)


def check_property_names(run: Run, node: Node, value: Any) -> Errors:
    for name in names_in(value, run):
        for error in run.descend(name, node):
            yield problem(f"is no name: {error.message}", name)


def check_required(run: Run, required: list[str], value: Any) -> Errors:
    if is_object(value):
        for name in required:
            if name not in value:
                yield problem("is missing", name)


def check_dependent_required(run: Run, dependent: dict[str, list[str]], value: Any) -> Errors:
    for cause, required in dependent.items() if is_object(value) else ():
        if cause in value:
            run.spend(len(required))
            for name in required:
                if name not in value:
                    yield problem(f"is missing beside {show(cause)}", name)


def check_dependent_schemas(run: Run, dependent: list[tuple[str, Node]], value: Any) -> Errors:
    for node in nodes_that_depend(dependent, value):
        yield from run.descend(value, node)


def nodes_that_depend(dependent: list[tuple[str, Node]], value: Any) -> list[Node]:
    return [node for cause, node in dependent if cause in value] if is_object(value) else []


def names_in(value: Any, run: Run) -> Iterable[str]:
    """Returns the names in an object, none in anything else; to look at each of them is a step."""
    names: Iterable[str] = value if is_object(value) else ()
    run.spend(len(value) if names else 0)
    return names


# -- arrays


def check_prefix_items(run: Run, nodes: list[Node], value: Any) -> Errors:
    if is_array(value):
        for index, (element, node) in enumerate(zip(value, nodes, strict=False)):
            yield from run.descend(element, node, index)


def check_items(run: Run, argument: tuple[Node, int], value: Any) -> Errors:
    node, start = argument
    if is_array(value):
        for index in range(start, len(value)):
            yield from run.descend(value[index], node, index)


def check_contains(run: Run, argument: tuple[Node, float, float], value: Any) -> Errors:
    node, least, most = argument
    if is_array(value):
        count = sum(run.is_valid(element, node) for element in value)
        if count < least:
            yield problem(f"must have {show(least)} or more elements that fit `contains`, not {count}")
        if count > most:
            yield problem(f"must have {show(most)} or fewer elements that fit `contains`, not {count}")


def check_unique_items(run: Run, is_unique: bool, value: Any) -> Errors:
    if is_unique and is_array(value):
        first: dict[Hashable, int] = {}
        for index, element in enumerate(value):
            earlier = first.setdefault(freeze(element, run), index)
            if earlier != index:
                yield problem(f"is the same as element {earlier}", index)


# -- schemas that are applied to the same value


def check_reference(run: Run, target: Node, value: Any) -> Errors:
    return run.descend(value, target)


def check_all_of(run: Run, nodes: list[Node], value: Any) -> Errors:
    for node in nodes:
        yield from run.descend(value, node)


def check_any_of(run: Run, nodes: list[Node], value: Any) -> Errors:
    """Yields, where none fits, what the schema that the value was meant for has against it, if that can be told."""
    failures: list[list[Any]] = []
    for node in nodes:
        errors = list(islice(run.descend(value, node), MOST_PROBLEMS + 1))
        if not errors:
            return
        failures.append(errors)
    of_its_type = [errors for errors in failures if not any(map(is_of_another_type, errors))]
    with_its_tag = [errors for errors in of_its_type if not any(map(has_another_tag, errors))]
    meant = with_its_tag or of_its_type
    if len(meant) == 1:
        yield from meant[0]
    else:
        yield problem(f"fits none of {len(nodes)} schemas")


def is_of_another_type(error: Any) -> bool:
    return error.validator == "type" and not error.path


def has_another_tag(error: Any) -> bool:
    return error.validator == "enum" and len(error.path) <= 1


def check_one_of(run: Run, nodes: list[Node], value: Any) -> Errors:
    fitting = sum(run.is_valid(value, node) for node in nodes)
    if fitting == 0:
        yield from check_any_of(run, nodes, value)
    elif fitting > 1:
        yield problem(f"fits {fitting} of {len(nodes)} schemas, of which it must fit one")


def check_not(run: Run, node: Node, value: Any) -> Errors:
    if not run.is_valid(value, node):
        return ()
    return (problem("is not allowed" if node is EVERYTHING else "fits a schema that it must not fit"),)


def check_if(run: Run, branches: tuple[Node, Node, Node], value: Any) -> Errors:
    for node in branch_of(run, branches, value)[-1:]:
        yield from run.descend(value, node)


def branch_of(run: Run, branches: tuple[Node, Node, Node], value: Any) -> list[Node]:
    """Returns the schemas that hold for a value: the condition and what follows from it, or the other one."""
    condition, then, otherwise = branches
    return [condition, then] if run.is_valid(value, condition) else [otherwise]


# -- what no other keyword has looked at


def check_unevaluated_properties(run: Run, argument: tuple[Node, Node], value: Any) -> Errors:
    node, whole = argument
    if is_object(value):
        seen = evaluated_in(run, whole, value, but="unevaluatedProperties")
        for name in names_in(value, run):
            if name not in seen:
                yield from check_further(run, node, value, name)


def check_unevaluated_items(run: Run, argument: tuple[Node, Node], value: Any) -> Errors:
    node, whole = argument
    if is_array(value):
        seen = evaluated_in(run, whole, value, but="unevaluatedItems")
        for index, element in enumerate(value):
            if index not in seen:
                yield from run.descend(element, node, index)


def evaluated_in(run: Run, node: Node, value: Any, *, but: str = "") -> set[str | int]:
    """Returns the names or indexes at which a keyword of this schema, or of one in it that fits, has looked."""
    run.spend(node.cost)
    seen: set[str | int] = set()
    for keyword, argument in node.applied:
        if keyword != but:
            seen.update(evaluated_by(run, keyword, argument, value))
            for inner in in_place(run, keyword, argument, value):
                if run.is_valid(value, inner):
                    seen |= evaluated_in(run, inner, value)
    return seen


def evaluated_by(run: Run, keyword: str, argument: Any, value: Any) -> Iterable[str | int]:
    match keyword:
        case "properties":
            return [name for name, _ in argument]
        case "patternProperties":
            return [name for name in names_in(value, run) if any(pattern.is_in(name, run) for pattern, _ in argument)]
        case "additionalProperties" | "unevaluatedProperties":
            return names_in(value, run)
        case "prefixItems":
            return range(len(argument))
        case "items" | "unevaluatedItems":
            run.spend(len(value))
            return range(len(value))
        case "contains" if is_array(value):
            return [index for index, element in enumerate(value) if run.is_valid(element, argument[0])]
        case _:
            return ()


def in_place(run: Run, keyword: str, argument: Any, value: Any) -> list[Node]:
    """Returns the schemas that a keyword applies to the value itself."""
    match keyword:
        case "$ref" | "$dynamicRef":
            return [argument]
        case "allOf" | "anyOf" | "oneOf":
            nodes: list[Node] = argument
            return nodes
        case "if":
            return branch_of(run, argument, value)
        case "dependentSchemas":
            return nodes_that_depend(argument, value)
        case _:
            return []


KEYWORDS: dict[str, Check] = {
    "$ref": check_reference,
    "$dynamicRef": check_reference,
    "type": check_type,
    "enum": check_choices,
    "const": check_choices,
    "minimum": bound(operator.lt, "at least"),
    "maximum": bound(operator.gt, "at most"),
    "exclusiveMinimum": bound(operator.le, "more than"),
    "exclusiveMaximum": bound(operator.ge, "less than"),
    "multipleOf": check_multiple_of,
    "minLength": at_least(str, "characters"),
    "maxLength": at_most(str, "characters"),
    "pattern": check_pattern,
    "minProperties": at_least(dict, "members"),
    "maxProperties": at_most(dict, "members"),
    "properties": check_properties,
    "patternProperties": check_pattern_properties,
    "additionalProperties": check_additional_properties,
    "propertyNames": check_property_names,
    "required": check_required,
    "dependentRequired": check_dependent_required,
    "dependentSchemas": check_dependent_schemas,
    "minItems": at_least(list, "elements"),
    "maxItems": at_most(list, "elements"),
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

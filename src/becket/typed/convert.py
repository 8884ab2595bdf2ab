"""JSON values into the attrs classes and dataclasses of users, of manifests and of configuration, and back.

cattrs builds the objects, by their aliases and through `__init__`, so that converters, validators and defaults of the
class are at work. Its own hooks coerce (`"5"` becomes 5, `"abc"` a list, null the text `None`): none of them is used.
What holds no class is read by msgspec, which coerces nothing; what holds one is taken apart here.

cattrs and attrs are imported at first use. What a handler receives goes through `decoding`, which comes here only for
classes that msgspec does not build as they ask for it: see `type_parts.is_shaped`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import inspect

from becket.errors import BadValue, Problem
from becket.typed.problems import MOST_PROBLEMS, below, cut, find_problems, is_array, is_object
from becket.typed.type_parts import (
    UNIONS,
    bare,
    fields_of,
    holds_class,
    is_a,
    is_class,
    is_model,
    is_path,
    is_shaped,
    member_types,
    name_of,
    walk_types,
)

__all__ = ["check_type", "convert", "unstructure"]

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]
"""What cattrs calls with a value and its type. It raises `Misfit`, or the error of cattrs for a class."""


@overload
def convert(value: object, type: type[T], *, forbid_unknown: bool = ...) -> T: ...
@overload
def convert(value: object, type: Any, *, forbid_unknown: bool = ...) -> Any: ...
def convert(value: object, type: Any, *, forbid_unknown: bool = True) -> Any:
    """Returns a JSON value as an object of this type. Nothing is coerced; a float may be written as an integer.

    Members that a class does not know are a problem, unless `forbid_unknown` is off; a Struct decides for itself about
    those, and a TypedDict passes over them.

    Raises:
        BadValue: it does not fit; all problems, each with its JSON pointer.
        TypeError: JSON cannot become this type.
    """
    hook = hooks_for(forbid_unknown).find(type)
    try:
        return hook(value, type)
    except RecursionError as error:
        raise BadValue(name_of(type), [("", "is nested too deeply")]) from error
    except misfits() as error:
        raise BadValue(name_of(type), first_page(problems_of(error))) from error


def check_type(type: Any) -> None:
    """Does nothing if JSON can become this type.

    Raises:
        TypeError: it cannot.
    """
    hooks_for(True).find(type)


def unstructure(value: object) -> Any:
    """Returns an object as plain JSON values, under the names that `convert` reads.

    Raises:
        TypeError: it holds something that JSON has no form for.
    """
    return as_json(msgspec.to_builtins(hooks_for(True).converter.unstructure(value), str_keys=True))


def as_json(value: Any) -> Any:
    """Returns what msgspec made of a value, without tuples and without numbers that are none in JSON."""
    if is_object(value):
        return {name: as_json(member) for name, member in value.items()}
    if is_array(value) or is_a(value.__class__, tuple):
        return [as_json(element) for element in value]
    if isinstance(value, float) and not isfinite(value):
        raise TypeError(f"JSON has no form for {value}")
    return value


# -- hooks: what turns a value into one type


@cache
def hooks_for(forbid_unknown: bool) -> Hooks:
    return Hooks(forbid_unknown)


class Hooks:
    """All hooks that were asked for, each built once."""

    def __init__(self, forbid_unknown: bool) -> None:
        from cattrs import Converter
        from cattrs.gen import make_dict_unstructure_fn

        self.forbid_unknown = forbid_unknown
        self.converter = Converter(unstruct_collection_overrides={AbstractSet: list})
        self._known: dict[Any, Hook] = {}

        def build_way_back(type: Any) -> Callable[[Any], dict[str, Any]]:
            return make_dict_unstructure_fn(type, self.converter, _cattrs_use_alias=True)

        self.converter.register_unstructure_hook_factory(is_class, build_way_back)

    def find(self, type: Any) -> Hook:
        try:
            known = self._known.get(type)
        except TypeError:  # an unhashable type expression
            return self._build(type)
        if known is None:
            known = self._known[type] = self._build(type)
        return known

    def _build(self, type: Any) -> Hook:
        if not holds_class(type):
            return plain_hook(type)
        type = bare(type)
        if is_path(type):
            return path_hook(type)
        if is_model(type):
            return model_hook(type)
        if is_class(type):
            return self._class_hook(type)
        kind, parts = get_origin(type), get_args(type)
        if kind in UNIONS:
            return self._union_hook(parts)
        if kind is tuple and parts[-1] is not ...:
            return self._positions_hook(parts)
        if kind in ELEMENTS:
            return self._elements_hook(parts[0], ELEMENTS[kind])
        if kind in MEMBERS:
            return self._members_hook(*parts)
        raise cannot_become(type)

    # -- classes

    def _class_hook(self, type: Any) -> Hook:
        from cattrs.gen import make_dict_structure_fn

        structure: Hook
        parameters: Any = getattr(type, "__parameters__", ())
        whole = type[tuple(Any for _ in parameters)] if is_a(type, object) and parameters else type

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise misfit_of(value, dict)
            return structure(value, type)

        self._known[type] = hook  # before its members are looked at: they may be of the same class
        try:
            structure = make_dict_structure_fn(
                whole,  # cattrs insists on the parameters of a generic class, though the hooks here know them already
                self.converter,
                _cattrs_forbid_extra_keys=self.forbid_unknown,
                _cattrs_use_alias=True,
                _cattrs_detailed_validation=True,
                **self._overrides(type),
            )
        except BaseException:
            del self._known[type]
            raise
        return hook

    def _overrides(self, type: Any) -> dict[str, Any]:
        from dataclasses import InitVar

        from cattrs.gen import override

        types = member_types(type)
        if any(isinstance(part, InitVar) for part in types.values()):
            raise TypeError(f"JSON cannot become a `{name_of(type)}`: an `InitVar` is no member of it")
        return {
            field.name: override(struct_hook=self._member_hook(types.get(field.name, Any), field.converter))
            for field in fields_of(type)
        }

    def _member_hook(self, type: Any, converter: Any) -> Hook:
        """Returns the hook of a member: of what its converter takes, where there is one."""
        if converter is None:
            return self.find(type)
        try:
            return self.find(input_type(converter, type))
        except TypeError:  # JSON cannot become the type of the member: to make it is the converter's task
            return as_it_is

    # -- containers that hold classes

    def _elements_hook(self, item_type: Any, collect: type[Any]) -> Hook:
        item_hook = self.find(item_type)
        if is_a(collect, AbstractSet) and bare(item_type).__hash__ is None:
            raise TypeError(f"a `{name_of(item_type)}` cannot be in a set: it has no hash")
        any_items = plain_hook(list)

        def hook(value: Any, _: Any) -> Any:
            items: list[Any] = any_items(value, None)
            return collect(convert_parts((str(at), item, item_hook) for at, item in enumerate(items)))

        return hook

    def _positions_hook(self, item_types: tuple[Any, ...]) -> Hook:
        item_hooks = [self.find(type) for type in item_types]
        any_items = plain_hook(tuple[tuple(Any for _ in item_types)])  # type: ignore[misc]

        def hook(value: Any, _: Any) -> Any:
            any_items(value, None)
            names = map(str, range(len(value)))
            return tuple(convert_parts(zip(names, value, item_hooks, strict=True)))

        return hook

    def _members_hook(self, key_type: Any, value_type: Any) -> Hook:
        keys_hook = plain_hook(dict[key_type, Any])
        value_hook = self.find(value_type)

        def hook(value: Any, _: Any) -> Any:
            keys = keys_hook(value, None)
            values = convert_parts((name, part, value_hook) for name, part in value.items())
            return dict(zip(keys, values, strict=True))

        return hook

    # -- unions that hold classes

    def _union_hook(self, members: tuple[Any, ...]) -> Hook:
        """Returns a hook that goes by the kind of JSON, and among classes by their shape.

        To try each class on the whole value would take time that is exponential in its depth.
        """
        of_kind: dict[Any, list[Any]] = {}
        for member in members:
            if holds_class(member):
                of_kind.setdefault(json_kind(bare(member)), []).append(member)
        choices = {kind: self._choice(ours) for kind, ours in of_kind.items()}
        plain = [member for member in members if not holds_class(member)]
        read_or_refuse = plain_hook(Union[(*plain, *of_kind)])

        def hook(value: Any, type: Any) -> Any:
            return choices.get(value.__class__, read_or_refuse)(value, type)

        return hook

    def _choice(self, members: list[Any]) -> Hook:
        if len(members) == 1:
            return self.find(members[0])
        if all(is_model(bare(member)) for member in members):
            return model_hook(Union[(*members,)])
        names = ", ".join(f"`{name_of(member)}`" for member in members)
        if not all(is_class(bare(member)) for member in members):
            raise TypeError(f"JSON cannot tell apart {names}")
        shapes = [Shape(self, bare(member)) for member in members]

        def hook(value: Any, type: Any) -> Any:
            fitting = next((shape for shape in shapes if shape.fits(value)), None)
            if fitting is None:
                tagged = [shape for shape in shapes if shape.has_its_tags(value)]
                if len(tagged) != 1:
                    raise Misfit([("", f"fits none of {names}")])
                fitting = tagged[0]
            return fitting.hook(value, type)

        return hook


class Shape:
    """What tells one class of a union from the others: the names of its members, and those that hold no class."""

    def __init__(self, hooks: Hooks, type: Any) -> None:
        fields, types = fields_of(type), member_types(type)
        plain = {
            field.alias: types.get(field.name, Any)
            for field in fields
            if field.converter is None and not holds_class(types.get(field.name, Any))
        }
        self.hook = hooks.find(type)
        self._names = {field.alias for field in fields}
        self._required = {field.alias for field in fields if field.is_required}
        self._plain = {name: hooks.find(part) for name, part in plain.items()}
        self._tags = {name for name, part in plain.items() if get_origin(bare(part)) is Literal}
        self._is_closed = hooks.forbid_unknown

    def fits(self, value: dict[str, Any]) -> bool:
        if not value.keys() >= self._required or (self._is_closed and not value.keys() <= self._names):
            return False
        return all(self._fits_at(name, value) for name in self._plain.keys() & value.keys())

    def has_its_tags(self, value: dict[str, Any]) -> bool:
        return bool(self._tags) and all(name in value and self._fits_at(name, value) for name in self._tags)

    def _fits_at(self, name: str, value: dict[str, Any]) -> bool:
        try:
            self._plain[name](value[name], None)
        except Misfit:
            return False
        return True


ELEMENTS: dict[Any, type[Any]] = {
    list: list,
    Sequence: list,
    MutableSequence: list,
    tuple: tuple,
    set: set,
    MutableSet: set,
    AbstractSet: set,
    frozenset: frozenset,
}
MEMBERS = (dict, Mapping, MutableMapping)


def json_kind(type: Any) -> Any:
    """Returns what a value that becomes this type is in JSON."""
    if is_path(type):
        return str
    return list if get_origin(type) in ELEMENTS else dict


def convert_parts(parts: Iterable[tuple[str, Any, Hook]]) -> list[Any]:
    """Returns the parts of a container as what their hooks make of them; their problems are raised together."""
    converted: list[Any] = []
    problems: list[Problem] = []
    for name, value, hook in parts:
        try:
            converted.append(hook(value, None))
        except misfits() as error:
            problems += problems_of(error, below("", name))
            if len(problems) > MOST_PROBLEMS:
                break
    if problems:
        raise Misfit(problems)
    return converted


def input_type(converter: Any, declared: Any) -> Any:
    """Returns what the converter of a member takes, as far as it says so; else the type of the member."""
    from inspect import signature

    function = getattr(converter, "converter", converter)  # the plain function in an `attrs.Converter`
    try:
        first = next(iter(signature(function).parameters))
        return get_type_hints(function, include_extras=True).get(first, declared)
    except (TypeError, ValueError, NameError, StopIteration):  # a class, or a function that is not written in Python
        return declared


# -- hooks for what holds no class


def plain_hook(type: Any) -> Hook:
    """Returns a hook that is msgspec, or is as strict.

    Raises:
        TypeError: JSON cannot become this type.
    """
    if type is Any or type is object:
        return as_it_is
    if type in (str, int, bool):
        return exact_hook(type)
    if is_shaped(type):
        raise TypeError(
            f"a class inside `{name_of(type)}` would not be built as it asks for it: use an attrs class there"
        )
    if any(isinstance(part, inspect.CustomType) for part in walk_types(inspect.type_info(type))):
        raise cannot_become(type)

    def hook(value: Any, _: Any) -> Any:
        try:
            return msgspec.convert(value, type, str_keys=True)
        except msgspec.ValidationError:
            raise misfit_of(value, type) from None

    return hook


def exact_hook(type: Any) -> Hook:
    """Returns the quick hook of the commonest types."""

    def hook(value: Any, _: Any) -> Any:
        if value.__class__ is type:
            return value
        raise misfit_of(value, type)

    return hook


def path_hook(type: Any) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if value.__class__ is str:
            return type(value)
        raise misfit_of(value, str)

    return hook


def model_hook(type: Any) -> Hook:
    """Returns the hook of a pydantic model, or of a union of such: it reads them itself."""
    from becket.typed.models import find_model

    model = find_model(type)

    def hook(value: Any, _: Any) -> Any:
        found, problems = model.read(value)
        if problems:
            raise Misfit(problems)
        return found

    return hook


def as_it_is(value: Any, _: Any) -> Any:
    return value


def cannot_become(type: Any) -> TypeError:
    return TypeError(f"JSON cannot become a `{name_of(type)}`: use an attrs class, a dataclass or a TypedDict")


# -- misfits


class Misfit(Exception):
    """A value does not fit. The pointers of the problems begin at that value."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__(problems)


@cache
def misfits() -> tuple[type[Exception], ...]:
    from cattrs import ClassValidationError

    return Misfit, ClassValidationError


def misfit_of(value: Any, type: Any) -> Misfit:
    return Misfit(find_problems(value, type))


def first_page(problems: Iterator[Problem]) -> list[Problem]:
    page = [(cut(pointer), cut(message)) for pointer, message in islice(problems, MOST_PROBLEMS)]
    return [*page, ("", "there are further problems")] if next(problems, None) else page


def problems_of(error: Any, pointer: str = "") -> Iterator[Problem]:
    """Yields what is wrong according to an error of a hook.

    Raises:
        Exception: what the class itself has raised, unless it is an error that says that a value is wrong.
    """
    if isinstance(error, Misfit):
        for inner, message in error.problems:
            yield pointer + inner, message
    elif isinstance(error, KeyError):  # cattrs took a member that is not there
        yield pointer, "is missing"
    elif isinstance(error, RecursionError):
        yield pointer, "is nested too deeply"
    else:
        aliases = {field.name: field.alias for field in fields_of(error.cl)}
        named, others = error.group_exceptions()
        for part, note in named:
            yield from problems_of(part, below(pointer, aliases[note.name]))
        for part in others:
            yield from problems_of_whole(part, pointer, aliases)


def problems_of_whole(error: Any, pointer: str, aliases: dict[str, str]) -> Iterator[Problem]:
    """Yields what a class says of its members together: names that it does not know, or what its `__init__` raised."""
    from cattrs import ForbiddenExtraKeysError

    if isinstance(error, ForbiddenExtraKeysError):
        for name in sorted(error.extra_fields):
            yield below(pointer, name), "is unknown"
    elif isinstance(error, ValueError | TypeError):
        # The validators of attrs put more beside their message, which is nobody's business.
        message = str(error.args[0]) if error.args else type(error).__name__
        alias = aliases.get(member_at_fault(error))
        yield pointer if alias is None else below(pointer, alias), message
    else:
        raise error


def member_at_fault(error: Exception) -> str:
    """Returns the member whose converter or validator has raised; empty if it was the class as a whole.

    attrs does not tell, but calls each of them in a line of its own of the `__init__` that it writes."""
    from linecache import getline
    from traceback import walk_tb

    for frame, line in walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_name in INITS and code.co_filename.startswith("<attrs generated"):
            called = CALLED.search(getline(code.co_filename, line))
            return "" if called is None else called.group(1)
    return ""


INITS = ("__init__", "__attrs_init__")
CALLED = re.compile(r"__attr_(?:converter|validator)_(\w+)\(")

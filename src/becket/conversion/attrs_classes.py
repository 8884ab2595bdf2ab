"""Converts JSON values to attrs classes and dataclasses and back, with strict cattrs hooks.

cattrs builds the objects, by their aliases and through `__init__`, so that converters, validators and defaults of the
class apply. Its own hooks coerce (`"5"` to 5, `"abc"` to a list, null to the text `None`): none of them is used. Types
without such a class are converted by msgspec, which coerces nothing.

cattrs and attrs are imported at first use. Handler params go through `decode`, which uses this module only for
classes that msgspec does not build correctly: see `introspect.needs_cattrs`.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set as AbstractSet,
)
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import inspect

from becket._text import join_pointer, truncate
from becket.conversion.introspect import (
    UNIONS,
    contains_class,
    get_field_types,
    get_init_fields,
    get_type_name,
    is_attrs_or_dataclass,
    is_model,
    is_path,
    is_subclass,
    needs_cattrs,
    unwrap_annotation,
    walk_type_info,
)
from becket.conversion.problems import MAX_PROBLEMS, find_problems, is_array, is_object
from becket.errors import BadValue, Problem

__all__ = ["check_type", "convert", "unstructure"]

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]
"""Called by cattrs with a value and its type. Raises `ConversionError`, or cattrs' error for a class."""


@overload
def convert(value: object, type: type[T], *, forbid_unknown: bool = ...) -> T: ...
@overload
def convert(value: object, type: Any, *, forbid_unknown: bool = ...) -> Any: ...
def convert(value: object, type: Any, *, forbid_unknown: bool = True) -> Any:
    """Converts a JSON value to this type. Nothing is coerced; a float may be written as an integer.

    Unknown members of a class are a problem, unless `forbid_unknown` is False; a Struct decides for itself about those,
    and a TypedDict ignores them.

    Raises:
        BadValue: the value does not fit; lists all problems, each with its JSON pointer.
        TypeError: JSON cannot be converted to this type.
    """
    hook = get_hooks(forbid_unknown).find(type)
    try:
        return hook(value, type)
    except RecursionError as error:
        raise BadValue(get_type_name(type), [("", "is nested too deeply")]) from error
    except conversion_errors() as error:
        raise BadValue(get_type_name(type), limit_problems(iter_problems(error))) from error


def check_type(type: Any) -> None:
    """Checks that JSON can be converted to this type.

    Raises:
        TypeError: it cannot.
    """
    get_hooks(True).find(type)


def unstructure(value: object) -> Any:
    """Converts an object to plain JSON values, under the names that `convert` reads.

    Raises:
        TypeError: it contains something that JSON cannot represent.
    """
    return to_json_value(msgspec.to_builtins(get_hooks(True).converter.unstructure(value), str_keys=True))


def to_json_value(value: Any) -> Any:
    """Converts the output of msgspec to plain JSON values: tuples to lists; raises TypeError for NaN and infinities."""
    if is_object(value):
        return {name: to_json_value(member) for name, member in value.items()}
    if is_array(value) or is_subclass(value.__class__, tuple):
        return [to_json_value(element) for element in value]
    if isinstance(value, float) and not isfinite(value):
        raise TypeError(f"JSON cannot represent {value}")
    return value


# -- hooks: each converts a value to one type


@cache
def get_hooks(forbid_unknown: bool) -> StructureHooks:
    return StructureHooks(forbid_unknown)


class StructureHooks:
    """All hooks in use, each built once."""

    def __init__(self, forbid_unknown: bool) -> None:
        from cattrs import Converter
        from cattrs.gen import make_dict_unstructure_fn

        self.forbid_unknown = forbid_unknown
        self.converter = Converter(unstruct_collection_overrides={AbstractSet: list})
        self._known: dict[Any, Hook] = {}

        def build_way_back(type: Any) -> Callable[[Any], dict[str, Any]]:
            return make_dict_unstructure_fn(type, self.converter, _cattrs_use_alias=True)

        self.converter.register_unstructure_hook_factory(is_attrs_or_dataclass, build_way_back)

    def find(self, type: Any) -> Hook:
        try:
            known = self._known.get(type)
        except TypeError:  # an unhashable type expression
            return self._build(type)
        if known is None:
            known = self._known[type] = self._build(type)
        return known

    def _build(self, type: Any) -> Hook:
        if not contains_class(type):
            return msgspec_hook(type)
        type = unwrap_annotation(type)
        if is_path(type):
            return path_hook(type)
        if is_model(type):
            return model_hook(type)
        if is_attrs_or_dataclass(type):
            return self._class_hook(type)
        kind, parts = get_origin(type), get_args(type)
        if kind in UNIONS:
            return self._union_hook(parts)
        if kind is tuple and parts[-1] is not ...:
            return self._tuple_hook(parts)
        if kind in SEQUENCE_TYPES:
            return self._sequence_hook(parts[0], SEQUENCE_TYPES[kind])
        if kind in MAPPING_TYPES:
            return self._mapping_hook(*parts)
        raise build_unsupported_type_error(type)

    # -- classes

    def _class_hook(self, type: Any) -> Hook:
        from cattrs import ClassValidationError
        from cattrs.gen import make_dict_structure_fn, override

        structure: Hook
        hooks: dict[str, Hook] = {}
        parameters: Any = getattr(type, "__parameters__", ())
        whole = type[tuple(Any for _ in parameters)] if is_subclass(type, object) and parameters else type

        def hook(value: Any, _: Any) -> Any:
            if not is_object(value):
                raise build_conversion_error(value, dict)
            try:
                return structure(value, type)
            except ClassValidationError as error:
                name_refused_member(error, value, hooks)
                raise

        self._known[type] = hook  # before its members are inspected: they may be of the same class
        try:
            hooks |= self._field_hooks(type)
            overrides: dict[str, Any] = {name: override(struct_hook=hook) for name, hook in hooks.items()}
            structure = make_dict_structure_fn(
                whole,  # cattrs requires the parameters of a generic class, though the hooks here know them already
                self.converter,
                _cattrs_forbid_extra_keys=self.forbid_unknown,
                _cattrs_use_alias=True,
                _cattrs_detailed_validation=True,
                **overrides,
            )
        except BaseException:
            del self._known[type]
            raise
        return hook

    def _field_hooks(self, type: Any) -> dict[str, Hook]:
        from dataclasses import InitVar

        types = get_field_types(type)
        if any(isinstance(part, InitVar) for part in types.values()):
            raise TypeError(f"JSON cannot become a `{get_type_name(type)}`: it has an `InitVar`, which is not a member")
        return {
            field.name: self._field_hook(types.get(field.name, Any), field.converter) for field in get_init_fields(type)
        }

    def _field_hook(self, type: Any, converter: Any) -> Hook:
        """Returns the hook of a member: for the input type of its converter, if it has one."""
        if converter is None:
            return self.find(type)
        try:
            return self.find(converter_input_type(converter, type))
        except TypeError:  # JSON cannot become the type of the member, but its converter may build it
            return identity_hook

    # -- containers of classes

    def _sequence_hook(self, item_type: Any, collect: type[Any]) -> Hook:
        item_hook = self.find(item_type)
        if is_subclass(collect, AbstractSet) and unwrap_annotation(item_type).__hash__ is None:
            raise TypeError(f"a `{get_type_name(item_type)}` cannot be in a set: it has no hash")
        any_items = msgspec_hook(list)

        def hook(value: Any, _: Any) -> Any:
            items: list[Any] = any_items(value, None)
            return collect(convert_items((str(at), item, item_hook) for at, item in enumerate(items)))

        return hook

    def _tuple_hook(self, item_types: tuple[Any, ...]) -> Hook:
        item_hooks = [self.find(type) for type in item_types]
        any_items = msgspec_hook(tuple[tuple(Any for _ in item_types)])  # type: ignore[misc]

        def hook(value: Any, _: Any) -> Any:
            any_items(value, None)
            names = map(str, range(len(value)))
            return tuple(convert_items(zip(names, value, item_hooks, strict=True)))

        return hook

    def _mapping_hook(self, key_type: Any, value_type: Any) -> Hook:
        keys_hook = msgspec_hook(dict[key_type, Any])
        value_hook = self.find(value_type)

        def hook(value: Any, _: Any) -> Any:
            keys = keys_hook(value, None)
            values = convert_items((name, part, value_hook) for name, part in value.items())
            return dict(zip(keys, values, strict=True))

        return hook

    # -- unions of classes

    def _union_hook(self, members: tuple[Any, ...]) -> Hook:
        """Returns a hook that dispatches on the kind of JSON, and among classes on their members.

        Trying each class on the whole value would take time exponential in its depth."""
        of_kind: dict[Any, list[Any]] = {}
        for member in members:
            if contains_class(member):
                of_kind.setdefault(json_kind(unwrap_annotation(member)), []).append(member)
        choices = {kind: self._class_union_hook(ours) for kind, ours in of_kind.items()}
        plain = [member for member in members if not contains_class(member)]
        read_or_refuse = msgspec_hook(Union[(*plain, *of_kind)])

        def hook(value: Any, type: Any) -> Any:
            return choices.get(value.__class__, read_or_refuse)(value, type)

        return hook

    def _class_union_hook(self, members: list[Any]) -> Hook:
        if len(members) == 1:
            return self.find(members[0])
        if all(is_model(unwrap_annotation(member)) for member in members):
            return model_hook(Union[(*members,)])
        names = ", ".join(f"`{get_type_name(member)}`" for member in members)
        if not all(is_attrs_or_dataclass(unwrap_annotation(member)) for member in members):
            raise TypeError(f"JSON cannot distinguish {names}")
        shapes = [UnionCandidate(self, unwrap_annotation(member)) for member in members]

        def hook(value: Any, type: Any) -> Any:
            fitting = next((shape for shape in shapes if shape.matches(value)), None)
            if fitting is None:
                tagged = [shape for shape in shapes if shape.has_matching_tags(value)]
                if len(tagged) != 1:
                    raise ConversionError([("", f"fits none of {names}")])
                fitting = tagged[0]
            return fitting.hook(value, type)

        return hook


class UnionCandidate:
    """The members that distinguish one class of a union from the others."""

    def __init__(self, hooks: StructureHooks, type: Any) -> None:
        fields, types = get_init_fields(type), get_field_types(type)
        plain = {
            field.alias: types.get(field.name, Any)
            for field in fields
            if field.converter is None and not contains_class(types.get(field.name, Any))
        }
        self.hook = hooks.find(type)
        self._names = {field.alias for field in fields}
        self._required = {field.alias for field in fields if field.is_required}
        self._plain = {name: hooks.find(part) for name, part in plain.items()}
        self._tags = {name for name, part in plain.items() if get_origin(unwrap_annotation(part)) is Literal}
        self._is_closed = hooks.forbid_unknown

    def matches(self, value: dict[str, Any]) -> bool:
        if not value.keys() >= self._required or (self._is_closed and not value.keys() <= self._names):
            return False
        return all(self._fits_at(name, value) for name in self._plain.keys() & value.keys())

    def has_matching_tags(self, value: dict[str, Any]) -> bool:
        return bool(self._tags) and all(name in value and self._fits_at(name, value) for name in self._tags)

    def _fits_at(self, name: str, value: dict[str, Any]) -> bool:
        try:
            self._plain[name](value[name], None)
        except ConversionError:
            return False
        return True


SEQUENCE_TYPES: dict[Any, type[Any]] = {
    list: list,
    Sequence: list,
    MutableSequence: list,
    tuple: tuple,
    set: set,
    MutableSet: set,
    AbstractSet: set,
    frozenset: frozenset,
}
MAPPING_TYPES = (dict, Mapping, MutableMapping)


def json_kind(type: Any) -> Any:
    """Returns the JSON kind of values that become this type."""
    if is_path(type):
        return str
    return list if get_origin(type) in SEQUENCE_TYPES else dict


def convert_items(parts: Iterable[tuple[str, Any, Hook]]) -> list[Any]:
    """Converts the parts of a container with their hooks; raises their problems together."""
    converted: list[Any] = []
    problems: list[Problem] = []
    for name, value, hook in parts:
        try:
            converted.append(hook(value, None))
        except conversion_errors() as error:
            problems += iter_problems(error, join_pointer("", name))
            if len(problems) > MAX_PROBLEMS:
                break
    if problems:
        raise ConversionError(problems)
    return converted


def converter_input_type(converter: Any, declared: Any) -> Any:
    """Returns the annotated input type of a member's converter; without one the type of the member."""
    from inspect import signature

    function = getattr(converter, "converter", converter)  # unwraps an `attrs.Converter`
    try:
        first = next(iter(signature(function).parameters))
        return get_type_hints(function, include_extras=True).get(first, declared)
    except (TypeError, ValueError, NameError, StopIteration):  # a class, or a function that is not written in Python
        return declared


# -- hooks for types without classes


def msgspec_hook(type: Any) -> Hook:
    """Returns a hook that uses msgspec, or is as strict.

    Raises:
        TypeError: JSON cannot become this type.
    """
    if type is Any or type is object:
        return identity_hook
    if type in (str, int, bool):
        return exact_hook(type)
    if needs_cattrs(type):
        raise TypeError(
            f"a class inside `{get_type_name(type)}` would be built without its `__init__`: use an attrs class there"
        )
    if any(isinstance(part, inspect.CustomType) for part in walk_type_info(inspect.type_info(type))):
        raise build_unsupported_type_error(type)

    def hook(value: Any, _: Any) -> Any:
        try:
            return msgspec.convert(value, type, str_keys=True)
        except msgspec.ValidationError:
            raise build_conversion_error(value, type) from None

    return hook


def exact_hook(type: Any) -> Hook:
    """Returns a fast hook for the most common types."""

    def hook(value: Any, _: Any) -> Any:
        if value.__class__ is type:
            return value
        raise build_conversion_error(value, type)

    return hook


def path_hook(type: Any) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if value.__class__ is str:
            return type(value)
        raise build_conversion_error(value, str)

    return hook


def model_hook(type: Any) -> Hook:
    """Returns the hook of a pydantic model, or of a union of models: pydantic converts them."""
    from becket.conversion.pydantic_models import find_model

    model = find_model(type)

    def hook(value: Any, _: Any) -> Any:
        found, problems = model.read(value)
        if problems:
            raise ConversionError(problems)
        return found

    return hook


def identity_hook(value: Any, _: Any) -> Any:
    return value


def build_unsupported_type_error(type: Any) -> TypeError:
    return TypeError(f"JSON cannot become a `{get_type_name(type)}`: use an attrs class, a dataclass or a TypedDict")


# -- errors


class ConversionError(Exception):
    """A value does not fit. The pointers of the problems are relative to that value."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__(problems)


@cache
def conversion_errors() -> tuple[type[Exception], ...]:
    from cattrs import ClassValidationError

    return ConversionError, ClassValidationError


def build_conversion_error(value: Any, type: Any) -> ConversionError:
    return ConversionError(find_problems(value, type))


def limit_problems(problems: Iterator[Problem]) -> list[Problem]:
    page = [(truncate(pointer), truncate(message)) for pointer, message in islice(problems, MAX_PROBLEMS)]
    return [*page, ("", "there are further problems")] if next(problems, None) else page


def iter_problems(error: Any, pointer: str = "") -> Iterator[Problem]:
    """Yields the problems in an error of a hook.

    Raises:
        Exception: raised by the class itself, unless it is an error about a wrong value.
    """
    if isinstance(error, ConversionError):
        for inner, message in error.problems:
            yield pointer + inner, message
    elif isinstance(error, KeyError):  # cattrs accessed a missing member
        yield pointer, "is missing"
    elif isinstance(error, RecursionError):
        yield pointer, "is nested too deeply"
    elif isinstance(error, ValueError | TypeError):  # a converter, a validator or the class has refused it
        # The validators of attrs have further arguments with internals.
        yield pointer, str(error.args[0]) if error.args else type(error).__name__
    else:
        aliases = {field.name: field.alias for field in get_init_fields(error.cl)}
        named, others = error.group_exceptions()
        for part, note in named:
            yield from iter_problems(part, join_pointer(pointer, aliases[note.name]))
        for part in others:
            yield from iter_class_problems(part, pointer)


def iter_class_problems(error: Any, pointer: str) -> Iterator[Problem]:
    """Yields the problems of a class as a whole: unknown members, or what its `__init__` raised."""
    from cattrs import ForbiddenExtraKeysError

    if isinstance(error, ForbiddenExtraKeysError):
        for name in sorted(error.extra_fields):
            yield join_pointer(pointer, name), "is unknown"
    elif isinstance(error, ValueError | TypeError):
        yield from iter_problems(error, pointer)
    else:
        raise error


def name_refused_member(error: Any, value: Any, hooks: dict[str, Hook]) -> None:
    """Notes on what the `__init__` of a class raised which member it is about, as cattrs does for its own errors."""
    from cattrs import AttributeValidationNote

    refusal = error.exceptions[0]
    if len(error.exceptions) > 1 or hasattr(refusal, "__notes__") or not isinstance(refusal, ValueError | TypeError):
        return
    name = find_validated_member(refusal) or find_unconverted_member(refusal, error.cl, value, hooks)
    if name is not None:
        refusal.__notes__ = [AttributeValidationNote("", name, Any)]


def find_validated_member(refusal: Exception) -> str | None:
    """Returns the member whose validator raised this: it is called with the attribute."""
    from traceback import walk_tb

    import attrs

    for frame, _ in walk_tb(refusal.__traceback__):
        code = frame.f_code
        for argument in code.co_varnames[: code.co_argcount]:
            value: Any = frame.f_locals.get(argument)
            if isinstance(value, attrs.Attribute):
                return str(value.name)
    return None


def find_unconverted_member(refusal: Exception, cls: Any, value: Any, hooks: dict[str, Hook]) -> str | None:
    """Returns the member whose converter raises this when it is called again: attrs does not report it."""
    for field in get_init_fields(cls):
        if field.converter is not None and field.alias in value:
            converter = getattr(field.converter, "converter", field.converter)  # of an `attrs.Converter`
            try:
                converter(hooks[field.name](value[field.alias], None))
            except Exception as error:
                if type(error) is type(refusal) and error.args == refusal.args:
                    return field.name
    return None

"""Handlers are found by their names, and their signatures are read once, when they are registered."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Raw, Struct

from becket.errors import InvalidParams
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import Handler, Registry
from becket.methods.streams import EventReader, Stream

if TYPE_CHECKING:
    from becket import Context


class Add(Struct):
    a: int
    b: int = 0


def handler(function: Any, **options: bool) -> Handler:
    """Returns the handler that a registry builds from a function."""
    registry = Registry()
    registry.handle("m", **options)(function)
    found = registry.get("m")
    assert found is not None
    return found


CONTEXT = object()


def add_up(params: Add) -> int:
    return params.a + params.b


def call(function: Any, params: bytes | None) -> Any:
    """Returns what a handler returns for raw params."""
    return handler(function).invoke(None if params is None else Raw(params), CONTEXT)


# -- what a handler gets


def test_a_handler_may_have_no_parameters() -> None:
    assert call(lambda: 1, None) == 1
    assert call(lambda: 1, b"{}") == 1
    assert call(lambda: 1, b"[]") == 1


def test_a_handler_without_parameters_refuses_params() -> None:
    for params in (b'{"a":1}', b"[1]", b"1"):
        with pytest.raises(InvalidParams):
            call(lambda: 1, params)


def test_a_handler_may_take_the_params() -> None:
    assert call(lambda params: params, b'{"a":[1]}') == {"a": [1]}
    assert call(lambda params: params, None) is None


def test_a_handler_may_take_the_params_and_the_context() -> None:
    assert call(lambda params, ctx: (params, ctx), b"[1]") == ([1], CONTEXT)


def test_the_arguments_are_what_invoke_passes() -> None:
    assert handler(lambda: 1).build_arguments(None, CONTEXT) == ()
    assert handler(lambda params: 1).build_arguments(Raw(b"[1]"), CONTEXT) == ([1],)
    assert handler(lambda params, ctx: 1).build_arguments(Raw(b"[1]"), CONTEXT) == ([1], CONTEXT)


def test_params_have_the_annotated_type() -> None:
    def add(params: Add) -> int:
        return params.a + params.b

    assert call(add, b'{"a":1,"b":2}') == 3
    with pytest.raises(InvalidParams) as caught:
        call(add, b'{"b":"2"}')
    assert [pointer for pointer, _ in caught.value.problems] == ["/a", "/b"]


def test_an_annotation_preserves_its_constraints() -> None:
    def first(params: Annotated[list[int], Meta(max_length=2)]) -> int:
        return params[0]

    assert call(first, b"[1,2]") == 1
    with pytest.raises(InvalidParams):
        call(first, b"[1,2,3]")


def test_only_the_annotation_of_the_params_must_exist_at_run_time() -> None:
    def add(params: Add, ctx: Context) -> NoSuchName:  # type: ignore[name-defined]  # noqa: F821
        return params.a, ctx

    assert call(add, b'{"a":1}') == (1, CONTEXT)


def test_an_annotation_need_not_be_postponed() -> None:
    def add(params: Any) -> Any:
        return params

    add.__annotations__["params"] = Add
    assert call(add, b'{"a":1}') == Add(1)


def test_defaults_and_further_optional_arguments_are_left_alone() -> None:
    def with_defaults(params: Any = 5, ctx: Any = None, *, extra: int = 1, **rest: Any) -> Any:
        return params, extra, rest

    def with_more(params: Any, ctx: Any, extra: int = 1) -> Any:
        return params, extra

    assert call(with_defaults, b"[1]") == ([1], 1, {})
    assert call(with_more, b"[1]") == ([1], 1)


class Service:
    def method(self, params: Add) -> int:
        return params.a

    @classmethod
    def of_class(cls, params: Add) -> int:
        return params.a

    @staticmethod
    def static(params: Add) -> int:
        return params.a

    async def later(self, params: Add) -> int:
        return params.a

    def without_self() -> int:  # type: ignore[misc]
        return 1

    def __call__(self, params: Add, ctx: Any) -> Any:
        return params.a, ctx


@pytest.mark.parametrize(
    "function", [Service().method, Service.of_class, Service.static, Service().static, Service.__dict__["static"]]
)
def test_a_method_is_a_handler_too(function: Any) -> None:
    assert call(function, b'{"a":7}') == 7


def test_an_object_with_a_call_method_is_a_handler_too() -> None:
    assert call(Service(), b'{"a":7}') == (7, CONTEXT)


def test_a_decorated_function_preserves_its_types() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(params: Any) -> Any:
            return function(params)

        return wrapper

    @logged
    def add(params: Add) -> int:
        return params.a

    assert call(add, b'{"a":7}') == 7


# -- how it is run


async def later(params: Any) -> Any:
    return params


def test_plain_functions_run_inline_coroutines_and_threads_do_not() -> None:
    plain, threaded, coroutine = handler(lambda: 1), handler(lambda: 1, thread=True), handler(later)
    assert (plain.is_inline, plain.is_async, plain.is_threaded) == (True, False, False)
    assert (threaded.is_inline, threaded.is_async, threaded.is_threaded) == (False, False, True)
    assert (coroutine.is_inline, coroutine.is_async, coroutine.is_threaded) == (False, True, False)
    assert handler(Service().later).is_async


# -- signatures that are refused


def generate(params: Any) -> Any:
    yield params


async def generate_later(params: Any) -> Any:
    yield params


def unresolved(params: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


def number(params: int) -> None:
    pass


def three(a: Any, b: Any, c: Any) -> None:
    pass


def keyword(*, params: Any) -> None:
    pass


def star(*params: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (three, "three must take `()`, `(params)` or `(params, ctx)`"),
        (keyword, "keyword must take `()`, `(params)` or `(params, ctx)`"),
        (star, "star must take `()`, `(params)` or `(params, ctx)`"),
        (Service().without_self, "Service.without_self must take `()`, `(params)` or `(params, ctx)`"),
        (generate, "generate yields"),
        (generate_later, "generate_later yields"),
        (len, "len is not a Python function: wrap it in a `def`"),
        (Add, "Add is not a Python function: wrap it in a `def`"),
        (functools.partial(later, 1), "is not a Python function: wrap it in a `def`"),
        (5, "5 is not a Python function: wrap it in a `def`"),
        (unresolved, "the annotation `NoSuchType` of unresolved names nothing in its module"),
        (number, "params are an object or an array, never a `int`"),
    ],
)
def test_the_error_for_an_invalid_handler_gives_the_reason_in_one_sentence(function: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        Registry().handle("m")(function)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_coroutine_cannot_run_in_a_thread() -> None:
    with pytest.raises(TypeError, match="later is `async def`"):
        Registry().handle("m", thread=True)(later)


# -- names


@pytest.mark.parametrize("name", ["", "rpc.", "rpc.discover"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="reserved"):
        Registry().handle(name)
    with pytest.raises(ValueError, match="reserved"):
        Registry().on(name)


def test_a_name_has_one_handler_for_requests_and_notifications_together() -> None:
    registry = Registry()
    registry.handle("m")(later)
    for register in (registry.handle("m"), registry.on("m")):
        with pytest.raises(ValueError, match="already"):
            register(later)


def test_a_decorator_that_is_used_twice_does_not_replace_the_first() -> None:
    registry = Registry()
    register = registry.handle("m")
    register(later)
    with pytest.raises(ValueError, match="already"):
        register(lambda: 1)
    assert registry.handlers()[0].function is later


def test_a_function_that_was_refused_leaves_its_name_free() -> None:
    registry = Registry()
    with pytest.raises(TypeError):
        registry.handle("m")(three)
    registry.handle("m")(later)
    assert "m" in registry


def test_the_decorated_function_is_what_it_was() -> None:
    assert Registry().handle("m")(later) is later
    assert Registry().on("m")(later) is later


def test_a_handler_can_be_removed() -> None:
    registry = Registry()
    registry.handle("m")(later)
    registry.remove("m")
    registry.remove("m")
    assert registry.get("m") is None
    registry.on("m")(later)
    assert registry.handlers()[0].is_for_notifications


def test_a_registry_lists_its_names() -> None:
    registry = Registry()
    registry.handle("b")(later)
    registry.on("a")(later)
    assert list(registry) == ["b", "a"]
    assert len(registry) == 2
    assert "a" in registry
    assert "c" not in registry
    assert [one.name for one in registry.handlers()] == ["b", "a"]


def test_two_registries_become_one_and_stay_what_they_were() -> None:
    one, two = Registry(), Registry()
    one.handle("a")(later)
    one.handle("b")(later)
    two.handle("b")(number_of)
    both = one.including(two)
    assert list(both) == ["a", "b"]
    found = both.get("b")
    assert found is not None
    assert found.function is number_of
    both.handle("c")(later)
    assert (list(one), list(two)) == (["a", "b"], ["b"])


def number_of(params: list[int]) -> int:
    return len(params)


def test_handlers_that_are_made_later_are_made_once_when_the_first_is_looked_for() -> None:
    made: list[Registry] = []

    def make(registry: Registry) -> None:
        made.append(registry)
        registry.handle("a")(number_of)

    registry = Registry(make)
    copy = registry.copy()
    assert made == []
    found = registry.get("a")
    assert found is not None
    assert found.function is number_of
    assert registry.get("b") is None
    assert made == [registry]
    copy.handle("b")(later)
    assert (list(copy), list(registry)) == (["a", "b"], ["a"])
    assert made == [registry, copy]
    assert list(registry.copy()) == ["a"]


def test_structs_made_at_run_time_are_types_like_any_other() -> None:
    kind = msgspec.defstruct("Kind", [("x", int)])

    def use(params: Any) -> Any:
        return params.x

    use.__annotations__["params"] = kind
    assert call(use, b'{"x":1}') == 1


# -- descriptors


class Count(Struct):
    n: int


ADD = Method("add", Add, Count, requires="own.sums")
TICK = Notification("tick", Count)
STOP = Method("stop", None, None)
ANYTHING: Method[Any, Any] = Method("anything", Any, Any)
RUN: Stream[Add, Count, Any] = Stream("run", Add, Count, events={"tick": EventReader(msgspec.json.decode)})


def described(descriptor: Any, function: Any) -> Handler:
    """Returns the handler that a registry builds from a function and a descriptor."""
    registry = Registry()
    register = registry.on if isinstance(descriptor, Notification) else registry.handle
    register(descriptor)(function)
    found = registry.get(descriptor.name)
    assert found is not None
    return found


def test_a_handler_has_its_descriptor_and_the_permission_of_it() -> None:
    add, tick, plain = described(ADD, lambda params: 1), described(TICK, lambda params: 1), handler(lambda: 1)
    assert (add.name, add.descriptor, add.requires) == ("add", ADD, "own.sums")
    assert (tick.name, tick.descriptor, tick.requires) == ("tick", TICK, None)
    assert (plain.descriptor, plain.requires) == (None, None)
    assert tick.is_for_notifications
    assert not add.is_for_notifications


@pytest.mark.parametrize("descriptor", [ADD, RUN])
def test_params_have_the_type_of_the_descriptor_where_the_function_has_no_annotation(descriptor: Any) -> None:
    def untyped(params, ctx):  # type: ignore[no-untyped-def]
        return params, ctx

    def loose(params: Any) -> Any:
        return params

    def looser(params: object) -> Any:
        return params

    raw = Raw(b'{"a":1}')
    assert described(descriptor, untyped).invoke(raw, CONTEXT) == (Add(1), CONTEXT)
    assert described(descriptor, loose).invoke(raw, CONTEXT) == Add(1)
    assert described(descriptor, looser).invoke(raw, CONTEXT) == Add(1)
    with pytest.raises(InvalidParams):
        described(descriptor, loose).invoke(Raw(b'{"a":"1"}'), CONTEXT)


def test_a_function_may_repeat_the_type_of_the_descriptor() -> None:
    def add(params: Add) -> Count:
        return Count(params.a + params.b)

    def tick(params: Count) -> int:
        return params.n

    def many(params: list[Add]) -> int:
        return len(params)

    assert described(ADD, add).invoke(Raw(b'{"a":1,"b":2}'), CONTEXT) == Count(3)
    assert described(TICK, tick).invoke(Raw(b'{"n":7}'), CONTEXT) == 7
    assert described(Method("many", list[Add], int), many).invoke(Raw(b'[{"a":1}]'), CONTEXT) == 1


def test_the_params_for_a_function_without_parameters_are_checked() -> None:
    nothing = described(ADD, lambda: 5)
    assert nothing.invoke(Raw(b'{"a":1}'), CONTEXT) == 5
    for bad in (b'{"a":"1"}', b"{}", b"[]"):
        with pytest.raises(InvalidParams):
            nothing.invoke(Raw(bad), CONTEXT)
    assert described(ANYTHING, lambda: 5).invoke(Raw(b'{"a":"1"}'), CONTEXT) == 5


def test_a_method_without_params_gets_none_and_ignores_members_of_a_later_version() -> None:
    def stop(params: None, ctx: Any) -> Any:
        return params, ctx

    for function, returned in ((stop, (None, CONTEXT)), (lambda params: params, None), (lambda: 5, 5)):
        for none in (None, Raw(b"{}"), Raw(b"[]"), Raw(b'{"a":1}')):
            assert described(STOP, function).invoke(none, CONTEXT) == returned
        for some in (b"[1]", b"5"):
            with pytest.raises(InvalidParams):
                described(STOP, function).invoke(Raw(some), CONTEXT)


def wants_count(params: Count) -> None:
    pass


async def wants_count_later(params: Count, ctx: Any) -> None:
    pass


def wants_none(params: None) -> None:
    pass


def wants_wider(params: Add | Count) -> None:
    pass


@pytest.mark.parametrize(
    ("descriptor", "function", "sentence"),
    [
        (ADD, wants_count, "wants_count takes `Count`, but 'add' has params of type `Add`"),
        (RUN, wants_count_later, "wants_count_later takes `Count`, but 'run' has params of type `Add`"),
        (ADD, wants_none, "wants_none takes `None`, but 'add' has params of type `Add`"),
        (ADD, wants_wider, "but 'add' has params of type `Add`"),
        (TICK, number_of, "number_of takes `list[int]`, but 'tick' has params of type `Count`"),
        (STOP, wants_count, "wants_count takes `Count`, but 'stop' has no params"),
        (ADD, three, "three must take `()`, `(params)` or `(params, ctx)`"),
        (Method("size", int, int), lambda params: 1, "params are an object or an array, never a `int`"),
    ],
)
def test_the_error_for_a_function_that_does_not_fit_its_descriptor_is_one_sentence(
    descriptor: Any, function: Any, sentence: str
) -> None:
    with pytest.raises(TypeError) as caught:
        described(descriptor, function)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_notification_is_not_registered_as_a_method_or_the_reverse() -> None:
    registry: Any = Registry()
    with pytest.raises(TypeError, match="'tick' is a notification: use `on`"):
        registry.handle(TICK)
    with pytest.raises(TypeError, match="'add' is a method: use `handle`"):
        registry.on(ADD)
    with pytest.raises(TypeError, match="'run' is a method: use `handle`"):
        registry.on(RUN)


def test_a_descriptor_and_its_name_are_one_name() -> None:
    registry = Registry()
    registry.handle(ADD)(lambda params: Count(1))
    for again in (registry.handle("add"), registry.handle(ADD)):
        with pytest.raises(ValueError, match="already"):
            again(lambda: Count(1))

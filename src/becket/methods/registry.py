"""Registry of handlers by method name; signatures are inspected once, at registration.

A handler takes nothing, the params, or the params and the context. It is registered under a name, or under a
descriptor, which also has the type of the params and the permission that a caller needs.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints, overload

from msgspec import Raw

from becket.conversion.custom_type import get_to_json, unwrap_type
from becket.conversion.decode import decode_untyped, get_msgspec_decoder, get_params_decoder
from becket.errors import InvalidParams
from becket.methods.descriptors import Method, Notification, ParamsDecoder, check_method_name, format_type

if TYPE_CHECKING:
    from becket.methods.decorators import HandlerDecorator, NotificationHandlerDecorator

__all__ = ["Descriptor", "Handler", "Registry"]

Descriptor = Method[Any, Any] | Notification[Any]

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")
R = TypeVar("R")

Invoker = Callable[[Raw | None, object], R]
"""Calls a handler with the params, decoded, and the context. Raises InvalidParams if the params do not have the type of
its parameter."""

IS_ASYNC = 0x80  # inspect.CO_COROUTINE; importing inspect would cost an extension 10 ms at start
HAS_STAR_ARGUMENTS = 0x04
IS_GENERATOR = 0x20 | 0x200  # CO_GENERATOR, CO_ASYNC_GENERATOR


class Handler:
    """A registered function with what its signature and descriptor say."""

    __slots__ = (
        "_params_type",
        "arity",
        "build_arguments",
        "decode_params",
        "descriptor",
        "function",
        "has_custom_params",
        "invoke",
        "is_async",
        "is_for_notifications",
        "is_inline",
        "is_threaded",
        "name",
        "requires",
        "unless_streamed",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        thread: bool,
        notifications: bool,
        descriptor: Descriptor | None = None,
        unless_streamed: bool = False,
    ) -> None:
        arity, annotation, is_async = read_signature(function, descriptor)
        if thread and is_async:
            raise TypeError(f"{describe_function(function)} is `async def`: only a plain `def` can run in a thread")
        self.name = name
        self.descriptor = descriptor
        self.requires: str | None = None if descriptor is None else descriptor.requires
        self.has_custom_params = descriptor is not None and descriptor.params_to_json is not None
        write = get_to_json(descriptor.result) if isinstance(descriptor, Method) else None
        self.function = function if write is None else with_json_result(function, write, is_async=is_async)
        self.arity = arity
        self.is_async = is_async
        self.is_threaded = thread
        self.is_for_notifications = notifications
        self.unless_streamed = unless_streamed
        self.is_inline = not (is_async or thread)
        has_params = annotation is not None and (arity > 0 or descriptor is not None)
        self.decode_params: ParamsDecoder = self._check_no_params
        if has_params:
            self.decode_params = (
                get_params_decoder(annotation) if descriptor is None else get_descriptor_decoder(descriptor)
            )
        self._params_type: Any = annotation if has_params else Any
        self.invoke: Invoker[Any] = self._invoke_first
        self.build_arguments: Invoker[tuple[Any, ...]] = self._build_first_arguments

    def _invoke_first(self, params: Raw | None, context: object) -> Any:
        self._build_invokers()
        return self.invoke(params, context)

    def _build_first_arguments(self, params: Raw | None, context: object) -> tuple[Any, ...]:
        self._build_invokers()
        return self.build_arguments(params, context)

    def _build_invokers(self) -> None:
        """Builds `invoke`, which decodes params and calls the function, and `build_arguments`, for one that is called
        later. At the first call, so that the start does not pay for it."""
        decode = get_msgspec_decoder(self._params_type) or self.decode_params
        self.invoke = build_invoker(self.function, self.arity, decode, self.decode_params)
        self.build_arguments = build_invoker(pack_arguments, self.arity, decode, self.decode_params)

    def _check_no_params(self, params: Raw | None) -> None:
        # Many programs send an empty object or array for none. A later version of a declared method may have members,
        # which an older one ignores.
        value: object = None if params is None else decode_untyped(params)
        if value and not (self.descriptor is not None and isinstance(value, dict)):
            raise InvalidParams([("", f"{self.name} takes no params")])


def build_invoker(
    function: Callable[..., R], arity: int, decode: Callable[[Any], Any], fallback: ParamsDecoder
) -> Invoker[R]:
    """Returns a function that decodes params and calls `function`, which has that many parameters. `fallback` accepts
    absent params, and lists the problems of others."""

    def invoke(params: Raw | None, context: object) -> R:
        try:
            value = decode(params)
        except Exception:
            if decode == fallback:
                raise
            value = fallback(params)
        if arity == 1:
            return function(value)
        return function(value, context) if arity else function()

    return invoke


def pack_arguments(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def get_descriptor_decoder(descriptor: Descriptor) -> ParamsDecoder:
    """Returns the params decoder of a descriptor, built once: a host serves the same methods to all extensions."""
    if descriptor.decode_params is None:
        descriptor.decode_params = get_params_decoder(descriptor.params)
    return descriptor.decode_params


def with_json_result(
    function: Callable[..., Any], write: Callable[[Any], object], *, is_async: bool
) -> Callable[..., Any]:
    """Returns a function whose result is converted to JSON values by the custom type of its method."""
    if is_async:
        return lambda *arguments: JsonResultAwaitable(function(*arguments), write)
    return lambda *arguments: write(function(*arguments))


class JsonResultAwaitable:
    """Converts the result of an `async def`. No coroutine: this layer has none."""

    __slots__ = ("_result", "_write")

    def __init__(self, result: Awaitable[Any], write: Callable[[Any], object]) -> None:
        self._result = result
        self._write = write

    def __await__(self) -> Generator[Any, Any, object]:
        return self._write((yield from self._result.__await__()))


class Registry:
    """Handlers by name. One registry may serve many peers at once.

    With `later` the handlers are registered at the first lookup: `later` gets the registry."""

    def __init__(self, later: Callable[[Registry], object] | None = None) -> None:
        self._made: dict[str, Handler] = {}
        self._later = later
        self.get: Callable[[str], Handler | None] = self._made.get if later is None else self._make_and_get
        self.fallback: Handler | None = None  # for requests of methods without a handler
        self.on_change: Callable[[str], None] | None = None  # gets the name of a handler that was added or removed

    @property
    def _handlers(self) -> dict[str, Handler]:
        later, self._later = self._later, None
        if later is not None:
            self.get = self._made.get
            later(self)
        return self._made

    def _make_and_get(self, name: str) -> Handler | None:
        return self._handlers.get(name)

    @overload
    def handle(self, method: str, *, thread: bool = False) -> Callable[[F], F]: ...

    @overload
    def handle(self, method: Method[P, R], *, thread: bool = False) -> HandlerDecorator[P, R]: ...

    def handle(self, method: str | Method[Any, Any], *, thread: bool = False) -> Callable[..., Any]:
        """Registers the decorated function as the handler of this method.

        Raises:
            ValueError: the name is reserved, or taken.
            TypeError: the signature is none of `()`, `(params)`, `(params, ctx)`, or its params are not the method's.
        """
        return self._register(method, thread=thread, notifications=False)

    def handle_unknown(self, *, thread: bool = False) -> Callable[[F], F]:
        """Registers the decorated function for requests of all methods that have no handler; `ctx.method` names one.

        Raises:
            ValueError: there is one already.
            TypeError: the signature is none of `()`, `(params)`, `(params, ctx)`.
        """

        def register(function: F) -> F:
            if self.fallback is not None:
                raise ValueError("unknown methods have a handler already")
            self.fallback = Handler("unknown method", function, thread=thread, notifications=False)
            return function

        return register

    @overload
    def on(self, notification: str, *, thread: bool = False, unless_streamed: bool = False) -> Callable[[F], F]: ...

    @overload
    def on(
        self, notification: Notification[P], *, thread: bool = False, unless_streamed: bool = False
    ) -> NotificationHandlerDecorator[P]: ...

    def on(
        self, notification: str | Notification[Any], *, thread: bool = False, unless_streamed: bool = False
    ) -> Callable[..., Any]:
        """Registers the decorated function for this notification; a request of that name is rejected.

        Calls that subscribe to the notification receive it as well; with `unless_streamed` the function gets only
        notifications that no call has received."""
        return self._register(notification, thread=thread, notifications=True, unless_streamed=unless_streamed)

    def remove(self, name: str) -> None:
        """Removes a handler; its running requests go on."""
        self._handlers.pop(name, None)
        if self.on_change is not None:
            self.on_change(name)

    def copy(self) -> Registry:
        """Returns a new registry with the same handlers."""
        return Registry().including(self) if self._later is None else Registry(self._later)

    def including(self, other: Registry) -> Registry:
        """Returns a new registry with the handlers of both; those of `other` take precedence."""
        both = Registry()
        both._handlers.update(self._handlers)
        both._handlers.update(other._handlers)
        both.fallback = other.fallback or self.fallback
        return both

    def without(self, names: Collection[str]) -> Registry:
        """Returns a new registry with all handlers but those of these names."""
        rest = Registry()
        rest._handlers.update({name: each for name, each in self._handlers.items() if name not in names})
        rest.fallback = self.fallback
        return rest

    def handlers(self) -> list[Handler]:
        """Returns all handlers, in the order of their registration."""
        return list(self._handlers.values())

    def __contains__(self, name: str) -> bool:
        return name in self._handlers

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def _register(
        self, method: str | Descriptor, *, thread: bool, notifications: bool, unless_streamed: bool = False
    ) -> Callable[[F], F]:
        if isinstance(method, str):
            name, descriptor = method, None
            check_method_name(name)
        else:
            value = cast("object", method)
            if not isinstance(value, Method | Notification):
                decorator = "on" if notifications else "handle"
                raise TypeError(f'the decorator needs a name, as in `@{decorator}("name")`, got {value!r}')
            name, descriptor = method.name, method
            if isinstance(method, Notification) is not notifications:
                what = "a method: use `handle`" if notifications else "a notification: use `on`"
                raise TypeError(f"{name!r} is {what}")

        def register(function: F) -> F:
            if name in self._handlers:
                raise ValueError(f"{name!r} has a handler already: remove it first")
            self._handlers[name] = Handler(
                name,
                function,
                thread=thread,
                notifications=notifications,
                descriptor=descriptor,
                unless_streamed=unless_streamed,
            )
            if self.on_change is not None:
                self.on_change(name)
            return function

        return register


# -- signatures


def read_signature(function: Callable[..., Any], descriptor: Descriptor | None = None) -> tuple[int, Any, bool]:
    """Returns how many arguments a handler takes, the type of its params, and whether it is `async def`.

    The type is that of the descriptor (None: no params), or else the function's annotation."""
    target, bound = unwrap_callable(function)
    code = getattr(target, "__code__", None)
    if code is None:
        raise TypeError(f"{describe_function(function)} is not a Python function: wrap it in a `def`")
    if code.co_flags & IS_GENERATOR:
        raise TypeError(
            f"{describe_function(function)} yields: a handler returns one result, and reports with `ctx.progress`"
        )
    taken = code.co_argcount - bound
    may_take = range(3 + len(target.__defaults__ or ()))
    required_keywords = code.co_kwonlyargcount - len(target.__kwdefaults__ or {})
    if taken not in may_take or required_keywords or code.co_flags & HAS_STAR_ARGUMENTS:
        raise TypeError(f"{describe_function(function)} must take `()`, `(params)` or `(params, ctx)`")
    arity = min(taken, 2)
    annotation: Any = Any
    if arity:
        annotation = target.__annotations__.get(code.co_varnames[bound], Any)
        if isinstance(annotation, str):
            annotation = resolve_annotation(annotation, target, function)
    if descriptor is not None:
        annotation = resolve_params_type(function, annotation, descriptor)
    return arity, annotation, bool(code.co_flags & IS_ASYNC)


def resolve_params_type(function: Callable[..., Any], annotation: Any, descriptor: Descriptor) -> Any:
    """Returns the params type of a descriptor. The handler's annotation must repeat it or be absent."""
    params = unwrap_type(descriptor.params)
    stated = None if annotation is NoneType else annotation
    if stated is not Any and stated is not object and stated != params:
        taken = "no params" if params is None else f"params of type `{format_type(params)}`"
        raise TypeError(
            f"{describe_function(function)} takes `{format_type(stated)}`, but {descriptor.name!r} has {taken}"
        )
    return descriptor.params


def unwrap_callable(function: Any) -> tuple[Any, int]:
    """Returns the function behind a method or an object with a call method, and how many arguments are bound."""
    if hasattr(function, "__func__"):  # first, as a method shows the `__code__` of its function
        return function.__func__, int(hasattr(function, "__self__"))  # a static method binds nothing
    if hasattr(function, "__code__"):
        return function, 0
    return (function.__class__.__call__, 1) if callable(function) else (None, 0)


def resolve_annotation(annotation: str, target: Any, function: Callable[..., Any]) -> Any:
    """Resolves one postponed annotation. Others of the function may name imports for type checkers only."""
    named = target.__globals__.get(annotation, vars(builtins).get(annotation))
    if isinstance(named, type):  # get_type_hints takes fifty times as long
        return named
    try:
        alone: Any = SimpleNamespace(__annotations__={"params": annotation})
        return get_type_hints(alone, target.__globals__, include_extras=True)["params"]
    except NameError as error:
        problem = f"the annotation `{annotation}` of {describe_function(function)} names nothing in its module: {error}"
        raise TypeError(problem) from error


def describe_function(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)

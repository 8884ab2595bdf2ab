"""The decorators by which a class says what its extension offers, and what they write down.

A decorator looks at the function once, where it is defined, and says in one sentence what is wrong with it; it records,
and the function stays what it was. What all functions of a class come to together is checked when the class is made.
Types of parameters are not looked at here: they may name what the module defines further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from msgspec import Struct

from becket.errors import Unencodable
from becket.methods.descriptors import Method, Notification, check_method_name
from becket.methods.registry import IS_ASYNC, YIELDS, describe
from becket.rpc.json_values import encode_json

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Protocol

    from becket.contract.hooks import HookEvent, HookKind, HookResult
    from becket.contract.providers import Model, ProviderRequest, ProviderResult
    from becket.extension.outputs import BlockingCommandOutput, BlockingProviderStream, CommandOutput, ProviderStream

__all__ = [
    "Declared",
    "DeclaredCommand",
    "DeclaredHook",
    "DeclaredMethod",
    "DeclaredProvider",
    "DeclaredTool",
    "check_overridden",
    "collect_declared",
    "command",
    "handles",
    "hook",
    "is_async",
    "provider",
    "tool",
    "unwrapped",
]

F = TypeVar("F", bound=Callable[..., Any])
Json = Mapping[str, Any]

RECORD = "__becket_declared__"
TAKES_ANY_NUMBER = 0x04  # CO_VARARGS
TAKES_ANY_NAMES = TAKES_ANY_NUMBER | 0x08  # and CO_VARKEYWORDS
PLAIN_PREFIX = "Blocking"
OWN_PREFIX = "$/"
SERVED = {
    "initialize": "write `on_start`",
    "shutdown": "write `on_stop`",
    "tool.call": "use `@tool`",
    "provider.complete": "use `@provider`",
    "provider.stream": "use `@provider`",
    "command.invoke": "use `@command`",
    "hook.handle": "use `@hook`",
    "info.get": "write `info`",
    "sidecar.spawn_args": "write `sidecar_args`",
    "settings.editor.open": "write `on_editor_open`",
    "settings.editor.key": "write `on_editor_key`",
    "settings.editor.commit": "write `on_editor_commit`",
    "config.changed": "use `self.host.config.on_change`",
}  # what every extension answers by itself, and what its author does instead


# -- what is written down


class DeclaredTool(Struct, frozen=True, kw_only=True, eq=False):
    """A tool: the JSON Schema of its input comes from the signature unless it is given."""

    name: str
    description: str
    input_schema: Any = None
    read_only: bool = False


class DeclaredCommand(Struct, frozen=True, kw_only=True, eq=False):
    """A command, and how many of `(args, out)` its function takes."""

    name: str
    arity: int


class DeclaredProvider(Struct, frozen=True, kw_only=True, eq=False):
    """A provider of models, and how many of `(request, out)` its function takes."""

    id: str
    models: tuple[Any, ...]
    display_name: str
    description: str
    config_schema: Any
    arity: int


class DeclaredHook(Struct, frozen=True, kw_only=True, eq=False):
    """A hook, and which of its events are wanted."""

    kind: Any
    match: Any


class DeclaredMethod(Struct, frozen=True, kw_only=True, eq=False):
    """A method or notification of the author's own."""

    method: Any


What = DeclaredTool | DeclaredCommand | DeclaredProvider | DeclaredHook | DeclaredMethod


class Declared(Struct, frozen=True, eq=False):
    """One thing that a class declares: under which attribute its function is found, and how that is run."""

    attribute: str
    what: What
    is_async: bool
    inline: bool


# -- decorators


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    description: str | None = None,
    /,
    *,
    name: str | None = None,
    input_schema: Json | None = None,
    read_only: bool = False,
    inline: bool = False,
) -> Callable[[F], F]: ...
def tool(
    description: Any = None,
    /,
    *,
    name: str | None = None,
    input_schema: Json | None = None,
    read_only: bool = False,
    inline: bool = False,
) -> Any:
    """Declares a tool: `@tool("Counts the notes.")`, or `@tool` where the docstring says it.

    The names, types and defaults of the parameters are its input; `Args:` in the docstring describes them. A single
    parameter that is a class of yours is the whole input. With `read_only` you say that it changes nothing outside of
    its process: hosts may show that, and `becket check` calls it. A plain `def` runs in a worker, unless it is `inline`
    and thereby promises to return within 50 ms.

    Raises:
        TypeError: it has no description, or parameters that have no name, or what is given is of another type.
    """
    if name is not None:
        check_tool_name(name)
    given = copy_of_schema(input_schema, "input_schema")

    def declare(function: F) -> F:
        check_function(function, "tool", inline=inline)
        check_parameters_have_names(function)
        said = text if text is not None else summary_of(function)
        if not said.strip():
            raise TypeError(f'{describe(function)} needs a description: `@tool("What it does.")`, or a docstring')
        return record(
            function,
            DeclaredTool(name=name or function.__name__, description=said, input_schema=given, read_only=read_only),
            inline=inline,
        )

    if description is None or isinstance(description, str):
        text: str | None = description
        return declare
    text = None
    return declare(description)


def command(name: str, /) -> Commands:
    """Declares a command. Its function takes `(self)`, `(self, args)` or `(self, args, out)`, and may return a result.

    `out` is a `CommandOutput` in an `async def`, a `BlockingCommandOutput` in a plain `def`, which runs in a worker.

    Raises:
        TypeError: the signature is another one.
    """
    check_named(name, "command")

    def declare(function: Any) -> Any:
        check_function(function, "command")
        arity = check_arity(function, ("self", "args", "out"), least=1) - 1
        if arity == 2:
            check_output(function, "CommandOutput")
        return record(function, DeclaredCommand(name=name, arity=arity))

    return declare


def provider(
    id: str,
    /,
    *,
    models: Sequence[Model],
    display_name: str | None = None,
    description: str | None = None,
    config_schema: Json | None = None,
) -> Providers:
    """Declares a provider of models. Its function takes `(self, request)` or `(self, request, out)`.

    It answers both ways of asking: what it puts out is sent where the host wants a stream, and is nobody's otherwise;
    what it returns is the whole answer. `out` is a `ProviderStream` in an `async def`, a `BlockingProviderStream` in a
    plain `def`, which runs in a worker.

    Raises:
        TypeError: the signature is another one, or what is given is of another type.
    """
    check_named(id, "provider")
    offered = check_models(id, models)
    settings = copy_of_schema(config_schema, "config_schema")

    def declare(function: Any) -> Any:
        check_function(function, "provider")
        arity = check_arity(function, ("self", "request", "out"), least=2) - 1
        if arity == 2:
            check_output(function, "ProviderStream")
        shown = display_name or id
        return record(
            function,
            DeclaredProvider(
                id=id,
                models=offered,
                display_name=shown,
                description=description or summary_of(function) or f"Models of {shown}.",
                config_schema=settings,
                arity=arity,
            ),
        )

    return declare


def hook(
    kind: HookKind | HookName,
    /,
    *,
    tool: str | None = None,
    input_contains: str | None = None,
    input_equals: Any = None,
    inline: bool = False,
) -> Hooks:
    """Declares what the extension wants to be asked or told: `@hook("before_tool_call", tool="bash")`.

    Its function takes `(self, event)` and returns one of the results that the kind allows; None is `Continue`. Of
    several hooks that fit an event the first answer that is not `Continue` counts, and what they inject is joined.

    Raises:
        TypeError: there is no such hook, it takes no tool filter, or the signature is another one.
    """
    from becket.contract.hooks import HookKind, HookMatch, find_hook_problem

    if not isinstance(kind, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError('@hook needs the kind of event: `@hook("before_tool_call")`')
    match = HookMatch(tool, input_contains, input_equals)
    problem = find_hook_problem(kind, match)
    if problem is not None:
        raise TypeError(problem)

    def declare(function: Any) -> Any:
        check_function(function, "hook", inline=inline)
        check_arity(function, ("self", "event"), least=2)
        return record(function, DeclaredHook(kind=HookKind(kind), match=match), inline=inline)

    return declare


@overload
def handles(method: str, /, *, inline: bool = False) -> Callable[[F], F]: ...
@overload
def handles(method: Method[P, R], /, *, inline: bool = False) -> MethodHandler[P, R]: ...
@overload
def handles(method: Notification[P], /, *, inline: bool = False) -> NotificationHandler[P]: ...
def handles(method: Any, /, *, inline: bool = False) -> Any:
    """Declares the handler of a method of your own, by name or by its descriptor; of a descriptor also a notification.

    Its function takes `(self)`, `(self, params)` or `(self, params, ctx)`; the params are decoded strictly, to what
    their annotation or the descriptor says. `ctx` is a `Context` in an `async def`, a `BlockingContext` in a plain
    `def`, which runs in a worker, unless it is `inline`.

    Raises:
        TypeError: the signature is another one, or every extension serves this method by itself.
        ValueError: the name is reserved.
    """
    if not isinstance(method, Method | Notification):
        check_named(method, "handles")
        check_method_name(method)
    check_own(method if isinstance(method, str) else method.name)

    def declare(function: F) -> F:
        check_function(function, "handles", inline=inline)
        if check_arity(function, ("self", "params", "ctx"), least=1) == 3:
            check_output(function, "Context")
        return record(function, DeclaredMethod(method=method), inline=inline)

    return declare


# -- looking at a function


def check_named(name: object, decorator: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f'@{decorator} needs a name: `@{decorator}("a name")`')


def check_tool_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f"the `name` of a tool is a text that is not empty, and not {name!r}")


def check_own(method: str) -> None:
    if method in SERVED:
        raise TypeError(f"@handles is for methods of your own, and {method!r} is the contract's: {SERVED[method]}")
    if method.startswith(OWN_PREFIX):
        raise TypeError(f"@handles is for methods of your own, and {method!r} is none: `{OWN_PREFIX}*` is the link's")


def check_models(provider: str, models: Any) -> tuple[Any, ...]:
    from becket.contract.providers import Model

    if not hasattr(models, "__iter__"):
        raise TypeError(f"the `models` of the provider {provider!r} are a list of `Model`, and not {models!r}")
    offered = tuple(models)
    for model in offered:
        if not isinstance(model, Model):
            raise TypeError(f"the `models` of the provider {provider!r} are each a `Model`, and not {model!r}")
    return offered


def copy_of_schema(given: Any, what: str) -> dict[str, Any] | None:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"`{what}` is a JSON Schema, a mapping, and not {given!r}")
    if given is None:
        return None
    schema: dict[str, Any] = {**given}
    try:
        encode_json(schema)
    except Unencodable as error:
        raise TypeError(f"`{what}` is a JSON Schema, and has no JSON: {error}") from error
    return schema


def is_async(function: Any) -> bool:
    """Returns whether a function, or the function behind a method, is `async def`."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and bool(code.co_flags & IS_ASYNC)


def unwrapped(function: Any) -> Any:
    """Returns the function that was written, behind what decorators have put around it: its signature is meant."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def check_function(function: Any, decorator: str, *, inline: bool = False) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(f"@{decorator} stands right on a `def` of the class, and {describe(function)} is none")
    if code.co_flags & YIELDS:
        raise TypeError(f"{describe(function)} yields: it returns one result, and puts out the rest with its `out`")
    check_is_awaited(function)
    if inline and is_async(function):
        raise TypeError(f"{describe(function)} is `async def`: only a plain `def` can be inline")


def check_is_awaited(function: Any) -> None:
    if is_async(unwrapped(function)) and not is_async(function):
        raise TypeError(
            f"{describe(function)} is `async def` inside a plain `def`, where nothing awaits it: "
            "write the function that its decorator returns as `async def`"
        )


def check_overridden(function: Any, names: tuple[str, ...]) -> None:
    """Raises TypeError for a function of the author's that cannot be called with these arguments."""
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    has_required_keywords = code.co_kwonlyargcount > len(function.__kwdefaults__ or {})
    takes_all = code.co_argcount >= len(names) or code.co_flags & TAKES_ANY_NUMBER
    if required > len(names) or has_required_keywords or not takes_all:
        raise TypeError(f"{describe(function)} must take `({', '.join(names)})`")
    if code.co_flags & YIELDS:
        raise TypeError(f"{describe(function)} yields: it is called once, and returns")
    check_is_awaited(function)


def check_parameters_have_names(function: Any) -> None:
    code = unwrapped(function).__code__
    if code.co_flags & TAKES_ANY_NAMES:
        raise TypeError(f"{describe(function)} takes `*args` or `**kwargs`: each input of a tool has a name")
    if not code.co_argcount:
        raise TypeError(f"{describe(function)} takes no `self`: declare methods of the class")
    if code.co_posonlyargcount > 1:
        raise TypeError(f"{describe(function)} has parameters by position only: each input of a tool has a name")


def check_arity(function: Any, names: tuple[str, ...], *, least: int) -> int:
    """Returns how many of these arguments the function takes; what has a default of its own is left to it."""
    code = unwrapped(function).__code__
    defaults = len(unwrapped(function).__defaults__ or ())
    has_required_keywords = code.co_kwonlyargcount > len(unwrapped(function).__kwdefaults__ or {})
    required = code.co_argcount - defaults
    if code.co_flags & TAKES_ANY_NAMES or has_required_keywords or code.co_argcount < least or required > len(names):
        forms = " or ".join(f"`({', '.join(names[:count])})`" for count in range(least, len(names) + 1))
        raise TypeError(f"{describe(function)} must take {forms}")
    return min(int(code.co_argcount), len(names))


def check_output(function: Any, kind: str) -> None:
    """Refuses a plain function that asks for what must be awaited, and the reverse: neither would work in silence."""
    target = unwrapped(function)
    annotation = target.__annotations__.get(target.__code__.co_varnames[2])
    stated = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    stated = stated.rpartition(".")[2]
    wanted = kind if is_async(function) else PLAIN_PREFIX + kind
    if stated in (kind, PLAIN_PREFIX + kind) and stated != wanted:
        form = "`async def`" if is_async(function) else "a plain `def`"
        raise TypeError(f"{describe(function)} is {form}: it gets a `{wanted}`, not a `{stated}`")


def summary_of(function: Any) -> str:
    """Returns the first paragraph of a docstring, in one line. A section ends it, as a blank line does."""
    words: list[str] = []
    for line in (unwrapped(function).__doc__ or "").strip().splitlines():
        if not line.strip() or line.strip().lower() in SECTIONS:
            break
        words += line.split()
    return " ".join(words)


OF_PARAMETERS: Final = ("args:", "arguments:", "parameters:")
SECTIONS: Final = (*OF_PARAMETERS, "example:", "examples:", "raises:", "returns:", "yields:")


def record(function: F, what: What, *, inline: bool = False) -> F:
    function.__dict__[RECORD] = (*function.__dict__.get(RECORD, ()), (what, inline))
    return function


# -- what a class declares


def collect_declared(owner: type) -> tuple[Declared, ...]:
    """Returns all that a class and its bases declare, in the order of their definition.

    Raises:
        TypeError: two functions declare the same name.
    """
    found: dict[str, list[Declared]] = {}
    for kind in reversed(owner.__mro__):
        for attribute, value in vars(kind).items():
            found.pop(attribute, None)  # who defines it again declares it again, or does not offer it any more
            records = getattr(getattr(value, "__func__", value), "__dict__", {}).get(RECORD, ())
            if records and not hasattr(value, "__code__"):
                raise TypeError(f"{owner.__name__}.{attribute} is declared and is no method: it has no `self`")
            if records:
                found[attribute] = [Declared(attribute, what, is_async(value), inline) for what, inline in records]
    declared = tuple(each for several in found.values() for each in several)
    check_names_are_unique(owner, declared)
    return declared


def check_names_are_unique(owner: type, declared: Sequence[Declared]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for each in declared:
        for name in names_of(each.what):
            if name in seen:
                (what, text), other = name, seen[name]
                where = f"`{other}` and `{each.attribute}`" if other != each.attribute else f"both on `{other}`"
                raise TypeError(f"{owner.__name__} declares the {what} {text!r} twice: {where}")
            seen[name] = each.attribute


def names_of(what: What) -> Iterator[tuple[str, str]]:
    match what:
        case DeclaredTool():
            yield "tool", what.name
        case DeclaredCommand():
            yield "command", what.name
        case DeclaredProvider():
            yield "provider", what.id
        case DeclaredMethod():
            yield "method", what.method if isinstance(what.method, str) else what.method.name
        case DeclaredHook():
            pass  # an event may be of interest to several


# -- for type checkers

HookName = Literal[
    "before_tool_call",
    "after_tool_call",
    "before_message",
    "on_message_complete",
    "on_compaction",
    "on_session_start",
    "on_session_end",
]
P = TypeVar("P")
R = TypeVar("R")

if TYPE_CHECKING:
    S = TypeVar("S")
    X = TypeVar("X")
    Later = Coroutine[Any, Any, X]
    Args = list[str]

    class Commands(Protocol):
        """Takes the function of a command and returns it."""

        @overload
        def __call__(
            self, function: Callable[[S, Args, CommandOutput], Later[X]], /
        ) -> Callable[[S, Args, CommandOutput], Later[X]]: ...
        @overload
        def __call__(
            self, function: Callable[[S, Args, BlockingCommandOutput], X], /
        ) -> Callable[[S, Args, BlockingCommandOutput], X]: ...
        @overload
        def __call__(self, function: Callable[[S, Args], X], /) -> Callable[[S, Args], X]: ...
        @overload
        def __call__(self, function: Callable[[S], X], /) -> Callable[[S], X]: ...

    class Providers(Protocol):
        """Takes the function of a provider and returns it."""

        @overload
        def __call__(
            self, function: Callable[[S, ProviderRequest, ProviderStream], Later[ProviderResult]], /
        ) -> Callable[[S, ProviderRequest, ProviderStream], Later[ProviderResult]]: ...
        @overload
        def __call__(
            self, function: Callable[[S, ProviderRequest, BlockingProviderStream], ProviderResult], /
        ) -> Callable[[S, ProviderRequest, BlockingProviderStream], ProviderResult]: ...
        @overload
        def __call__(
            self, function: Callable[[S, ProviderRequest], Later[ProviderResult]], /
        ) -> Callable[[S, ProviderRequest], Later[ProviderResult]]: ...
        @overload
        def __call__(
            self, function: Callable[[S, ProviderRequest], ProviderResult], /
        ) -> Callable[[S, ProviderRequest], ProviderResult]: ...

    class Hooks(Protocol):
        """Takes the function of a hook and returns it."""

        @overload
        def __call__(
            self, function: Callable[[S, HookEvent], Later[HookResult | None]], /
        ) -> Callable[[S, HookEvent], Later[HookResult | None]]: ...
        @overload
        def __call__(
            self, function: Callable[[S, HookEvent], HookResult | None], /
        ) -> Callable[[S, HookEvent], HookResult | None]: ...

    class MethodHandler(Protocol[P, R]):
        """Takes the function of a method of the author's own and returns it."""

        @overload
        def __call__(self, function: Callable[[S, P, Any], Later[R]], /) -> Callable[[S, P, Any], Later[R]]: ...
        @overload
        def __call__(self, function: Callable[[S, P, Any], R], /) -> Callable[[S, P, Any], R]: ...
        @overload
        def __call__(self, function: Callable[[S, P], Later[R]], /) -> Callable[[S, P], Later[R]]: ...
        @overload
        def __call__(self, function: Callable[[S, P], R], /) -> Callable[[S, P], R]: ...
        @overload
        def __call__(self, function: Callable[[S], Later[R]], /) -> Callable[[S], Later[R]]: ...
        @overload
        def __call__(self, function: Callable[[S], R], /) -> Callable[[S], R]: ...

    class NotificationHandler(Protocol[P]):
        """Takes the function of a notification of the author's own and returns it."""

        @overload
        def __call__(self, function: Callable[[S, P, Any], X], /) -> Callable[[S, P, Any], X]: ...
        @overload
        def __call__(self, function: Callable[[S, P], X], /) -> Callable[[S, P], X]: ...
        @overload
        def __call__(self, function: Callable[[S], X], /) -> Callable[[S], X]: ...

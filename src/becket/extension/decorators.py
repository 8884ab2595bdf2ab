"""Provides @tool, @command, @provider, @hook and @handles, and collects what a class declares.

A decorator inspects the function once, where it is defined, and raises with one sentence if it does not fit; it leaves
the function unchanged. The declarations of a class are checked together when the class is created. Annotations are not
resolved here: they may name classes that the module defines later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from msgspec import Struct

from becket.errors import Unencodable
from becket.jsonrpc.json_values import encode_json
from becket.methods.descriptors import Method, Notification, check_method_name
from becket.methods.registry import IS_ASYNC, IS_GENERATOR, describe_function

if TYPE_CHECKING:
    from becket.contract.hooks import HookKind
    from becket.contract.providers import Model
    from becket.extension.decorator_types import (
        CommandDecorator,
        HookDecorator,
        HookName,
        MethodDecorator,
        NotificationDecorator,
        ProviderDecorator,
    )

__all__ = [
    "Declaration",
    "DeclaredCommand",
    "DeclaredHook",
    "DeclaredMethod",
    "DeclaredProvider",
    "DeclaredTool",
    "check_override_signature",
    "collect_declarations",
    "command",
    "handles",
    "hook",
    "is_async_def",
    "provider",
    "tool",
    "unwrap",
]

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")
R = TypeVar("R")
JsonSchema = Mapping[str, Any]

DECLARATIONS_ATTRIBUTE = "__becket_declared__"
CO_VARARGS = 0x04  # CO_VARARGS
CO_VARIADIC = CO_VARARGS | 0x08  # and CO_VARKEYWORDS
BLOCKING_PREFIX = "Blocking"
RESERVED_PREFIX = "$/"
RESERVED_METHODS = {
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
}  # methods of the contract, and what authors use for them


# -- declarations


class DeclaredTool(Struct, frozen=True, kw_only=True, eq=False):
    """A tool. The JSON Schema of its input comes from the signature unless it is given."""

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
    """A hook, and which events it matches."""

    kind: Any
    match: Any


class DeclaredMethod(Struct, frozen=True, kw_only=True, eq=False):
    """A method or notification that the author defines."""

    method: Any


DeclaredItem = DeclaredTool | DeclaredCommand | DeclaredProvider | DeclaredHook | DeclaredMethod


class Declaration(Struct, frozen=True, eq=False):
    """One declaration of a class: the attribute of its function, and how it is run."""

    attribute: str
    item: DeclaredItem
    is_async: bool
    is_inline: bool


# -- decorators


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    description: str | None = None,
    /,
    *,
    name: str | None = None,
    input_schema: JsonSchema | None = None,
    read_only: bool = False,
    inline: bool = False,
) -> Callable[[F], F]: ...
def tool(
    description: Any = None,
    /,
    *,
    name: str | None = None,
    input_schema: JsonSchema | None = None,
    read_only: bool = False,
    inline: bool = False,
) -> Any:
    """Declares a tool: `@tool("Counts the notes.")`, or `@tool` if the docstring describes it.

    The names, types and defaults of the parameters are its input; `Args:` in the docstring describes them. A single
    parameter that is a class of yours is the whole input. With `read_only` it changes nothing outside of its process:
    hosts may show that, and `becket check` calls it. A plain `def` runs in a worker, unless it is `inline` and thereby
    promises to return within 50 ms.

    Raises:
        TypeError: it has no description, a parameter without a name, or an argument of the wrong type.
    """
    if name is not None:
        check_tool_name(name)
    schema = copy_schema(input_schema, "input_schema")

    def declare(function: F) -> F:
        check_function(function, "tool", inline=inline)
        check_named_parameters(function)
        summary = text if text is not None else docstring_summary(function)
        if not summary.strip():
            raise TypeError(
                f'{describe_function(function)} needs a description: `@tool("What it does.")`, or a docstring'
            )
        return add_declaration(
            function,
            DeclaredTool(name=name or function.__name__, description=summary, input_schema=schema, read_only=read_only),
            inline=inline,
        )

    if description is None or isinstance(description, str):
        text: str | None = description
        return declare
    text = None
    return declare(description)


def command(name: str, /) -> CommandDecorator:
    """Declares a command. Its function takes `(self)`, `(self, args)` or `(self, args, out)`, and may return a result.

    `out` is a `CommandOutput` in an `async def`, a `BlockingCommandOutput` in a plain `def`, which runs in a worker.

    Raises:
        TypeError: the signature does not fit.
    """
    check_name(name, "command")

    def declare(function: Any) -> Any:
        check_function(function, "command")
        arity = check_arity(function, ("self", "args", "out"), least=1) - 1
        if arity == 2:
            check_output_annotation(function, "CommandOutput")
        return add_declaration(function, DeclaredCommand(name=name, arity=arity))

    return declare


def provider(
    id: str,
    /,
    *,
    models: Sequence[Model],
    display_name: str | None = None,
    description: str | None = None,
    config_schema: JsonSchema | None = None,
) -> ProviderDecorator:
    """Declares a provider of models. Its function takes `(self, request)` or `(self, request, out)`.

    It serves `provider.complete` and `provider.stream`: events are sent only for the latter, and the return value is
    the complete result. `out` is a `ProviderStream` in an `async def`, a `BlockingProviderStream` in a plain `def`,
    which runs in a worker.

    Raises:
        TypeError: the signature or an argument does not fit.
    """
    check_name(id, "provider")
    offered = check_models(id, models)
    settings = copy_schema(config_schema, "config_schema")

    def declare(function: Any) -> Any:
        check_function(function, "provider")
        arity = check_arity(function, ("self", "request", "out"), least=2) - 1
        if arity == 2:
            check_output_annotation(function, "ProviderStream")
        shown = display_name or id
        return add_declaration(
            function,
            DeclaredProvider(
                id=id,
                models=offered,
                display_name=shown,
                description=description or docstring_summary(function) or f"Models of {shown}.",
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
) -> HookDecorator:
    """Declares a hook: `@hook("before_tool_call", tool="bash")`.

    Its function takes `(self, event)` and returns one of the results that the kind allows; None is `Continue`. Of
    several hooks that match an event the first result other than `Continue` counts; injected texts are joined.

    Raises:
        TypeError: there is no such hook, it takes no tool filter, or the signature does not fit.
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
        return add_declaration(function, DeclaredHook(kind=HookKind(kind), match=match), inline=inline)

    return declare


@overload
def handles(method: str, /, *, inline: bool = False) -> Callable[[F], F]: ...
@overload
def handles(method: Method[P, R], /, *, inline: bool = False) -> MethodDecorator[P, R]: ...
@overload
def handles(method: Notification[P], /, *, inline: bool = False) -> NotificationDecorator[P]: ...
def handles(method: Any, /, *, inline: bool = False) -> Any:
    """Declares the handler of a method that you define, by name or descriptor, or of a notification by its descriptor.

    Its function takes `(self)`, `(self, params)` or `(self, params, ctx)`; the params are decoded strictly to their
    annotation or to the type of the descriptor. `ctx` is a `Context` in an `async def`, a `BlockingContext` in a plain
    `def`, which runs in a worker, unless it is `inline`.

    Raises:
        TypeError: the signature does not fit, or the method is one of the contract.
        ValueError: the name is reserved.
    """
    if not isinstance(method, Method | Notification):
        check_name(method, "handles")
        check_method_name(method)
    check_not_reserved(method if isinstance(method, str) else method.name)

    def declare(function: F) -> F:
        check_function(function, "handles", inline=inline)
        if check_arity(function, ("self", "params", "ctx"), least=1) == 3:
            check_output_annotation(function, "Context")
        return add_declaration(function, DeclaredMethod(method=method), inline=inline)

    return declare


# -- checks of a function


def check_name(name: object, decorator: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f'@{decorator} needs a name: `@{decorator}("a name")`')


def check_tool_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f"the `name` of a tool must be a non-empty str, got {name!r}")


def check_not_reserved(method: str) -> None:
    if method in RESERVED_METHODS:
        raise TypeError(
            f"@handles is for methods of your own, and {method!r} is the contract's: {RESERVED_METHODS[method]}"
        )
    if method.startswith(RESERVED_PREFIX):
        raise TypeError(f"@handles is for methods of your own, and {method!r} is not: `{RESERVED_PREFIX}*` is reserved")


def check_models(provider: str, models: Any) -> tuple[Any, ...]:
    from becket.contract.providers import Model

    if not hasattr(models, "__iter__"):
        raise TypeError(f"the `models` of the provider {provider!r} must be a list of `Model`, got {models!r}")
    offered = tuple(models)
    for model in offered:
        if not isinstance(model, Model):
            raise TypeError(f"the `models` of the provider {provider!r} must be a list of `Model`, got {model!r} in it")
    return offered


def copy_schema(value: Any, what: str) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"`{what}` must be a JSON Schema, a mapping, got {value!r}")
    if value is None:
        return None
    schema: dict[str, Any] = {**value}
    try:
        encode_json(schema)
    except Unencodable as error:
        raise TypeError(f"`{what}` must be a JSON Schema, and cannot be encoded: {error}") from error
    return schema


def is_async_def(function: Any) -> bool:
    """Returns whether a function, or the function behind a method, is `async def`."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and bool(code.co_flags & IS_ASYNC)


def unwrap(function: Any) -> Any:
    """Returns the function below its decorators, whose signature counts."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def check_function(function: Any, decorator: str, *, inline: bool = False) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(f"@{decorator} must decorate a `def` of the class directly, got {describe_function(function)}")
    if code.co_flags & IS_GENERATOR:
        raise TypeError(
            f"{describe_function(function)} yields: it must return one result, and write output to its `out`"
        )
    check_wrapper_is_async(function)
    if inline and is_async_def(function):
        raise TypeError(f"{describe_function(function)} is `async def`: only a plain `def` can be inline")


def check_wrapper_is_async(function: Any) -> None:
    if is_async_def(unwrap(function)) and not is_async_def(function):
        raise TypeError(
            f"{describe_function(function)} is `async def` inside a plain `def`, where nothing awaits it: "
            "write the function that its decorator returns as `async def`"
        )


def check_override_signature(function: Any, names: tuple[str, ...]) -> None:
    """Raises TypeError for an override that cannot be called with these arguments."""
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    has_required_keywords = code.co_kwonlyargcount > len(function.__kwdefaults__ or {})
    takes_all = code.co_argcount >= len(names) or code.co_flags & CO_VARARGS
    if required > len(names) or has_required_keywords or not takes_all:
        raise TypeError(f"{describe_function(function)} must take `({', '.join(names)})`")
    if code.co_flags & IS_GENERATOR:
        raise TypeError(f"{describe_function(function)} yields: it is called once, and returns")
    check_wrapper_is_async(function)


def check_named_parameters(function: Any) -> None:
    code = unwrap(function).__code__
    if code.co_flags & CO_VARIADIC:
        raise TypeError(f"{describe_function(function)} takes `*args` or `**kwargs`: each input of a tool has a name")
    if not code.co_argcount:
        raise TypeError(f"{describe_function(function)} takes no `self`: declare methods of the class")
    if code.co_posonlyargcount > 1:
        raise TypeError(
            f"{describe_function(function)} has parameters by position only: each input of a tool has a name"
        )


def check_arity(function: Any, names: tuple[str, ...], *, least: int) -> int:
    """Returns how many of these arguments the function takes; further parameters must have defaults."""
    code = unwrap(function).__code__
    defaults = len(unwrap(function).__defaults__ or ())
    has_required_keywords = code.co_kwonlyargcount > len(unwrap(function).__kwdefaults__ or {})
    required = code.co_argcount - defaults
    if code.co_flags & CO_VARIADIC or has_required_keywords or code.co_argcount < least or required > len(names):
        forms = " or ".join(f"`({', '.join(names[:count])})`" for count in range(least, len(names) + 1))
        raise TypeError(f"{describe_function(function)} must take {forms}")
    return min(int(code.co_argcount), len(names))


def check_output_annotation(function: Any, kind: str) -> None:
    """Raises TypeError for a plain function with an output that must be awaited, and the reverse: neither would
    work."""
    target = unwrap(function)
    annotation = target.__annotations__.get(target.__code__.co_varnames[2])
    stated = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    stated = stated.rpartition(".")[2]
    wanted = kind if is_async_def(function) else BLOCKING_PREFIX + kind
    if stated in (kind, BLOCKING_PREFIX + kind) and stated != wanted:
        form = "`async def`" if is_async_def(function) else "a plain `def`"
        raise TypeError(f"{describe_function(function)} is {form}: it gets a `{wanted}`, not a `{stated}`")


def docstring_summary(function: Any) -> str:
    """Returns the first paragraph of a docstring, in one line. A section ends it, as a blank line does."""
    words: list[str] = []
    for line in (unwrap(function).__doc__ or "").strip().splitlines():
        if not line.strip() or line.strip().lower() in DOCSTRING_SECTIONS:
            break
        words += line.split()
    return " ".join(words)


PARAMETER_SECTIONS: Final = ("args:", "arguments:", "parameters:")
DOCSTRING_SECTIONS: Final = (*PARAMETER_SECTIONS, "example:", "examples:", "raises:", "returns:", "yields:")


def add_declaration(function: F, what: DeclaredItem, *, inline: bool = False) -> F:
    function.__dict__[DECLARATIONS_ATTRIBUTE] = (*function.__dict__.get(DECLARATIONS_ATTRIBUTE, ()), (what, inline))
    return function


# -- the declarations of a class


def collect_declarations(owner: type) -> tuple[Declaration, ...]:
    """Returns the declarations of a class and its bases, in the order of their definition.

    Raises:
        TypeError: two functions declare the same name.
    """
    found: dict[str, list[Declaration]] = {}
    for kind in reversed(owner.__mro__[:-1]):  # `object` declares nothing
        for attribute, value in vars(kind).items():
            found.pop(attribute, None)  # a redefinition must declare it again, or it is not offered any more
            records = getattr(getattr(value, "__func__", value), "__dict__", {}).get(DECLARATIONS_ATTRIBUTE, ())
            if records and not hasattr(value, "__code__"):
                raise TypeError(f"{owner.__name__}.{attribute} is declared and is not a method: it has no `self`")
            if records:
                is_async = is_async_def(value)
                found[attribute] = [Declaration(attribute, what, is_async, inline) for what, inline in records]
    declared = tuple(each for several in found.values() for each in several)
    check_unique_names(owner, declared)
    return declared


def check_unique_names(owner: type, declared: Sequence[Declaration]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for each in declared:
        for name in declared_names(each.item):
            if name in seen:
                (what, text), other = name, seen[name]
                where = f"`{other}` and `{each.attribute}`" if other != each.attribute else f"both on `{other}`"
                raise TypeError(f"{owner.__name__} declares the {what} {text!r} twice: {where}")
            seen[name] = each.attribute


def declared_names(what: DeclaredItem) -> Iterator[tuple[str, str]]:
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
            pass  # an event may have several hooks

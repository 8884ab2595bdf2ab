"""The declarations of a class: each mistake is reported in one sentence, where it was made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from becket import Context, ExtensionServer
from becket.blocking import BlockingContext
from becket.contract.catalogue import METHODS
from becket.contract.handshake import DeclaredCapability
from becket.contract.hooks import Continue, HookEvent, HookKind
from becket.contract.providers import Model, ProviderRequest, ProviderResult
from becket.extension import (
    BlockingCommandOutput,
    BlockingProviderStream,
    CommandOutput,
    ProviderStream,
    command,
    handles,
    hook,
    provider,
    tool,
)
from becket.extension.decorators import DeclaredCommand, DeclaredHook, DeclaredTool
from becket.methods.descriptors import Method, Notification

SMALL = Model("small")


def declared(kind: type[ExtensionServer]) -> list[Any]:
    return [each.item for each in kind.__becket__.declared]


# -- functions that cannot be declared


def takes_a_plain_name(self: Any, *args: str) -> None: ...
def takes_any_name(self: Any, **names: str) -> None: ...
def takes_no_self() -> None: ...
def takes_by_position(self: Any, text: str, /) -> None: ...
def takes_too_much(self: Any, a: Any, b: Any, c: Any) -> None: ...
def takes_nothing(self: Any) -> None: ...
def needs_a_keyword(self: Any, args: Any, *, depth: int) -> None: ...
def yields(self: Any) -> Any:
    yield 1


async def waits(self: Any) -> None: ...
async def yields_and_waits(self: Any) -> Any:
    yield 1


def plain_with_awaited_output(self: Any, args: list[str], out: CommandOutput) -> None: ...
async def waits_with_plain_output(self: Any, args: list[str], out: BlockingCommandOutput) -> None: ...
def plain_with_awaited_stream(self: Any, request: ProviderRequest, out: ProviderStream) -> Any: ...
async def waits_with_plain_stream(self: Any, request: ProviderRequest, out: BlockingProviderStream) -> Any: ...
def plain_with_awaited_context(self: Any, params: Any, ctx: Context) -> None: ...
async def waits_with_plain_context(self: Any, params: Any, ctx: BlockingContext) -> None: ...


@functools.wraps(waits)
def calls_and_does_not_wait(self: Any) -> Any:
    return waits(self)


WRONG: list[tuple[Callable[[Any], Any], Any, str]] = [
    (tool("Does."), takes_a_plain_name, "each input of a tool has a name"),
    (tool("Does."), takes_any_name, "each input of a tool has a name"),
    (tool("Does."), takes_no_self, "takes no `self`"),
    (tool("Does."), takes_by_position, "each input of a tool has a name"),
    (tool("Does."), yields, "yields"),
    (tool("Does."), yields_and_waits, "yields"),
    (tool("Does."), 5, "must decorate a `def`"),
    (tool("Does."), staticmethod(takes_nothing), "must decorate a `def`"),
    (tool("Does.", inline=True), waits, "only a plain `def` can be inline"),
    (tool("Does."), calls_and_does_not_wait, "where nothing awaits it"),
    (hook("on_session_end"), calls_and_does_not_wait, "where nothing awaits it"),
    (tool("  "), takes_nothing, "needs a description"),
    (tool, takes_nothing, "needs a description"),
    (tool(), takes_nothing, "needs a description"),
    (command("do"), takes_no_self, "must take `(self)` or `(self, args)` or `(self, args, out)`"),
    (command("do"), takes_too_much, "must take"),
    (command("do"), needs_a_keyword, "must take"),
    (command("do"), takes_a_plain_name, "must take"),
    (command("do"), plain_with_awaited_output, "gets a `BlockingCommandOutput`, not a `CommandOutput`"),
    (command("do"), waits_with_plain_output, "gets a `CommandOutput`, not a `BlockingCommandOutput`"),
    (provider("p", models=[SMALL]), takes_nothing, "must take `(self, request)` or `(self, request, out)`"),
    (provider("p", models=[SMALL]), plain_with_awaited_stream, "gets a `BlockingProviderStream`"),
    (provider("p", models=[SMALL]), waits_with_plain_stream, "gets a `ProviderStream`"),
    (hook("on_session_end"), takes_nothing, "must take `(self, event)`"),
    (hook("on_session_end", inline=True), waits, "only a plain `def` can be inline"),
    (handles("a/b"), takes_too_much, "must take `(self)` or `(self, params)` or `(self, params, ctx)`"),
    (handles("a/b"), plain_with_awaited_context, "gets a `BlockingContext`"),
    (handles("a/b"), waits_with_plain_context, "gets a `Context`"),
]


@pytest.mark.parametrize(("declare", "function", "reason"), WRONG)
def test_a_function_that_does_not_fit_is_refused_in_one_sentence(
    declare: Callable[[Any], Any], function: Any, reason: str
) -> None:
    with pytest.raises(TypeError) as refused:
        declare(function)

    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("decorator", [command, handles, functools.partial(provider, models=[SMALL])])
@pytest.mark.parametrize("name", ["", " ", takes_nothing])
def test_a_decorator_that_needs_a_name_raises_without_one(decorator: Any, name: Any) -> None:
    with pytest.raises(TypeError, match="needs a name"):
        decorator(name)


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda: tool("Does.", name=""), "the `name` of a tool must be a non-empty str"),
        (lambda: tool("Does.", name=5), "the `name` of a tool must be a non-empty str"),  # type: ignore[call-overload]
        (lambda: tool("Does.", input_schema=[1]), "`input_schema` must be a JSON Schema"),  # type: ignore[call-overload]
        (
            lambda: tool("Does.", input_schema={"default": float("inf")}),
            "`input_schema` must be a JSON Schema, and cannot be encoded",
        ),
        (lambda: provider("p", models=["small"]), "a list of `Model`, got 'small'"),  # type: ignore[list-item]
        (lambda: provider("p", models=SMALL), "a list of `Model`"),  # type: ignore[arg-type]
        (lambda: provider("p", models=[SMALL], config_schema=[1]), "`config_schema` must be a"),  # type: ignore[arg-type]
        (lambda: hook(takes_nothing), "@hook needs the kind of event"),  # type: ignore[arg-type]
    ],
)
def test_the_error_for_a_decorator_argument_of_another_type_names_it(declare: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason) as refused:
        declare()

    assert "\n" not in str(refused.value)


SERVED_BY_ITSELF = sorted({each.name for each in METHODS if each.direction == "to-extension"})


@pytest.mark.parametrize("name", [*SERVED_BY_ITSELF, "config.changed", "$/ping", "$/mine"])
def test_methods_that_every_extension_serves_cannot_be_handled(name: str) -> None:
    for method in (name, Method(name, None, None), Notification(name, None)):
        with pytest.raises(TypeError, match="for methods of your own") as refused:
            handles(method)
        assert repr(name) in str(refused.value)


def test_a_method_of_json_rpc_itself_cannot_be_handled() -> None:
    with pytest.raises(ValueError, match=r"rpc\.\*"):
        handles("rpc.discover")


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("on_full_moon", {}, "unknown hook"),
        ("before_message", {"tool": "bash"}, "does not allow a tool filter"),
    ],
)
def test_a_hook_that_no_host_has_is_refused(kind: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        hook(kind, **options)


# -- what is written down


def test_a_decorated_function_stays_what_it_was() -> None:
    def count(self: object) -> int:
        return 3

    assert tool("Counts.")(count) is count
    assert count(None) == 3


def test_a_tool_is_described_by_the_decorator_or_by_its_docstring() -> None:
    class Notes(ExtensionServer):
        @tool("Written here.")
        def first(self) -> None:
            """Not written here."""

        @tool
        def second(self) -> None:
            """Written in
            two lines.

            And more.
            """

        @tool(name="third-one")
        def third(self) -> None:
            """Has a name of its own."""

    assert [(it.name, it.description) for it in declared(Notes)] == [
        ("first", "Written here."),
        ("second", "Written in two lines."),
        ("third-one", "Has a name of its own."),
    ]


def test_one_function_may_be_several_things() -> None:
    class Notes(ExtensionServer):
        @hook("on_session_end")
        @hook("on_session_start")
        @tool("Tidies up.")
        def tidy(self, event: HookEvent) -> None: ...

    tidy, start, end = declared(Notes)

    assert (type(tidy), start.kind, end.kind) == (DeclaredTool, HookKind.ON_SESSION_START, HookKind.ON_SESSION_END)


def test_a_provider_without_a_description_gets_a_default_one() -> None:
    class Notes(ExtensionServer):
        @provider("local", models=[SMALL])
        def silent(self, request: ProviderRequest) -> ProviderResult:
            return ProviderResult.of_text("")

        @provider("other", models=[SMALL], display_name="Other", config_schema={"type": "object"})
        def described(self, request: ProviderRequest) -> ProviderResult:
            """Answers from a list."""
            return ProviderResult.of_text("")

    silent, described = declared(Notes)

    assert (silent.display_name, silent.description) == ("local", "Models of local.")
    assert (described.display_name, described.description, described.config_schema) == (
        "Other",
        "Answers from a list.",
        {"type": "object"},
    )


# -- what a class declares


class Base(ExtensionServer):
    @tool("Counts.")
    async def count(self) -> int:
        return 1

    @command("reindex")
    def reindex(self) -> None: ...


def test_a_class_inherits_what_its_bases_declare() -> None:
    class Derived(Base):
        @hook("on_session_end")
        def bye(self, event: HookEvent) -> None: ...

    assert [type(it) for it in declared(Derived)] == [DeclaredTool, DeclaredCommand, DeclaredHook]


def test_a_method_that_is_overridden_needs_its_own_decorator() -> None:
    class Plain(Base):
        @tool("Counts at once.")
        def count(self) -> int:  # type: ignore[override]
            return 2

    class Without(Base):
        def reindex(self) -> None: ...

    assert sorted(it.name for it in declared(Plain)) == ["count", "reindex"]
    assert [it.name for it in declared(Without)] == ["count"]
    assert (Plain.__becket__.is_blocking, Without.__becket__.is_blocking) == (True, False)


def test_mixins_need_not_be_extensions() -> None:
    class Greets:
        @tool("Greets.")
        def greet(self) -> str:
            return "hello"

    class Notes(Greets, ExtensionServer): ...

    assert [it.name for it in declared(Notes)] == ["greet"]


def test_only_methods_can_be_declared() -> None:
    with pytest.raises(TypeError, match="not a method"):

        class Notes(ExtensionServer):
            @staticmethod
            @tool("Counts.")
            def count(text: str) -> int:
                return len(text)


@pytest.mark.parametrize(
    ("decorate", "what"),
    [
        (tool("Does.", name="do"), "the tool 'do' twice"),
        (command("do"), "the command 'do' twice"),
        (handles("do"), "the method 'do' twice"),
        (handles(Method("do", None, None)), "the method 'do' twice"),
        (handles(Notification("do", None)), "the method 'do' twice"),
    ],
)
def test_a_name_is_declared_once(decorate: Any, what: str) -> None:
    with pytest.raises(TypeError, match=what):

        class Notes(ExtensionServer):
            @decorate
            def first(self) -> None: ...

            @decorate
            def second(self) -> None: ...


def test_a_name_is_declared_once_on_one_function() -> None:
    with pytest.raises(TypeError, match="the tool 'a' twice: both on `count`"):

        class Notes(ExtensionServer):
            @tool("Counts.", name="a")
            @tool("Counts again.", name="a")
            def count(self) -> None: ...


def test_a_provider_is_declared_once() -> None:
    with pytest.raises(TypeError, match="the provider 'p' twice"):

        class Notes(ExtensionServer):
            @provider("p", models=[SMALL])
            def first(self, request: ProviderRequest) -> ProviderResult:
                return ProviderResult.of_text("")

            @provider("p", models=[SMALL])
            def second(self, request: ProviderRequest) -> ProviderResult:
                return ProviderResult.of_text("")


@pytest.mark.parametrize(
    ("decorate", "reason"),
    [
        (tool("Does.", name="a:b"), "Extension 'notes' registered tool 'a:b' with invalid tool name"),
        (tool("Does.", name="x" * 65), "must be at most 64 chars"),
        (provider("Local", models=[SMALL]), "invalid provider id"),
        (provider("local", models=[]), "must declare at least one model"),
        (provider("local", models=[SMALL, SMALL]), "duplicate model id 'small'"),
    ],
)
def test_declarations_that_every_host_would_refuse_are_refused_when_the_class_is_made(
    decorate: Any, reason: str
) -> None:
    with pytest.raises(TypeError, match=reason):

        class Notes(ExtensionServer):
            id = "notes"

            @decorate
            def do(self, request: ProviderRequest) -> ProviderResult:
                return ProviderResult.of_text("")


@pytest.mark.parametrize("name", ["info", "config", "run", "host"])
def test_a_function_cannot_take_the_name_of_what_every_extension_has(name: str) -> None:
    def function(self: Any) -> None: ...

    with pytest.raises(TypeError, match=f'would hide .* name="{name}"'):
        type("Notes", (ExtensionServer,), {name: tool("Does.")(function)})


def test_a_capability_without_a_name_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="'name' must be non-empty"):

        class Notes(ExtensionServer):
            capabilities = (DeclaredCapability("ocr", " "),)


@pytest.mark.parametrize("capabilities", [[{"kind": "ocr", "name": "pages"}], ["ocr"], "ocr", 5])
def test_capabilities_of_another_type_are_refused_when_the_class_is_made(capabilities: Any) -> None:
    with pytest.raises(TypeError, match=r"Notes\.capabilities .* `DeclaredCapability`, got"):
        type("Notes", (ExtensionServer,), {"capabilities": capabilities})


@pytest.mark.parametrize("mode", ["strict", "ENFORCE", "", True, None])
def test_how_schemas_are_applied_is_a_mode(mode: Any) -> None:
    with pytest.raises(TypeError, match=rf"Notes\.schemas must be a `SchemaMode` or one of .* got {mode!r}"):
        type("Notes", (ExtensionServer,), {"schemas": mode})


async def wants_a_keyword(self: Any, *, why: str) -> None: ...
async def wants_one(self: Any, foo: Any) -> None: ...
async def wants_two(self: Any, foo: Any, bar: Any) -> None: ...


@pytest.mark.parametrize(
    ("name", "written", "reason"),
    [
        ("on_start", wants_one, "wants_one must take `\\(self\\)`"),
        ("on_start", wants_a_keyword, "must take `\\(self\\)`"),
        ("on_stop", takes_no_self, "must take `\\(self\\)`"),
        ("info", wants_one, "must take `\\(self\\)`"),
        ("on_editor_open", waits, "must take `\\(self, opened\\)`"),
        ("on_editor_key", wants_two, "must take `\\(self, pressed\\)`"),
        ("on_editor_commit", wants_two, "must take `\\(self, taken\\)`"),
        ("on_start", yields_and_waits, "yields"),
        ("on_start", calls_and_does_not_wait, "where nothing awaits it"),
        ("on_start", 5, "Notes.on_start must be a function, got 5"),
    ],
)
def test_optional_methods_of_the_author_are_called(name: str, written: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        type("Notes", (ExtensionServer,), {name: written})


@pytest.mark.parametrize("written", [wants_one, staticmethod(waits), lambda self, opened, more=1: None])
def test_any_compatible_signature_is_accepted(written: Any) -> None:
    made = type("Notes", (ExtensionServer,), {"on_editor_open": written})

    assert made.__becket__.overridden == {"on_editor_open"}


# -- plain or not


@pytest.mark.parametrize("overridden", ["on_start", "on_stop", "info", "sidecar_args", "on_editor_open"])
def test_one_coroutine_among_its_methods_makes_an_extension_need_a_loop(overridden: str) -> None:
    async def waits(self: Any, *_: Any) -> None: ...
    def plain(self: Any, *_: Any) -> None: ...

    assert not type("Notes", (ExtensionServer,), {overridden: waits}).__becket__.is_blocking
    assert type("Notes", (ExtensionServer,), {overridden: plain}).__becket__.is_blocking


def test_an_extension_with_a_coroutine_is_not_served_without_a_loop() -> None:
    class Notes(ExtensionServer):
        id = "notes"

        @hook("on_session_end")
        async def bye(self, event: HookEvent) -> Continue:
            return Continue()

    with pytest.raises(TypeError, match="needs an event loop"):
        Notes().blocking_over(None)  # type: ignore[arg-type]

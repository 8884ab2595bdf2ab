"""Builds the contract's handlers from what an extension declares.

Methods without a declaration have no handler, so the host gets "method not found". Every handler is a coroutine that
awaits only methods of the runtime; `register_handler` adapts it to the blocking runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from becket._text import truncate
from becket.contract.handshake import Capabilities, DeclaredCapability
from becket.contract.tools import TOOL_CALL, Tool, ToolCall
from becket.errors import InvalidParams
from becket.extension.decorators import (
    Declaration,
    DeclaredCommand,
    DeclaredHook,
    DeclaredMethod,
    DeclaredProvider,
    DeclaredTool,
    is_async_def,
)
from becket.extension.results import Output, read_tool_output
from becket.extension.runtime_blocking import UserFunction, run_synchronously
from becket.extension.tool_input.signature import ToolInput, read_tool_input
from becket.methods.descriptors import Method, Notification
from becket.methods.registry import Registry, read_signature

if TYPE_CHECKING:
    from becket.contract.commands import CommandInvoke
    from becket.contract.hooks import HookEvent, HookResult, HookSubscription
    from becket.contract.providers import Provider, ProviderRequest, ProviderResult
    from becket.contract.settings import EditorCommit, EditorKey, EditorOpen
    from becket.dialects.link_state import LinkState
    from becket.extension.runtime import Runtime
    from becket.extension.tool_input.validation import InputSchemaValidator

__all__ = ["ExtensionHandlers", "register_handler"]

AsyncHandler = Callable[[Any, Any], Coroutine[Any, Any, Any]]


class ServedTool(Struct, frozen=True, eq=False):
    """A declared tool with its function, input and output."""

    declared: DeclaredTool
    routine: UserFunction
    input: ToolInput
    output: Output | None


class ExtensionHandlers:
    """The handlers of an extension on one runtime. `check_ready` raises before the start and during shutdown."""

    def __init__(
        self,
        extension: Any,
        declared: tuple[Declaration, ...],
        overridden: frozenset[str],
        runtime: Runtime,
        check_ready: Callable[[], None],
    ) -> None:
        self.registry = Registry()
        self._extension = extension
        self._overridden = overridden
        self._runtime = runtime
        self._check_ready = check_ready
        self._tools: dict[str, ServedTool] = {}
        self._commands: dict[str, tuple[DeclaredCommand, UserFunction]] = {}
        self._providers: dict[str, tuple[DeclaredProvider, UserFunction]] = {}
        self._hooks: list[tuple[DeclaredHook, UserFunction]] = []
        self._custom_methods: set[str] = set()
        self._input_validator = create_input_validator(extension)
        for each in declared:
            self._add_declaration(each)
        self._register_contract()
        self._register_optional()

    # -- declarations

    def _add_declaration(self, each: Declaration) -> None:
        function = getattr(self._extension, each.attribute)
        routine = UserFunction(function, each.is_async, each.is_inline)
        match each.item:
            case DeclaredTool() as tool:
                described = read_tool_input(function.__func__, tool.input_schema)
                self._tools[tool.name] = ServedTool(tool, routine, described, read_tool_output(function.__func__))
            case DeclaredCommand() as command:
                self._commands[command.name] = command, routine
            case DeclaredProvider() as provider:
                self._providers[provider.id] = provider, routine
            case DeclaredHook() as hook:
                self._hooks.append((hook, routine))
            case DeclaredMethod() as method:
                self._register_custom_method(method.method, routine)

    def capabilities(self, declared: tuple[DeclaredCapability, ...]) -> Capabilities:
        """Returns the capabilities for the response to `initialize`."""
        tools = (
            Tool(
                tool.declared.name,
                tool.declared.description,
                tool.input.schema,
                tool.declared.read_only,
                None if tool.output is None else tool.output.schema,
            )
            for tool in self._tools.values()
        )
        providers = (describe_provider(provider) for provider, _ in self._providers.values())
        return Capabilities(tuple(tools), tuple(providers), declared)

    def subscriptions(self) -> tuple[HookSubscription, ...]:
        """Returns the hooks that are announced to the host, each once."""
        if not self._hooks:
            return ()
        from becket.contract.hooks import HookMatch, HookSubscription

        every = HookMatch()
        found: list[HookSubscription] = []
        for hook, _ in self._hooks:
            subscription = HookSubscription(hook.kind, None if hook.match == every else hook.match)
            if subscription not in found:  # `input_equals` may be of a kind that has no hash
                found.append(subscription)
        return tuple(found)

    def build_link_state(self, declared: Capabilities) -> LinkState:
        """Returns what the mapping of a dialect needs of the extension."""
        from becket.dialects.link_state import LinkState

        return LinkState(
            self._extension.id,
            declared,
            version=self._extension.version,
            commands=tuple((command.name, describe_command(routine)) for command, routine in self._commands.values()),
            hooks=tuple(dict.fromkeys(hook.kind for hook, _ in self._hooks)),
            own_methods=frozenset(self._custom_methods),
        )

    # -- registering

    def add(self, method: Method[Any, Any], serve: AsyncHandler, *, thread: bool = True) -> None:
        """Registers a handler; with `thread`, the blocking runtime calls it in a worker."""
        if thread:
            register_handler(self.registry, self._runtime, method, serve, thread=True)
        else:  # its functions are inline: it awaits nothing, and needs no task
            self.registry.handle(method)(lambda params, ctx: run_synchronously(serve, params, ctx))

    def _register_contract(self) -> None:
        if self._tools:
            self.add(
                TOOL_CALL, self._call_tool, thread=not all(tool.routine.is_inline for tool in self._tools.values())
            )
        if self._commands:
            from becket.contract.commands import COMMAND_INVOKE

            self.add(COMMAND_INVOKE, self._invoke_command)
        if self._providers:
            from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM

            self.add(PROVIDER_COMPLETE, self._complete)
            self.add(PROVIDER_STREAM, self._stream)
        if self._hooks:
            from becket.contract.hooks import HOOK_HANDLE

            self.add(HOOK_HANDLE, self._handle_hook, thread=not all(routine.is_inline for _, routine in self._hooks))

    def _register_optional(self) -> None:
        from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS

        self._add_overridable(INFO_GET, "info")
        self._add_overridable(SIDECAR_SPAWN_ARGS, "sidecar_args")
        if any(name.startswith("on_editor") for name in self._overridden):
            from becket.contract.settings import SETTINGS_EDITOR_COMMIT, SETTINGS_EDITOR_KEY, SETTINGS_EDITOR_OPEN

            self._add_overridable(SETTINGS_EDITOR_OPEN, "on_editor_open", self._encode_editor_result)
            self._add_overridable(SETTINGS_EDITOR_KEY, "on_editor_key", self._encode_editor_result)
            self._add_overridable(SETTINGS_EDITOR_COMMIT, "on_editor_commit", self._encode_commit_result)

    def _add_overridable(self, method: Method[Any, Any], attribute: str, encode: AsyncHandler | None = None) -> None:
        """Registers a method that authors may override; the default one runs inline."""
        function = getattr(self._extension, attribute)
        is_own = attribute in self._overridden
        routine = UserFunction(function, is_async_def(function), is_inline=not is_own)
        takes_params = method.params is not None

        async def serve(params: Any, _: Any) -> Any:
            self._check_ready()
            result = await self._runtime.run_function(routine, *((params,) if takes_params else ()))
            return result if encode is None else await encode(params, result)

        self.add(method, serve, thread=is_own)

    async def _encode_editor_result(self, params: EditorOpen | EditorKey | EditorCommit, result: Any) -> Any:
        """Returns the author's result as hosts expect it; a result that closes the editor is sent as a notification."""
        from becket.contract.settings import (
            SETTINGS_EDITOR_CLOSE,
            SETTINGS_EDITOR_COMMITTED,
            EditorClosed,
            EditorCommitted,
            EditorOpened,
            EditorRender,
        )

        match result:
            case EditorRender():
                return EditorOpened(params.category, params.field, result)
            case EditorCommitted():
                await self._runtime.notify(SETTINGS_EDITOR_COMMITTED, result)
                return None
            case EditorClosed():
                await self._runtime.notify(SETTINGS_EDITOR_CLOSE, result)
                return None
            case _:
                return result

    async def _encode_commit_result(self, params: EditorCommit, result: Any) -> Any:
        """Returns the author's result with the value to store, never null: hosts would store the text "null"."""
        from becket.contract.settings import EditorCommitted, EditorRender, EditorTaken

        match result:
            case EditorTaken():
                return result
            case EditorRender():
                return EditorTaken(params.value, render=result)
            case EditorCommitted(value):
                await self._encode_editor_result(params, result)
                return value
            case _:
                response = await self._encode_editor_result(params, result)
                return params.value if response is None else response

    def _register_custom_method(self, method: Any, routine: UserFunction) -> None:
        arity, annotation, _ = read_signature(routine.function, None if isinstance(method, str) else method)
        name = method if isinstance(method, str) else method.name
        self._custom_methods.add(name)
        params = None if arity == 0 else annotation
        runtime = self._runtime

        async def serve(params: Any, ctx: Any) -> Any:
            self._check_ready()
            return await runtime.run_function(routine, *(params, runtime.wrap_context(routine, ctx))[:arity])

        # The descriptor requires no permission: a host may call every method of its extension.
        if not isinstance(method, Notification):
            result = Any if isinstance(method, str) else method.result  # a custom type may convert it
            described = Method[Any, Any](name, params, result)
            if routine.is_inline:
                self.registry.handle(described)(self._build_inline_handler(routine, arity))
            else:
                self.add(described, serve)
        elif runtime.is_blocking:
            self.registry.on(Notification(name, params), thread=not routine.is_inline)(
                lambda params, ctx: run_synchronously(serve, params, ctx)
            )
        else:

            async def handle(params: Any, ctx: Any) -> None:
                await serve(params, ctx)

            self.registry.on(Notification(name, params))(handle)

    def _build_inline_handler(self, routine: UserFunction, arity: int) -> Callable[..., Any]:
        """Returns a handler that calls an inline function at once: without a coroutine, and without a context that
        the function does not take."""
        check_ready, run, runtime = self._check_ready, self._runtime.run_inline, self._runtime

        def handle_alone() -> Any:
            check_ready()
            return run(routine)

        def handle(params: Any) -> Any:
            check_ready()
            return run(routine, params)

        def handle_with_context(params: Any, ctx: Any) -> Any:
            check_ready()
            return run(routine, params, runtime.wrap_context(routine, ctx))

        return (handle_alone, handle, handle_with_context)[arity]

    # -- serving

    async def _call_tool(self, call: ToolCall, ctx: Any) -> Any:
        self._check_ready()
        tool = self._tools.get(call.name)
        if tool is None:
            raise build_unknown_name_error("name", "tool", call.name)
        if self._input_validator is not None:
            self._input_validator.check(call.name, tool.input.schema, call.input)
        arguments = tool.input.decode(call.input)
        if tool.input.context is not None:
            arguments[tool.input.context] = self._runtime.wrap_context(tool.routine, ctx)
        result = await self._runtime.run_function(tool.routine, **arguments)
        return result if tool.output is None else tool.output.write(call.name, result)

    async def _invoke_command(self, invoke: CommandInvoke, ctx: Any) -> Any:
        from becket.extension.outputs import BlockingCommandOutput, CommandOutput

        self._check_ready()
        found = self._commands.get(invoke.command)
        if found is None:
            raise build_unknown_name_error("command", "command", invoke.command, [*self._commands])
        command, routine = found
        out = CommandOutput(self._runtime.create_event_sender(ctx), invoke.request_id)
        output = out if routine.is_async else BlockingCommandOutput(out, self._runtime.run)
        result = await self._runtime.run_function(routine, *(list(invoke.args), output)[: command.arity])
        await out.done()
        return result

    async def _complete(self, request: ProviderRequest, ctx: Any) -> Any:
        return await self._run_provider(request, None)

    async def _stream(self, request: ProviderRequest, ctx: Any) -> Any:
        return await self._run_provider(request, ctx)

    async def _run_provider(self, request: ProviderRequest, ctx: Any) -> ProviderResult:
        from becket.contract.providers import ProviderResult
        from becket.extension.outputs import BlockingProviderStream, ProviderStream

        self._check_ready()
        found = self._providers.get(request.provider_id)
        if found is None:
            raise build_unknown_name_error("provider_id", "provider", request.provider_id)
        provider, routine = found
        if request.model_id not in (model.id for model in provider.models):
            raise build_unknown_name_error("model_id", "model", request.model_id)
        out = ProviderStream(None if ctx is None else self._runtime.create_event_sender(ctx))
        output = out if routine.is_async else BlockingProviderStream(out, self._runtime.run)
        result = await self._runtime.run_function(routine, *(request, output)[: provider.arity])
        if not isinstance(result, ProviderResult):
            raise TypeError(f"the provider {provider.id!r} returned no `ProviderResult` but {type(result).__name__}")
        await out.done()
        return result

    async def _handle_hook(self, event: HookEvent, ctx: Any) -> HookResult:
        from becket.contract.hooks import HOOKS, Continue, Inject

        self._check_ready()
        injected: list[str] = []
        for hook, routine in self._hooks:
            if hook.kind is not event.kind or not hook.match.matches(event):
                continue
            result = await self._runtime.run_function(routine, event)
            if isinstance(result, Inject) and Inject in HOOKS[event.kind].actions:
                injected.append(result.content)
            elif result is not None and not isinstance(result, Continue):
                if not isinstance(result, HOOKS[event.kind].actions):
                    raise TypeError(f"a hook of {event.kind} cannot return {result!r}")
                action: HookResult = result
                return action
        return Inject("\n\n".join(injected)) if injected else Continue()


def register_handler(
    registry: Registry, runtime: Runtime, method: Method[Any, Any], serve: AsyncHandler, *, thread: bool
) -> None:
    """Registers a handler, which awaits only methods of the runtime, in the form that the runtime can run."""
    if runtime.is_blocking:

        def serve_plainly(params: Any, ctx: Any) -> Any:
            return run_synchronously(serve, params, ctx)

        registry.handle(method, thread=thread)(serve_plainly)
    else:

        async def serve_on_loop(params: Any, ctx: Any) -> Any:
            return await serve(params, ctx)

        registry.handle(method)(serve_on_loop)


def create_input_validator(extension: Any) -> InputSchemaValidator | None:
    if extension.schemas == "off":
        return None
    from becket.extension.tool_input.validation import InputSchemaValidator
    from becket.json_schema import SchemaMode

    mode = SchemaMode(extension.schemas)
    return None if mode is SchemaMode.OFF else InputSchemaValidator(extension.id, mode)


def describe_command(routine: UserFunction) -> str:
    """Returns the first line of a command's documentation."""
    text: str = getattr(routine.function, "__doc__", None) or ""
    return text.strip().partition("\n")[0]


def describe_provider(provider: DeclaredProvider) -> Provider:
    from becket.contract.providers import Provider

    return Provider(
        id=provider.id,
        display_name=provider.display_name,
        description=provider.description,
        config_schema=provider.config_schema,
        models=provider.models,
    )


def build_unknown_name_error(member: str, what: str, name: str, known: Sequence[str] = ()) -> InvalidParams:
    others = f", but: {truncate(', '.join(known))}" if known else ""
    return InvalidParams([(f"/{member}", f"there is no {what} {truncate(name)!r} here{others}")])

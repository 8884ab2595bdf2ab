"""`Extension`: the host's handle on one extension; calls its tools, models, commands and hooks.

It speaks the vocabulary of `Extension`. Each call goes to the copy that runs, waits for one that is about to run, and
is counted by the breaker. Who starts, restarts and ends copies is the `supervisor`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec.structs import replace

from becket.contract.commands import CommandEvent
from becket.contract.handshake import DeclaredCapability
from becket.contract.hooks import Continue, HookEvent, HookOutcome, HookResult
from becket.contract.info import ExtensionInfo, SidecarArgs
from becket.contract.providers import Message, Provider, ProviderEvent, ProviderResult
from becket.contract.settings import EditorRender, EditorTaken
from becket.contract.tools import Tool
from becket.errors import BecketError, NotSupported, PermissionDenied
from becket.host.extension import Extension
from becket.host.lifecycle import ExtensionState, Health
from becket.host.serving.streams import ExtensionStream
from becket.host.supervisor import Supervisor
from becket.methods.descriptors import Method
from becket.peer.outbound import UNSET, Unset
from becket.permissions.gate import Gate

if TYPE_CHECKING:
    from becket.peer.peer import Peer

__all__ = ["ExtensionHandle", "OpenCommand"]

K = TypeVar("K")
OpenCommand: TypeAlias = Callable[
    ["ExtensionHandle", str, Iterable[str], Mapping[str, Any]], ExtensionStream[CommandEvent, Any] | None
]
"""Returns a run of a command of an extension that the host runs itself; None where the extension does."""


class ExtensionHandle:
    """An extension of a host. With `repeat=True` a call is made again with the next copy when the one at work dies."""

    def __init__(self, supervisor: Supervisor, gate: Gate, open_command: OpenCommand | None = None) -> None:
        self.id = supervisor.id
        self.gate = gate
        self.supervisor = supervisor
        self._open_command = open_command

    # -- how it does

    @property
    def state(self) -> ExtensionState:
        """Where it stands."""
        return self.supervisor.state

    @property
    def health(self) -> Health:
        """How it does, in one word."""
        return self.supervisor.health()

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self.supervisor.restarts

    @property
    def peer(self) -> Peer | None:
        """The link to the copy that runs now, None where none does."""
        current = self.supervisor.current()
        return None if current is None else current.peer

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that it offers now."""
        current = self.supervisor.current()
        return () if current is None else current.tools

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers of models that it offers now."""
        current = self.supervisor.current()
        return () if current is None else current.providers

    @property
    def capabilities(self) -> tuple[DeclaredCapability, ...]:
        """What else it can do now, in words of its own."""
        current = self.supervisor.current()
        return () if current is None else current.capabilities

    # -- its life

    async def start(self) -> None:
        """Starts it, unless it runs. Raises why it cannot be started."""
        await self.supervisor.start()

    async def stop(self) -> None:
        """Ends it in good order; it stays known."""
        await self.supervisor.stop()

    async def reload(self) -> None:
        """Puts a new copy in the place of the running one. Calls that are made meanwhile wait for it."""
        await self.supervisor.reload()

    # -- calls

    async def call(
        self,
        method: str | Method[Any, Any],
        params: object = None,
        *,
        returns: Any = Any,
        timeout: float | Unset | None = UNSET,
        repeat: bool = False,
    ) -> Any:
        """Calls a method of the extension's own, by its name or by a descriptor."""
        if isinstance(method, str):
            name = method
            return await self.supervisor.call(
                lambda extension: extension.peer.call(name, params, returns=returns, timeout=timeout), repeat=repeat
            )
        described = method
        return await self.supervisor.call(
            lambda extension: extension.peer.call(described, params, timeout=timeout), repeat=repeat
        )

    async def call_tool(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
    ) -> str:
        """Runs a tool and returns what a model reads of its result. Raises what `Extension.call_tool` raises.

        Raises:
            CircuitOpen: too many calls have failed lately.
            NotRunning: it is stopped; or whatever it has failed with.
        """
        return await self.supervisor.call(
            lambda extension: extension.call_tool(name, input, timeout=timeout, meta=meta), repeat=repeat
        )

    async def call_tool_json(
        self,
        name: str,
        input: Mapping[str, Any] | None = None,
        *,
        timeout: float | Unset | None = UNSET,
        meta: Mapping[str, Any] | None = None,
        repeat: bool = False,
    ) -> Any:
        """Runs a tool and returns its result as it came; otherwise like `call_tool`."""
        return await self.supervisor.call(
            lambda extension: extension.call_tool_json(name, input, timeout=timeout, meta=meta), repeat=repeat
        )

    async def complete(
        self, provider: str, model: str, *, messages: Sequence[Message], repeat: bool = False, **options: Any
    ) -> ProviderResult:
        """Asks a model and returns its whole answer; the options are those of `Extension.complete`."""
        return await self.supervisor.call(
            lambda extension: extension.complete(provider, model, messages=messages, **options), repeat=repeat
        )

    @asynccontextmanager
    async def stream(
        self, provider: str, model: str, *, messages: Sequence[Message], **options: Any
    ) -> AsyncGenerator[ExtensionStream[ProviderEvent, ProviderResult], None]:
        """Opens an answer of a model, whose pieces come as events; the options are those of `Extension.stream`."""
        async with (
            self.supervisor.acquire() as extension,
            extension.stream(provider, model, messages=messages, **options) as answer,
        ):
            yield answer

    @asynccontextmanager
    async def invoke_command(
        self, name: str, args: Iterable[str] = (), **options: Any
    ) -> AsyncGenerator[ExtensionStream[CommandEvent, Any], None]:
        """Opens a run of a command, whose output and tasks come as events.

        With `restarts_on_errors` a command that fails is run once more by the next copy, and the run goes on with the
        events of that. A command that its manifest leaves to the host is run by the host: a program, or a tool with its
        hooks.

        Raises:
            NotSupported: the manifest has it as a skill.
            StartFailed, CommandFailed: its program cannot be started, or has failed.
        """
        words = args if isinstance(args, str) else [*args]  # of which a second run needs them, too
        own = None if self._open_command is None else self._open_command(self, name, words, options)
        if own is not None:
            async with own as run:
                yield run
            return

        async def resend(failed: Extension, error: BecketError) -> ExtensionStream[CommandEvent, Any] | None:
            if not await self.supervisor.replace_failed(failed, error):
                return None
            extension = await copies.enter_async_context(self.supervisor.acquire())
            return extension.invoke_command(name, words, **options)

        async with AsyncExitStack() as copies:
            extension = await copies.enter_async_context(self.supervisor.acquire())
            run = extension.invoke_command(name, words, **options)
            if self.supervisor.supervision.restarts_on_errors:
                run.resend_with(partial(resend, extension))
            yield await copies.enter_async_context(run)

    async def handle_hook(self, event: HookEvent) -> HookResult:
        """Asks the extension about something that the host is about to do or has done; it fails open."""
        return (await self.consult_hook(event)).result

    async def consult_hook(self, event: HookEvent) -> HookOutcome:
        """Asks like `handle_hook`, and returns beside the result what was wrong.

        Where the extension crashes before it responds, the next copy is asked once more, if its care says so."""
        first = await self._send_hook(event)
        if not first.is_lost or not self.supervisor.supervision.resends_hooks:
            return first
        try:
            second = await self._send_hook(event)
        except (NotSupported, PermissionDenied):
            raise
        except BecketError as error:  # there is no next copy
            second = HookOutcome(Continue(), f"{type(error).__name__}: {error}")
        problem = second.problem and f"{first.problem}; sent once more after a restart: {second.problem}"
        return replace(second, problem=problem, crash=first.problem)

    async def _send_hook(self, event: HookEvent) -> HookOutcome:
        return await self.supervisor.call(lambda extension: extension.consult_hook(event))

    async def info(self) -> ExtensionInfo:
        """Asks the extension about its build, its capabilities and its models."""
        return await self.supervisor.call(lambda extension: extension.info(), repeat=True)

    async def sidecar_args(self) -> SidecarArgs:
        """Asks how the extension's sidecar is to be started."""
        return await self.supervisor.call(lambda extension: extension.sidecar_args(), repeat=True)

    async def open_editor(self, category: str, field: str) -> EditorRender | None:
        """Opens the extension's own editor of a field and returns what it shows; `on` hears the rest."""
        return await self.supervisor.call(lambda extension: extension.open_editor(category, field))

    async def press_editor_key(self, category: str, field: str, key: str) -> EditorRender | None:
        """Passes on a key that was pressed in an open editor; returns what that shows now, None if nothing new."""
        return await self.supervisor.call(lambda extension: extension.press_editor_key(category, field, key))

    async def commit_editor(self, category: str, field: str, value: Any) -> EditorTaken:
        """Gives the extension the value that was taken in an open editor; returns the value to store, and the rest."""
        return await self.supervisor.call(lambda extension: extension.commit_editor(category, field, value))

    def on(self, *kinds: type[K]) -> Callable[[Callable[[K], Any]], Callable[[K], Any]]:
        """Registers the decorated plain function for notifications of the extension, as `Extension.on` does.

        It stays registered over restarts."""

        def register(function: Callable[[K], Any]) -> Callable[[K], Any]:
            def arrange(extension: Extension) -> None:
                extension.on(*kinds)(function)

            self.supervisor.add_initializer(arrange)
            return function

        return register

    def __repr__(self) -> str:
        return f"<Supervised {self.id}: {self.state}>"

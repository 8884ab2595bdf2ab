"""Provides ExtensionServer, the class that an extension derives from.

Declarations are checked when the class is created. One object serves one host at a time: over stdin and stdout with
`run`, or over any transport with `over` and `blocking_over`. The state of a connection is in `session`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeGuard

from msgspec import Struct

from becket.contract.handshake import DeclaredCapability
from becket.contract.tools import Tool
from becket.dialects import NATIVE, find_dialect
from becket.errors import LocalProtocolError
from becket.extension.decorators import (
    Declaration,
    DeclaredProvider,
    DeclaredTool,
    check_override_signature,
    collect_declarations,
    is_async_def,
)
from becket.extension.runtime_blocking import BlockingRuntime
from becket.extension.session import ExtensionDefinition, ExtensionSession
from becket.limits import Limits

if TYPE_CHECKING:
    from typing import Literal

    from becket.contract.info import ExtensionInfo, SidecarArgs
    from becket.contract.settings import EditorCommit, EditorKey, EditorOpen
    from becket.dialects import Dialect
    from becket.extension.host_client import HostClient
    from becket.extension.runtime_async import AsyncioWorkers, TrioWorkers
    from becket.framing.framing import FramingFactory
    from becket.json_schema import SchemaMode
    from becket.peer.blocking_peer import BlockingPeer
    from becket.peer.peer import Peer
    from becket.peer.protocols import ByteStream, Transport

__all__ = ["BlockingHostConnection", "ExtensionServer", "HostConnection"]

OVERRIDABLE = {
    "info": ("self",),
    "on_editor_commit": ("self", "taken"),
    "on_editor_key": ("self", "pressed"),
    "on_editor_open": ("self", "opened"),
    "on_start": ("self",),
    "on_stop": ("self",),
    "sidecar_args": ("self",),
}

MAX_SIMPLE_NAME_LENGTH = 64  # a tool name that is a Python identifier of this length breaks no rule


class ExtensionServer:
    """An extension: derive from it, give it an `id` and a `version`, decorate its methods, and `run()` it.

    Methods may be `async def` or plain `def`, mixed. In an `async def` write `await self.host.memory.query(...)`, in a
    plain one `self.host.blocking.memory.query(...)`, which returns the value itself. If all are plain, no event loop is
    imported.
    """

    id: str = ""
    version: str = ""
    capabilities: Sequence[DeclaredCapability] = ()
    """Further capabilities, of kinds that the extension defines."""
    schemas: SchemaMode | str = "off"
    """A `SchemaMode` or its value: whether tool inputs are validated against their JSON Schemas here too, before they
    are decoded to the types of the signature. becket hosts validate them anyway; use it for an `input_schema` that is
    stricter."""

    __becket__: ClassVar[ExtensionDefinition] = ExtensionDefinition((), frozenset(), True)
    _session: ExtensionSession | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = collect_declarations(cls)
        for each in declared:
            if hasattr(ExtensionServer, each.attribute):
                advice = f'name the function otherwise, and give the name: `@tool(..., name="{each.attribute}")`'
                raise TypeError(f"{cls.__name__}.{each.attribute} would hide a member of `ExtensionServer`: {advice}")
        if cls.schemas != "off":
            check_schema_mode(cls)
        overridden = [name for name in OVERRIDABLE if getattr(cls, name) is not getattr(ExtensionServer, name)]
        for name in overridden:
            check_override(cls, name)
        functions = [getattr(cls, it) for it in overridden]
        has_coroutines = any(each.is_async for each in declared) or any(map(is_async_def, functions))
        if not all(is_trivially_valid(each.item) for each in declared) or cls.capabilities:
            check_capabilities(cls, declared)
        cls.__becket__ = ExtensionDefinition(declared, frozenset(overridden), not has_coroutines)

    # -- what a method can use

    @property
    def host(self) -> HostClient:
        """What the host offers: `memory`, `config`, `log`, `call`. Await its methods in an `async def`.

        A plain `def` uses `self.host.blocking`, whose methods return values; there the awaited ones raise
        `LocalProtocolError`. `log`, `info` and `extension` are the same in both.

        Raises:
            LocalProtocolError: no host is connected.
        """
        return self._require_session().host

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration that the host sent with `initialize`.

        Raises:
            LocalProtocolError: the host has not sent it yet.
        """
        params = self._require_session().params
        if params is None:
            raise LocalProtocolError(f"{self.id}: the host has not sent `initialize` yet: there is no configuration")
        return params.config

    @property
    def root(self) -> str | None:
        """The folder of this extension as the host sent it, or None."""
        params = self._require_session().params
        return None if params is None else params.plugin_root

    def _require_session(self) -> ExtensionSession:
        if self._session is None:
            raise LocalProtocolError(f"{self.id or type(self).__name__} has no host yet: use it from `on_start` on")
        return self._session

    # -- methods that authors may override, as `async def` or plain `def`

    def on_start(self) -> Awaitable[None] | None:
        """Runs during `initialize`, before the response. An exception fails the start."""

    def on_stop(self) -> Awaitable[None] | None:
        """Runs once at shutdown, for at most four seconds. The host may be gone already."""

    def info(self) -> ExtensionInfo | Awaitable[ExtensionInfo]:
        """Returns the response to `info.get`."""
        from becket.contract.info import BuildInfo, CapabilityInfo, ExtensionInfo

        named = tuple(CapabilityInfo(capability.kind, capability.name) for capability in self.capabilities)
        return ExtensionInfo(BuildInfo("cpu", version=self.version), named)

    def sidecar_args(self) -> SidecarArgs | Awaitable[SidecarArgs]:
        """Returns the arguments for starting the extension's sidecar."""
        from becket.contract.info import SidecarArgs

        return SidecarArgs()

    def on_editor_open(self, opened: EditorOpen) -> object:
        """Returns what to show when the user opens a field of this extension in the settings.

        This method and the next two return an `EditorRender`; an `EditorCommitted` with the value to store, or an
        `EditorClosed`, both of which close the editor; or None if nothing changes."""

    def on_editor_key(self, pressed: EditorKey) -> object:
        """Returns what to show after a key was pressed in an open field."""

    def on_editor_commit(self, taken: EditorCommit) -> object:
        """Returns what to show after the user has committed a value."""

    # -- serving

    def run(
        self,
        *,
        loop: Literal["asyncio", "trio", "uvloop"] | None = None,
        dialect: Dialect | str | None = None,
        mcp: bool = False,
    ) -> NoReturn:
        """Serves the host that started this program, over stdin and stdout, until the connection ends; then exits.

        Without `loop` it runs on asyncio, or without any event loop where no method is `async def`. The dialect is
        detected from the first message unless it is given; `mcp=True` is short for `dialect="mcp"`. The exit codes
        are in `becket.extension.runner`.
        """
        from becket.extension.runner import run_extension

        raise SystemExit(run_extension(self, loop, "mcp" if mcp else dialect))

    def over(
        self,
        transport: Transport | ByteStream,
        *,
        dialect: Dialect | str = NATIVE,
        limits: Limits | None = None,
        framing: FramingFactory | None = None,
        on_stopping: Callable[[], None] | None = None,
    ) -> HostConnection:
        """Serves a host over this transport, on the running event loop: `async with notes.over(transport) as peer:`.

        `on_stopping` is called when the extension begins to stop, before its own `on_stop`."""
        return HostConnection(self, transport, WireSettings.resolve(dialect, limits, framing), on_stopping or no_op)

    def blocking_over(
        self,
        transport: Transport,
        *,
        dialect: Dialect | str = NATIVE,
        limits: Limits | None = None,
        framing: FramingFactory | None = None,
        on_stopping: Callable[[], None] | None = None,
    ) -> BlockingHostConnection:
        """Serves a host over this transport without an event loop: `with notes.blocking_over(transport) as peer:`.

        Nothing is read before `peer.serve()` or `peer.listen()`. `on_stopping` is called when the extension begins to
        stop, before its own `on_stop`.

        Raises:
            TypeError: a method is `async def`.
        """
        if not self.__becket__.is_blocking:
            raise TypeError(f"{type(self).__name__} has an `async def`: it needs an event loop")
        return BlockingHostConnection(
            self, transport, WireSettings.resolve(dialect, limits, framing), on_stopping or no_op
        )

    def _attach_session(self, session: ExtensionSession) -> None:
        if self._session is not None:
            raise LocalProtocolError(f"{self.id} serves a host already: create another object for another one")
        self._session = session

    def _detach_session(self) -> None:
        self._session = None


class WireSettings(Struct, frozen=True, eq=False):
    """Dialect, limits and framing of a connection."""

    dialect: Dialect
    limits: Limits
    framing: FramingFactory | None

    @classmethod
    def resolve(cls, dialect: Dialect | str, limits: Limits | None, framing: FramingFactory | None) -> WireSettings:
        """Returns the settings for a dialect or its name; the limits are the dialect's unless given."""
        chosen = find_dialect(dialect).for_extension()
        return cls(chosen, limits or chosen.limits, framing)


class HostConnection:
    """Serves a host on an event loop while the block runs. Leaving the block stops the extension in order."""

    def __init__(
        self,
        extension: ExtensionServer,
        transport: Transport | ByteStream,
        wire: WireSettings,
        on_stopping: Callable[[], None],
    ) -> None:
        self._extension = extension
        self._transport = transport
        self._wire = wire
        self._on_stopping = on_stopping

    async def __aenter__(self) -> Peer:
        from becket.extension.runtime_async import AsyncRuntime
        from becket.peer.peer import Peer

        extension, transport, wire = self._extension, self._transport, self._wire
        is_attached = False
        try:
            check_id(extension)
            self._runtime = AsyncRuntime(wire.limits)
            self._session = ExtensionSession(
                extension, extension.__becket__, self._runtime, wire.dialect, self._on_stopping
            )
            extension._attach_session(self._session)  # pyright: ignore[reportPrivateUsage]
            is_attached = True
            peer = self._runtime.peer = await Peer.over(
                transport,
                name="host",
                dialect=wire.dialect,
                methods=self._session.registry,
                limits=wire.limits,
                framing=wire.framing,
            )
        except BaseException:
            if is_transport(transport):
                transport.close()
            if is_attached:
                extension._detach_session()  # pyright: ignore[reportPrivateUsage]
            raise
        peer.limit_features(())  # until the host has announced its features
        return peer

    @property
    def workers(self) -> AsyncioWorkers | TrioWorkers:
        """Runs functions in threads, and coroutines from threads."""
        return self._runtime.workers

    @property
    def refusal_reason(self) -> str | None:
        """Why the host could not be served, if that ended the connection."""
        return self._session.refusal_reason

    async def stop(self) -> None:
        """Runs `on_stop`; the link stays open."""
        await self._session.stop()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._session.stop()
        finally:
            try:
                await self._runtime.peer.aclose()
            finally:
                self._runtime.close()
                self._extension._detach_session()  # pyright: ignore[reportPrivateUsage]


class BlockingHostConnection:
    """Serves a host without an event loop while the block runs."""

    def __init__(
        self,
        extension: ExtensionServer,
        transport: Transport,
        wire: WireSettings,
        on_stopping: Callable[[], None],
    ) -> None:
        self._extension = extension
        self._transport = transport
        self._wire = wire
        self._on_stopping = on_stopping

    def __enter__(self) -> BlockingPeer:
        from becket.peer.blocking_peer import BlockingPeer

        extension, wire = self._extension, self._wire
        is_attached = False
        try:
            check_id(extension)
            self._runtime = BlockingRuntime()
            self._session = ExtensionSession(
                extension, extension.__becket__, self._runtime, wire.dialect, self._on_stopping
            )
            extension._attach_session(self._session)  # pyright: ignore[reportPrivateUsage]
            is_attached = True
            peer = self._runtime.peer = BlockingPeer(
                self._transport,
                name="host",
                dialect=wire.dialect,
                methods=self._session.registry,
                limits=wire.limits,
                framing=wire.framing,
            )
        except BaseException:
            self._transport.close()
            if is_attached:
                extension._detach_session()  # pyright: ignore[reportPrivateUsage]
            raise
        peer.limit_features(())  # until the host has announced its features
        return peer

    @property
    def refusal_reason(self) -> str | None:
        """Why the host could not be served, if that ended the connection."""
        return self._session.refusal_reason

    def stop(self) -> None:
        """Runs `on_stop`; the link stays open."""
        self._runtime.run(self._session.stop)

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._runtime.peer.close()
            self._extension._detach_session()  # pyright: ignore[reportPrivateUsage]


def is_transport(transport: Transport | ByteStream) -> TypeGuard[Transport]:
    return hasattr(transport, "start")


def no_op() -> None:
    """The default of `on_stopping`."""


# -- checks of a class


def check_id(extension: ExtensionServer) -> None:
    if not extension.id.strip():
        raise TypeError(f"{type(extension).__name__} has no `id`: hosts need one")


def check_override(cls: type[ExtensionServer], name: str) -> None:
    """Raises TypeError if an overridable method is no function with the expected parameters."""
    written = next(vars(kind)[name] for kind in cls.__mro__ if name in vars(kind))
    if not callable(getattr(cls, name)):
        raise TypeError(f"{cls.__name__}.{name} must be a function, got {written!r}")
    if isinstance(written, FunctionType):  # other callables are not inspected
        check_override_signature(written, OVERRIDABLE[name])


def check_schema_mode(cls: type[ExtensionServer]) -> None:
    """Raises TypeError if tool inputs would be validated in a mode that does not exist."""
    from becket.json_schema import SchemaMode  # few extensions have a mode

    known = [mode.value for mode in SchemaMode]
    if not isinstance(cls.schemas, SchemaMode) and cls.schemas not in known:
        raise TypeError(f"{cls.__name__}.schemas must be a `SchemaMode` or one of {known}, got {cls.schemas!r}")


def is_trivially_valid(item: object) -> bool:
    """Returns whether no rule of the contract can reject this item, so that the checker need not be imported."""
    if isinstance(item, DeclaredTool):
        return item.name.isidentifier() and item.name.isascii() and len(item.name) <= MAX_SIMPLE_NAME_LENGTH
    return not isinstance(item, DeclaredProvider)


def check_capabilities(cls: type[ExtensionServer], declared: tuple[Declaration, ...]) -> None:
    """Raises TypeError for declarations that every host would reject in the handshake."""
    from becket.contract.handshake_checks import CapabilityChecker
    from becket.contract.providers import Provider

    check_capability_types(cls)
    name = cls.id or cls.__name__
    search = CapabilityChecker(name)
    tools = [each.item for each in declared if isinstance(each.item, DeclaredTool)]
    providers = [each.item for each in declared if isinstance(each.item, DeclaredProvider)]
    search.check_tools([Tool(tool.name, tool.description, tool.input_schema or {}) for tool in tools])
    search.check_providers(
        [
            Provider(id=it.id, display_name=it.display_name, description=it.description, models=it.models)
            for it in providers
        ]
    )
    search.check_capabilities(cls.capabilities, lambda _: True, lambda _: True)
    if search.problems:
        raise TypeError(f"Extension '{name}' {search.problems[0][1]}")


def check_capability_types(cls: type[ExtensionServer]) -> None:
    if not hasattr(cls.capabilities, "__iter__"):
        raise TypeError(f"{cls.__name__}.capabilities must be a list of `DeclaredCapability`, got {cls.capabilities!r}")
    for each in cls.capabilities:
        if not isinstance(each, DeclaredCapability):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{cls.__name__}.capabilities must be a list of `DeclaredCapability`, got an item {each!r}")

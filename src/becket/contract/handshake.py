"""Handshake types: what the host sends in `initialize` and what the extension declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import force_setattr

from becket.contract.json_narrowing import is_array
from becket.contract.models import Provider
from becket.contract.tools import Tool
from becket.methods.descriptors import Method

__all__ = [
    "FEATURES",
    "INITIALIZE",
    "PROTOCOL_VERSION",
    "SHUTDOWN",
    "Capabilities",
    "DeclaredCapability",
    "HostInfo",
    "Initialize",
    "Initialized",
]

PROTOCOL_VERSION: Final = 1
FEATURES: Final = ("cancel", "progress", "deadline", "credit", "ping", "log", "no_params")
"""What a link may use beyond the contract of old, each only where both sides have announced it."""

Version = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- what travels


class HostInfo(Struct, frozen=True):
    """Which program the host is."""

    name: str
    version: str


class Initialize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host's first words. `plugin_root` is the folder of the extension, null where it has none."""

    synaps_version: str | None = None
    extension_protocol_version: Version
    plugin_id: str
    plugin_root: str | None
    config: dict[str, Any]
    host: HostInfo | None = None
    features: tuple[str, ...] = ()


class DeclaredCapability(Struct, frozen=True, omit_defaults=True):
    """Something that the extension can do, in words of its own: nobody but its user understands `kind` and `params`."""

    kind: str
    name: str
    permissions: tuple[str, ...] = ()
    params: Any = None


if TYPE_CHECKING:
    from becket.contract.hooks import HookSubscription

    Subscriptions = tuple[HookSubscription, ...]
else:
    Subscriptions = Any  # few extensions have hooks: their classes are loaded when there are some


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """All that an extension declares. `hooks` of another form than an array, as synaps programs send, count as none."""

    tools: tuple[Tool, ...] = ()
    providers: tuple[Provider, ...] = ()
    capabilities: tuple[DeclaredCapability, ...] = ()
    hooks: Subscriptions = ()

    def __post_init__(self) -> None:
        if self.hooks != ():
            force_setattr(self, "hooks", read_subscriptions(self.hooks))


def read_subscriptions(value: object) -> object:
    """Returns announced hooks; an array that cannot be read is kept, and `handshake_rules` says what is wrong."""
    if isinstance(value, tuple):  # from our own code
        return cast("object", value)
    if not is_array(value):
        return ()
    from becket.contract.hooks import HookSubscription

    try:
        return convert(value, tuple[HookSubscription, ...])
    except ValidationError:
        return tuple(value)


NO_CAPABILITIES: Final = Capabilities()

if TYPE_CHECKING:
    from becket.contract.info import ExtensionInfo

    Declared = Capabilities
    Features = tuple[str, ...]
    Info = ExtensionInfo | None
    OwnId = str
else:
    Declared = Capabilities | tuple[()]  # many an old extension sends an empty array for an empty object
    Features = Info = OwnId = Any


class Initialized(Struct, frozen=True, omit_defaults=True):
    """The extension's answer. With `info` it tells of itself what it would else be asked for once more, and `id` is the
    one in its code, where that is another than the host's.

    Features that are no array of strings, and an `info` or an `id` of another shape, count as none: old hosts never
    read them."""

    protocol_version: Version
    capabilities: Declared = NO_CAPABILITIES
    features: Features = ()
    info: Info = None
    id: OwnId = ""

    def __post_init__(self) -> None:
        force_setattr(self, "capabilities", parse_capabilities(self.capabilities))
        force_setattr(self, "features", parse_features(self.features))
        force_setattr(self, "info", parse_info(self.info))
        force_setattr(self, "id", read_own_id(self.id))


def parse_capabilities(value: object) -> object:
    return NO_CAPABILITIES if value == () else value


def parse_features(value: object) -> object:
    if isinstance(value, tuple):  # as our own code gives them
        return cast("object", value)
    return tuple(value) if is_array(value) and all(isinstance(name, str) for name in value) else ()


def read_own_id(value: object) -> str:
    return value if isinstance(value, str) else ""


def parse_info(value: object) -> object:
    if value is None or isinstance(value, Struct):  # as our own code gives it
        return value
    from becket.contract.info import ExtensionInfo  # the host's alone; few extensions ever need it

    try:
        return convert(value, ExtensionInfo)
    except ValidationError:
        return None


INITIALIZE: Final = Method(
    "initialize",
    Initialize,
    Initialized,
    timeout=10.0,
    direction="to-extension",
    summary="Opens the conversation: who the host is, and what the extension declares.",
)
SHUTDOWN: Final[Method[None, Any]] = Method(
    "shutdown", None, Any, timeout=0.5, direction="to-extension", summary="Asks the extension to end."
)

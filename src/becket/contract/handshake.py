"""Handshake types: what the host sends in `initialize` and what the extension declares."""

# Annotations are evaluated here, for the reason given in `jsonrpc.messages`.

from collections.abc import Mapping
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
    "build_initialize",
]

PROTOCOL_VERSION: Final = 1
SYNAPS_VERSION: Final = "0.1.0"  # old extensions expect it from their host; nothing depends on it
FEATURES: Final = ("cancel", "progress", "deadline", "credit", "ping", "log", "no_params")
"""Optional features of a connection, each used only if both peers have announced it."""

Version = Annotated[int, Meta(ge=0, le=2**32 - 1)]


# -- messages


class HostInfo(Struct, frozen=True):
    """The host's name and version."""

    name: str
    version: str


class Initialize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The params of the first request. `plugin_root` is the extension's folder, null where it has none."""

    synaps_version: str | None = None
    extension_protocol_version: Version
    plugin_id: str
    plugin_root: str | None
    config: dict[str, Any]
    host: HostInfo | None = None
    features: tuple[str, ...] = ()


def build_initialize(
    plugin_id: str,
    plugin_root: str | None,
    config: Mapping[str, Any],
    *,
    host: HostInfo | None = None,
    features: tuple[str, ...] = (),
) -> Initialize:
    """Returns the params of a host, with the versions that it sends."""
    return Initialize(
        synaps_version=SYNAPS_VERSION,
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=plugin_id,
        plugin_root=plugin_root,
        config=dict(config),
        host=host,
        features=features,
    )


class DeclaredCapability(Struct, frozen=True, omit_defaults=True):
    """A capability in the extension's own terms: `kind` and `params` have no meaning to the host."""

    kind: str
    name: str
    permissions: tuple[str, ...] = ()
    params: Any = None


if TYPE_CHECKING:
    from becket.contract.hooks import HookSubscription

    Subscriptions = tuple[HookSubscription, ...]
else:
    Subscriptions = Any  # few extensions have hooks; their classes are imported when needed


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """All that an extension declares. `hooks` that are not an array, as synaps programs send, count as none."""

    tools: tuple[Tool, ...] = ()
    providers: tuple[Provider, ...] = ()
    capabilities: tuple[DeclaredCapability, ...] = ()
    hooks: Subscriptions = ()

    def __post_init__(self) -> None:
        if self.hooks != ():
            force_setattr(self, "hooks", read_subscriptions(self.hooks))


def read_subscriptions(value: object) -> object:
    """Decodes announced hooks; an undecodable array is kept for `handshake_checks` to report."""
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
    Declared = Capabilities | tuple[()]  # many old extensions send an empty array for an empty object
    Features = Info = OwnId = Any


class Initialized(Struct, frozen=True, omit_defaults=True):
    """The handshake response. With `info` a separate request for it is not needed; `id` is the id in the extension's
    code, where it differs from the host's.

    Features that are not an array of strings, and a malformed `info` or `id`, count as absent: old hosts never read
    them."""

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
    if isinstance(value, tuple):  # from our own code
        return cast("object", value)
    return tuple(value) if is_array(value) and all(isinstance(name, str) for name in value) else ()


def read_own_id(value: object) -> str:
    return value if isinstance(value, str) else ""


def parse_info(value: object) -> object:
    if value is None or isinstance(value, Struct):  # from our own code
        return value
    from becket.contract.info import ExtensionInfo  # only hosts need it

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
    summary="Performs the handshake: identifies the host, and returns what the extension declares.",
)
SHUTDOWN: Final[Method[None, Any]] = Method(
    "shutdown", None, Any, timeout=0.5, direction="to-extension", summary="Requests the extension to exit."
)

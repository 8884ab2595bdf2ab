"""Defines `Dialect`, the frozen record of the wire conventions of one protocol, and per-call metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set as AbstractSet
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from becket._lazy import import_module
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, HostDefaults
from becket.errors import ERROR_CODES, JSON_ERRORS, Meaning
from becket.framing.content_length import ContentLength
from becket.framing.framing import FramingFactory
from becket.jsonrpc.calls import CancellationFormat, IdCounter
from becket.jsonrpc.codec import FIRST_MEMBER, JsonCodec
from becket.jsonrpc.connection import Connection
from becket.jsonrpc.json_values import encode_json
from becket.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from becket.dialects.mapping import ContractMapping
    from becket.jsonrpc.budget import SharedBudget
    from becket.jsonrpc.protocols import Codec
    from becket.jsonrpc.wire_format import WireFormat

__all__ = [
    "CallMeta",
    "Dialect",
    "MetaReader",
    "ProgressFormat",
    "ProgressTokenCodec",
    "import_adapter",
    "load_mapping",
    "make_dialect",
    "match_first_request",
]

T = TypeVar("T")


class ProgressTokenCodec(Struct, frozen=True):
    """Progress under a token that the request carries; without a token there is no progress.

    `insert_token` puts a token into the params of a request, and `extract_token` returns it, or None. `encode_params`
    builds the params of the notification from the token and the value."""

    insert_token: Callable[[bytes | None, bytes], bytes]
    extract_token: Callable[[Raw | None], bytes | None]
    encode_params: Callable[[bytes, object], bytes]


class ProgressFormat(Struct, frozen=True):
    """The notification for progress of a call, which it names by its id or by a token of the request."""

    method: str
    token: str = "token"
    value: str = "value"
    token_codec: ProgressTokenCodec | None = None


Count = Annotated[int, Meta(ge=0, le=2**53)]  # more than any clock or counter, and a double holds it


class CallMeta(Struct, frozen=True, omit_defaults=True):
    """Metadata of one call, for features that both peers have announced.

    `no_params` is True for absent params, False for an empty object, and None beside other params."""

    timeout_ms: Count | None = None
    parent: int | float | str | None = None  # an id, and ids may be fractions
    depth: Count = 0
    credit: Count | None = None
    idem: str | None = None
    no_params: bool | None = None


class Dialect(Struct, frozen=True, kw_only=True):
    """The wire conventions of one protocol. `Peer` uses them, and contains no protocol's names itself.

    `wire_format` is for protocols that deviate from JSON-RPC: that of a host, and of an extension too unless
    `extension_wire_format` is set. An invalid message gets an error response, or is only counted if
    `responds_to_invalid` is False. `load_mapping` returns the mapping of the extension contract (None: no mapping is
    needed). `load_host_support` returns what a host creates once for its extensions of this dialect; its protocol is
    in `host.starting.launch`. `matches_first_frame` tests whether the first frame of a host, with its framing, belongs
    to this dialect. A response above the frame limit fails only its own call, unless `skips_oversize` is False. Links
    that share `ids` never use an id twice."""

    name: str
    framing: FramingFactory = ContentLength
    codec: Callable[[Limits], Codec] = JsonCodec
    wire_format: WireFormat | None = None
    extension_wire_format: WireFormat | None = None
    responds_to_invalid: bool = True
    error_codes: Mapping[Meaning, int] = ERROR_CODES
    cancellation: CancellationFormat | None = None
    progress: ProgressFormat | None = None
    ping: str | None = None
    credit: str | None = None
    features: frozenset[str] = frozenset()
    bad_json_is_fatal: bool = False
    skips_oversize: bool = True
    load_mapping: Callable[[], ContractMapping] | None = None
    load_host_support: Callable[[], Callable[..., object]] | None = None
    matches_first_frame: Callable[[bytes, type], bool] | None = None
    host_defaults: HostDefaults = STANDARD_HOST_DEFAULTS
    ids: IdCounter | None = None

    def build_connection(
        self, limits: Limits, framing: FramingFactory | None = None, budget: SharedBudget | None = None
    ) -> Connection:
        """Returns the connection of a new link. `budget` is shared with other links."""
        return Connection(
            (framing or self.framing)(limits),
            self._build_codec(limits),
            limits=limits,
            cancellation=self.cancellation,
            ping=self.ping,
            error_codes=self.error_codes,
            bad_json_is_fatal=self.bad_json_is_fatal,
            rejects_invalid=self.responds_to_invalid,
            wire_format=self.wire_format,
            ids=self.ids,
            budget=budget,
            skips_oversize=self.skips_oversize,
        )

    @property
    def limits(self) -> Limits:
        """The default limits of a link."""
        return DEFAULT_LIMITS.but(**self.host_defaults.limits) if self.host_defaults.limits else DEFAULT_LIMITS

    @property
    def host_limits(self) -> Limits:
        """The default limits of a host's link."""
        return self.limits.but(**self.host_defaults.host_limits) if self.host_defaults.host_limits else self.limits

    def for_extension(self) -> Dialect:
        """Returns this dialect with the wire format of an extension."""
        return self if self.extension_wire_format is None else replace(self, wire_format=self.extension_wire_format)

    def _build_codec(self, limits: Limits) -> Codec:
        if self.wire_format is None:
            return self.codec(limits)
        from becket.jsonrpc.wire_format import WireFormatCodec  # not needed by `plain` and `native`

        return WireFormatCodec(limits, self.wire_format)

    def split_meta(self, params: Raw, features: AbstractSet[str]) -> tuple[CallMeta | None, Raw | None]:
        """Returns the metadata of a request or notification, or None, and its params without it.

        Malformed metadata counts as absent. `features` are those that both peers have announced."""
        return MetaReader().split(params, features)

    def insert_meta(self, params: bytes | None, meta: bytes, features: AbstractSet[str]) -> bytes:
        """Returns the params with this encoded `CallMeta`. Params by position stay unchanged."""
        if params is not None and can_take_meta(params):
            return begin_params(meta) + params[1:]
        if params is None or params == b"{}":
            if "no_params" in features:
                mark = b'"no_params":true' if params is None else b'"no_params":false'
                return b"%b%b%b%b}}}" % (META_PREFIX, meta[:-1], b"," if len(meta) > len(b"{}") else b"", mark)
            return META_PREFIX + meta + (b"}}" if params is None else b"} }")
        return merge_meta(params, meta) if params.startswith(b"{") else params


def make_dialect(
    name: str,
    framing: FramingFactory,
    host_defaults: HostDefaults,
    *,
    host_format: WireFormat | None = None,
    extension_format: WireFormat | None = None,
    codec: Callable[[Limits], Codec] = JsonCodec,
    error_codes: Mapping[Meaning, int] = ERROR_CODES,
    matches_first_frame: Callable[[bytes, type], bool] | None = None,
    bad_json_is_fatal: bool = False,
) -> Dialect:
    """Returns the record of a foreign system, whose mapping is that of `becket.adapters.<name>`.

    None of these systems responds to an invalid message, or goes on after an oversize response."""
    return Dialect(
        name=name,
        framing=framing,
        codec=codec,
        wire_format=host_format,
        extension_wire_format=extension_format,
        responds_to_invalid=False,
        skips_oversize=False,
        error_codes=error_codes,
        bad_json_is_fatal=bad_json_is_fatal,
        load_mapping=partial(load_mapping, name),
        matches_first_frame=matches_first_frame,
        host_defaults=host_defaults,
    )


def load_mapping(adapter: str) -> ContractMapping:
    """Returns the mapping of an adapter, imported when a link needs it."""
    mapping: ContractMapping = import_adapter(adapter, "mapping").MAPPING
    return mapping


def load_host_support(adapter: str, part: str) -> Callable[..., object]:
    """Returns the `HOST_SUPPORT` of a module of an adapter, imported when a host needs it."""
    support: Callable[..., object] = import_adapter(adapter, part).HOST_SUPPORT
    return support


def import_adapter(name: str, part: str) -> ModuleType:
    """Imports a module of an adapter: `dialect`, `mapping` or `manifest_reader`, for example."""
    return import_module(f"becket.adapters.{name}.{part}")


def match_first_request(framing: type, kind: type[T], is_known: Callable[[T], bool]) -> Callable[[bytes, type], bool]:
    """Returns a `matches_first_frame` for hosts whose first frame has this framing and is of this kind."""

    def matches(frame: bytes, found: type) -> bool:
        try:
            return found is framing and is_known(msgspec.json.decode(frame, type=kind))
        except JSON_ERRORS:
            return False

    return matches


META_PREFIX = b'{"_meta":{"becket":'
META_KEY = b'"_meta"'
EMPTY_OBJECT = Raw(b"{}")
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


@cache
def get_meta_decoder() -> Callable[[bytes | Raw], CallMeta]:
    """Returns the decoder of `CallMeta`, built at first use: no handshake needs it."""
    return msgspec.json.Decoder(CallMeta).decode


def begin_params(meta: bytes) -> bytes:
    """Returns how params with this encoded `CallMeta` begin, up to the first member of their own."""
    return META_PREFIX + meta + b"},"


def can_take_meta(params: bytes) -> bool:
    """Returns whether `_meta` can be written before the members of encoded params: they have some, and none like it."""
    # `find`, as `in` raises and drops an exception before it searches for bytes.
    return params.startswith(FIRST_MEMBER) and params.find(META_KEY) < 0


class TypesThatTakeMeta(dict[type, bool]):
    """Whether values of a type can take `_meta`, as long as they have a member: a Struct's type shows it, and the
    stream of its events need not be searched."""

    def __missing__(self, kind: type) -> bool:
        if len(self) >= MAX_TYPES:
            self.clear()
        takes = self[kind] = issubclass(kind, Struct) and self._has_free_members(kind)
        return takes

    def _has_free_members(self, kind: type[Struct]) -> bool:
        config = kind.__struct_config__
        return not config.array_like and "_meta" not in (*kind.__struct_encode_fields__, config.tag_field)


MAX_TYPES = 256
TAKES_META = TypesThatTakeMeta()


def encode_parent(id: bytes) -> bytes:
    """Returns the encoded `CallMeta` of an event: the id of the request that it belongs to."""
    return b'{"parent":%b}' % id


class MetaReader:
    """Splits the metadata off the params of a link's messages.

    Most messages of a link carry equal metadata, so the last is kept with the bytes that it was decoded from."""

    __slots__ = ("_meta", "_prefix")

    def __init__(self) -> None:
        self._meta = CallMeta()
        self._prefix = b"nothing begins so"

    def split(self, params: Raw, features: AbstractSet[str]) -> tuple[CallMeta | None, Raw | None]:
        """Returns what `Dialect.split_meta` does."""
        text, prefix = bytes(params), self._prefix
        if text.startswith(prefix):
            return self._meta, Raw(b"{" + text[len(prefix) :])
        if text.startswith(META_PREFIX):
            # The form that becket writes: `_meta` first, and nothing else in it.
            end = text.find(b"}}", len(META_PREFIX)) + 1
            try:
                meta = get_meta_decoder()(text[len(META_PREFIX) : end])
            except JSON_ERRORS:
                return split_any_meta(params, features)
            if text[end + 1 : end + 2] == b",":
                self._meta, self._prefix = meta, text[: end + 2]
                return meta, Raw(b"{" + text[end + 2 :])
            if text[end + 1 :] == b"}":
                return meta, empty_params(text, meta, features)
        elif text.find(META_KEY) < 0:
            return None, params
        return split_any_meta(params, features)


def empty_params(text: bytes, meta: CallMeta, features: AbstractSet[str]) -> Raw | None:
    """Returns the params of a message that had only `_meta`: an empty object or None."""
    if meta.no_params is not None:
        return None if meta.no_params else EMPTY_OBJECT
    # Without the feature, becket 0.1 writes a space for an empty object.
    has_space = text.startswith(META_PREFIX) and text.endswith(b"}} }")
    return EMPTY_OBJECT if has_space or "no_params" in features else None


def split_any_meta(params: Raw, features: AbstractSet[str]) -> tuple[CallMeta | None, Raw | None]:
    """Splits params with `_meta` at any position and with other members in it."""
    try:
        members = decode_members(params)
        own = decode_members(members.pop("_meta"))
        meta = get_meta_decoder()(own.pop("becket"))
    except (*JSON_ERRORS, KeyError):
        return None, params
    if own:
        members["_meta"] = Raw(encode_json(own))
    return meta, Raw(encode_json(members)) if members else empty_params(bytes(params), meta, features)


def merge_meta(params: bytes, meta: bytes) -> bytes:
    members = decode_members(params)
    try:
        own = decode_members(members.get("_meta", EMPTY_OBJECT))
    except msgspec.ValidationError:  # the caller uses `_meta` for something else
        return params
    own["becket"] = Raw(meta)
    members["_meta"] = Raw(encode_json(own))
    return encode_json(members)

"""Defines `Dialect`, the frozen record of the wire conventions of one protocol, and per-call metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from becket._lazy import import_module
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, HostDefaults
from becket.errors import ERROR_CODES, JSON_ERRORS, Meaning
from becket.framing.content_length import ContentLength
from becket.framing.framing import FramingFactory
from becket.jsonrpc.codec import JsonCodec
from becket.jsonrpc.connection import CancellationFormat, Connection, IdCounter
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
    "ProgressFormat",
    "ProgressTokenCodec",
    "load_mapping",
    "make_dialect",
    "match_first_request",
]

T = TypeVar("T")


class ProgressTokenCodec(Struct, frozen=True):
    """Where progress is told only to who asks for it, under a token that is in the request.

    `insert_token` puts one into the params of a request, `extract_token` finds that of a request, None where nobody
    wants to hear of its progress. `encode_params` makes the params of the notification, all of which are the value."""

    insert_token: Callable[[bytes | None, bytes], bytes]
    extract_token: Callable[[Raw | None], bytes | None]
    encode_params: Callable[[bytes, object], bytes]


class ProgressFormat(Struct, frozen=True):
    """How a dialect reports from within a call: a notification that names the call, by its id or by the token that it
    asked with, and bears a value."""

    method: str
    token: str = "token"
    value: str = "value"
    token_codec: ProgressTokenCodec | None = None


Count = Annotated[int, Meta(ge=0, le=2**53)]  # more than any clock or counter, and a double holds it


class CallMeta(Struct, frozen=True, omit_defaults=True):
    """What travels with one call beside its params, where both sides have announced it.

    `no_params` says that there are no params; False, that they are an empty object. Other params need no such mark."""

    timeout_ms: Count | None = None
    parent: int | float | str | None = None  # an id, and ids may be fractions
    depth: Count = 0
    credit: Count | None = None
    idem: str | None = None
    no_params: bool | None = None


class Dialect(Struct, frozen=True, kw_only=True):
    """The habits of one protocol. `Peer` reads them; nothing else knows a protocol's words.

    The first members are about the link. Where JSON-RPC is written and read with other habits than those of the
    specification, `wire_format` has them: those of a host, and of an extension too unless `extension_wire_format` has
    its own. What is no message is answered with an error, or only counted where `responds_to_invalid` is False.
    `load_mapping` tells how the extension contract is spoken on the link: None where it is spoken in its own words.
    `load_host_support` returns what a host makes once for its extensions of this dialect: `host.starting.launch` has
    its protocol.
    `matches_first_frame` tells by the first frame of a host, and the framing that it came in, whether that host speaks
    this dialect. A response above the frame limit fails its own call alone, unless `skips_oversize` is False. Links
    with the same `ids` never give two calls one id; each has its own unless given."""

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
        """Returns the state of a new link in this dialect. `budget` is what it shares with other links."""
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
        """The limits of a link in this dialect, unless others are given."""
        return DEFAULT_LIMITS.but(**self.host_defaults.limits) if self.host_defaults.limits else DEFAULT_LIMITS

    @property
    def host_limits(self) -> Limits:
        """The limits of a host's link in this dialect, unless others are given."""
        return self.limits.but(**self.host_defaults.host_limits) if self.host_defaults.host_limits else self.limits

    def for_extension(self) -> Dialect:
        """Returns this dialect as an extension writes it."""
        return self if self.extension_wire_format is None else replace(self, wire_format=self.extension_wire_format)

    def _build_codec(self, limits: Limits) -> Codec:
        if self.wire_format is None:
            return self.codec(limits)
        from becket.jsonrpc.wire_format import WireFormatCodec  # no program in our own dialects needs it

        return WireFormatCodec(limits, self.wire_format)

    def split_meta(self, params: Raw, features: AbstractSet[str]) -> tuple[CallMeta | None, Raw | None]:
        """Returns what travels with a request or a notification, None if nothing does, and its params without that.

        What is malformed counts as absent. `features` are those that both sides have announced."""
        text = bytes(params)
        if text.startswith(META_PREFIX):
            # As our own kits write it: first, and alone in `_meta`. What decodes as a whole object is all of it.
            end = text.find(b"}}", len(META_PREFIX)) + 1
            try:
                meta = decode_call_meta(text[len(META_PREFIX) : end])
            except JSON_ERRORS:
                return split_any_meta(params, features)
            if text[end + 1 : end + 2] == b",":
                return meta, Raw(b"{" + text[end + 2 :])
            if text[end + 1 :] == b"}":
                return meta, empty_params(text, meta, features)
        elif b'"_meta"' not in text:
            return None, params
        return split_any_meta(params, features)

    def insert_meta(self, params: bytes | None, meta: bytes, features: AbstractSet[str]) -> bytes:
        """Returns the params with this JSON of a `CallMeta` in them. Params by position have no room for it."""
        if params is not None and params.startswith(b'{"') and b'"_meta"' not in params:
            return b"".join((META_PREFIX, meta, b"},", params[1:]))
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

    None of these systems responds to what is no message, or goes on after an oversize response."""
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
    """Returns the mapping of an adapter, imported when a link needs it: most programs speak one dialect."""
    mapping: ContractMapping = import_module(f"becket.adapters.{adapter}.mapping").MAPPING
    return mapping


def load_host_support(module: str) -> Callable[..., object]:
    """Returns the `HOST_SUPPORT` of a module of an adapter, imported when a host needs it."""
    support: Callable[..., object] = import_module(module).HOST_SUPPORT
    return support


def match_first_request(framing: type, kind: type[T], is_known: Callable[[T], bool]) -> Callable[[bytes, type], bool]:
    """Returns a `matches_first_frame` for hosts whose first frame has this framing and is of this kind."""

    def matches(frame: bytes, found: type) -> bool:
        try:
            return found is framing and is_known(msgspec.json.decode(frame, type=kind))
        except JSON_ERRORS:
            return False

    return matches


META_PREFIX = b'{"_meta":{"becket":'
EMPTY_OBJECT = Raw(b"{}")
decode_call_meta = msgspec.json.Decoder(CallMeta).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def empty_params(text: bytes, meta: CallMeta, features: AbstractSet[str]) -> Raw | None:
    """Returns what params are that hold nothing but `_meta`: an empty object, or none at all."""
    if meta.no_params is not None:
        return None if meta.no_params else EMPTY_OBJECT
    # Without the mark, kits that do not know it write a space for an empty object.
    has_space = text.startswith(META_PREFIX) and text.endswith(b"}} }")
    return EMPTY_OBJECT if has_space or "no_params" in features else None


def split_any_meta(params: Raw, features: AbstractSet[str]) -> tuple[CallMeta | None, Raw | None]:
    """Splits params in which `_meta` stands anywhere, and may have other members."""
    try:
        members = decode_members(params)
        own = decode_members(members.pop("_meta"))
        meta = decode_call_meta(own.pop("becket"))
    except (*JSON_ERRORS, KeyError):
        return None, params
    if own:
        members["_meta"] = Raw(encode_json(own))
    return meta, Raw(encode_json(members)) if members else empty_params(bytes(params), meta, features)


def merge_meta(params: bytes, meta: bytes) -> bytes:
    members = decode_members(params)
    try:
        own = decode_members(members.get("_meta", EMPTY_OBJECT))
    except msgspec.ValidationError:  # what it is there for is the caller's business
        return params
    own["becket"] = Raw(meta)
    members["_meta"] = Raw(encode_json(own))
    return encode_json(members)

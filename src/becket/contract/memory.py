"""Memory methods: append and query records in an extension's namespace, and their checks.

A record belongs to a namespace; an extension can use only the namespace equal to its id. Storing records is a
store's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import force_setattr

from becket._deprecated import keep_renamed
from becket._text import truncate
from becket.contract.names import WHITE_SPACE
from becket.errors import InvalidParams, Problem
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.descriptors import Method

__all__ = [
    "DEFAULT_QUERY_LIMIT",
    "MEMORY_APPEND",
    "MEMORY_QUERY",
    "Append",
    "Appended",
    "Query",
    "Record",
    "Records",
    "check_owner",
    "decode_append",
    "decode_query",
    "find_append_problems",
    "find_namespace_problem",
]

DEFAULT_QUERY_LIMIT = 50
MAX_NAMESPACE_BYTES = 64  # it was a file name once
MAX_UTF8_BYTES = 4

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]

if TYPE_CHECKING:
    Tags = tuple[str, ...]
else:
    Tags = tuple[str, ...] | None  # null is sent by languages without optional members


class Append(Struct, frozen=True, omit_defaults=True):
    """A record to store. An `idem` that was used before adds nothing and returns the first result again."""

    namespace: str
    content: str
    tags: Tags = ()
    meta: Any = None
    idem: str | None = None

    def __post_init__(self) -> None:
        tags: object = self.tags
        if tags is None:  # pyright: ignore[reportUnnecessaryComparison]
            force_setattr(self, "tags", ())


class Appended(Struct, frozen=True, omit_defaults=True):
    """The record is stored. `id` grows with each record and is never reused; some hosts omit it."""

    ok: bool
    timestamp_ms: Natural
    id: Natural | None = None


class Query(Struct, frozen=True, omit_defaults=True):
    """Selects records: all conditions must hold. Newest first; 50 records unless `limit` is set.

    `content_contains` ignores case; `tag_prefix` matches any tag of a record; the time bounds are inclusive."""

    namespace: str
    content_contains: str | None = None
    tag_prefix: str | None = None
    since_ms: Natural | None = None
    until_ms: Natural | None = None
    limit: Natural | None = None


class Record(Struct, frozen=True, omit_defaults=True):
    """A stored record. `meta` is omitted where there is none, `tags` never."""

    namespace: str
    timestamp_ms: Natural
    content: str
    tags: tuple[str, ...]
    meta: Any = None
    id: Natural | None = None


class Records(Struct, frozen=True, omit_defaults=True):
    """The records found, newest first. `more`: the response could not hold all of them."""

    records: tuple[Record, ...]
    more: bool = False


MEMORY_APPEND: Final = Method(
    "memory.append",
    Append,
    Appended,
    requires="memory.write",
    summary="Stores a record in the extension's own namespace; responds when it is durable.",
)
MEMORY_QUERY: Final = Method(
    "memory.query",
    Query,
    Records,
    requires="memory.read",
    summary="Returns records of the extension's own namespace, newest first.",
)


# -- rules


def check_owner(namespace: str, extension: str) -> None:
    """Raises InvalidParams unless this extension may use this namespace. All else is checked by the store."""
    if namespace != extension:
        problem = f"namespace must equal extension id '{extension}' (got '{truncate(namespace)}')"
        raise InvalidParams([("/namespace", problem)])


def find_append_problems(append: Append, limits: Limits = DEFAULT_LIMITS) -> list[Problem]:
    """Returns all problems of a record, whatever extension stores it."""
    problems: list[Problem] = []
    unfit = find_namespace_problem(append.namespace)
    if unfit is not None:
        problems.append(("/namespace", unfit))
    if len(append.content) * MAX_UTF8_BYTES > limits.memory_content:
        size = byte_length(append.content)
        if size > limits.memory_content:
            problems.append(("/content", f"content too large: {size} bytes (max {limits.memory_content})"))
    if append.tags:
        problems += find_tag_problems(append.tags, limits)
    if append.meta is not None:
        size = len(msgspec.json.encode(append.meta))
        if size > limits.memory_meta:
            problems.append(("/meta", f"meta too large: {size} bytes (max {limits.memory_meta})"))
    if append.idem is not None and not 0 < byte_length(append.idem) <= limits.memory_idem:
        problems.append(("/idem", f"idem must have 1 to {limits.memory_idem} bytes"))
    return problems


def find_tag_problems(tags: tuple[str, ...], limits: Limits) -> list[Problem]:
    if len(tags) > limits.memory_tags:
        return [("/tags", f"too many tags: {len(tags)} (max {limits.memory_tags})")]
    sizes = [byte_length(tag) for tag in tags]
    return [
        (f"/tags/{index}", f"tag too large: {size} bytes (max {limits.memory_tag})")
        for index, size in enumerate(sizes)
        if size > limits.memory_tag
    ]


def find_namespace_problem(namespace: str) -> str | None:
    """Returns why this is not a valid namespace, or None."""
    if 0 < len(namespace) <= MAX_NAMESPACE_BYTES and is_namespace(namespace):
        return None
    return f"invalid namespace: {msgspec.json.encode(truncate(namespace)).decode()}"


@lru_cache  # called for every record, mostly with the same namespace
def is_namespace(text: str) -> bool:
    return (
        byte_length(text) <= MAX_NAMESPACE_BYTES
        and not any(part in text for part in ("/", "\\", ".."))
        and not any(letter in WHITE_SPACE for letter in text)
    )


def byte_length(text: str) -> int:
    return len(text.encode())


# -- lenient decoding, as in the first hosts of this contract


def decode_append(raw: Raw | bytes) -> Append:
    """Decodes lenient params: required members are checked in a fixed order, null counts as absent.

    Raises:
        InvalidParams: with the first problem, as such a host reports it.
    """
    params = decode_object(raw)
    namespace = require_text(params, "namespace")
    content = require_text(params, "content")
    try:
        tags = msgspec.convert(params.get("tags"), tuple[str, ...] | None) or ()
    except msgspec.ValidationError as error:
        raise InvalidParams([("/tags", "tags must be an array of strings")]) from error
    return Append(namespace, content, tags, params.get("meta"))


def decode_query(raw: Raw | bytes) -> Query:
    """Decodes lenient params: a condition of the wrong type counts as absent.

    Raises:
        InvalidParams: there is no namespace.
    """
    params = decode_object(raw)
    return Query(
        require_text(params, "namespace"),
        content_contains=optional_text(params, "content_contains"),
        tag_prefix=optional_text(params, "tag_prefix"),
        since_ms=optional_natural(params, "since_ms"),
        until_ms=optional_natural(params, "until_ms"),
        limit=optional_natural(params, "limit"),
    )


def decode_object(raw: Raw | bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.ValidationError:
        return {}  # reported as missing members


def require_text(params: dict[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise InvalidParams([(f"/{name}", f"missing or invalid '{name}' parameter")])
    return value


def optional_text(params: dict[str, Any], name: str) -> str | None:
    value = params.get(name)
    return value if isinstance(value, str) else None


def optional_natural(params: dict[str, Any], name: str) -> int | None:
    value = params.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(
        __name__,
        {
            "check_append": "becket.contract._removed.check_append",
            "check_query": "becket.contract._removed.check_query",
            "read_append": "decode_append",
            "read_query": "decode_query",
        },
    )

"""Storage quotas of one extension, and the size that a record or value counts. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from becket.contract.memory import Append, find_append_problems
from becket.errors import InvalidParams, QuotaExceeded
from becket.limits import Limits

__all__ = ["NewRecord", "check_config_quota", "check_memory_quota", "config_value_size", "parse_append"]


class NewRecord(Struct, frozen=True):
    """A validated record. Its `meta` is encoded, so that the caller cannot change it later."""

    namespace: str
    content: str
    tags: tuple[str, ...]
    meta: bytes | None
    idem: str | None
    size: int


def parse_append(append: Append, limits: Limits) -> NewRecord:
    """Returns the record of an append.

    Raises:
        InvalidParams: with all problems.
    """
    problems = find_append_problems(append, limits)
    if problems:
        raise InvalidParams(problems)
    meta = None if append.meta is None else msgspec.json.encode(append.meta)
    size = len(append.content.encode()) + len(meta or b"")
    if append.tags:
        size += sum(len(tag.encode()) for tag in append.tags)
    return NewRecord(append.namespace, append.content, append.tags, meta, append.idem, size)


def check_memory_quota(namespace: str, limits: Limits, *, records: int, used: int, more: int) -> None:
    """Raises QuotaExceeded unless a record of `more` bytes fits beside `records` records of `used` bytes."""
    if records >= limits.memory_records:
        raise QuotaExceeded(namespace, "records", used=records, limit=limits.memory_records)
    if used + more > limits.memory_bytes:
        raise QuotaExceeded(namespace, "bytes", used=used, limit=limits.memory_bytes)


def config_value_size(key: str, value: str | None) -> int:
    """Returns the bytes that a value counts against the quota; 0 for None."""
    return 0 if value is None else len(key.encode()) + len(value.encode())


def check_config_quota(extension: str, limits: Limits, *, keys: int, used: int, more_keys: int, more: int) -> None:
    """Raises QuotaExceeded unless `more_keys` keys and `more` bytes fit beside those present."""
    if keys + more_keys > limits.config_keys:
        raise QuotaExceeded(extension, "keys", used=keys, limit=limits.config_keys)
    if used + more > limits.config_bytes:
        raise QuotaExceeded(extension, "bytes", used=used, limit=limits.config_bytes)

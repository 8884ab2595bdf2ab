"""Quotas of one extension, and the bytes a record or value counts. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from becket.contract.memory import Append, find_append_problems
from becket.errors import InvalidParams, QuotaExceeded
from becket.limits import Limits

__all__ = ["NewRecord", "check_config_quota", "check_memory_quota", "config_value_size", "parse_append"]


class NewRecord(Struct, frozen=True):
    """A record that may be kept. Its `meta` is JSON, so that nobody can change it from outside."""

    namespace: str
    content: str
    tags: tuple[str, ...]
    meta: bytes | None
    idem: str | None
    size: int


def parse_append(append: Append, limits: Limits) -> NewRecord:
    """Returns the record that an append asks to keep.

    Raises:
        InvalidParams: with all that is wrong with it.
    """
    problems = find_append_problems(append, limits)
    if problems:
        raise InvalidParams(problems)
    meta = None if append.meta is None else msgspec.json.encode(append.meta)
    size = len(append.content.encode()) + len(meta or b"") + sum(len(tag.encode()) for tag in append.tags)
    return NewRecord(append.namespace, append.content, append.tags, meta, append.idem, size)


def check_memory_quota(namespace: str, limits: Limits, *, records: int, used: int, more: int) -> None:
    """Raises QuotaExceeded unless one record of `more` bytes may come to these `records`, which have `used` bytes."""
    if records >= limits.memory_records:
        raise QuotaExceeded(namespace, "records", used=records, limit=limits.memory_records)
    if used + more > limits.memory_bytes:
        raise QuotaExceeded(namespace, "bytes", used=used, limit=limits.memory_bytes)


def config_value_size(key: str, value: str | None) -> int:
    """Returns what a value takes of the share; nothing where there is none."""
    return 0 if value is None else len(key.encode()) + len(value.encode())


def check_config_quota(extension: str, limits: Limits, *, keys: int, used: int, more_keys: int, more: int) -> None:
    """Raises QuotaExceeded unless so many keys and bytes may come to those that an extension has."""
    if keys + more_keys > limits.config_keys:
        raise QuotaExceeded(extension, "keys", used=keys, limit=limits.config_keys)
    if used + more > limits.config_bytes:
        raise QuotaExceeded(extension, "bytes", used=used, limit=limits.config_bytes)

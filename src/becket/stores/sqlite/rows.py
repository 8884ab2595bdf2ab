"""The rows of a store's tables, as they are written and read. Pure.

A row whose checksum does not match raises `DamagedRow`. Text columns are read as bytes, since SQLite returns any
bytes as text. An extension's row also has the sums of the checksums of its other rows, so that a missing row, or one
that reappeared after its removal, is detected.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from becket.contract.memory import Record
from becket.stores.sqlite.checksum import checksum
from becket.stores.sqlite.commit_mark import Reached
from becket.stores.sqlite.schema import MAX_ID
from becket.stores.store import Damage

__all__ = [
    "CHANGE",
    "RECORD",
    "SHARE",
    "VALUE",
    "DamagedRow",
    "Share",
    "hint_at_damage",
    "measure",
    "parse_record",
    "parse_share",
    "parse_text",
    "parse_value",
]

RECORD = (
    "memory.key, memory.time_ms, memory.peak_ms, memory.size, memory.odd, CAST(memory.content AS BLOB),"
    " CAST(memory.tags AS BLOB), CAST(memory.meta AS BLOB), CAST(memory.idem AS BLOB), memory.sum"
)
"""The columns of a record, in the order that `parse_record` expects."""
VALUE = "CAST(config.key AS BLOB), CAST(config.value AS BLOB), config.revision, config.sum"
CHANGE = VALUE.replace("config.", "changes.")
"""The columns of a value or a change, in the order that `parse_value` expects."""


def hint_at_damage(path: Path) -> str:
    """Returns the hint for a damaged store."""
    return f"`{shlex.join(['becket', 'memory', 'verify', '--data', str(path.parent)])}` lists all damage"


decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode


class DamagedRow(Exception):
    """A row is not as it was written. `what` names it; `extension` is None where unknown."""

    def __init__(self, extension: str | None, what: str, problem: str = "its checksum does not match") -> None:
        self.extension = extension
        self.what = what
        self.problem = problem
        super().__init__(f"{extension or 'an extension'}: {what} is damaged: {problem}")

    def as_damage(self) -> Damage:
        """Returns the finding for `verify`."""
        return Damage(self.extension, self.what, self.problem)


class Share(Struct):
    """A row of `extensions`. `commits` is the number of the last commit that changed the extension."""

    number: int
    name: str
    records: int = 0
    bytes: int = 0
    last_id: int = 0
    peak_ms: int = 0
    disorder_ms: int = 0
    indexed: int = 0
    keys: int = 0
    key_bytes: int = 0
    revision: int = 0
    forgotten: int = 0
    commits: int = 0
    memory_sum: int = 0
    config_sum: int = 0
    changes_sum: int = 0

    def as_row(self) -> tuple[Any, ...]:
        """Returns the row with its checksum."""
        fields = msgspec.structs.astuple(self)
        return (*fields, checksum(fields))


FIELDS = (*Share.__struct_fields__, "sum")
SHARE = ", ".join("CAST(name AS BLOB)" if field == "name" else f"extensions.{field}" for field in FIELDS)
"""The columns of an extension, in the order that `parse_share` expects."""


def parse_share(row: Sequence[Any]) -> Share:
    """Decodes a row of `extensions`.

    Raises:
        DamagedRow: the row is not as it was written.
    """
    number, raw, *rest, stored_sum = row
    what = f"the row of extension {number}"
    name = parse_text(raw, None, what)
    if checksum((number, name, *rest)) != stored_sum:
        raise DamagedRow(name, what)
    return Share(number, name, *rest)


def measure(shares: Iterable[Share]) -> Reached:
    """Returns the progress of a store with these extensions."""
    every = [*shares]
    return Reached(
        max((share.commits for share in every), default=0),
        max((share.last_id for share in every), default=0),
        max((share.revision for share in every), default=0),
    )


def parse_record(
    namespace: str, row: Sequence[Any], *, read_meta: Callable[[str], Any] = msgspec.json.decode
) -> Record:
    """Decodes the row of a record.

    Raises:
        DamagedRow: the row is not as it was written.
    """
    key, time_ms, peak_ms, size, odd, raw_content, raw_tags, raw_meta, raw_idem, stored_sum = row
    what = f"record {key & MAX_ID}"
    content, tags, meta, idem = (
        parse_text(raw, namespace, what) for raw in (raw_content, raw_tags, raw_meta, raw_idem)
    )
    if checksum((key, time_ms, peak_ms, size, odd, content, tags, meta, idem)) != stored_sum:
        raise DamagedRow(namespace, what)
    return Record(
        namespace,
        time_ms,
        content,
        decode_tags(tags) if tags else (),
        None if meta is None else read_meta(meta),
        key & MAX_ID,
    )


def parse_value(extension: str, number: int, row: Sequence[Any]) -> tuple[str, Any, int]:
    """Returns key, value and revision of a row of `config` or `changes`.

    Raises:
        DamagedRow: the row is not as it was written.
    """
    raw_key, raw_value, revision, stored_sum = row
    key = parse_text(raw_key, extension, f"the configuration of revision {revision}")
    what = f"the value of `{key}` of revision {revision}"
    value = parse_text(raw_value, extension, what)
    if checksum((number, key, value, revision)) != stored_sum:
        raise DamagedRow(extension, what)
    return key, value, revision


def parse_text(raw: Any, extension: str | None, what: str) -> Any:
    """Decodes text that was read as bytes; returns None for None.

    Raises:
        DamagedRow: the bytes are not text.
    """
    if raw is None:
        return None
    try:
        return raw.decode()
    except (UnicodeDecodeError, AttributeError) as error:
        raise DamagedRow(extension, what, "invalid UTF-8") from error

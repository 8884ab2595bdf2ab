"""The anchor of an audit: the number and the digest of its last record, in a small file of its own.

A chain shows changes within it, but not that its end was cut off or that its last line was replaced: the anchor does.
It is written after the record, in place. A kill between the two leaves an anchor behind the audit; one ahead of it
means that records are missing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from becket.contract.audit import AuditLink
from becket.conversion.files.reader import load_bytes
from becket.errors import BadFile

__all__ = ["AuditAnchor", "anchor_path", "read_anchor"]

FORM: Final = re.compile(rb"([0-9]{20}) ([0-9a-f]{64})\n")  # of fixed size, so that it is overwritten in one write
SIZE: Final = 20 + 1 + 64 + 1


def anchor_path(audit: Path) -> Path:
    """Returns the path of an audit's anchor."""
    return audit.with_name(f"{audit.name}.anchor")


def read_anchor(audit: Path) -> AuditLink | None:
    """Returns the anchor of an audit; None if there is none, or none that can be read."""
    try:
        return parse_anchor(load_bytes(anchor_path(audit), SIZE))
    except BadFile:
        return None


def parse_anchor(data: bytes) -> AuditLink | None:
    match = FORM.fullmatch(data)
    return None if match is None else AuditLink(int(match[1]), match[2].decode())


class AuditAnchor:
    """Writes the anchor of an audit. The caller must hold the lock of the audit.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, audit: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(anchor_path(audit), flags, 0o600)

    def read(self) -> AuditLink | None:
        """Returns the anchor, None if it was not written yet."""
        return parse_anchor(os.pread(self._fd, SIZE + 1, 0))

    def write(self, link: AuditLink) -> None:
        """Records the last record. Overwriting needs no further disk space.

        Raises:
            OSError: it could not be written.
        """
        os.pwrite(self._fd, b"%020d %b\n" % (link.seq, link.digest.encode()), 0)

    def sync(self) -> None:
        """Waits until it is on the disk."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

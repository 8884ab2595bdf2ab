"""Maps errors of the disk and of SQLite to a cause and a hint. Pure."""

from __future__ import annotations

import errno
import sqlite3

__all__ = ["DISK_FULL", "FREE_SPACE", "explain", "primary_code"]

DISK_FULL = "the disk is full"
FREE_SPACE = "free space on that disk, or have extensions forget records (`becket memory forget --help`)"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def explain(error: Exception) -> tuple[str, str]:
    """Returns the cause of an error, without any path, and what to do about it."""
    code, number = primary_code(error), getattr(error, "errno", None)
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    if code == sqlite3.SQLITE_FULL or number in NO_ROOM:
        return f"{DISK_FULL} ({text})", FREE_SPACE
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or number in NOT_WRITABLE:
        return f"it cannot be written ({text})", "make the file, its folder and its disk writable for this user"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another program writes to it ({text})", "end that program"
    if code == sqlite3.SQLITE_IOERR or number == errno.EIO:
        return f"the disk failed ({text})", "look at the disk, and keep a copy of the store elsewhere"
    return f"it cannot be used ({text})", "look into the log"


def primary_code(error: Exception) -> int:
    """Returns the primary result code of an SQLite error; 0 for an error of the `sqlite3` module itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF

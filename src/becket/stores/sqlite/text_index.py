"""The trigram index (FTS5) that narrows text search; it is filled in the background.

It only narrows: each candidate is checked afterwards. It is filled in small batches after the records are stored,
since indexing costs more than storing; each extension's `indexed` is the last indexed id. Text is case-folded by
Python, since SQLite folds less. A record's rowid is its negative key: the newest come first, and FTS5 iterates
forwards four times as fast as backwards.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "INDEX_BATCH",
    "INDEX_VERSION",
    "NOTHING",
    "VOCABULARY",
    "TextIndex",
    "build_match_expression",
    "can_index",
    "grams_of",
    "has_special_folds",
    "match_short_words",
]

GRAM_LENGTH = 3
END = "\x03" * (GRAM_LENGTH - 1)  # appended to each text
# Trigrams used for a word, the rarest first. Each costs time for every record that it matches, and excludes some of the
# candidates.
GRAMS_OF_WORD = 4
MAX_GRAMS = 24  # for all words together
SHORT_GRAMS = 128  # that may begin with a word of one or two letters; with more, records are scanned instead
LAST = "\U0010ffff"  # after all trigrams that begin with a word
NOTHING = ""  # an expression that matches nothing
LETTERS_BY_FREQUENCY = " etaoinshrdlcumfpgwybvkxjqz"  # most frequent in English first; all others count as rare
LETTER_RARITY = {letter: place for place, letter in enumerate(LETTERS_BY_FREQUENCY)}
INDEX_BATCH = 250  # records: 5 ms
MERGE_PAGES = 32  # pages: 5 ms
# Characters beyond ASCII that fold to ASCII, and NUL, which ends a text for SQLite.
SPECIAL_FOLDS = frozenset(
    "\0\u00df\u0130\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
)
# The content of an index depends on Unicode's case folding. An index of another version is rebuilt.
INDEX_VERSION = f"3 {unicodedata.unidata_version}"
CREATE = """
CREATE VIRTUAL TABLE memory_text
USING fts5(folded, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1')
"""
VOCABULARY = "CREATE VIRTUAL TABLE temp.grams USING fts5vocab(main, memory_text, instance)"
# Merging is done here in small steps. Automatic merging would delay one commit in a hundred by 50 ms.
SETTINGS = {"automerge": 0, "crisismerge": 1_999, "usermerge": 4}


def can_index() -> bool:
    """Returns whether SQLite has FTS5 with the trigram tokenizer (3.34 or later)."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(CREATE)
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def fold(content: str) -> str:
    """Returns a text as it is indexed. The appended end makes every character begin a trigram."""
    return clean(content.casefold()) + END


def clean(folded: str) -> str:
    """Replaces characters that FTS5 cannot index: it stops at NUL, and treats two others as unknown."""
    return folded.replace("\0", "\ufffd").replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def grams_of(content: str) -> set[str]:
    """Returns the trigrams under which a text is indexed."""
    text = fold(content)
    return {text[start : start + GRAM_LENGTH] for start in range(len(text) - GRAM_LENGTH + 1)}


def has_special_folds(content: str) -> bool:
    """Returns whether `LIKE` may miss ASCII in this text that is there after folding."""
    return not SPECIAL_FOLDS.isdisjoint(content)


def build_match_expression(words: Iterable[str]) -> str | None:
    """Returns an FTS5 expression that matches every text with all these folded words, and few others.

    Uses the rarest trigrams, rarest first. Returns None if all words are too short."""
    grams: dict[str, None] = {}
    for word in words:
        text = clean(word)
        own = {text[start : start + GRAM_LENGTH] for start in range(len(text) - GRAM_LENGTH + 1)}
        grams.update(dict.fromkeys(sorted(own, key=gram_frequency)[:GRAMS_OF_WORD]))
    return " AND ".join(map(quote_gram, sorted(grams, key=gram_frequency)[:MAX_GRAMS])) or None


def match_short_words(words: Iterable[str], find_gram: Callable[[str, str], str | None]) -> str | None:
    """Returns an FTS5 expression that matches every text with these folded words, which are shorter than a trigram.

    It lists the trigrams that begin with a word; `find_gram` returns the first between two bounds. Returns None if
    there are too many, and NOTHING if a word occurs in no text."""
    groups: list[str] = []
    for word in map(clean, words):
        grams: list[str] = []
        gram = find_gram(word, word + LAST)
        while gram is not None and len(grams) <= SHORT_GRAMS:
            grams.append(gram)
            gram = find_gram(gram + "\0", word + LAST)
        if not grams:
            return NOTHING
        if len(grams) <= SHORT_GRAMS:
            groups.append(f"({' OR '.join(map(quote_gram, grams))})")
    return " AND ".join(groups) or None


def quote_gram(gram: str) -> str:
    return '"' + gram.replace('"', '""') + '"'


def gram_frequency(gram: str) -> tuple[int, str]:
    return -sum(LETTER_RARITY.get(letter, len(LETTERS_BY_FREQUENCY)) for letter in gram), gram


class TextIndex:
    """Writes the index, through its owner's connection and within its transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._may_merge = True

    def prepare(self) -> bool:
        """Creates an empty index where there is none of this version; returns whether it did."""
        (form,) = self._connection.execute("SELECT value FROM state WHERE name = 'index'").fetchone()
        if form == INDEX_VERSION:
            return False
        self.begin_anew()
        return True

    def begin_anew(self) -> None:
        """Replaces the index by an empty one."""
        execute = self._connection.execute
        execute("DROP TABLE IF EXISTS memory_text")
        execute(CREATE)
        for name, value in SETTINGS.items():
            execute("INSERT INTO memory_text (memory_text, rank) VALUES (?, ?)", (name, value))
        execute("UPDATE state SET value = ? WHERE name = 'index'", (INDEX_VERSION,))

    def add(self, rows: Sequence[tuple[int, str]]) -> None:
        """Adds these records (keys and texts), in the order of their keys."""
        self._connection.executemany(
            "INSERT INTO memory_text (rowid, folded) VALUES (-?, ?)",
            [(key, fold(content)) for key, content in reversed(rows)],
        )
        self._may_merge = True

    def remove(self, rows: Iterable[tuple[int, str]]) -> None:
        """Removes these records, which must have been indexed with these texts."""
        self._connection.executemany(
            "INSERT INTO memory_text (memory_text, rowid, folded) VALUES ('delete', -?, ?)",
            ((key, fold(content)) for key, content in rows),
        )
        self._may_merge = True

    def merge(self) -> bool:
        """Merges a few pages of index segments; returns whether there was anything to do."""
        if self._may_merge:
            before = self._connection.total_changes
            self._connection.execute("INSERT INTO memory_text (memory_text, rank) VALUES ('merge', ?)", (MERGE_PAGES,))
            self._may_merge = self._connection.total_changes - before >= 2  # fewer changes mean that FTS5 is done
        return self._may_merge

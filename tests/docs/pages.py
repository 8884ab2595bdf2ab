"""The pages of the documentation, and the fenced blocks, tables and links in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["FENCE", "PAGES", "ROOT", "Block", "read_blocks", "read_links", "read_page", "read_table", "slug_of"]

ROOT = Path(__file__).parents[2]
WRITTEN_BY_THE_BENCHMARKS = {"benchmarks.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in WRITTEN_BY_THE_BENCHMARKS),
]

FENCE = re.compile(r"```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")


class Block(NamedTuple):
    """What stands between two fences. `line` is that of its first line in the page."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str
    follows: str
    """What stands between the block before and this one; empty if nothing does."""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def read_page(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def read_blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page, in order."""
    text = read_page(page)
    blocks: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start(3)) + 1
        language, words, body = match.groups()
        blocks.append(Block(page, line, language, tuple(words.split()), body, text[end : match.start()].strip()))
        end = match.end()
    return blocks


def read_links(page: Path) -> list[str]:
    """Returns the targets of all links outside code."""
    return LINK.findall(CODE.sub("", FENCE.sub("", read_page(page))))


def read_table(page: Path, heading: str) -> list[list[str]]:
    """Returns the cells of all tables below a heading, without their head rows."""
    section = re.split(rf"^#+ {re.escape(heading)}$", read_page(page), maxsplit=1, flags=re.MULTILINE)[1]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r"^\|.*\|\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", section, flags=re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for rows in tables for row in rows.splitlines()]


def slug_of(heading: str) -> str:
    """Returns the anchor that a heading gets on the usual sites."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")

"""Rewrites the links of a Markdown page outside its code blocks. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["find_links", "is_relative", "rewrite_links"]

FENCE = re.compile(r"^(```\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def rewrite_links(markdown: str, replace: Callable[[re.Match[str]], str], *, keep_words: bool = True) -> str:
    """Returns a page with each link replaced; a match has the groups `picture` (`!` or nothing), `text` and `target`.

    Without `keep_words` only the language stays behind the opening of a code block."""
    parts: list[str] = []
    end = 0
    for fence in FENCE.finditer(markdown):
        block = fence[0] if keep_words else f"{fence[1]}\n{fence[3]}```"
        parts += [LINK.sub(replace, markdown[end : fence.start()]), block]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])


def find_links(markdown: str) -> list[str]:
    """Returns the targets of all links and pictures outside code blocks."""
    return [link["target"] for link in LINK.finditer(FENCE.sub("", markdown))]


def is_relative(target: str) -> bool:
    """Returns whether a link leads to a file of the repository."""
    return not re.match(r"[a-z]+:|#", target)

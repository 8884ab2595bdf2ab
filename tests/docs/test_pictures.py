"""The pictures of terminals match the present output; figures, times and process ids do not count."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.docs.pictures import PICTURES, what_is_seen, words_of

pytestmark = [pytest.mark.process]


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
async def test_a_picture_has_the_text_that_would_be_drawn_now(path: Path) -> None:
    with anyio.fail_after(60):
        drawn = await PICTURES[path]()

    stored = await anyio.Path(path).read_text(encoding="utf-8")
    assert words_of(stored) == words_of(drawn), "run `python -m tests.docs.pictures`"


def test_the_words_of_a_picture_are_unique_and_without_figures() -> None:
    assert words_of("<text>notes:&#160;12&#160;ms</text><text>notes:</text>") == ["ms", "notes:"]


def test_a_redrawn_line_counts_in_its_last_state() -> None:
    assert what_is_seen("one\n10 %\r\x1b[2K20 %\n\r\x1b[1A\x1b[2K30 %\n") == ["one", "30 %", ""]

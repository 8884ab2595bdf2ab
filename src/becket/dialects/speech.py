"""How the extension contract is spoken in a dialect that has words of its own for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from becket.contract.tools import ToolCall
from becket.dialects.handshakes import Greeting, Introduction, Welcome
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.errors import NotSupported

__all__ = ["Speech", "TalePhrase"]


class TalePhrase(Struct, frozen=True, kw_only=True, eq=False):
    """How one notification of the contract is told: to the other side, and by it under the name `heard_as`.

    `tell` makes the notification of the contract's params, None where it is better not told; `hear` makes those of the
    params that came."""

    heard_as: str
    tell: Callable[[Any, Scene], Tale | None]
    hear: Callable[[Any, Scene], Any]


class Speech(Struct, frozen=True, kw_only=True, eq=False):
    """The words of one dialect for the contract. It is made when a link needs it: most programs speak one dialect.

    `phrases` are by the name of the contract's method, those in which the extension asks (`memory.append`) too; `tales`
    by that of its notification. What stands in neither cannot be said. `goodbye` ends a program, where there is a word
    for that; otherwise the end of its input tells it. `last_word` is told once the goodbye was answered. `seal` adds to
    the call of a tool what the host says about it, beside an input that was checked. With `probes_info` a host asks
    `info.get` right after the handshake. `check_call` raises NotSupported for a request of the dialect's own that the
    host has not announced to serve."""

    dialect: str
    greet: Callable[[Introduction], Greeting]
    welcome: Welcome
    phrases: Mapping[str, Phrase] = {}
    tales: Mapping[str, TalePhrase] = {}
    goodbye: Callable[[Scene], Saying] | None = None
    last_word: Callable[[Scene], Tale] | None = None
    probes_info: bool = False
    seal: Callable[[ToolCall, Mapping[str, Any] | None, Scene], ToolCall] | None = None
    check_call: Callable[[str, Scene], None] | None = None

    def phrase_for(self, method: str) -> Phrase:
        """Returns how this method of the contract is said.

        Raises:
            NotSupported: it cannot be said in this dialect.
        """
        phrase = self.phrases.get(method)
        if phrase is None:
            raise NotSupported(f"`{method}`", f"the dialect `{self.dialect}` has no word for it")
        return phrase

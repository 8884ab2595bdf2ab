"""How the extension contract is spoken in a dialect that has words of its own for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from becket.dialects.handshakes import Greeting, Introduction, Welcome
from becket.dialects.phrases import Phrase, Saying, Scene, Tale
from becket.errors import NotSupported

__all__ = ["Speech"]


class Speech(Struct, frozen=True, kw_only=True, eq=False):
    """The words of one dialect for the contract. It is made when a link needs it: most programs speak one dialect.

    `phrases` are by the name of the contract's method, those in which the extension asks (`memory.append`) too. What is
    told rather than asked stands in `tales`, by the contract's name of the notification: `tell` of it goes out, and
    `heard` makes of a notification of theirs the contract's params. `goodbye` ends a program, where there is a word."""

    dialect: str
    greet: Callable[[Introduction], Greeting]
    welcome: Welcome
    phrases: Mapping[str, Phrase] = {}
    goodbye: Callable[[Scene], Saying] | None = None
    tales: Mapping[str, TalePhrase] = {}

    def phrase_for(self, method: str) -> Phrase:
        """Returns how this method of the contract is said.

        Raises:
            NotSupported: it cannot be said in this dialect.
        """
        phrase = self.phrases.get(method)
        if phrase is None:
            raise NotSupported(f"`{method}`", f"the dialect `{self.dialect}` has no word for it")
        return phrase


class TalePhrase(Struct, frozen=True, kw_only=True, eq=False):
    """How one notification of the contract is told: to the other side, and by it under the name `heard_as`."""

    heard_as: str
    tell: Callable[[object, Scene], Tale]
    hear: Callable[[object, Scene], object]

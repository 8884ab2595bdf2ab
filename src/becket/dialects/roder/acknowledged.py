"""What Roder acknowledges at once and ends with an event: an answer of a model, a dispatch, a run of a task.

The request, its acknowledgement and each of its events bear one id, which the host has chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from becket.contract.shapes import REFUSED
from becket.dialects.phrases import Saying, Scene
from becket.dialects.roder.shown import show_text
from becket.errors import Meaning, RpcError

__all__ = ["FAILED", "LONGEST_WAIT", "Address"]

FAILED: Final = -32000  # the number of what failed by an event, which has none
LONGEST_WAIT: Final = 1800.0  # seconds without an event; Roder itself waits for ever, and for no agent longer than this


class Address(Struct, frozen=True, eq=False):
    """The id of one kind of work: what it is called, the class of its acknowledgement, and where the id stands in that
    and in the params of the request."""

    what: str
    acknowledgement: type[Struct]
    id_of: Callable[[Any], str]

    def belongs(self, raw: Raw, call: object) -> bool:
        """Returns whether an event is of this work."""
        try:
            return self._read(raw) == self.id_of(call)
        except REFUSED:
            return False

    def check(self, answer: Raw, call: object) -> None:
        """Raises ValueError for an acknowledgement of something else."""
        given, wanted = self._read(answer), self.id_of(call)
        if given != wanted:
            raise ValueError(f"acknowledged {self.what} {show_text(given)} but {show_text(wanted)} was requested")

    def acknowledge(self, saying: Saying, scene: Scene) -> Struct:
        """Returns the acknowledgement of a request.

        Raises:
            RpcError: NOT_READY, before the handshake."""
        if scene.particulars is None:
            raise RpcError(Meaning.NOT_READY, f"not ready: `{saying.method.name}` was sent before the handshake")
        return self.acknowledgement(self.id_of(saying.params))

    def _read(self, raw: Raw) -> str:
        return self.id_of(msgspec.json.decode(raw, type=self.acknowledgement))

"""LSP on the wire: the base protocol. `$/progress` belongs to tokens in the params of requests, which are the business
of whoever makes the request: nothing of it is the link's.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.errors import NUMBERS, Meaning
from becket.rpc.records import Cancelling

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["LSP"]

SERVER_NOT_INITIALIZED: Final = -32002
MIB: Final = 1024 * 1024


def load_speech() -> Speech:
    from becket.dialects.lsp.speech import SPEECH

    return SPEECH


LSP: Final = Dialect(
    name="lsp",
    cancelling=Cancelling("$/cancelRequest"),
    numbers=MappingProxyType({**NUMBERS, Meaning.NOT_READY: SERVER_NOT_INITIALIZED}),
    contract=load_speech,
    habits=Habits(
        # The tokens of a large file are half a million numbers; some servers read a whole project before they answer.
        limits={"frame": 32 * MIB, "nodes": 2_000_000, "handshake": 60.0},
        # It works on the project of whoever runs the host, not in the folder that it was installed to.
        works_in_root=False,
    ),
)

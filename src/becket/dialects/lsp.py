"""`lsp`: the base protocol of the Language Server Protocol, and a language server as an extension of a host.

The link: Content-Length, `$/cancelRequest` with an answer to what was cancelled, and a number for requests that come
before `initialize`. `$/progress` belongs to tokens in the params of a request, which are the business of whoever makes
the request: nothing of it is the link's.

The contract: the host's handshake is LSP's own; the commands of the server are run as commands, their progress comes as
tasks, and what it logs goes to the host's log. It has no tools, providers, hooks or memory. All that a client of the
server needs besides (`becket.interop.lsp`) stands above this layer, with the types of lsprotocol.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.errors import NUMBERS, Meaning
from becket.rpc.records import Cancelling

__all__ = ["LSP"]

SERVER_NOT_INITIALIZED: Final = -32002
MIB: Final = 1024 * 1024


LSP: Final = Dialect(
    name="lsp",
    cancelling=Cancelling("$/cancelRequest"),
    numbers=MappingProxyType({**NUMBERS, Meaning.NOT_READY: SERVER_NOT_INITIALIZED}),
    habits=Habits(
        # The tokens of a large file are half a million numbers; some servers read a whole project before they answer.
        limits={"frame": 32 * MIB, "nodes": 2_000_000, "handshake": 60.0},
        # It works on the project of whoever runs the host, not in the folder that it was installed to.
        works_in_root=False,
    ),
)

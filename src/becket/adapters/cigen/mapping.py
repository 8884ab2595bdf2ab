"""Maps the contract to cigen: only the handshake, because a plugin has only `plan` and `generate`."""

from __future__ import annotations

from typing import Final

from becket.adapters.cigen.handshake import SERVER_HANDSHAKE, client_handshake
from becket.dialects.mapping import ContractMapping

__all__ = ["MAPPING"]

MAPPING: Final = ContractMapping(dialect="cigen", client_handshake=client_handshake, server_handshake=SERVER_HANDSHAKE)

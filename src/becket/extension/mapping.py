"""Maps an extension's session and its calls to the host onto a foreign dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from becket.contract.handshake import Initialize, Initialized
from becket.dialects.mapping import ContractMapping
from becket.dialects.phrases import LinkState
from becket.extension.mapping_words import HostCallMapping
from becket.methods.descriptors import Method
from becket.methods.registry import Registry
from becket.peer.dialect_handlers import map_handlers

__all__ = ["SessionMapping"]


class SessionMapping:
    """All that a session needs to know of a dialect with words of its own for the contract."""

    def __init__(self, speech: ContractMapping, scene: LinkState, methods: Registry) -> None:
        self._mapping = speech
        self._link_state = scene
        self.client = HostCallMapping(speech, scene)
        self.registry = map_handlers(methods, speech, scene)
        self.early_queries = speech.server_handshake.allowed_before_initialize
        self.initialize_method = speech.server_handshake.initialize_method.name
        self.shutdown_result = speech.server_handshake.shutdown_result

    @property
    def shutdown_method(self) -> Method[Any, Any] | None:
        """The request that ends the extension, whatever its params."""
        if self._mapping.encode_shutdown is None:
            return None
        return Method(self._mapping.encode_shutdown(self._link_state).method.name, Any, Any)

    def queries(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yields further questions about what the extension offers, each with what answers it."""
        for name, answer in self._mapping.server_handshake.handlers.items():
            yield name, partial(self._run_query, answer)

    def _run_query(self, answer: Callable[[Any, LinkState], Any], params: Any) -> Any:
        return answer(params, self._link_state)

    def decode_initialize(self, given: Any) -> Initialize:
        """Returns what the host said as the contract would have it, without features that nobody agreed on."""
        return self._mapping.server_handshake.decode_params(given, self._link_state)

    def encode_initialized(self, initialized: Initialized) -> Any:
        """Returns the answer to that."""
        self._link_state.capabilities = initialized.capabilities
        return self._mapping.server_handshake.encode_result(initialized, self._link_state)

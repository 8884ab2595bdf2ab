"""A session with a host of another dialect: its handshake, its names for what is served, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from becket.contract.handshake import Initialize, Initialized
from becket.dialects.phrases import Scene
from becket.dialects.speech import Speech
from becket.extension.words import Words
from becket.methods.descriptors import Method
from becket.methods.registry import Registry
from becket.peer.spoken import translate_methods

__all__ = ["ForeignWords"]


class ForeignWords:
    """All that a session needs to know of a dialect with words of its own for the contract."""

    def __init__(self, speech: Speech, scene: Scene, methods: Registry) -> None:
        self._speech = speech
        self._scene = scene
        self.words = Words(speech, scene)
        self.registry = translate_methods(methods, speech, scene)
        self.always = speech.welcome.always
        self.opening = speech.welcome.opening.name
        self.farewell = speech.welcome.farewell

    @property
    def goodbye(self) -> Method[Any, Any] | None:
        """The request that ends the extension, whatever its params."""
        if self._speech.goodbye is None:
            return None
        return Method(self._speech.goodbye(self._scene).method.name, Any, Any)

    def queries(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yields further questions about what the extension offers, each with what answers it."""
        for name, answer in self._speech.welcome.queries.items():
            yield name, partial(self._answer, answer)

    def _answer(self, answer: Callable[[Any, Scene], Any], params: Any) -> Any:
        return answer(params, self._scene)

    def read(self, given: Any) -> Initialize:
        """Returns what the host said as the contract would have it, without features that nobody agreed on."""
        return self._speech.welcome.read(given, self._scene)

    def reply(self, initialized: Initialized) -> Any:
        """Returns the answer to that."""
        self._scene.declared = initialized.capabilities
        return self._speech.welcome.reply(initialized, self._scene)

"""What an extension asks and tells its host, in the words of that host's dialect. Native links have no need of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.dialects.phrases import Scene, Tale, as_it_is
from becket.dialects.speech import Speech
from becket.errors import NotSupported
from becket.methods.descriptors import Method, Notification

__all__ = ["Asked", "Words"]

ASKED = frozenset(method.name for method in METHODS)
TOLD = frozenset(notification.name for notification in NOTIFICATIONS)


class Asked(Struct, frozen=True, eq=False):
    """A request as it travels, and how its answer is read."""

    method: Any
    params: Any
    read: Callable[[Any], Any]


class Words:
    """One link's own. What is not of the contract goes as it is; what the dialect has no word for is refused."""

    def __init__(self, speech: Speech, scene: Scene) -> None:
        self._speech = speech
        self._scene = scene

    def ask(self, method: str | Method[Any, Any], params: Any) -> Asked:
        """Returns a request of the contract as this dialect has it.

        Raises:
            NotSupported: it cannot be said.
        """
        name = method if isinstance(method, str) else method.name
        if name not in ASKED:
            if self._speech.check_call is not None:
                self._speech.check_call(name, self._scene)
            return Asked(method, params, as_it_is)
        phrase, scene = self._speech.phrase_for(name), self._scene
        saying = phrase.say(params, scene)
        return Asked(saying.method, saying.params, lambda answer: phrase.read(answer, saying, scene))

    def can_tell(self, notification: Notification[Any]) -> bool:
        """Returns whether there is a word for it."""
        return notification.name in self._speech.tales

    def tell(self, method: str | Notification[Any], params: Any) -> Tale | None:
        """Returns a notification of the contract as this dialect has it; None where it is better not told.

        Raises:
            NotSupported: it cannot be said.
        """
        name = method if isinstance(method, str) else method.name
        if name not in TOLD:
            return Tale(name, params)
        tale = self._speech.tales.get(name)
        if tale is None:
            raise NotSupported(f"`{name}`", f"the dialect `{self._speech.dialect}` has no word for it")
        return tale.tell(params, self._scene)

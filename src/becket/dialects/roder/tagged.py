"""Values that travel under the name of their class: `{"MessageDelta": {"text": "x"}}`. One name, never two."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, Struct

__all__ = ["Tagged"]


class Tagged(Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """One of several classes of values. A subclass has a member for each, which is UNSET where it is another.

    `bare` is the class of which only its one value travels.

    Raises, when made or decoded:
        ValueError: there is none, or more than one.
    """

    members: ClassVar[dict[type[Any], str]] = {}
    bare: ClassVar[type[Any] | None] = None

    def __post_init__(self) -> None:
        if len(self._given()) != 1:
            raise ValueError("exactly one of the names of its classes must stand there")

    @property
    def value(self) -> Any:
        """The one that is there."""
        kind, value = self._given()[0]
        return kind(value) if kind is self.bare else value

    @classmethod
    def of(cls, value: Any) -> Any:
        """Returns the value under the name of its class."""
        name = cls.members[value.__class__]
        return cls(**{name: value.value if value.__class__ is cls.bare else value})

    def _given(self) -> list[tuple[type[Any], Any]]:
        return [(kind, value) for kind, name in self.members.items() if (value := getattr(self, name)) is not UNSET]

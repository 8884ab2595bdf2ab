"""Base of externally tagged unions (serde): one member named after the variant."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, Struct

__all__ = ["TaggedUnion"]


class TaggedUnion(Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """A value of one of several classes. A subclass has a member for each class; all but one are UNSET.

    `bare_variant` is the class that is sent as its only value.

    Raises, when made or decoded:
        ValueError: there is none, or more than one.
    """

    variants: ClassVar[dict[type[Any], str]] = {}
    bare_variant: ClassVar[type[Any] | None] = None

    def __post_init__(self) -> None:
        if len(self._find_variants()) != 1:
            raise ValueError("exactly one of the names of its classes must stand there")

    @property
    def value(self) -> Any:
        """The member that is set."""
        kind, value = self._find_variants()[0]
        return kind(value) if kind is self.bare_variant else value

    @classmethod
    def wrap(cls, value: Any) -> Any:
        """Returns the value under the name of its class."""
        name = cls.variants[value.__class__]
        return cls(**{name: value.value if value.__class__ is cls.bare_variant else value})

    def _find_variants(self) -> list[tuple[type[Any], Any]]:
        return [(kind, value) for kind, name in self.variants.items() if (value := getattr(self, name)) is not UNSET]

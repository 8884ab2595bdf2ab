"""Models and providers as an extension declares them in the handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct, StructMeta

from becket.contract.json_narrowing import is_object

__all__ = ["Model", "Provider"]

if TYPE_CHECKING:
    FlatModel = StructMeta
else:

    class FlatModel(StructMeta):
        """Lets `Model` be made from flat arguments, of which two travel together in one member."""

        def __call__(cls, id, display_name=None, context_window=None, streaming=False, tool_use=False):
            capabilities = {"streaming": streaming, "tool_use": tool_use}
            return super().__call__(id, display_name, capabilities, context_window)


class Model(Struct, metaclass=FlatModel, frozen=True, omit_defaults=True):
    """A model of a provider. What else it can do stands in `capabilities`, in words of the author's."""

    id: str
    display_name: str | None = None
    capabilities: Any = None
    context_window: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str,
            display_name: str | None = None,
            context_window: int | None = None,
            streaming: bool = False,
            tool_use: bool = False,
        ) -> None: ...

    @property
    def streaming(self) -> bool:
        """Returns whether the provider sends the answers of this model piece by piece."""
        return self._declares("streaming")

    @property
    def tool_use(self) -> bool:
        """Returns whether the model may ask for tools."""
        return self._declares("tool_use")

    def _declares(self, capability: str) -> bool:
        return is_object(self.capabilities) and self.capabilities.get(capability) is True

    def __reduce__(self) -> tuple[Any, ...]:  # the one of Struct would give the fields to the flat arguments
        return msgspec.convert, (msgspec.to_builtins(self), Model)


class Provider(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider of models. `config_schema` is the JSON Schema of the configuration that it needs, an object."""

    id: str
    display_name: str
    description: str
    config_schema: Any = None
    models: tuple[Model, ...] = ()

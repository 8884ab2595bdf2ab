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
        """Lets `Model` be constructed from flat arguments, two of which are sent together in one member."""

        def __call__(cls, id, display_name=None, context_window=None, streaming=False, tool_use=False):
            capabilities = {"streaming": streaming, "tool_use": tool_use}
            return super().__call__(id, display_name, capabilities, context_window)


class Model(Struct, metaclass=FlatModel, frozen=True, omit_defaults=True):
    """A model of a provider. `capabilities` holds further capabilities, in the author's own terms."""

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
        """Whether the provider streams the responses of this model."""
        return self._declares("streaming")

    @property
    def tool_use(self) -> bool:
        """Whether the model may call tools."""
        return self._declares("tool_use")

    def _declares(self, capability: str) -> bool:
        return is_object(self.capabilities) and self.capabilities.get(capability) is True

    def __reduce__(self) -> tuple[Any, ...]:  # Struct's own would pass the fields to the flat arguments
        return msgspec.convert, (msgspec.to_builtins(self), Model)


class Provider(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model provider. `config_schema` is the JSON Schema of the configuration that it needs, an object."""

    id: str
    display_name: str
    description: str
    config_schema: Any = None
    models: tuple[Model, ...] = ()

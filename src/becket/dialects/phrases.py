"""How the things of the contract are said in another dialect, from both sides of the link.

A host calls `tool.call` and an extension serves it, whatever stands on the wire: a `Phrase` translates what goes and
what comes back. What a dialect has no phrase for it cannot say. Pure: no phrase keeps anything; what is known of a link
is its `Scene`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from msgspec import Struct, field

from becket.contract.handshake import Capabilities
from becket.contract.hooks import HookKind
from becket.errors import RpcError
from becket.methods.descriptors import Method

__all__ = ["Phrase", "Saying", "Scene", "Tale", "as_it_is"]


class Scene(Struct, eq=False):
    """What both sides know of a link when something is said on it.

    `declared` is what the extension offers, in the contract's classes; `particulars` what the dialect's own handshake
    and manifest have told besides, in a class of the dialect's. `numbers` gives names to what needs one; `farewell` is
    why the host ends the extension, once it does.

    On the extension's side stand besides its `version`, its `commands` (name and description), the `hooks` that it
    takes part in, and its `own` methods, by name."""

    extension: str
    declared: Capabilities = Capabilities()
    particulars: Any = None
    numbers: count[int] = field(default_factory=lambda: count(1))
    farewell: str = ""
    version: str = ""
    commands: tuple[tuple[str, str], ...] = ()
    hooks: tuple[HookKind, ...] = ()
    own: frozenset[str] = frozenset()


class Saying(Struct, frozen=True, eq=False):
    """A request in a dialect's own words. `method` may be a `Stream`, whose readers give events of the contract."""

    method: Method[Any, Any]
    params: Any = None


class Tale(Struct, frozen=True):
    """A notification in a dialect's own words."""

    method: str
    params: Any = None


def as_it_is(value: Any, *_: object) -> Any:
    """Translates nothing."""
    return value


class Phrase(Struct, frozen=True, kw_only=True, eq=False):
    """How one method of the contract is said in a dialect.

    The side that asks has `say`, which makes the request of the contract's params, and `read`, which makes the
    contract's result of the answer (of what its method's type is). The side that is asked has `heard_as`, the methods
    under which it is asked; `hear`, which makes the contract's params of the request; and `answer`, which makes the
    answer of the contract's result. `fail` makes an answer of what the function failed with, where a dialect has such;
    it may raise the error instead. `tell` makes a notification of an event of the contract, None for one that this
    dialect has no word for; `progress` likewise of what `ctx.progress` reports. All of them get the same `Saying`.

    Where a request is acknowledged at once and ends with an event, `acknowledge` makes the acknowledgement and `end`
    the last events, of the contract's result or of the error; `answer` is not asked then. `cancelled_as` is the request
    that ends it before, and `key_of` what the params of both have in common."""

    say: Callable[[Any, Scene], Saying]
    read: Callable[[Any, Saying, Scene], Any] = as_it_is
    heard_as: Callable[[Scene], Iterable[Method[Any, Any]]]
    hear: Callable[[Saying, Scene], Any]
    answer: Callable[[Any, Saying, Scene], Any] = as_it_is
    fail: Callable[[RpcError, Saying, Scene], Any] | None = None
    tell: Callable[[Any, Saying, Scene], Tale | None] | None = None
    progress: Callable[[Any, Saying, Scene], Tale | None] | None = None
    acknowledge: Callable[[Saying, Scene], Any] | None = None
    end: Callable[[Any, RpcError | None, Saying, Scene], Iterable[Tale]] | None = None
    cancelled_as: Method[Any, Any] | None = None
    key_of: Callable[[Any], object] = as_it_is

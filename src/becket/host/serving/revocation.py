"""Ends running calls and streams of an extension when their permission is revoked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from becket.errors import BecketError, NotPermitted, PermissionDenied
from becket.peer.loops.async_loops import current_loop
from becket.peer.policies import decide_with_policies
from becket.permissions.gate import Gate

if TYPE_CHECKING:
    from becket.host.serving.client import ContractClient
    from becket.methods.descriptors import Method
    from becket.peer.outbound import Unset
    from becket.peer.peer import Peer
    from becket.peer.protocols import Loop

__all__ = ["Revocable", "RevocableCalls"]

P = TypeVar("P")
R = TypeVar("R")


class Revocable(Protocol):
    """Something that lasts, and that other code can end with an error."""

    def end(self, error: BecketError) -> None: ...


class RevocableCalls:
    """The calls and streams of one extension, by the permission that each of them needs."""

    def __init__(self, gate: Gate, loop: Loop) -> None:
        self._gate = gate
        self._loop = loop
        self._by_permission: dict[str, set[Revocable]] = {}
        self._peer: Peer | None = None
        self._unsubscribe = gate.subscribe(self._on_revoked)

    async def check(self, method: str, permission: str | None) -> None:
        """Decides whether the extension may be called, and records it. It waits only for a policy.

        Raises:
            NotPermitted: it may not.
        """
        if self._gate.consults():
            await self._consult(method, permission)
        else:
            self._check_now(method, permission)

    def _check_now(self, method: str, permission: str | None) -> None:
        try:
            self._gate.check(method, permission)
        except PermissionDenied as error:
            raise self._build_error(error.permission, method) from None

    async def _consult(self, method: str, permission: str | None) -> None:
        # On a loop of its own: that of the link may end meanwhile, and nothing would end the wait.
        loop = await current_loop()
        try:
            self._gate.enforce(await decide_with_policies(loop, self._gate, method, permission))
        except PermissionDenied as error:
            raise self._build_error(error.permission, method) from None
        finally:
            loop.close()

    def add(self, permission: str, one: Revocable) -> None:
        """Ends this call with its permission from now on."""
        self._by_permission.setdefault(permission, set()).add(one)

    def remove(self, permission: str, one: Revocable) -> None:
        """Removes a call that has ended by itself."""
        if permission in self._by_permission:
            self._by_permission[permission].discard(one)

    async def call(
        self,
        client: ContractClient,
        method: Method[P, R],
        params: P,
        permission: str,
        timeout: float | Unset | None,
        returns: Any = None,
    ) -> R:
        """Makes a call that needs a permission of the extension, and returns its result.

        Raises:
            NotPermitted: the extension does not hold it, or lost it before the response arrived.
        """
        if self._gate.consults():
            await self._consult(method.name, permission)
        else:
            self._check_now(method.name, permission)
        return await client.call(method, params, returns=returns, timeout=timeout, group=permission)

    def end_calls_of(self, peer: Peer) -> None:
        """Ends the calls of this link, too, whose permission is revoked from now on."""
        self._peer = peer

    def _on_revoked(self, permission: str) -> None:
        self._loop.call_from_thread(lambda: self._end(permission))  # revocations come from any thread

    def _end(self, permission: str) -> None:
        if self._gate.allows(permission):
            return  # it was granted again in the meantime
        for one in self._by_permission.pop(permission, set()):
            one.end(self._build_error(permission))
        if self._peer is not None:
            self._peer.end_calls(permission, partial(self._build_error, permission))

    def _build_error(self, permission: str, method: str = "") -> NotPermitted:
        return NotPermitted(permission, method=method, extension=self._gate.extension)

    def close(self) -> None:
        """Unsubscribes from revocations."""
        self._unsubscribe()

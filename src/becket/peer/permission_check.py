"""Applies a link's permission gate to its requests and prompts the user where the gate requires it.

The decision itself is the gate's (`permissions.gate`). A permission has one open prompt at a time, which all its
requests wait for; a revocation ends them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from becket._loggers import peer_logger
from becket.errors import PermissionDenied
from becket.methods.registry import Handler

if TYPE_CHECKING:
    from becket.jsonrpc.calls import InboundRequest
    from becket.peer.link import Link
    from becket.peer.protocols import LoopFuture, TaskHandle, Timer
    from becket.permissions.gate import Gate  # links without a gate start without them
    from becket.permissions.policies import Decision

__all__ = ["AskCallback", "DecisionWait", "PermissionChecker"]

PROMPT_TIMEOUT = 60.0  # seconds for a person to respond; no response denies

DecisionWait = Callable[[], Awaitable[None]]
"""Waits for a decision, and raises PermissionDenied if it is denied."""

AskCallback = Callable[[str, "Decision"], bool | Awaitable[bool]]
"""Prompts a person: takes the question as one escaped line, and its subject. A plain function runs in a thread."""


class PermissionChecker:
    """The gate of one link, and its open prompts."""

    def __init__(
        self, link: Link, gate: Gate, ask: AskCallback | None, *, prompt_timeout: float = PROMPT_TIMEOUT
    ) -> None:
        self._link = link
        self._ask = ask
        self._prompt_timeout = prompt_timeout
        self._prompts: dict[str, PermissionPrompt] = {}
        self.gate = gate

    def check(self, request: InboundRequest, handler: Handler) -> DecisionWait | None:
        """Returns None if the handler may run now, or an awaitable that waits for a policy or a person.

        Raises:
            PermissionDenied: it may not.
            RpcError: the outbound call that it belongs to is not pending, or it names none where it must.
        """
        gate, chain = self.gate, request.chain
        method, requires = request.method, handler.requires
        if request.has_unknown_parent or self._link.is_for_others:
            self._check_parent(gate, request, requires)
        if not chain and not request.handling and gate.allows_at_once(method, requires):
            return None
        if gate.consults(chain):
            return partial(self._wait_for_policies, request, requires)
        decision = gate.decide(method, requires, chain, request.handling)
        if decision.allowed:
            return None
        self._conclude(decision)
        return partial(self.wait_for_consent, decision, chain)

    def _check_parent(self, gate: Gate, request: InboundRequest, requires: str | None) -> None:
        if not request.has_parent:
            chains = [call.chain for call in self._link.connection.calls.values() if call.chain]
            others = {other.extension for chain in chains for other in chain} - {gate.extension}
            request.handling = tuple(sorted(others))
        is_unknown = request.has_unknown_parent
        gate.check_parent(request.method, requires, is_unknown=is_unknown, handling=request.handling)

    async def _wait_for_policies(self, request: InboundRequest, requires: str | None) -> None:
        decision = await self.admit(request.method, requires, request.chain, request.handling)
        if decision is not None:
            await self.wait_for_consent(decision, request.chain)

    def decide(self, method: str, requires: str | None) -> Decision | None:
        """Returns None if a method may be called that requires this permission, or a decision that needs a prompt.

        Raises:
            PermissionDenied: it may not.
        """
        return self._conclude(self.gate.decide(method, requires, (), ()))

    def _conclude(self, decision: Decision) -> Decision | None:
        if decision.allowed:
            return None
        if decision.allowed is None and self._ask is not None:
            return decision
        raise PermissionDenied(
            decision.permission or decision.method, method=decision.method, extension=decision.extension
        )

    def consults(self, chain: Sequence[Gate] = ()) -> bool:
        """Returns whether policies decide about calls, so that `admit` must be awaited."""
        return self.gate.consults(chain)

    async def admit(
        self, method: str, requires: str | None, chain: Sequence[Gate] = (), handling: tuple[str, ...] = ()
    ) -> Decision | None:
        """Decides as `decide` does, and consults policies."""
        return self._conclude(await self._consult(method, requires, chain, handling))

    async def _consult(
        self, method: str, requires: str | None, chain: Sequence[Gate], handling: tuple[str, ...]
    ) -> Decision:
        from becket.peer.policies import decide_with_policies

        return await decide_with_policies(self._link.loop, self.gate, method, requires, chain, handling)

    async def wait_for_consent(self, decision: Decision, chain: Sequence[Gate]) -> None:
        """Prompts the user for a decision that needs it, and decides again then.

        Raises:
            PermissionDenied: the user denied it, or did not respond in time.
        """
        assert self._ask is not None
        permission = decision.permission or decision.method
        question = self._prompts.get(permission)
        if question is None and self.gate.begin_prompt(permission):
            question = self._prompts[permission] = PermissionPrompt(
                self._link, self._ask, decision, self._on_prompt_done
            )
            question.start(self._prompt_timeout)
        if question is not None:
            await question.wait()
        if self.gate.consults(chain):
            self.gate.enforce(await self._consult(decision.method, decision.permission, chain, decision.handling))
        else:
            self.gate.enforce(self.gate.decide(decision.method, decision.permission, chain, decision.handling))

    def _on_prompt_done(self, permission: str, allowed: bool) -> None:
        self._prompts.pop(permission, None)
        self.gate.resolve_prompt(permission, allowed)

    def close(self) -> None:
        """Denies all open prompts: the link has ended."""
        for question in list(self._prompts.values()):
            question.resolve(allowed=False)


class PermissionPrompt:
    """One question to a person, and the requests that wait for it."""

    def __init__(self, link: Link, ask: AskCallback, decision: Decision, settled: Callable[[str, bool], None]) -> None:
        self._link = link
        self._ask = ask
        self._decision = decision
        self._on_done = settled
        self._is_done = False
        self._waiters: list[LoopFuture] = []
        self._timer: Timer | None = None
        self._task: TaskHandle | None = None

    def start(self, timeout: float) -> None:
        """Prompts, and takes no response for a denial."""
        loop = self._link.loop
        self._timer = loop.call_later(timeout, lambda: self.resolve(allowed=False))
        running = loop.spawn(self._run())
        if not self._is_done:
            self._task = running

    async def _run(self) -> None:
        from becket.permissions.permission_prompt import format_prompt
        from becket.permissions.policies import is_async

        text = format_prompt(self._decision)
        allowed: Any = False
        try:
            if is_async(self._ask):
                allowed = await self._ask(text, self._decision)  # type: ignore[misc]
            else:
                allowed = await self._link.loop.run_in_thread(self._ask, text, self._decision)
        except Exception as error:
            log_prompt_failure(self._decision.extension, error)
        finally:
            self._task = None
            self.resolve(allowed=allowed is True)

    def resolve(self, *, allowed: bool) -> None:
        """Records the first response; later ones have no effect."""
        if self._is_done:
            return
        self._is_done = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._link.loop.cancel(self._task)
        self._on_done(self._decision.permission or self._decision.method, allowed)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            self._link.wake(waiter)

    async def wait(self) -> None:
        """Waits until it is settled."""
        if self._is_done:
            return
        waiter = self._link.loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)


def log_prompt_failure(extension: str, error: Exception) -> None:
    peer_logger().error("the prompt for a permission of %r failed: it is denied", extension, exc_info=error)

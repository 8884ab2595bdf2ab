"""Consults policies on a loop: the call that is decided waits, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from becket.permissions.policies import NO_VERDICT, PolicyQuestion, objection_in

if TYPE_CHECKING:
    from becket.peer.protocols import Loop, LoopFuture
    from becket.permissions.gate import Gate
    from becket.permissions.policies import Decision

__all__ = ["decide_with_policies"]


async def decide_with_policies(
    loop: Loop,
    gate: Gate,
    method: str,
    requires: str | None,
    chain: Sequence[Gate] = (),
    handling: tuple[str, ...] = (),
) -> Decision:
    """Returns and records what a gate decides about a call, after each policy has decided."""
    deliberation = gate.deliberate(method, requires, chain, handling)
    try:
        question = next(deliberation)
        while True:
            question = deliberation.send(await PolicyConsultation(loop, question).wait())
    except StopIteration as end:
        decision: Decision = end.value
    gate.record(decision)
    return decision


class PolicyConsultation:
    """One question to a policy, and the task that waits for its verdict. No verdict in time is an objection."""

    def __init__(self, loop: Loop, question: PolicyQuestion) -> None:
        self._loop = loop
        self._question = question
        self._waiter: LoopFuture = loop.create_future()
        self._objection: str | None = NO_VERDICT

    async def wait(self) -> str | None:
        """Returns why the policy objects, None if it does not."""
        loop = self._loop
        timer = loop.call_later(self._question.timeout, self._give_up)
        running = None
        if self._question.is_async:
            running = loop.spawn(self._ask())
        else:
            self._question.workers.submit(self._work)
        try:
            await self._waiter
        finally:
            timer.cancel()
            if running is None:
                self._question.workers.withdraw(self._work)
            elif self._objection is NO_VERDICT:
                loop.cancel(running)
        return self._objection

    async def _ask(self) -> None:
        try:
            self._objection = objection_in(await self._question.policy(self._question.decision))  # type: ignore[misc]
        except Exception as error:
            self._objection = self._question.fail(error)
        finally:
            self._loop.wake(self._waiter)

    def _work(self) -> None:
        objection = self._question.evaluate()
        try:
            self._loop.call_from_thread(lambda: self._take(objection))
        except RuntimeError:
            pass  # the loop has ended, and with it the call

    def _take(self, objection: str | None) -> None:
        self._objection = objection
        self._loop.wake(self._waiter)

    def _give_up(self) -> None:
        self._loop.wake(self._waiter)

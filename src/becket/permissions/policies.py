"""Decisions about calls, and policies: a program's own checks of each call that its grants would allow.

A plain function runs in a worker thread of its gate, an `async def` on a loop (`peer.policies`). The verdict of either
is read here, once: True confirms a decision, all else is an objection.
"""

from __future__ import annotations

from _thread import allocate_lock  # `threading` adds a millisecond to a child's start
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from becket._loggers import host_logger

__all__ = [
    "NO_VERDICT",
    "POLICY_TIMEOUT",
    "Decision",
    "Policy",
    "PolicyQuestion",
    "PolicyWorkers",
    "is_async",
    "objection_in",
]

POLICY_TIMEOUT: Final = 5.0  # seconds for one verdict, as for a hook: a policy looks things up, and does not prompt
MAX_WORKERS: Final = 8  # threads of one gate; further questions wait for one of them, within their time
NO_VERDICT: Final = "the policy does not respond"


class Decision(Struct, frozen=True):
    """The decision about one call, and its reason. `allowed` is None if the user must consent first.

    `on_behalf_of` names the extensions whose calls this one belongs to, from the nearest to the first; if empty the
    extension acts on its own authority. `handling` names the other extensions whose requests it handles meanwhile, if
    the call does not name the request that it belongs to.
    """

    extension: str
    method: str
    permission: str | None
    allowed: bool | None
    because: str
    on_behalf_of: tuple[str, ...] = ()
    own_authority: bool = True
    handling: tuple[str, ...] = ()


Policy: TypeAlias = Callable[[Decision], bool | Awaitable[bool]]
"""Gets a decision that is not a denial, and returns True to confirm it. Plain, or `async def`."""


class PolicyQuestion:
    """One decision that a policy must confirm."""

    __slots__ = ("decision", "policy", "timeout", "workers")

    def __init__(self, policy: Policy, decision: Decision, workers: PolicyWorkers, timeout: float) -> None:
        self.policy = policy
        self.decision = decision
        self.workers = workers
        self.timeout = timeout

    @property
    def is_async(self) -> bool:
        """Whether the policy is to be awaited."""
        return is_async(self.policy)

    def evaluate(self) -> str | None:
        """Calls a plain policy in this thread, and returns why it objects, None if it does not."""
        try:
            return objection_in(self.policy(self.decision))
        except BaseException as error:  # any error: in a worker, nothing else would report it
            return self.fail(error)

    def evaluate_in_worker(self) -> str | None:
        """Calls the policy in a worker, and waits for it in this thread. Not for a loop, which it would block."""
        from threading import Event

        if self.is_async:
            return "the policy is `async def`, and nothing can wait for it here"
        verdicts: list[str | None] = []
        is_given = Event()

        def work() -> None:
            verdicts.append(self.evaluate())
            is_given.set()

        self.workers.submit(work)
        if not is_given.wait(self.timeout):
            self.workers.withdraw(work)
            return NO_VERDICT
        return verdicts[0]

    def fail(self, error: BaseException) -> str:
        """Logs an error of the policy, and returns it as an objection."""
        extension = self.decision.extension
        host_logger().error("the policy for %r failed", extension, exc_info=error)
        return f"the policy failed: {type(error).__name__}"


def is_async(function: Any) -> bool:
    """Returns whether the result of a function is to be awaited."""
    import inspect  # expensive at start, and needed only for a policy or a prompt

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def objection_in(verdict: object) -> str | None:
    """Returns the objection in a policy's verdict, None if it confirms the decision."""
    return None if verdict is True else "the policy objects"  # not by truth value: a coroutine is true as well


class PolicyWorkers:
    """The threads in which one gate calls its policy. They end with the last question, and keep no program alive."""

    __slots__ = ("_lock", "_queue", "_threads")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._queue: deque[Callable[[], None]] = deque()
        self._threads = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs a function that catches its own errors in one of the threads, when one is free."""
        with self._lock:
            self._queue.append(work)
            if self._threads >= MAX_WORKERS:
                return
            self._threads += 1
        from threading import Thread

        Thread(target=self._work, name="becket policy", daemon=True).start()

    def withdraw(self, work: Callable[[], None]) -> None:
        """Removes a function that has not begun. One that runs goes on: a thread cannot be stopped."""
        with self._lock:
            if work in self._queue:
                self._queue.remove(work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                work = self._queue.popleft()
            work()

"""Decisions about calls, and policies: a program's own say about each call that its grants would allow.

A plain function runs in a worker thread of its gate, an `async def` on a loop (`peer.policies`). What either returns
is read here, once: True lets a decision stand, all else is an objection.
"""

from __future__ import annotations

from _thread import allocate_lock  # `threading` takes a child a millisecond to import
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

POLICY_TIMEOUT: Final = 5.0  # seconds for one verdict, as for a hook: a policy looks things up, and asks no person
MOST_WORKERS: Final = 8  # threads of one gate; more questions at once wait for one of them, within their time
NO_VERDICT: Final = "the policy does not respond"


class Decision(Struct, frozen=True):
    """What was decided about one call, and why. `allowed` is None where a person is to be asked first.

    `on_behalf_of` names the extensions whose calls this one belongs to, from the nearest to the first; where there is
    none the extension acts on its own authority. `handling` names the other extensions whose requests it handles
    meanwhile, where the call does not say to which request it belongs.
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
"""Gets a decision that is not a no, and returns True to let it stand. Plain, or `async def`."""


class PolicyQuestion:
    """One decision that a policy is asked about."""

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
        """Asks a plain policy in this thread, and returns why it objects, None if it does not."""
        try:
            return objection_in(self.policy(self.decision))
        except BaseException as error:  # whatever it is: in a worker, nothing else would report it
            return self.fail(error)

    def evaluate_in_worker(self) -> str | None:
        """Asks in a worker, and waits for it in this thread. Not for a loop: that would stand still."""
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
        """Logs an error of the policy, and returns the objection that it is."""
        extension = self.decision.extension
        host_logger().error("the policy for %r failed", extension, exc_info=error)
        return f"the policy failed: {type(error).__name__}"


def is_async(function: Any) -> bool:
    """Returns whether what a function returns is to be awaited."""
    import inspect  # dear at start, and needed only where there is a policy or a question

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def objection_in(verdict: object) -> str | None:
    """Returns the objection in what a policy has returned, None where it lets the decision stand."""
    return None if verdict is True else "the policy says no"  # a coroutine, say, is true as well and is no yes


class PolicyWorkers:
    """The threads in which one gate asks its policy. They end with the last question, and keep no program alive."""

    __slots__ = ("_lock", "_queue", "_threads")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._queue: deque[Callable[[], None]] = deque()
        self._threads = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs a function that catches its own errors in one of the threads, when one is free."""
        with self._lock:
            self._queue.append(work)
            if self._threads >= MOST_WORKERS:
                return
            self._threads += 1
        from threading import Thread

        Thread(target=self._work, name="becket policy", daemon=True).start()

    def withdraw(self, work: Callable[[], None]) -> None:
        """Forgets a function that has not begun. One that runs goes on: nothing can stop a thread."""
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

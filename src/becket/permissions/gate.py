"""The permission gate: decides which methods one extension may call.

Pure: a decision is a function of the grants, the policy and the chain of callers. Asking a person, waiting for the
answer and ending what a revocation forbids are the host's; the gate says when to, and remembers the answer.
"""

from __future__ import annotations

from _thread import allocate_lock  # `threading` takes a child a millisecond to import
from collections.abc import Callable, Generator, Sequence, Set as AbstractSet
from typing import Final, TypeAlias

from msgspec.structs import replace

from becket._loggers import host_logger
from becket.errors import Meaning, PermissionDenied, RpcError
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS, parse_permission
from becket.permissions.policies import POLICY_TIMEOUT, Decision, Policy, PolicyQuestion, PolicyWorkers

__all__ = ["MAX_PROMPTS", "Gate"]

MAX_PROMPTS: Final = 16  # that one extension may cause in its life; an honest one needs fewer, and is told the rest
MAX_CACHED_DECISIONS: Final = 1_024  # that say yes, by method

Deliberation: TypeAlias = Generator[PolicyQuestion, str | None, Decision]
"""A decision in the making: yields what policies are asked, takes their objections, returns what is decided."""


class Gate:
    """The one place where it is decided what one extension may call. Whose gate it is, its connection tells.

    A call passes if the extension, and each one on whose behalf it calls, holds the permission, and no policy objects.
    `policy` gets a decision that is not a no, and returns True to let it stand. All else is no: an error, and silence
    for `policy_timeout` seconds too. A plain function runs in a worker thread; it may be `async def`.
    `audit` gets every decision; where it fails, that is logged and the decision stands. With `asks`, what was neither
    given nor denied is to be asked for: see `begin_prompt`. `known` are the permissions that exist; no other is held.
    With `require_parent`, a call that names no parent while the extension handles a request of another is refused.

    Any thread may use it. Keep one for an extension, over all its restarts: the answers are remembered here.
    """

    __slots__ = (
        "_allowed",
        "_audit",
        "_can_prompt",
        "_decisions",
        "_grants",
        "_known",
        "_lock",
        "_open_prompts",
        "_policy",
        "_policy_timeout",
        "_prompt_count",
        "_requires_parent",
        "_subscribers",
        "_workers",
        "extension",
    )

    def __init__(
        self,
        extension: str,
        grants: Grants,
        *,
        audit: Callable[[Decision], object] | None = None,
        policy: Policy | None = None,
        policy_timeout: float = POLICY_TIMEOUT,
        asks: bool = False,
        known: AbstractSet[str] = PERMISSIONS,
        require_parent: bool = False,
    ) -> None:
        self.extension = extension
        self._requires_parent = require_parent
        self._known = frozenset(known) - RESERVED_PERMISSIONS
        self._audit = audit
        self._policy = policy
        self._policy_timeout = policy_timeout
        self._workers = None if policy is None else PolicyWorkers()
        self._can_prompt = asks
        self._lock = allocate_lock()  # two changes at once must not undo one another
        self._open_prompts: set[str] = set()
        self._prompt_count = 0
        self._subscribers: dict[object, tuple[Callable[[str], object], Callable[[str], object] | None]] = {}
        self._set_grants(grants)

    @property
    def grants(self) -> Grants:
        """What the extension holds now."""
        return self._grants

    def allows(self, permission: str) -> bool:
        """Returns whether the extension holds the permission now. No decision: no policy is heard, nothing recorded."""
        return permission in self._allowed

    def decide(
        self, method: str, requires: str | None, chain: Sequence[Gate] = (), handling: tuple[str, ...] = ()
    ) -> Decision:
        """Returns whether the extension may call a method, and records it.

        `chain` holds the gates of those on whose behalf it calls: all must allow it, so a chain never widens. Where a
        policy has a say this waits for its verdict; on a loop use `becket.peer.policies.decide_with_policies`."""
        if chain or self._policy is not None:
            decision = consult_policies(self.deliberate(method, requires, chain, handling))
        elif handling:
            decision = self._decide_own(method, requires, (), handling)
        else:
            decisions = self._decisions
            decision = self._decide_own(method, requires, ())
            if decision.allowed and len(decisions) < MAX_CACHED_DECISIONS:
                decisions[method, requires] = decision
        if self._audit is not None:
            self.record(decision)
        return decision

    def allows_at_once(self, method: str, requires: str | None) -> bool:
        """Returns whether `decide` has allowed this under the same grants, without a policy, and records it if so."""
        decision = self._decisions.get((method, requires))
        if decision is None:
            return False
        if self._audit is not None:
            self.record(decision)
        return True

    def consults(self, chain: Sequence[Gate] = ()) -> bool:
        """Returns whether a policy has a say about a call, and may take its time."""
        if self._policy is not None:
            return True
        return bool(chain) and any(gate._policy is not None for gate in chain)

    def record(self, decision: Decision) -> None:
        """Hands a decision to the audit."""
        if self._audit is not None:
            try:
                self._audit(decision)
            except Exception as error:
                log_callback_error("the audit of", self.extension, error)

    def check(self, method: str, requires: str | None, chain: Sequence[Gate] = ()) -> None:
        """Decides where nobody can be asked.

        Raises:
            PermissionDenied: the extension may not call the method.
        """
        self.enforce(self.decide(method, requires, chain))

    def check_parent(self, method: str, requires: str | None, *, is_unknown: bool, handling: tuple[str, ...]) -> None:
        """Looks at what a call says about the request that it belongs to, before anything else is decided about it.

        Raises:
            RpcError: the parent that it names is none, or it names none where it must. That is recorded.
        """
        if is_unknown:
            because = "its parent is no open call"
        elif handling and self._requires_parent:
            because = "it names no parent"
        else:
            return
        self.record(Decision(self.extension, method, requires, False, because, handling=handling))
        raise RpcError(Meaning.PERMISSION_DENIED, f"permission denied: {because}")

    def enforce(self, decision: Decision) -> None:
        """Lets a decision stand where nobody can be asked. Raises PermissionDenied unless it is a yes."""
        if not decision.allowed:
            permission = decision.method if decision.permission is None else decision.permission
            raise PermissionDenied(permission, method=decision.method, extension=self.extension)

    def deliberate(
        self, method: str, requires: str | None, chain: Sequence[Gate] = (), handling: tuple[str, ...] = ()
    ) -> Deliberation:
        """Yields each question to a policy, takes the objection to it (None if there is none), and returns the
        decision. Nothing is recorded: see `record`."""
        behalf = tuple(gate.extension for gate in chain)
        decision = yield from self._hear_policy(self._decide_own(method, requires, behalf, handling))
        for depth, gate in enumerate(chain if decision.allowed is not False else (), 1):
            theirs = yield from gate._hear_policy(gate._decide_own(method, requires, behalf[depth:]))
            if not theirs.allowed:
                # Nobody is asked for a permission because of a call that somebody else makes.
                because = "it is not granted" if theirs.allowed is None else theirs.because
                return replace(decision, allowed=False, because=f"on behalf of {gate.extension}: {because}")
        return decision

    def _decide_own(
        self, method: str, requires: str | None, behalf: tuple[str, ...], handling: tuple[str, ...] = ()
    ) -> Decision:
        allowed: bool | None = True
        if requires is None:
            because = "it needs no permission"
        elif requires in self._allowed:
            because = "it is granted"
        else:
            allowed, because = self._decide_missing(requires)
        return Decision(self.extension, method, requires, allowed, because, behalf, not behalf, handling)

    def _hear_policy(self, decision: Decision) -> Deliberation:
        if self._policy is None or self._workers is None or decision.allowed is False:
            return decision
        objection = yield PolicyQuestion(self._policy, decision, self._workers, self._policy_timeout)
        if objection is None and decision.allowed and not self._still_allows(decision.permission):
            objection = "it was revoked"  # while the policy took its time
        return decision if objection is None else replace(decision, allowed=False, because=objection)

    def _still_allows(self, permission: str | None) -> bool:
        return permission is None or permission in self._allowed

    def _decide_missing(self, permission: str) -> tuple[bool | None, str]:
        """Returns what follows from not holding a permission."""
        if permission not in self._known:
            return False, "no such permission can be granted"
        if permission in self._grants.deny:
            return False, "it is denied"
        if not self._can_prompt:
            return False, "it is not granted"
        if permission in self._open_prompts:
            return None, "a question is open"
        if self._prompt_count >= MAX_PROMPTS:
            return False, "too many questions were asked"
        return None, "it is to be asked for"

    # -- changes

    def grant(self, permission: str) -> None:
        """Gives a permission from now on, where it was denied before too.

        Raises:
            UnknownPermission, ReservedPermission: it cannot be granted.
        """
        self._change(permission, is_given=True)

    def revoke(self, permission: str) -> None:
        """Takes a permission away and denies it from now on; then tells those who run on it.

        Raises:
            UnknownPermission, ReservedPermission: nobody can hold it.
        """
        self._change(permission, is_given=False)

    def subscribe(
        self, revoked: Callable[[str], object], granted: Callable[[str], object] | None = None
    ) -> Callable[[], None]:
        """Calls these functions with a permission after it was taken away or given. Returns what ends that."""
        key = object()
        self._subscribers[key] = (revoked, granted)

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def _change(self, permission: str, *, is_given: bool, is_answer: bool = False) -> None:
        one = {parse_permission(permission, self._known)}
        with self._lock:
            if is_answer and permission not in self._open_prompts:
                return
            self._open_prompts -= one  # a later answer changes nothing
            before = self._grants
            if is_given:
                self._set_grants(Grants(before.allow | one, before.deny - one))
            else:
                self._set_grants(Grants(before.allow - one, before.deny | one))
        if before.allows(permission) is not is_given:
            for revoked, granted in [*self._subscribers.values()]:
                self._notify_subscriber(granted if is_given else revoked, permission)

    def _set_grants(self, grants: Grants) -> None:
        self._grants = grants
        self._allowed = (grants.allow - grants.deny) & self._known
        # Last: a decision that another thread makes meanwhile goes into the table of the grants that it was made from.
        self._decisions: dict[tuple[str, str | None], Decision] = {}

    def _notify_subscriber(self, callback: Callable[[str], object] | None, permission: str) -> None:
        try:
            if callback is not None:
                callback(permission)
        except Exception as error:  # the others must hear of it all the same
            log_callback_error("a subscriber to the grants of", self.extension, error)

    # -- questions

    def begin_prompt(self, permission: str) -> bool:
        """Returns whether to ask a person for this permission now: only one question for it is open at a time.

        Where it is True, `resolve_prompt` must follow, with False if nobody answers in time."""
        with self._lock:
            if (
                permission in self._allowed
                or permission in self._open_prompts
                or self._decide_missing(permission)[0] is False
            ):
                return False
            self._open_prompts.add(permission)
            self._prompt_count += 1
            return True

    def resolve_prompt(self, permission: str, allowed: bool) -> None:
        """Remembers the answer to the open question; a no is final, it is not asked again.

        Where the permission was granted or revoked in the meantime that holds, and the answer changes nothing."""
        self._change(permission, is_given=allowed is True, is_answer=True)

    def __repr__(self) -> str:
        return f"<Gate of {self.extension}: {', '.join(sorted(self._allowed)) or 'nothing'} granted>"


def consult_policies(deliberation: Deliberation) -> Decision:
    """Returns what a deliberation comes to, with each policy waited for in this thread."""
    try:
        question = next(deliberation)
        while True:
            question = deliberation.send(question.evaluate_in_worker())
    except StopIteration as end:
        decision: Decision = end.value
        return decision


def log_callback_error(what: str, extension: str, error: BaseException) -> None:
    host_logger().error("%s %r failed", what, extension, exc_info=error)

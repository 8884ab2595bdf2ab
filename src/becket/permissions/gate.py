"""The permission gate: decides which methods one extension may call.

Pure: a decision is a function of the grants, the policy and the chain of callers. The host prompts the user and ends
what a revocation forbids; the gate decides when, and stores the user's decision.
"""

from __future__ import annotations

from _thread import allocate_lock  # `threading` adds a millisecond to a child's start
from collections.abc import Callable, Generator, Sequence, Set as AbstractSet
from typing import Final, TypeAlias

from msgspec.structs import replace

from becket._loggers import host_logger
from becket.errors import Meaning, PermissionDenied, RpcError
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS, parse_permission
from becket.permissions.policies import POLICY_TIMEOUT, Decision, Policy, PolicyQuestion, PolicyWorkers

__all__ = ["MAX_PROMPTS", "Gate"]

MAX_PROMPTS: Final = 16  # prompts that one extension may cause in its life; an honest one needs fewer
MAX_CACHED_DECISIONS: Final = 1_024  # allowed decisions, by method

Deliberation: TypeAlias = Generator[PolicyQuestion, str | None, Decision]
"""A decision in progress: yields questions to policies, takes their objections, returns the decision."""


class Gate:
    """Decides what one extension may call. The connection determines the extension.

    A call passes if the extension, and each one on whose behalf it calls, holds the permission, and no policy objects.
    `policy` gets a decision that is not a denial, and returns True to confirm it. All else denies: another value, an
    error, and no verdict for `policy_timeout` seconds. A plain function runs in a worker thread; it may be `async def`.
    `audit` gets every decision; its errors are logged and the decision stands. With `asks`, a permission that is
    neither granted nor denied needs a prompt: see `begin_prompt`. `known` are the permissions that exist; no other is
    held. With `require_parent`, a call that names no parent while the extension handles a request of another is
    refused.

    Thread-safe. Keep one gate per extension over all its restarts: it stores the user's decisions.
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
        self._lock = allocate_lock()  # concurrent changes must not undo one another
        self._open_prompts: set[str] = set()
        self._prompt_count = 0
        self._subscribers: dict[object, tuple[Callable[[str], object], Callable[[str], object] | None]] = {}
        self._set_grants(grants)

    @property
    def grants(self) -> Grants:
        """The permissions that the extension holds now."""
        return self._grants

    def allows(self, permission: str) -> bool:
        """Returns whether the extension holds the permission now. No decision: no policy is consulted, nothing
        recorded."""
        return permission in self._allowed

    def decide(
        self, method: str, requires: str | None, chain: Sequence[Gate] = (), handling: tuple[str, ...] = ()
    ) -> Decision:
        """Returns whether the extension may call a method, and records it.

        `chain` holds the gates of those on whose behalf it calls: all must allow it, so a chain never widens. It waits
        for the verdicts of policies; on a loop use `becket.peer.policies.decide_with_policies`."""
        if chain or self._policy is not None:
            decision = consult_policies(self.deliberate(method, requires, chain, handling))
        elif handling:
            decision = self._decide_own(method, requires, (), handling)
        else:
            decisions = self._decisions
            decision = decisions.get((method, requires)) or self._decide_own(method, requires, ())
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
        """Returns whether a policy decides about a call, and may take time."""
        if self._policy is not None:
            return True
        return bool(chain) and any(gate._policy is not None for gate in chain)

    def record(self, decision: Decision) -> None:
        """Passes a decision to the audit."""
        if self._audit is not None:
            try:
                self._audit(decision)
            except Exception as error:
                log_callback_error("the audit of", self.extension, error)

    def check(self, method: str, requires: str | None, chain: Sequence[Gate] = ()) -> None:
        """Decides without a prompt.

        Raises:
            PermissionDenied: the extension may not call the method.
        """
        self.enforce(self.decide(method, requires, chain))

    def check_parent(self, method: str, requires: str | None, *, is_unknown: bool, handling: tuple[str, ...]) -> None:
        """Checks the request that a call names as its parent, before anything else is decided about it.

        Raises:
            RpcError: there is no such request, or the call names none where it must. That is recorded.
        """
        if is_unknown:
            because = "its parent is not a pending call"
        elif handling and self._requires_parent:
            because = "it names no parent"
        else:
            return
        self.record(Decision(self.extension, method, requires, False, because, handling=handling))
        raise RpcError(Meaning.PERMISSION_DENIED, f"permission denied: {because}")

    def enforce(self, decision: Decision) -> None:
        """Applies a decision without a prompt. Raises PermissionDenied unless it is allowed."""
        if not decision.allowed:
            permission = decision.method if decision.permission is None else decision.permission
            raise PermissionDenied(permission, method=decision.method, extension=self.extension)

    def deliberate(
        self, method: str, requires: str | None, chain: Sequence[Gate] = (), handling: tuple[str, ...] = ()
    ) -> Deliberation:
        """Yields each question to a policy, takes the objection to it (None if there is none), and returns the
        decision. Nothing is recorded: see `record`."""
        behalf = tuple(gate.extension for gate in chain)
        decision = yield from self._consult_policy(self._decide_own(method, requires, behalf, handling))
        for depth, gate in enumerate(chain if decision.allowed is not False else (), 1):
            theirs = yield from gate._consult_policy(gate._decide_own(method, requires, behalf[depth:]))
            if not theirs.allowed:
                # A call on behalf of another extension never prompts for that extension's permission.
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

    def _consult_policy(self, decision: Decision) -> Deliberation:
        if self._policy is None or self._workers is None or decision.allowed is False:
            return decision
        objection = yield PolicyQuestion(self._policy, decision, self._workers, self._policy_timeout)
        if objection is None and decision.allowed and not self._still_allows(decision.permission):
            objection = "it was revoked"  # while the policy decided
        return decision if objection is None else replace(decision, allowed=False, because=objection)

    def _still_allows(self, permission: str | None) -> bool:
        return permission is None or permission in self._allowed

    def _decide_missing(self, permission: str) -> tuple[bool | None, str]:
        """Returns the decision about a permission that is not held."""
        if permission not in self._known:
            return False, "no such permission can be granted"
        if permission in self._grants.deny:
            return False, "it is denied"
        if not self._can_prompt:
            return False, "it is not granted"
        if permission in self._open_prompts:
            return None, "a prompt is open"
        if self._prompt_count >= MAX_PROMPTS:
            return False, "too many prompts"
        return None, "it needs consent"

    # -- changes

    def grant(self, permission: str) -> None:
        """Grants a permission from now on, even if it was denied before.

        Raises:
            UnknownPermission, ReservedPermission: it cannot be granted.
        """
        self._change(permission, is_given=True)

    def revoke(self, permission: str) -> None:
        """Revokes a permission and denies it from now on; then calls the subscribers.

        Raises:
            UnknownPermission, ReservedPermission: it cannot be held.
        """
        self._change(permission, is_given=False)

    def subscribe(
        self, revoked: Callable[[str], object], granted: Callable[[str], object] | None = None
    ) -> Callable[[], None]:
        """Calls these functions with a permission after it was revoked or granted. Returns a function that
        unsubscribes."""
        key = object()
        self._subscribers[key] = (revoked, granted)

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def _change(self, permission: str, *, is_given: bool, is_response: bool = False) -> None:
        one = {parse_permission(permission, self._known)}
        with self._lock:
            if is_response and permission not in self._open_prompts:
                return
            self._open_prompts -= one  # the response to a later prompt changes nothing
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
        # Last: a concurrent decision goes into the table of the grants that it was made from.
        self._decisions: dict[tuple[str, str | None], Decision] = {}

    def _notify_subscriber(self, callback: Callable[[str], object] | None, permission: str) -> None:
        try:
            if callback is not None:
                callback(permission)
        except Exception as error:  # the others must be called all the same
            log_callback_error("a subscriber to the grants of", self.extension, error)

    # -- prompts

    def begin_prompt(self, permission: str) -> bool:
        """Returns whether to prompt for this permission now: it has one open prompt at a time.

        If so, `resolve_prompt` must follow, with False if there is no response in time."""
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
        """Records the user's response to the open prompt; a denial is final.

        If the permission was granted or revoked in the meantime that holds, and the response changes nothing."""
        self._change(permission, is_given=allowed is True, is_response=True)

    def __repr__(self) -> str:
        return f"<Gate of {self.extension}: {', '.join(sorted(self._allowed)) or 'nothing'} granted>"


def consult_policies(deliberation: Deliberation) -> Decision:
    """Returns the decision of a deliberation, and waits for each policy in this thread."""
    try:
        question = next(deliberation)
        while True:
            question = deliberation.send(question.evaluate_in_worker())
    except StopIteration as end:
        decision: Decision = end.value
        return decision


def log_callback_error(what: str, extension: str, error: BaseException) -> None:
    host_logger().error("%s %r failed", what, extension, exc_info=error)

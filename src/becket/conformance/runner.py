"""Runs cases, several at once, and returns a result for each, with its conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from enum import StrEnum
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from becket.conformance.case import ConformanceCase, RoleSetup, Suite
from becket.conformance.conversation import CaseConversation, Entry
from becket.conformance.links import LinkFactory
from becket.conformance.script import CheckAlive, ScriptStep
from becket.conformance.session import GRACE_SHARE, CaseFailed, Session
from becket.conformance.wire_codec import JsonWire, WireCodec
from becket.contract.json_narrowing import is_array, is_object

__all__ = ["HANDSHAKE_FAILED", "CaseResult", "CaseVerdict", "Offers", "find_offers", "run_cases"]

WORKERS: Final = 6  # a case waits most of its time
HANDSHAKE_FAILED: Final = "the handshake failed"
SIGNAL_INTERVAL: Final = 0.2  # seconds; a signal that arrives right before a wait for a thread does not end that wait
STEP_TIMEOUT: Final = 5.0  # seconds for one expected message


class CaseVerdict(StrEnum):
    """The verdict of one case."""

    PASS = "pass"
    TOLERATED = "tolerated"
    """The specification prefers something else, and permits this."""
    FAIL = "fail"
    NOT_OFFERED = "not offered"
    """The program lacks what the case needs; never counted as passed."""


class CaseResult(Struct, frozen=True):
    """The verdict of a case, the reason for it, and the conversation."""

    case: ConformanceCase
    verdict: CaseVerdict
    reason: str = ""
    seconds: float = 0.0
    conversation: tuple[Entry, ...] = ()
    dropped: int = 0
    """Entries that the conversation left out."""


class Offers(Struct, frozen=True):
    """What a program offers: `tool`, `tool:keep`, `feature:cancel`; or why its handshake failed."""

    names: frozenset[str]
    problem: str = ""
    conversation: tuple[Entry, ...] = ()


def run_cases(
    suite: Suite,
    cases: Sequence[ConformanceCase],
    open_link: LinkFactory,
    *,
    variables: Mapping[str, Any] | None = None,
    timeout: float = STEP_TIMEOUT,
    workers: int = WORKERS,
    offers: Offers | None = None,
    on_result: Callable[[CaseResult], None] = lambda result: None,
) -> list[CaseResult]:
    """Runs cases of one role against a program, and returns their results in the order of the cases.

    `variables` replace defaults of the suite's handshake, such as `plugin_id`. Without `offers` one process more finds
    out what the program offers. Cases that share a process run first, so that fewer are started. `on_result` is called
    for each result as soon as it is there, from any thread. An interrupt ends the cases that run.

    Raises:
        OSError: the program cannot be started.
        MissingExtra: the package of the codec is not installed. Nothing was started.
    """
    if not cases:
        return []
    setup = suite.setups[cases[0].role]
    setup = replace(setup, variables={**setup.variables, **(variables or {})})
    if offers is None:
        offers = find_offers(suite, setup, open_link, {need for case in cases for need in case.needs}, timeout=timeout)
    found = offers
    queue: SimpleQueue[ConformanceCase] = SimpleQueue()
    for case in sorted(cases, key=lambda case: case.is_alone):
        queue.put(case)
    results: dict[str, CaseResult] = {}

    def work(worker: Worker) -> None:
        try:
            while not worker.is_stopped:
                result = worker.run(queue.get_nowait())
                results[result.case.id] = result
                on_result(result)
        except Empty:
            pass
        finally:
            worker.end()

    crew = [Worker(suite, setup, open_link, found, timeout) for _ in range(max(1, min(workers, len(cases))))]
    with ThreadPoolExecutor(len(crew)) as pool:
        try:
            running = {pool.submit(work, worker) for worker in crew}
            while running:
                done, running = wait(running, SIGNAL_INTERVAL, FIRST_EXCEPTION)
                for one in done:
                    one.result()
        except BaseException:
            for worker in crew:
                worker.stop()
            raise
    return [results[case.id] for case in cases]


class Worker:
    """Runs cases one after another; the next one may use the process of the one before."""

    def __init__(self, suite: Suite, setup: RoleSetup, open_link: LinkFactory, offers: Offers, timeout: float) -> None:
        self._suite = suite
        self._setup = setup
        self._open_link = open_link
        self._offers = offers
        self._timeout = timeout
        self._session: Session | None = None
        self.is_stopped = False

    def stop(self) -> None:
        """Kills the current process from another thread, so that its case ends; no other case is run."""
        self.is_stopped = True
        if (session := self._session) is not None:
            session.kill()

    def run(self, case: ConformanceCase) -> CaseResult:
        """Runs one case and returns its result."""
        if case.is_ready and self._offers.problem:
            reason = f"{HANDSHAKE_FAILED}: {self._offers.problem}"
            return CaseResult(case, CaseVerdict.FAIL, reason, 0.0, self._offers.conversation)
        missing = [need for need in case.needs if need not in self._offers.names]
        if missing:
            return CaseResult(case, CaseVerdict.NOT_OFFERED, f"needs {', '.join(missing)}")
        started, conversation = monotonic(), CaseConversation()
        verdict, reason = self._judge(case, conversation)
        seconds = round(monotonic() - started, 3)
        return CaseResult(case, verdict, reason, seconds, conversation.entries, conversation.dropped)

    def _judge(self, case: ConformanceCase, conversation: CaseConversation) -> tuple[CaseVerdict, str]:
        if case.is_alone:
            self.end()
        session = self._session or open_session(self._suite, self._setup, self._open_link, self._timeout)
        is_new = session is not self._session
        self._session = session
        if self.is_stopped:  # while the process was started
            session.kill()
        is_finished = False
        try:
            session.begin(conversation)
            session.variables.update(self._setup.variables)
            session.variables.update(case.variables)
            if case.is_ready and is_new:
                session.run(self._setup.ready)
            elif not is_new:
                conversation.note("the process has run another case before")
            session.run(case.steps)
            is_finished = True
        except CaseFailed as failure:
            session.note_stderr()
            return CaseVerdict.FAIL, str(failure)
        finally:
            if case.is_alone or not (is_finished and session.is_reusable):
                self.end()
        return (CaseVerdict.TOLERATED if session.tolerated else CaseVerdict.PASS), session.tolerated

    def end(self) -> None:
        """Ends the current process."""
        if self._session is not None:
            self._session.end()
            self._session = None


def open_session(suite: Suite, setup: RoleSetup, open_link: LinkFactory, timeout: float) -> Session:
    """Starts the program, unless the package of its codec is missing."""
    codec = open_wire(suite.codec, has_version=suite.has_version, skips_text=suite.skips_text)
    return Session(open_link(), codec, setup, timeout)


def find_offers(
    suite: Suite,
    setup: RoleSetup,
    open_link: LinkFactory,
    wanted: Collection[str],
    *,
    timeout: float = STEP_TIMEOUT,
) -> Offers:
    """Performs the handshake once and returns what the program offers; only probes for wanted offers are run.

    Raises:
        OSError: the program cannot be started.
        MissingExtra: the package of the codec is not installed. Nothing was started.
    """
    session = open_session(suite, setup, open_link, timeout)
    try:
        session.variables.update(setup.variables)
        session.run(setup.ready)
        names = set(list_offers(setup.offers, session.variables))
        for name, steps in setup.probes.items():
            if name in wanted and passes_probe(session, steps, timeout * GRACE_SHARE):
                names.add(name)
        return Offers(frozenset(names))
    except CaseFailed as failure:
        session.note_stderr()
        return Offers(frozenset(), str(failure), session.conversation.entries)
    finally:
        session.end()


def passes_probe(session: Session, steps: Sequence[ScriptStep], grace: float) -> bool:
    """Runs a probe. A program that ignores its request is found out by its response to a later one."""
    session.begin(session.conversation)  # without the response that a probe before it did not expect
    try:
        session.run((steps[0], CheckAlive()))
        session.run(steps[1:], grace)
    except CaseFailed:
        return False
    return True


def list_offers(paths: Mapping[str, str], variables: Mapping[str, Any]) -> Iterable[str]:
    """Yields the offers that paths such as `opening/capabilities/tools/*/name` find, each with and without its name."""
    for kind, path in paths.items():
        for value in walk_path(variables, path.split("/")):
            yield kind
            if isinstance(value, str):
                yield f"{kind}:{value}"


def walk_path(value: Any, path: Sequence[str]) -> Iterable[Any]:
    if not path:
        yield value
    elif path[0] == "*":
        for part in value if is_array(value) else ():
            yield from walk_path(part, path[1:])
    elif is_object(value) and path[0] in value:
        yield from walk_path(value[path[0]], path[1:])


def open_wire(codec: str, *, has_version: bool = True, skips_text: bool = False) -> WireCodec:
    """Returns a new codec by its name in a suite: `cigen`, or a framing of JSON."""
    if codec == "cigen":
        from becket.conformance.cigen_wire import CigenWire

        return CigenWire()
    return JsonWire(codec, has_version=has_version, skips_text=skips_text)

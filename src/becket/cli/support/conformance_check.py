"""The case `conformance` of `becket check`: runs the conformance cases that a valid host could send."""

from __future__ import annotations

from collections.abc import Iterator

from becket.cli.support.check_cases import CONFORMANCE, Observation, Observed, judge
from becket.cli.support.findings import CheckSubject, Finding
from becket.conformance.case import ConformanceCase, list_suites, load_suite, select_cases
from becket.conformance.links import ProcessLink
from becket.conformance.runner import CaseResult, CaseVerdict, run_cases
from becket.conformance.script import Role
from becket.dialects import NATIVE

__all__ = ["check_conformance"]

WORKERS = 3  # each starts a process for the cases that share one


def check_conformance(dialect: str, subject: CheckSubject) -> Iterator[Finding]:
    """Yields one finding if all cases pass or are tolerated, otherwise one for each failure; none without cases."""
    if dialect not in list_suites():
        return
    suite = load_suite(dialect)
    results = run_cases(
        suite,
        [case for case in select_cases(suite.cases, Role.EXTENSION) if may_run(case, subject)],
        lambda: ProcessLink(subject.command, env=subject.env, cwd=subject.cwd),
        variables={"plugin_id": subject.id, "config": dict(subject.config)},
        timeout=subject.timeout,
        workers=WORKERS,
    )
    for observation in observe_results(dialect, results):
        yield judge(CONFORMANCE, observation)


def may_run(case: ConformanceCase, subject: CheckSubject) -> bool:
    """Returns whether a case sends nothing invalid, and consults no hook, which may have effects, without leave."""
    consults_hook = any(need.startswith("hook:") for need in case.needs)
    return not case.has_fault and (subject.calls_tools or not consults_hook)


def observe_results(dialect: str, results: list[CaseResult]) -> Iterator[Observation]:
    passed = [result for result in results if result.verdict in (CaseVerdict.PASS, CaseVerdict.TOLERATED)]
    failed = [result for result in results if result.verdict is CaseVerdict.FAIL]
    tolerated = ", ".join(result.case.id for result in passed if result.verdict is CaseVerdict.TOLERATED)
    if passed and not failed:
        facts = {"count": len(passed), "tolerated": f"; tolerated: {tolerated}" if tolerated else ""}
        yield Observation(Observed.CLEAN, facts)
    option = "" if dialect == NATIVE.name else f"--dialect {dialect} "
    for result in failed:
        facts = {"case": result.case.id, "title": result.case.title, "problem": result.reason, "option": option}
        yield Observation(Observed.INVALID, facts)

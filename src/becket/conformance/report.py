"""Reports of a run: counts, JSON, JUnit XML, and known failures from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from msgspec import Struct

from becket._text import escape
from becket.conformance.case import ConformanceCase
from becket.conformance.conversation import Entry
from becket.conformance.runner import CaseResult, CaseVerdict

__all__ = [
    "NO_FAILURE",
    "Comparison",
    "Run",
    "build_junit",
    "compare",
    "count_verdicts",
    "load_expected",
    "to_object",
    "write_junit",
]

NO_FAILURE = "passed, but is expected to fail: remove it from the file"
PASSED = (CaseVerdict.PASS, CaseVerdict.TOLERATED)


class Run(Struct, frozen=True):
    """All results of one command."""

    dialect: str
    role: str
    command: tuple[str, ...]
    results: tuple[CaseResult, ...]


class Comparison(Struct, frozen=True):
    """How the results differ from the known failures."""

    failures: tuple[str, ...] = ()
    """Cases that failed and are not known to."""
    passes: tuple[str, ...] = ()
    """Cases that passed although they are known to fail: remove them from the file."""


def count_verdicts(results: Iterable[CaseResult]) -> dict[CaseVerdict, int]:
    """Returns how many results each verdict has."""
    counts = Counter(result.verdict for result in results)
    return {verdict: counts[verdict] for verdict in CaseVerdict}


def load_expected(path: Path, cases: Iterable[ConformanceCase]) -> frozenset[str]:
    """Reads known failures: one id on each line, `#` begins a comment.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not the id of a case.
    """
    known = {case.id for case in cases}
    ids: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if id := line.partition("#")[0].strip():
            if id not in known:
                raise ValueError(f"{path}:{number}: there is no case `{id}`")
            ids.add(id)
    return frozenset(ids)


def compare(results: Iterable[CaseResult], expected: frozenset[str]) -> Comparison:
    """Returns the failures that are not expected, and the expected ones that passed."""
    found = list(results)
    return Comparison(
        tuple(one.case.id for one in found if one.verdict is CaseVerdict.FAIL and one.case.id not in expected),
        tuple(one.case.id for one in found if one.verdict in PASSED and one.case.id in expected),
    )


def to_object(result: CaseResult) -> dict[str, Any]:
    """Returns a result as an object for JSON."""
    case = result.case
    return {
        "id": case.id,
        "title": case.title,
        "clause": case.clause,
        "family": case.family,
        "verdict": result.verdict,
        "reason": result.reason,
        "seconds": result.seconds,
        "script": case.script.strip(),
        "conversation": result.conversation,
        "dropped": result.dropped,
    }


def write_junit(path: Path, run: Run, expected: frozenset[str]) -> None:
    """Writes the results as JUnit XML.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb") as file:
        ElementTree(build_junit(run, expected)).write(file, encoding="utf-8", xml_declaration=True)
        file.write(b"\n")


def build_junit(run: Run, expected: frozenset[str] = frozenset()) -> Element:
    """Returns one suite for each family. Cases that are not offered and known failures count as skipped."""
    suites = Element("testsuites", name="becket conform")
    for family in dict.fromkeys(result.case.family for result in run.results):
        results = [result for result in run.results if result.case.family == family]
        suite = SubElement(suites, "testsuite", name=f"{run.dialect} {run.role}: {family}", tests=str(len(results)))
        for result in results:
            add_junit_case(suite, run, result, is_expected=result.case.id in expected)
        for kind, name in (("failure", "failures"), ("skipped", "skipped"), ("error", "errors")):
            suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
    indent(suites)
    return suites


def add_junit_case(suite: Element, run: Run, result: CaseResult, *, is_expected: bool) -> None:
    case = result.case
    name = f"{case.id}: {case.title}"
    tested = SubElement(
        suite,
        "testcase",
        classname=f"becket.conform.{run.dialect}.{case.family}",
        name=name,
        time=f"{result.seconds:g}",
    )
    match result.verdict:
        case CaseVerdict.FAIL if is_expected:
            SubElement(tested, "skipped", message=escape(f"known failure: {result.reason}"))
        case CaseVerdict.PASS | CaseVerdict.TOLERATED if is_expected:
            SubElement(tested, "failure", message=NO_FAILURE)
        case CaseVerdict.FAIL:
            failure = SubElement(tested, "failure", message=escape(result.reason))
            failure.text = "\n".join(format_entries(result.conversation))
        case CaseVerdict.NOT_OFFERED:
            SubElement(tested, "skipped", message=escape(result.reason))
        case CaseVerdict.TOLERATED:
            SubElement(tested, "system-out").text = escape(f"tolerated: {result.reason}")
        case CaseVerdict.PASS:
            pass


def format_entries(entries: Sequence[Entry]) -> list[str]:
    """Returns a line for each entry of a conversation."""
    return [escape(f"{entry.at:8.3f} {entry.sender:<8} {entry.text}") for entry in entries]

"""Writes the findings of `becket check` as JUnit XML for CI systems: one test case for each case of the check."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from becket._text import escape
from becket.cli.support.check_cases import Case, cases_of
from becket.cli.support.findings import Finding, FindingLevel, has_responded

__all__ = ["build_junit", "write_junit"]

NOT_RUN = "not applicable, or a case that it needs has failed"


def write_junit(path: Path, command: Sequence[str], reports: Mapping[str, Sequence[Finding]]) -> None:
    """Writes the findings to a file.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb") as file:
        ElementTree(build_junit(command, reports)).write(file, encoding="utf-8", xml_declaration=True)
        file.write(b"\n")


def build_junit(command: Sequence[str], reports: Mapping[str, Sequence[Finding]]) -> Element:
    """Returns a suite for each dialect. A case with an error is a failure; one without findings was skipped."""
    suites = Element("testsuites", name="becket check")
    for dialect, findings in reports.items():
        suite = SubElement(suites, "testsuite", name=f"{dialect}: {escape(shlex.join(command))}")
        for case in cases_of(dialect):
            own = [finding for finding in findings if finding.check == case.id]
            add_case(suite, dialect, case, own, is_run=case.id == "start" or has_responded(findings))
        count(suite)
    indent(suites)
    return suites


def add_case(suite: Element, dialect: str, case: Case, findings: Sequence[Finding], *, is_run: bool) -> None:
    tested = SubElement(suite, "testcase", classname=f"becket.check.{dialect}", name=f"{case.id}: {case.title}")
    levels = {finding.level for finding in findings}
    if FindingLevel.ERROR in levels:
        problems = [finding for finding in findings if finding.level is FindingLevel.ERROR]
        failure = SubElement(tested, "failure", message=escape(problems[0].text))
        failure.text = "\n".join(lines_of(problems))
    elif levels <= {FindingLevel.SKIPPED} and not (case.has_only_faults and is_run):
        SubElement(tested, "skipped", message=escape(findings[0].text) if findings else NOT_RUN)
    others = [finding for finding in findings if finding.level is not FindingLevel.ERROR]
    if others:
        SubElement(tested, "system-out").text = "\n".join(lines_of(others))


def lines_of(findings: Sequence[Finding]) -> list[str]:
    return [
        escape(f"{finding.level}: {finding.text}" + (f" ({finding.hint})" if finding.hint else ""))
        for finding in findings
    ]


def count(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for kind, name in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("errors", "0")

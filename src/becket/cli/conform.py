"""`becket conform`: runs the numbered cases of a dialect against a program and reports a verdict for each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from becket._text import escape
from becket.cli.check import CheckRequest, find_program
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import FILE, FOLDER
from becket.cli.support.output import console, json_option, print_json, print_line, print_message, print_table
from becket.cli.support.passthrough import PassthroughCommand
from becket.conformance.case import ConformanceCase, Suite, list_suites, load_suite, select_cases
from becket.conformance.host_link import HostLink
from becket.conformance.links import ProcessLink
from becket.conformance.report import (
    NO_FAILURE,
    Run,
    compare,
    count_verdicts,
    format_entries,
    load_expected,
    to_object,
    write_junit,
)
from becket.conformance.report_page import write_page
from becket.conformance.runner import HANDSHAKE_FAILED, CaseResult, CaseVerdict, run_cases
from becket.conformance.script import Role

__all__ = ["conform"]

SHOWN: Final = (CaseVerdict.FAIL, CaseVerdict.TOLERATED)


@click.command(cls=PassthroughCommand, needs_program=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.option(
    "--dialect", type=click.Choice(list_suites()), default="native", show_default=True, help="Dialect of the program."
)
@click.option("--host", "is_host", is_flag=True, help="CMD is a host, and the suite plays the extension.")
@click.option("--case", "ids", multiple=True, metavar="ID", help="Run only this case; N-FR-* is a prefix. Repeatable.")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Run only this family. Repeatable.")
@click.option("--list", "is_list", is_flag=True, help="List the cases instead of running them.")
@click.option("--folder", type=FOLDER, metavar="PATH", help="Folder of the extension: run it there, read its manifest.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Timeout for each expected message; the first one has at least 10 s.",
)
@click.option("--expect", type=FILE, metavar="FILE", help="Known failures, one id on each line; others are errors.")
@click.option("--junit", type=FILE, metavar="FILE", help="Also write the results to this file, as JUnit XML.")
@click.option(
    "--report", "page", type=FILE, metavar="FILE", help="Also write the results to this file, as an HTML page."
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Show every case; with the conversation unless it passed, or with --case."
)
@json_option
def conform(
    words: tuple[str, ...],
    program: tuple[str, ...],
    dialect: str,
    is_host: bool,
    ids: tuple[str, ...],
    families: tuple[str, ...],
    is_list: bool,
    folder: Path | None,
    timeout: float,
    expect: Path | None,
    junit: Path | None,
    page: Path | None,
    verbose: bool,
    as_json: bool,
) -> ExitCode:
    """Run the conformance cases of a dialect against CMD, and report a verdict for each.

    The verdicts are pass, tolerated (the specification prefers something else), fail, and not offered: the program
    lacks what the case needs, which never counts as passed. An extension with the tools of docs/conformance.md is
    offered every case. The exit code is 1 if a case fails that is not in --expect, or if one in it passes.

    With --host the suite plays the extension. CMD must start the command line {child}, which is also in
    BECKET_CONFORM_CHILD, or the extension in the folder {manifest}, which is also in BECKET_CONFORM_FOLDER.

    \b
    becket conform -- python3 notes.py
    becket conform --family framing --junit conform.xml -- ./notes/run
    becket conform --case 'N-FR-*' -v -- node dice.js
    becket conform --host -- python3 host.py {child}
    becket conform --report conform.html --expect known.txt -- ./notes/run
    """
    suite = load_suite(dialect)
    role = Role.HOST if is_host else Role.EXTENSION
    try:
        cases = select_cases(suite.cases, role, ids, families)
        expected = frozenset[str]() if expect is None else load_expected(expect, suite.cases)
    except (LookupError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if is_list:
        return list_cases(cases, as_json=as_json)
    program = find_program(words, program)
    try:
        with progress_bar(len(cases), is_shown=not as_json) as advance:
            run_all = run_host if is_host else partial(run_extension, folder=folder)
            results = run_all(suite, cases, program, timeout=timeout, on_result=advance)
    except OSError as error:
        print_message(f"error: cannot start {program[0]}: {error.strerror or error}")
        return ExitCode.NOT_RUNNING
    run = Run(suite.dialect, role, program, tuple(results))
    if junit is not None:
        write_junit(junit, run, expected)
    if page is not None:
        write_page(page, run)
    chosen = tuple(CaseVerdict) if ids else SHOWN
    with_conversation = chosen if verbose else ()
    return report(run, expected, verbose=verbose, with_conversation=with_conversation, as_json=as_json)


def list_cases(cases: Sequence[ConformanceCase], *, as_json: bool) -> ExitCode:
    if as_json:
        print_json(
            [
                {"id": one.id, "family": one.family, "title": one.title, "clause": one.clause, "needs": one.needs}
                for one in cases
            ]
        )
    else:
        print_table(
            ["case", "family", "what must hold", "needs"],
            [[one.id, one.family, one.title, ", ".join(one.needs)] for one in cases],
        )
    return ExitCode.DONE


def run_extension(
    suite: Suite,
    cases: Sequence[ConformanceCase],
    program: tuple[str, ...],
    *,
    folder: Path | None,
    timeout: float,
    on_result: Callable[[CaseResult], None],
) -> list[CaseResult]:
    """Runs cases against an extension, in the environment that a host would give it."""
    subject = CheckRequest(program, None, folder, timeout).build_subject(suite.dialect)
    return run_cases(
        suite,
        cases,
        lambda: ProcessLink(subject.command, env=subject.env, cwd=subject.cwd),
        variables={"plugin_id": subject.id, "config": dict(subject.config)},
        timeout=timeout,
        on_result=on_result,
    )


def run_host(
    suite: Suite,
    cases: Sequence[ConformanceCase],
    program: tuple[str, ...],
    *,
    timeout: float,
    on_result: Callable[[CaseResult], None],
) -> list[CaseResult]:
    """Runs cases against a host, which starts the suite's own child."""
    files = suite.setups[Role.HOST].files
    return run_cases(suite, cases, lambda: HostLink(program, files), timeout=timeout, on_result=on_result)


@contextmanager
def progress_bar(total: int, *, is_shown: bool) -> Generator[Callable[[CaseResult], None]]:
    """Shows a progress bar on stderr if that is a terminal; yields the function that advances it."""
    if not (is_shown and sys.stderr.isatty()):
        yield lambda result: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(task, advance=1, description=result.case.id)


def report(
    run: Run, expected: frozenset[str], *, verbose: bool, with_conversation: Sequence[CaseVerdict], as_json: bool
) -> ExitCode:
    """Prints the results, with the conversation of those with such a verdict, and returns the exit code."""
    results = run.results
    difference = compare(results, expected)
    counts = count_verdicts(results)
    has_passed = counts[CaseVerdict.PASS] + counts[CaseVerdict.TOLERATED] > 0
    ok = has_passed and not difference.failures and not difference.passes
    if as_json:
        document: dict[str, Any] = {
            "dialect": run.dialect,
            "role": run.role,
            "command": run.command,
            "ok": ok,
            "counts": counts,
            "unexpected": difference,
            "cases": [to_object(result) for result in results],
        }
        print_json(document)
    else:
        print_families(results)
        print_cases(results, expected, verbose=verbose, with_conversation=with_conversation)
        for id in difference.passes:
            print_message(f"{id}: {NO_FAILURE}")
        print_message(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return ExitCode.DONE if ok else ExitCode.FAILED


def print_families(results: Sequence[CaseResult]) -> None:
    """Prints a row with the counts of each family."""
    families = dict.fromkeys(result.case.family for result in results)
    rows: list[list[str]] = []
    for family in families:
        counts = count_verdicts(result for result in results if result.case.family == family)
        rows.append([family, *(str(count) if count else "" for count in counts.values())])
    print_table(["family", *CaseVerdict], rows)


def print_cases(
    results: Sequence[CaseResult], expected: frozenset[str], *, verbose: bool, with_conversation: Sequence[CaseVerdict]
) -> None:
    """Prints the cases that did not pass, with `verbose` all of them; a handshake that failed is printed once."""
    unopened = [result for result in results if result.reason.startswith(HANDSHAKE_FAILED)]
    if unopened:
        print_line(escape(f"{CaseVerdict.FAIL:<12}{len(unopened)} cases: {unopened[0].reason}"))
        print_conversation(unopened[0])
    for result in results:
        if result not in unopened and (verbose or result.verdict in SHOWN):
            reason = f": {result.reason}" if result.reason else ""
            known = " (known)" if result.verdict is CaseVerdict.FAIL and result.case.id in expected else ""
            print_line(escape(f"{result.verdict:<12}{result.case.id}  {result.case.title}{known}{reason}"))
            if result.verdict in with_conversation:
                print_conversation(result)


def print_conversation(result: CaseResult) -> None:
    for line in format_entries(result.conversation):
        print_line(f"    {line}")

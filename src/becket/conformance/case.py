"""`ConformanceCase` and `Suite`: the cases of a dialect, loaded from the TOML files of this package."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from becket.conformance.script import (
    CloseOutput,
    ExpectEnd,
    ExpectExit,
    ExpectGone,
    ExpectMessage,
    ExpectSilence,
    LeaveHost,
    Role,
    ScriptError,
    ScriptStep,
    SendBody,
    SendBytes,
    SendSignal,
    StayAlive,
    parse_script,
)

__all__ = ["ConformanceCase", "RoleSetup", "Suite", "list_suites", "load_suite", "select_cases"]

FOLDER: Final = Path(__file__).parent / "cases"
SUITE_FILE: Final = "suite.toml"
ENDS_LINK: Final = (
    SendBytes,
    CloseOutput,
    ExpectEnd,
    ExpectExit,
    SendSignal,
    LeaveHost,
    StayAlive,
    ExpectGone,
)
FAULTS: Final = (SendBody, SendBytes, SendSignal)
START_TIMEOUTS: Final = {  # seconds for the first message
    Role.EXTENSION: 10.0,  # as hosts wait for the response to `initialize`
    Role.HOST: 20.0,  # some hosts load a whole editor
}


class ConformanceCase(Struct, frozen=True, kw_only=True):
    """One numbered case: what it checks, by which clause of the specification, and its script."""

    id: str
    title: str
    clause: str
    family: str
    role: Role
    steps: tuple[ScriptStep, ...]
    script: str
    needs: tuple[str, ...] = ()
    """What the program must offer, such as `tool:conform_echo`; otherwise the case is not run."""
    is_ready: bool = True
    """Whether the handshake precedes the script."""
    variables: Mapping[str, Any] = {}
    """Variables of the handshake that differ from the suite's defaults."""
    is_alone: bool = False
    """Whether the case gets a process of its own."""
    has_fault: bool = False
    """Whether the suite sends something that no valid peer would send."""


class RoleSetup(Struct, frozen=True, kw_only=True):
    """What the suite does around the cases of one role."""

    ready: tuple[ScriptStep, ...] = ()
    alive: tuple[ScriptStep, ...] = ()
    variables: Mapping[str, Any] = {}
    responses: Mapping[str, Any] = {}
    """Results for requests of the program that no step expects, by method."""
    holds: tuple[str, ...] = ()
    """Methods whose requests get no response unless a step sends it."""
    offers: Mapping[str, str] = {}
    """Paths into the variables after the handshake, by kind: `tool = "opening/capabilities/tools/*/name"`."""
    probes: Mapping[str, tuple[ScriptStep, ...]] = {}
    """Scripts that pass if the program offers the thing of this name."""
    files: Mapping[str, str] = {}
    """The folder of the extension that the suite plays for a host, in the format of the host's system."""
    start_timeout: float = 0.0
    """Seconds for the first message, if that is longer than for the others: the program has to start before it."""


class Suite(Struct, frozen=True, kw_only=True):
    """The cases of one dialect."""

    dialect: str
    codec: str
    cases: tuple[ConformanceCase, ...]
    setups: Mapping[Role, RoleSetup]
    has_version: bool = True
    """Whether each message has the member `jsonrpc`."""
    skips_text: bool = False
    """Whether peers of this dialect skip what is not JSON, so that it is tolerated."""


def list_suites() -> list[str]:
    """Returns the dialects that have cases; `native` comes first."""
    names = sorted(folder.name for folder in FOLDER.iterdir() if (folder / SUITE_FILE).is_file())
    return sorted(names, key=lambda name: name != "native")


@cache
def load_suite(dialect: str) -> Suite:
    """Loads the cases of a dialect: those for extensions first, by family, in the order of their files.

    Raises:
        LookupError: the dialect has no cases.
        ScriptError: a case is malformed.
    """
    folder = FOLDER / dialect
    if dialect not in list_suites():
        raise LookupError(f"no cases for the dialect `{dialect}`; there are cases for {', '.join(list_suites())}")
    head = load_file(folder / SUITE_FILE)
    cases = [
        case
        for file in sorted(folder.glob("*.toml"))
        if file.name != SUITE_FILE
        for case in parse_cases(file.name, load_file(file))
    ]
    known: set[str] = set()
    for case in cases:
        if case.id in known:
            raise ScriptError(f"{dialect}: two cases have the id {case.id}")
        known.add(case.id)
    return Suite(
        dialect=dialect,
        codec=head["codec"],
        cases=tuple(sorted(cases, key=lambda case: (case.role == Role.HOST, rank_family(head, case.family)))),
        setups={role: parse_setup(role, head.get(role, {})) for role in Role},
        has_version=head.get("has_version", True),
        skips_text=head.get("skips_text", False),
    )


def rank_family(head: Mapping[str, Any], family: str) -> int:
    order: list[str] = head.get("families", [])
    return order.index(family) if family in order else len(order)


def load_file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def parse_setup(role: Role, table: Mapping[str, Any]) -> RoleSetup:
    return RoleSetup(
        ready=parse_script(table.get("ready", ""), role),
        alive=parse_script(table.get("alive", ""), role),
        variables=table.get("variables", {}),
        responses={method: json.loads(result) for method, result in table.get("responses", {}).items()},
        holds=tuple(table.get("holds", [])),
        offers=table.get("offers", {}),
        probes={name: parse_script(script, role) for name, script in table.get("probes", {}).items()},
        files=table.get("files", {}),
        start_timeout=START_TIMEOUTS[role],
    )


def parse_cases(name: str, file: Mapping[str, Any]) -> Iterator[ConformanceCase]:
    family, role = file["family"], Role(file.get("role", "extension"))
    defaults: dict[str, Any] = {"needs": [], **{name: file[name] for name in ("needs", "alone") if name in file}}
    for table in file["case"]:
        try:
            yield parse_case(family, role, {**defaults, **table})
        except (KeyError, ScriptError) as error:
            raise ScriptError(f"{name}: {table.get('id')}: {error}") from error


def parse_case(family: str, role: Role, table: Mapping[str, Any]) -> ConformanceCase:
    steps = parse_script(table["script"], role)
    variables = table.get("with", {})
    is_ready = table.get("start", "ready") == "ready"
    ends_link = ENDS_LINK if role is Role.EXTENSION else (*ENDS_LINK, SendBody)  # hosts give up on invalid messages
    may_end_link = any(isinstance(step, ends_link) for step in (*steps, *list_tolerated(steps)))
    return ConformanceCase(
        id=table["id"],
        title=table["title"],
        clause=table["clause"],
        family=family,
        role=role,
        steps=steps,
        script=table["script"],
        needs=tuple(table["needs"]),
        is_ready=is_ready,
        variables=variables,
        is_alone=table.get("alone", bool(variables) or not is_ready or may_end_link),
        has_fault=table.get("fault", any(isinstance(step, FAULTS) for step in steps)),
    )


def list_tolerated(steps: Iterable[ScriptStep]) -> Iterator[ScriptStep]:
    for step in steps:
        if isinstance(step, ExpectMessage | ExpectSilence | ExpectEnd | ExpectExit):
            yield from step.tolerated


def select_cases(
    cases: Iterable[ConformanceCase], role: Role, ids: Iterable[str] = (), families: Iterable[str] = ()
) -> list[ConformanceCase]:
    """Returns the cases of a role; with ids or families only those. `N-FR-*` selects by a prefix.

    Raises:
        LookupError: an id or a family fits no case.
    """
    own = [case for case in cases if case.role == role]
    wanted, groups = list(ids), list(families)
    for word in wanted:
        if not any(fits(case.id, word) for case in own):
            raise LookupError(f"no case `{word}`")
    for group in groups:
        if all(case.family != group for case in own):
            families_known = ", ".join(dict.fromkeys(case.family for case in own))
            raise LookupError(f"no family `{group}`; there are {families_known}")
    if not wanted and not groups:
        return own
    return [case for case in own if case.family in groups or any(fits(case.id, word) for word in wanted)]


def fits(id: str, word: str) -> bool:
    return id.startswith(word[:-1]) if word.endswith("*") else id == word

"""Checks of `becket check` for the native and plain dialects, driven frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw, ValidationError

from becket._text import quote, truncate
from becket.cli.support.check_cases import (
    RUN_ID,
    Case,
    CloseStdin,
    Observation,
    Observed,
    SendCancel,
    SendNotification,
    SendRequest,
    cases_of,
    judge,
)
from becket.cli.support.findings import CheckSubject, Finding, describe_exit
from becket.cli.support.probe import Probe, ProbeResponse
from becket.cli.support.sample_inputs import sample_input
from becket.contract.commands import decode_command_output_params
from becket.contract.handshake import FEATURES, PROTOCOL_VERSION, Initialize, Initialized, build_initialize
from becket.contract.handshake_checks import decode_initialized, find_handshake_problems, find_shape_problems
from becket.contract.json_narrowing import is_object
from becket.dialects import ADAPTERS, DIALECTS, NATIVE, PLAIN, Dialect
from becket.errors import ERROR_CODES, BadSchema
from becket.framing import ContentLength, JsonLines, LengthPrefixed, detect_framing
from becket.host.starting.connect import DEFAULT_HOST_INFO
from becket.json_schema.validator import compile_schema
from becket.limits import DEFAULT_LIMITS
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

__all__ = ["list_dialects", "run_checks"]

NATIVE_CHECKS: Final = {NATIVE.name: NATIVE, PLAIN.name: PLAIN}
MEANINGS: Final = {number: meaning for meaning, number in ERROR_CODES.items()}
FRAMINGS: Final = {ContentLength: "Content-Length headers", JsonLines: "JSON lines", LengthPrefixed: "length prefixes"}
SCHEMAS: Final = "`becket schema initialize` and `becket schema capabilities` show what is expected"
REQUEST_PERMISSION: Final = "add it to `permissions` in the manifest: without it no host starts the extension"
MAX_SHOWN: Final = 64  # characters of an id
RESPONSES: Final = (Observed.RESULT, Observed.ERROR)


def list_dialects() -> list[str]:
    """Returns the names of all dialects of extensions in the order of trial: the least specific comes last."""
    known = NATIVE_CHECKS.keys() | set(ADAPTERS)
    added = [name for name in DIALECTS if name not in known and DIALECTS[name].load_mapping is not None]
    return [NATIVE.name, *ADAPTERS, *added, PLAIN.name]


def run_checks(name: str, subject: CheckSubject) -> Iterator[Finding]:
    """Runs the cases of a dialect and yields the findings."""
    if name in NATIVE_CHECKS:
        return check_own(NATIVE_CHECKS[name], subject)
    from becket.cli.support.dialect_checks import check_foreign_dialect

    return check_foreign_dialect(DIALECTS[name], subject)


def check_own(dialect: Dialect, subject: CheckSubject) -> Iterator[Finding]:
    """Runs the cases of one of becket's own dialects."""
    start, first, *others = cases_of(dialect.name)
    try:
        with Probe(subject.command, dialect, env=subject.env, cwd=subject.cwd) as probe:
            conversation = Conversation(probe, subject)
            yield from conversation.run(first)
            for case in others:
                if not case.own_process:
                    yield from conversation.run(case)
        # Violations on the wire are complete once the process has ended.
        for case in others:
            yield from (judge(case, seen) for seen in observe_wire(case, probe))
        for case in others:
            if case.own_process and conversation.has_response_to(case.needs):
                with Probe(subject.command, dialect, env=subject.env, cwd=subject.cwd) as probe:
                    alone = Conversation(probe, subject)
                    yield from (found for found in (*alone.run(first), *alone.run(case)) if found.check == case.id)
    except OSError as error:
        facts = {"program": subject.command[0], "problem": error.strerror or error}
        yield judge(start, Observation(Observed.NOT_STARTED, facts))


class Conversation:
    """Runs cases with one process and records which got a response."""

    def __init__(self, probe: Probe, subject: CheckSubject) -> None:
        self._probe = probe
        self._subject = subject
        self._responded: set[str] = set()
        self._opening: ProbeResponse | None = None
        self._called: dict[str, Any] = {}  # the first tool that responded, with its input

    def has_response_to(self, case: str) -> bool:
        """Returns whether the program responded in this case."""
        return case in self._responded

    def run(self, case: Case) -> Iterator[Finding]:
        """Runs a case if its requirements are met."""
        if case.needs and (case.needs not in self._responded or self._probe.has_ended()):
            return
        if case.feature and case.feature not in self._initialized.features:
            return
        for observation in self._observe(case):
            if observation.observed in RESPONSES:
                self._responded.add(case.id)
            yield judge(case, observation)

    def _observe(self, case: Case) -> Iterator[Observation]:
        match case.id:
            case "response":
                yield self._send(case, self._subject.timeout, {"$initialize": self._build_initialize()})
            case "handshake":
                yield from self._observe_handshake()
            case "tools":
                yield from self._observe_tools(case)
            case "cancel":
                yield self._send(case, self._subject.call_timeout, self._called)
            case "commands":
                yield from self._observe_command(case)
            case _ if case.sends:
                yield self._send(case, self._subject.call_timeout, {})
            case _:
                return

    # -- sending

    def _build_initialize(self) -> Initialize:
        subject = self._subject
        return build_initialize(subject.id, subject.root, subject.config, host=DEFAULT_HOST_INFO, features=FEATURES)

    def _send(self, case: Case, timeout: float, values: dict[str, Any]) -> Observation:
        """Sends the steps of a case and returns the observation."""
        id, method, response, exit_code = 0, "", None, None
        for step in case.sends:
            match step:
                case SendRequest(method, params):
                    id = self._probe.request(method, fill(params, values))
                case SendNotification(notification, params):
                    self._probe.notify(notification, fill(params, values))
                case SendCancel():
                    assert NATIVE.cancellation is not None
                    self._probe.notify(NATIVE.cancellation.method, {"id": id})
                case CloseStdin():
                    response = self._probe.response(id, DEFAULT_LIMITS.stdin_grace) if id else None
                    self._probe.close_stdin()
                    exit_code = self._probe.wait_exit(DEFAULT_LIMITS.stdin_grace)
                    if exit_code is None:
                        return Observation(Observed.RUNNING, {"seconds": f"{DEFAULT_LIMITS.stdin_grace:g}"})
                    if response is None:
                        observed = Observed.BAD_EXIT if exit_code else Observed.EXIT
                        return Observation(observed, {"ended": describe_exit(exit_code)})
        response = response or self._probe.response(id, timeout)
        if case.id == "response":
            self._opening = response
        facts = {"method": method, **{name.removeprefix("$"): to_text(value) for name, value in values.items()}}
        return self._explain_silence(facts, timeout) if response is None else observe_response(response, facts)

    def _explain_silence(self, facts: Mapping[str, object], timeout: float) -> Observation:
        """Returns the likely reason why there was no response."""
        probe = self._probe
        if probe.has_ended():
            last_output = f", last line of stderr: {probe.last_stderr_line}" if probe.last_stderr_line else ""
            ended = {"ended": describe_exit(probe.exit_code), "last_output": last_output}
            return Observation(Observed.CRASH, {**facts, **ended})
        if probe.stdout and not self._responded:
            facts = {**facts, "wrote": quote(probe.stdout)}
            if detect_framing(probe.stdout) is JsonLines:
                framings = {"found": FRAMINGS[JsonLines], "expected": FRAMINGS[ContentLength]}
                return Observation(Observed.WRONG_FRAMING, {**facts, **framings})
            return Observation(Observed.WRONG_BYTES, facts)
        return Observation(Observed.SILENCE, {**facts, "seconds": f"{timeout:g}", "wrote": ""})

    # -- contract

    @cached_property
    def _initialized(self) -> Initialized:
        """The program's declaration; an empty one if that is malformed."""
        result = None if self._opening is None else self._opening.result
        if result is None or find_shape_problems(self._subject.id, result):
            return Initialized(PROTOCOL_VERSION)
        return decode_initialized(result)

    def _observe_handshake(self) -> Iterator[Observation]:
        response = self._opening
        assert response is not None
        if response.result is None:
            yield observe_response(response, {})
            return
        problems = [*find_declared_problems(self._subject, response.result)]
        hint = SCHEMAS if problems else REQUEST_PERMISSION
        for pointer, text in problems or find_missing_permissions(self._subject, self._initialized):
            problem = f"{pointer}: {text}" if pointer else text
            yield Observation(Observed.INVALID, {"problem": problem, "hint": hint})
        own_id, manifest_id = self._initialized.id, self._subject.manifest_id
        if own_id and manifest_id not in (None, own_id):
            problem = f"the id is `{manifest_id}` in the manifest, but `{truncate(own_id, MAX_SHOWN)}` in the code"
            yield Observation(Observed.ODDITY, {"problem": problem, "hint": "use the same id in both"})
        if not problems:
            yield Observation(Observed.RESULT, {"declared": describe_capabilities(self._initialized)})

    def _observe_tools(self, case: Case) -> Iterator[Observation]:
        declared = self._initialized.capabilities.tools
        callable_tools = self._subject.tools_to_call(declared)
        if declared and not callable_tools:
            yield Observation(Observed.UNMARKED)
        for tool in callable_tools:
            sample = sample_input(tool.input_schema)
            if sample is None:
                yield Observation(Observed.ODDITY, {"tool": tool.name})
                continue
            values = {"$tool": tool.name, "$input": sample}
            observation = self._send(case, self._subject.call_timeout, values)
            if observation.observed in RESPONSES:
                self._called = self._called or values
            yield observation
            if self._probe.has_ended():
                return

    def _observe_command(self, case: Case) -> Iterator[Observation]:
        line = self._subject.line
        if line is None:
            if self._subject.has_commands:
                yield Observation(Observed.UNMARKED)
            return
        values = {"$command": line[0], "$args": line[1:], "$input": line[1:]}
        observation = self._send(case, self._subject.call_timeout, values)
        problem = find_output_problem(self._probe.outputs)
        if problem is not None:
            observation = Observation(Observed.INVALID, {**observation.facts, "problem": problem})
        yield observation


def find_declared_problems(subject: CheckSubject, result: Raw) -> Iterator[tuple[str, str]]:
    """Yields problems of the program's declaration."""
    problems = find_shape_problems(subject.id, result)
    if problems:
        yield from problems
        return
    initialized = decode_initialized(result)
    yield from find_handshake_problems(subject.id, initialized, grants=Grants.of(PERMISSIONS), config=subject.config)
    for index, tool in enumerate(initialized.capabilities.tools):
        try:
            compile_schema(tool.input_schema)
        except BadSchema as error:
            for pointer, text in error.problems:
                yield f"/capabilities/tools/{index}/input_schema{pointer}", text


def find_missing_permissions(subject: CheckSubject, initialized: Initialized) -> list[tuple[str, str]]:
    """Returns declarations that a host would reject because the manifest does not request the permission."""
    grants = Grants.of(PERMISSIONS.intersection(subject.permissions))
    return find_handshake_problems(subject.id, initialized, grants=grants, config=subject.config)


def describe_capabilities(initialized: Initialized) -> str:
    declared = initialized.capabilities
    parts = [f"version {initialized.protocol_version} of the contract"]
    parts += [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("tools", [tool.name for tool in declared.tools]),
            ("providers", [provider.id for provider in declared.providers]),
            ("capabilities", [capability.name for capability in declared.capabilities]),
            ("hooks", [subscription.hook for subscription in declared.hooks]),
            ("features", [*initialized.features]),
        )
        if names
    ]
    return "; ".join(parts)


def find_output_problem(outputs: list[Raw]) -> str | None:
    """Returns the first problem in the output of a command, or None."""
    for raw in outputs:
        try:
            frame = decode_command_output_params(raw)
        except ValidationError as error:
            return f"its output is malformed: {error}"
        if frame.request_id != RUN_ID:
            return f"the `request_id` of its output is not that of the request: {quote(frame.request_id.encode())}"
    return None


# -- observations


def observe_response(response: ProbeResponse, facts: Mapping[str, object]) -> Observation:
    """Returns the observation of a response."""
    facts = {**facts, "ms": f"{response.seconds * 1000:.0f}"}
    if response.error is None:
        return Observation(Observed.RESULT, facts)
    error = response.error if is_object(response.error) else {"code": response.error, "message": response.error}
    code, message = error.get("code"), error.get("message")
    meaning = MEANINGS.get(code) if isinstance(code, int) else None
    return Observation(Observed.ERROR, {**facts, "code": code, "message": message}, meaning)


def observe_wire(case: Case, probe: Probe) -> Iterator[Observation]:
    """Yields observations of all bytes that the program wrote."""
    match case.id:
        case "framing":
            if probe.frame_error is not None:
                facts = {"problem": probe.frame_error.problem, "hint": probe.frame_error.hint}
                yield Observation(Observed.BAD_FRAME, facts)
            elif probe.stdout and not probe.strange and not probe.stray:
                yield Observation(Observed.CLEAN)
        case "stdout":
            if probe.stray:
                yield Observation(Observed.STRAY, {"wrote": quote(probe.stray)})
        case "messages":
            yield from (Observation(Observed.BAD_MESSAGE, {"problem": text}) for text in probe.strange)
        case "calls":
            if probe.unknown:
                yield Observation(Observed.UNKNOWN_CALL, {"methods": ", ".join(probe.unknown)})
        case _:
            return


def fill(template: Any, values: dict[str, Any]) -> Any:
    """Returns params with placeholders replaced by their values."""
    if isinstance(template, str):
        return values.get(template, template)
    return {name: fill(value, values) for name, value in template.items()} if is_object(template) else template


def to_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

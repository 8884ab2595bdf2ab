"""What `becket check` looks at, one check after the other; each finding says what is right or wrong, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from becket.cli.findings import Finding, Level, Subject, how_it_ended
from becket.cli.probe import Answer, Probe
from becket.contract.handshake import FEATURES, INITIALIZE, PROTOCOL_VERSION, SHUTDOWN, Initialize, Initialized
from becket.contract.handshake_rules import find_handshake_problems, find_shape_problems, read_initialized
from becket.contract.shapes import is_object
from becket.dialects import DIALECTS, NATIVE, OTHERS, PLAIN
from becket.errors import NUMBERS, BadSchema, Meaning, quote
from becket.host.connecting import HOST, SYNAPS_VERSION
from becket.limits import DEFAULT_LIMITS
from becket.methods.permissions import PERMISSIONS, Grants
from becket.typed.schema import compile_schema
from becket.wire import ContentLength, JsonLines, LengthPrefixed, sniff

__all__ = ["announces_features", "check_dialect_of", "dialects_to_try"]

ANNOUNCED: Final = "features"
NO_SUCH_METHOD: Final = "becket.check/no_such_method"
UNKNOWN_METHOD: Final = NUMBERS[Meaning.UNKNOWN_METHOD]
FRAMINGS: Final = {ContentLength: "Content-Length headers", JsonLines: "JSON lines", LengthPrefixed: "length prefixes"}


# -- native: the contract


def check_native(subject: Subject) -> Iterator[Finding]:
    """Drives a program through the handshake of the contract and all that every extension must do."""
    try:
        with Probe(subject.command, NATIVE, env=subject.env, cwd=subject.cwd) as probe:
            answer = probe.ask(INITIALIZE.name, introduce(subject), subject.timeout)
            yield judge_answer(probe, answer, INITIALIZE.name, subject.timeout)
            if answer is None:
                yield from judge_wire(probe)
                return
            yield from judge_handshake(subject, answer)
            yield from check_unknown_words(probe, subject.timeout)
            if not probe.has_ended():
                yield check_end_of_stdin(probe)
        yield from judge_wire(probe)
        if probe.unknown:
            text = f"it asks its host for what the contract does not have: {', '.join(probe.unknown)}"
            yield Finding("calls", Level.WARNING, text, "only a host with methods of its own will answer")
        with Probe(subject.command, NATIVE, env=subject.env, cwd=subject.cwd) as probe:
            probe.ask(INITIALIZE.name, introduce(subject), subject.timeout)
            yield check_shutdown(probe)
    except OSError as error:
        yield cannot_start(subject, error)


def introduce(subject: Subject) -> Initialize:
    return Initialize(
        synaps_version=SYNAPS_VERSION,
        extension_protocol_version=PROTOCOL_VERSION,
        plugin_id=subject.id,
        plugin_root=subject.cwd or os.getcwd(),
        config=dict(subject.config),
        host=HOST,
        features=FEATURES,
    )


def judge_handshake(subject: Subject, answer: Answer) -> Iterator[Finding]:
    """Yields what is wrong with what the program declares, or what that is."""
    if answer.result is None:
        hint = f"answer `{INITIALIZE.name}` with a result"
        yield Finding("handshake", Level.ERROR, f"it refused: {member_of(answer.error, 'message')}", hint)
        return
    problems = find_shape_problems(subject.id, answer.result)
    if not problems:
        initialized = read_initialized(answer.result)
        problems = find_handshake_problems(
            subject.id, initialized, grants=Grants.of(PERMISSIONS), config=subject.config
        )
        problems += find_schema_problems(initialized)
        if not problems:
            yield Finding("handshake", Level.OK, describe(initialized))
    hint = "`becket schema initialize` and `becket schema capabilities` say what is expected"
    for pointer, text in problems:
        yield Finding("handshake", Level.ERROR, f"{pointer}: {text}" if pointer else text, hint)


def find_schema_problems(initialized: Initialized) -> Iterator[tuple[str, str]]:
    for index, tool in enumerate(initialized.capabilities.tools):
        try:
            compile_schema(tool.input_schema)
        except BadSchema as error:
            for pointer, text in error.problems:
                yield f"/capabilities/tools/{index}/input_schema{pointer}", text


def describe(initialized: Initialized) -> str:
    declared = initialized.capabilities
    parts = [f"version {initialized.protocol_version} of the contract"]
    parts += [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("tools", [tool.name for tool in declared.tools]),
            ("providers", [provider.id for provider in declared.providers]),
            ("capabilities", [capability.name for capability in declared.capabilities]),
            (ANNOUNCED, [*initialized.features]),
        )
        if names
    ]
    return "; ".join(parts)


def announces_features(findings: Iterable[Finding]) -> bool:
    """Returns whether a program has announced what our own dialect alone has."""
    return any(finding.check == "handshake" and f"; {ANNOUNCED} " in finding.text for finding in findings)


def check_shutdown(probe: Probe) -> Finding:
    """Asks the program to end. Many end without an answer, which is as good."""
    answer = probe.ask(SHUTDOWN.name, None, DEFAULT_LIMITS.stdin_grace)
    probe.close_stdin()
    code = probe.wait_exit(DEFAULT_LIMITS.stdin_grace)
    if code is None:
        hint = f"end the program when it is asked to `{SHUTDOWN.name}`, and when its stdin ends"
        return Finding("shutdown", Level.ERROR, "it does not end when it is asked to", hint)
    if answer is None and code:
        return Finding("shutdown", Level.WARNING, f"it {how_it_ended(code)} instead of an answer", "exit with 0")
    if answer is not None and answer.error is not None:
        hint = f"answer `{SHUTDOWN.name}` with any result; until then it is ended by closing its stdin"
        return Finding("shutdown", Level.WARNING, f"it does not know `{SHUTDOWN.name}`", hint)
    return Finding("shutdown", Level.OK, "it ends when it is asked to")


# -- plain: JSON-RPC without a handshake


def check_plain(subject: Subject) -> Iterator[Finding]:
    """Asks a program for a method that nobody has, and looks at how it answers and ends."""
    try:
        with Probe(subject.command, PLAIN, env=subject.env, cwd=subject.cwd) as probe:
            answer = probe.ask(NO_SUCH_METHOD, {}, subject.timeout)
            yield judge_answer(probe, answer, NO_SUCH_METHOD, subject.timeout)
            if answer is not None:
                yield from check_unknown_words(probe, subject.timeout)
                if not probe.has_ended():
                    yield check_end_of_stdin(probe)
        yield from judge_wire(probe)
    except OSError as error:
        yield cannot_start(subject, error)


OWN: Final[dict[str, Callable[[Subject], Iterator[Finding]]]] = {NATIVE.name: check_native, PLAIN.name: check_plain}


def dialects_to_try() -> list[str]:
    """Returns the names of all dialects of extensions, in the order in which they are tried: the one that fits most
    comes last."""
    known = OWN.keys() | set(OTHERS)
    added = [name for name in DIALECTS if name not in known and DIALECTS[name].contract is not None]
    return [NATIVE.name, *OTHERS, *added, PLAIN.name]


def check_dialect_of(name: str, subject: Subject) -> Iterator[Finding]:
    """Looks whether a program speaks this dialect, and how well."""
    if name in OWN:
        return OWN[name](subject)
    from becket.cli.spoken_checks import check_spoken

    return check_spoken(DIALECTS[name], subject)


# -- what all have in common


def cannot_start(subject: Subject, error: OSError) -> Finding:
    text = f"`{subject.command[0]}` cannot be started: {error.strerror or error}"
    return Finding("start", Level.ERROR, text, "look at its path, and whether it is executable")


def judge_answer(probe: Probe, answer: Answer | None, method: str, timeout: float) -> Finding:
    """Returns whether the first request was answered; where not, as much as can be said about why."""
    if answer is not None:
        return Finding("answer", Level.OK, f"`{method}` was answered in {answer.seconds * 1000:.0f} ms")
    if probe.has_ended():
        said = f", its last words: {probe.last_words}" if probe.last_words else ""
        return Finding("answer", Level.ERROR, f"it {how_it_ended(probe.exit_code)} before it answered `{method}`{said}")
    if probe.stdout:
        found = sniff(probe.stdout)
        hint = "behind `Content-Length: N` and a blank line, a JSON-RPC message of N bytes"
        if found is JsonLines:
            hint = f"it seems to write {FRAMINGS[JsonLines]}; this dialect has {FRAMINGS[ContentLength]}"
        text = f"`{method}` was not answered; it wrote: {quote(probe.stdout)}"
        return Finding("answer", Level.ERROR, text, hint)
    hint = "read stdin, answer on stdout, and flush after each message"
    return Finding("answer", Level.ERROR, f"`{method}` was not answered within {timeout:g} s", hint)


def check_unknown_words(probe: Probe, timeout: float) -> Iterator[Finding]:
    """Says what no program knows: it must go on, and say that it does not know it."""
    answer = probe.ask(NO_SUCH_METHOD, {}, timeout)
    yield judge_unknown_method(answer, probe)
    if answer is None:
        return
    probe.tell(NO_SUCH_METHOD, {})
    if probe.ask(NO_SUCH_METHOD, {}, timeout) is None:
        hint = "pass over notifications that are not known"
        yield Finding("notifications", Level.ERROR, "it answers no more after an unknown notification", hint)
    else:
        yield Finding("notifications", Level.OK, "it passes over notifications that it does not know")


def judge_unknown_method(answer: Answer | None, probe: Probe) -> Finding:
    hint = f"answer with the error {UNKNOWN_METHOD}"
    if answer is None:
        how = f"and {how_it_ended(probe.exit_code)}" if probe.has_ended() else "and is silent"
        return Finding("methods", Level.ERROR, f"it does not answer a method that it does not know, {how}", hint)
    if answer.error is None:
        return Finding("methods", Level.ERROR, "it answers a method that nobody has with a result", hint)
    code = member_of(answer.error, "code")
    if code != UNKNOWN_METHOD:
        return Finding("methods", Level.WARNING, f"it answers a method that nobody has with the error {code}", hint)
    return Finding("methods", Level.OK, "it says of a method that it does not know it")


def check_end_of_stdin(probe: Probe) -> Finding:
    """A host that dies leaves its children nothing but the end of their stdin: they must take it for their end."""
    probe.close_stdin()
    code = probe.wait_exit(DEFAULT_LIMITS.stdin_grace)
    if code is None:
        hint = "end the program when reading stdin gives nothing more: else it outlives a host that has died"
        text = f"it goes on {DEFAULT_LIMITS.stdin_grace:g} s after its stdin has ended"
        return Finding("stdin", Level.ERROR, text, hint)
    if code:
        text = f"it {how_it_ended(code)} when its stdin has ended"
        return Finding("stdin", Level.WARNING, text, "exit with 0: it is a good end")
    return Finding("stdin", Level.OK, "it ends when its stdin ends")


def judge_wire(probe: Probe) -> Iterator[Finding]:
    """Yields what was wrong with the bytes that the program wrote, over all that was said."""
    if probe.frame_error is not None:
        yield Finding("framing", Level.ERROR, probe.frame_error.problem, probe.frame_error.hint)
    elif probe.stdout and not probe.strange and not probe.stray:
        yield Finding("framing", Level.OK, "stdout has well-formed messages and nothing else")
    if probe.stray:
        hint = "stdout belongs to the protocol: print to stderr"
        yield Finding("stdout", Level.ERROR, f"something wrote to stdout: {quote(probe.stray)}", hint)
    for text in probe.strange:
        yield Finding("messages", Level.ERROR, text, "`becket schema envelope` says what a message is")


def member_of(error: Any, name: str) -> Any:
    return error.get(name) if is_object(error) else error

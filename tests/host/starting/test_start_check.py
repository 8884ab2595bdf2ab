"""An extension starts if its requirements are met and its files are approved; otherwise the reasons are reported."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.host.folders import write_extension

from becket.adapters.synaps.manifest import PluginCommand
from becket.dialects import DIALECTS
from becket.errors import BadFile, ExtensionRefused
from becket.host.diagnostics import Diagnostic, ProblemCode
from becket.host.starting.approvals import Approval
from becket.host.starting.becket_toml import parse_manifest
from becket.host.starting.candidate import Candidate
from becket.host.starting.configuration import ResolvedConfig, resolve_config
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.environment import list_variables
from becket.host.starting.folder_digest import digest_folder
from becket.host.starting.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.starting.manifest import Environment, Manifest
from becket.host.starting.start_check import (
    NeedsConsent,
    PreflightResult,
    StartAllowed,
    StartDecision,
    StartRefused,
    decide_start,
    digest_candidate,
    list_files,
    refuse_uncopyable,
    run_preflight,
)
from becket.limits import Limits
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS

THESE = "a" * 64
OTHERS = "b" * 64
FOUND = PreflightResult(command=("/usr/bin/python3", "main.py"), digest=THESE)
SYSTEM = [os.path.dirname(sys.executable), "/usr/bin", "/bin"]


def manifest_with(**members: Any) -> Manifest:
    return parse_manifest({"id": "notes", "version": "1.0.0", "command": ["python3", "main.py"]} | members, "x")


REQUESTING = manifest_with(permissions=["memory.write", "memory.read"])


def admitted(admission: StartDecision) -> StartAllowed:
    assert isinstance(admission, StartAllowed)
    return admission


def skipped(admission: StartDecision) -> StartRefused:
    assert isinstance(admission, StartRefused)
    return admission


def consent(admission: StartDecision) -> NeedsConsent:
    assert isinstance(admission, NeedsConsent)
    return admission


def problems_of(admission: StartDecision) -> list[str]:
    return [reason.problem for reason in skipped(admission).reasons]


# -- what this machine has


@pytest.fixture
def candidate(tmp_path: Path) -> Candidate:
    return candidate_in(tmp_path)


def candidate_in(root: Path, more: str = "") -> Candidate:
    write_extension(root / "notes", "notes", more)
    [candidate] = discover_extensions([root]).candidates
    return candidate


def test_a_candidate_that_lacks_nothing_has_a_command_a_digest_and_no_problem(candidate: Candidate) -> None:
    found = run_preflight(candidate, variables={}, program_folders=SYSTEM)

    command = (f"{SYSTEM[0]}/python3", f"{candidate.folder}/main.py")
    digest = digest_folder(candidate.folder).digest
    assert found == PreflightResult(command=command, runs_in=candidate.folder, digest=digest)
    assert isinstance(decide_start(candidate.manifest, found), StartAllowed)


def test_a_command_that_names_its_script_runs_where_programs_of_its_dialect_run(tmp_path: Path) -> None:
    native, morphir = candidate_in(tmp_path / "a"), candidate_in(tmp_path / "b", 'dialect = "morphir"\n')

    found = [run_preflight(one, variables={}, program_folders=SYSTEM) for one in (native, morphir)]

    assert [(one.cwd, one.runs_in) for one in found] == [(None, native.folder), (None, os.getcwd())]
    assert found[1].command[1:] == (f"{morphir.folder}/main.py",)


@pytest.mark.parametrize("arguments", [("-m", "main"), ("-c", "import main"), ("gone.py",)])
def test_a_command_that_loads_code_from_its_working_directory_runs_in_its_own_folder(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    found = candidate_in(tmp_path, 'dialect = "morphir"\n')
    candidate = replace(found, manifest=replace(found.manifest, command=("python3", *arguments)))

    findings = run_preflight(candidate, variables={}, program_folders=SYSTEM)

    assert findings.cwd == findings.runs_in == candidate.folder


def test_a_command_that_would_load_code_from_elsewhere_is_refused(tmp_path: Path) -> None:
    found = candidate_in(tmp_path / "root")
    loading = replace(found, manifest=replace(found.manifest, command=("python3", "-m", "main")))
    (tmp_path / "root" / "notes" / "work").mkdir()

    elsewhere = run_preflight(replace(loading, cwd=str(tmp_path)), variables={}, program_folders=SYSTEM)
    inside = run_preflight(replace(loading, cwd=f"{found.folder}/work"), variables={}, program_folders=SYSTEM)

    [problem] = elsewhere.problems
    assert "`-m` would load code from" in problem.problem
    assert str(tmp_path) in problem.problem
    assert (inside.problems, inside.cwd) == ((), f"{found.folder}/work")


def test_every_requirement_that_is_missing_is_named(tmp_path: Path) -> None:
    more = '[requires]\nbins = ["sh", "no-such-tool", "nor-this"]\nenv = ["HOME", "EMPTY", "MISSING"]\n'
    candidate = candidate_in(tmp_path, more)

    found = run_preflight(candidate, variables={"HOME": "/", "EMPTY": ""}, program_folders=SYSTEM)
    admission = skipped(decide_start(candidate.manifest, found))

    assert problems_of(admission) == [
        "needs the program `no-such-tool`",
        "needs the program `nor-this`",
        "needs the variable `EMPTY`",
        "needs the variable `MISSING`",
    ]
    assert {(reason.extension, reason.path) for reason in admission.reasons} == {("notes", candidate.manifest_path)}
    assert all(reason.hint for reason in admission.reasons)


@pytest.mark.parametrize("command", ['["../outside"]', '["no-such-tool"]', '["python3", "../main.py"]'])
def test_a_command_that_may_not_run_is_a_problem(tmp_path: Path, command: str) -> None:
    (tmp_path / "main.py").touch()
    write_extension(tmp_path / "notes", "notes")
    text = (tmp_path / "notes" / "becket.toml").read_text(encoding="utf-8")
    (tmp_path / "notes" / "becket.toml").write_text(text.replace('["python3", "main.py"]', command), encoding="utf-8")
    [candidate] = discover_extensions([tmp_path]).candidates

    found = run_preflight(candidate, variables={}, program_folders=SYSTEM)

    assert [problem.problem.partition(":")[0] for problem in found.problems] == ["its command"]
    assert [problem.code for problem in found.problems] == [ProblemCode.COMMAND_INVALID]
    assert (found.command, found.cwd) == ((), None)


def test_a_folder_that_cannot_be_read_whole_is_a_problem(candidate: Candidate) -> None:
    found = run_preflight(candidate, variables={}, program_folders=SYSTEM, limits=Limits(digest_files=1))

    assert [problem.problem.partition(":")[0] for problem in found.problems] == ["its folder"]
    assert [problem.hint for problem in found.problems] == ["an extension that cannot be read whole cannot be approved"]
    assert [problem.code for problem in found.problems] == [ProblemCode.FOLDER_UNREADABLE]
    assert found.digest == ""


def shared(folder: Path, **members: Any) -> Candidate:
    manifest = Manifest(id="a", version="1.0.0", command=("./a",), **members)
    path = str(folder / "list.toml")
    return Candidate(manifest, str(folder), path, 0, files=(str(folder / "a"),), is_listed=True)


def test_an_extension_in_a_shared_folder_is_approved_by_its_own_files_and_its_entry_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one", encoding="utf-8")
    (tmp_path / "other").touch()
    before = digest_candidate(shared(tmp_path))

    (tmp_path / "other").write_text("changed", encoding="utf-8")
    assert digest_candidate(shared(tmp_path)) == before
    assert digest_candidate(shared(tmp_path, description="changed")) != before
    (tmp_path / "a").write_text("two", encoding="utf-8")
    assert digest_candidate(shared(tmp_path)) != before

    (tmp_path / "a").unlink()
    problems = run_preflight(shared(tmp_path), variables={}, program_folders=SYSTEM).problems
    assert [problem.problem.partition(":")[0] for problem in problems] == ["its command", "its folder"]


def test_a_listed_extension_with_its_own_folder_is_approved_by_all_files_in_it(tmp_path: Path) -> None:
    alone = replace(shared(tmp_path), files=None)
    before = digest_candidate(alone)

    (tmp_path / "any").touch()
    assert digest_candidate(alone) != before


def test_data_does_not_count_for_the_digest(candidate: Candidate) -> None:
    before = run_preflight(candidate, variables={}, program_folders=SYSTEM)
    (Path(candidate.folder) / "data").touch()

    again = run_preflight(candidate, variables={}, program_folders=SYSTEM, data=[f"{candidate.folder}/data"])

    assert again.digest == before.digest


def test_a_configuration_that_lacks_a_value_is_a_problem(tmp_path: Path) -> None:
    candidate = candidate_in(tmp_path, '[config.token]\ntype = "string"\nsecret = true\nrequired = true\n')
    config = resolve_config("notes", candidate.manifest.config, variables={})

    found = run_preflight(candidate, variables={}, program_folders=SYSTEM, config=config)

    assert len(found.problems) == 1
    assert "/token" in found.problems[0].problem
    assert found.problems[0].hint == "set it, or give it another value"
    assert found.problems[0].code is ProblemCode.SETTING_INVALID
    assert run_preflight(candidate, variables={}, program_folders=SYSTEM, config=ResolvedConfig()).problems == ()


class ExtraSettings(Struct):
    """The additional settings of a foreign manifest."""

    setup: str | None = None
    host_commands: tuple[PluginCommand, ...] = ()


def test_a_missing_program_is_reported_with_the_setup_script_of_its_extension(candidate: Candidate) -> None:
    lacking = replace(candidate, manifest=replace(candidate.manifest, command=("no-such-tool",)))

    plain = run_preflight(lacking, variables={}, program_folders=SYSTEM)
    scripted = run_preflight(
        replace(lacking, extra=ExtraSettings(setup="./bin/../setup.sh")), variables={}, program_folders=SYSTEM
    )

    usual = f"check `command` in {candidate.manifest_path}"
    assert [problem.hint for problem in plain.problems] == [usual]
    assert [problem.hint for problem in scripted.problems] == [
        f"run its setup script, {candidate.folder}/setup.sh, or {usual}"
    ]


def test_the_setup_script_does_not_allow_a_command_that_is_not_allowed(candidate: Candidate) -> None:
    outside = replace(
        candidate,
        manifest=replace(candidate.manifest, command=("../outside",)),
        extra=ExtraSettings(setup="setup.sh"),
    )

    [problem] = run_preflight(outside, variables={}, program_folders=SYSTEM).problems

    assert problem.hint == f"check `command` in {candidate.manifest_path}"


def test_programs_that_the_host_runs_for_its_commands_are_named(candidate: Candidate) -> None:
    commands = (PluginCommand("build", command="make", args=("all",)), PluginCommand("say", prompt="Say it."))

    found = run_preflight(
        replace(candidate, extra=ExtraSettings(host_commands=commands)), variables={}, program_folders=SYSTEM
    )

    assert found.programs == (("build", ("make", "all")),)


def test_a_folder_that_cannot_be_copied_is_refused_with_the_reason(candidate: Candidate) -> None:
    os.mkfifo(f"{candidate.folder}/pipe")

    because = run_preflight(candidate, variables={}, program_folders=SYSTEM).uncopyable

    assert "pipe" in because
    refusal = refuse_uncopyable("notes", because)
    [reason] = refusal.reasons
    assert (refusal.extension, reason.code) == ("notes", ProblemCode.NOT_COPYABLE)
    assert (reason.extension, reason.problem) == ("notes", f"its folder cannot be copied: {because}")
    assert "in_place = true" in (reason.hint or "")
    assert "[extensions.notes]" in (reason.hint or "")


@pytest.mark.parametrize("role", ["is_operator_defined", "is_listed"])
def test_a_program_anywhere_is_for_the_operator_and_for_lists_of_this_machine(
    tmp_path: Path, candidate: Candidate, role: str
) -> None:
    program = tmp_path / "elsewhere"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    outside = replace(candidate, manifest=replace(candidate.manifest, command=(str(program),)))

    assert run_preflight(outside, variables={}, program_folders=SYSTEM).problems
    allowed = run_preflight(replace(outside, **{role: True}), variables={}, program_folders=SYSTEM)
    assert (allowed.problems, allowed.command) == ((), (str(program),))


# -- requirements that cannot be met


def test_a_disabled_extension_is_skipped() -> None:
    admission = skipped(decide_start(REQUESTING, FOUND, is_enabled=False, host_grants=Grants.of(PERMISSIONS)))

    [reason] = admission.reasons
    assert (admission.extension, reason.extension) == ("notes", "notes")
    assert (reason.problem, reason.hint, reason.code) == ("is disabled", "enable it", ProblemCode.DISABLED)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"permissions": ["acme.fly"]}, "Unknown extension permission: acme.fly"),
        ({"dialect": "klingon"}, "uses the dialect `klingon`"),
        ({"environment": {"pass": ["LD_PRELOAD"]}}, "requests the variable `LD_PRELOAD`"),
        ({"hooks": [{"hook": "on_session_end"}]}, "its hook `on_session_end` needs `session.lifecycle`"),
        (
            {"capabilities": [{"kind": "k", "name": "Ears", "permissions": ["audio.input"]}]},
            "its capability `Ears` needs `audio.input`",
        ),
    ],
)
def test_a_requirement_that_cannot_be_met_is_a_reason(members: dict[str, Any], problem: str) -> None:
    admission = skipped(
        decide_start(manifest_with(**members), FOUND, host_grants=Grants.of(PERMISSIONS), dialects={"native", "synaps"})
    )

    [reason] = admission.reasons
    assert reason.problem.startswith(problem)
    assert reason.extension == "notes"
    assert reason.hint


def test_all_reasons_are_reported_together_and_become_one_error() -> None:
    found = PreflightResult(problems=(Diagnostic(problem="needs the program `rg`", hint="install it"),))
    admission = skipped(decide_start(manifest_with(dialect="klingon"), found, dialects={"native"}))

    assert len(admission.reasons) == 2
    assert isinstance(admission.error, ExtensionRefused)
    assert admission.error.id == "notes"
    assert admission.error.because == "needs the program `rg`; uses the dialect `klingon`"
    assert admission.error.hint == "install it; this host has: native"
    assert (
        admission.because == "needs the program `rg` (install it); uses the dialect `klingon` (this host has: native)"
    )


def test_a_known_requested_permission_is_no_reason() -> None:
    manifest = manifest_with(
        permissions=["acme.fly", "session.lifecycle", "audio.input"],
        dialect="synaps",
        hooks=[{"hook": "on_session_end"}],
        capabilities=[{"kind": "k", "name": "Ears", "permissions": ["audio.input"]}],
        environment={"set": {"RUST_LOG": "info"}},
    )

    admission = decide_start(
        manifest,
        FOUND,
        host_grants=Grants(frozenset(manifest.permissions)),
        known=PERMISSIONS | {"acme.fly"},
        dialects={"native", "synaps"},
    )

    assert isinstance(admission, StartAllowed)


# -- consent


QUIET = manifest_with()


def test_the_discovered_files_are_approved_and_started() -> None:
    found = replace(FOUND, cwd="/srv/notes", runs_in="/srv/notes", programs=(("build", ("make",)),))

    requests_made = consent(decide_start(QUIET, found, can_ask=True))
    started = admitted(decide_start(QUIET, found, entry=requests_made.build_approval()))

    assert (requests_made.command, requests_made.cwd, requests_made.runs_in) == (
        found.command,
        "/srv/notes",
        "/srv/notes",
    )
    assert requests_made.programs == found.programs
    assert (started.command, started.cwd, started.approved_digest) == (found.command, "/srv/notes", "")


def test_the_prompt_covers_everything_discovered_and_that_is_stored() -> None:
    found = replace(FOUND, runs_in="/srv/notes", programs=(("build", ("make",)),))
    entry = GrantEntry(("memory.read",), (), THESE)
    manifest = manifest_with(permissions=["memory.write", "memory.read"], environment={"set": {"MODE": "calm"}})
    requests_made = consent(decide_start(manifest, found, entry=entry))

    request = requests_made.request()
    approval = requests_made.approval({"main.py": "1234"})

    assert (request.extension, request.method, request.because) == ("notes", "start", "it needs consent")
    assert (request.permission, request.allowed, request.changes) == (None, None, None)
    assert (request.version, request.digest) == ("1.0.0", THESE)
    assert (request.command, request.working_directory) == (found.command, "/srv/notes")
    assert (request.permissions, request.held) == (("memory.write",), ("memory.read",))
    assert (request.programs, request.variables.set) == (found.programs, {"MODE": "calm"})
    assert approval == Approval(
        digest=THESE,
        command=found.command,
        working_directory="/srv/notes",
        variables={"MODE": "calm"},
        permissions=("memory.read", "memory.write"),
        files={"main.py": "1234"},
    )


def test_files_are_listed_while_they_match_the_digest(candidate: Candidate) -> None:
    digest = digest_candidate(candidate)
    data = f"{candidate.folder}/data"

    assert sorted(list_files(candidate, digest)) == sorted(os.listdir(candidate.folder))
    Path(data).touch()
    assert list_files(candidate, digest) == {}
    assert sorted(list_files(candidate, digest, without=[data])) == sorted({*os.listdir(candidate.folder)} - {"data"})
    assert list_files(candidate, digest, without=[data], limits=Limits(digest_files=1)) == {}
    assert digest_candidate(candidate, without=[data]) == digest
    with pytest.raises(BadFile):
        digest_candidate(candidate, limits=Limits(digest_files=1))


def test_a_new_extension_holds_nothing_whatever_an_entry_for_other_files_grants() -> None:
    entry = GrantEntry(("memory.read",), (), OTHERS)

    assert consent(decide_start(REQUESTING, FOUND, entry=entry, can_ask=True)).held == ()


def test_only_variables_are_prompted_for_where_permissions_can_be_requested_later() -> None:
    entry = GrantEntry(("audio.input",), (), THESE)

    admission = consent(decide_start(CURIOUS, FOUND, entry=entry, can_ask=True))

    assert (admission.permissions, admission.requested, admission.approved_digest) == ((), SECRET_VARIABLES, "")


def test_an_extension_without_requests_starts_without_a_prompt() -> None:
    admission = admitted(decide_start(QUIET, FOUND))

    assert admission == StartAllowed(extension="notes", command=FOUND.command, digest=THESE, grants=Grants())


def test_an_extension_without_requests_is_prompted_for_where_there_is_a_prompt() -> None:
    admission = consent(decide_start(QUIET, FOUND, can_ask=True))

    assert (admission.permissions, admission.requested, admission.approved_digest) == ((), (), "")
    assert "it requests no permission" in admission.prompt_text
    assert "was not approved" in admission.build_refusal.because
    entry = admission.build_approval()
    assert entry == GrantEntry(digest=THESE)
    assert admitted(decide_start(QUIET, FOUND, entry=entry, can_ask=True)).bound_to == THESE


def test_grants_of_the_program_are_consent_even_if_they_are_empty() -> None:
    assert admitted(decide_start(QUIET, FOUND, host_grants=Grants(), can_ask=True)).bound_to == ""


@pytest.mark.parametrize("can_ask", [False, True])
def test_consent_to_an_extension_without_requests_covers_its_files_alone(*, can_ask: bool) -> None:
    admission = consent(decide_start(QUIET, FOUND, entry=GrantEntry(digest=OTHERS), can_ask=can_ask))

    assert admission.approved_digest == OTHERS
    assert "files have changed" in admission.build_refusal.because


def test_an_extension_with_requests_needs_consent_to_all_of_them() -> None:
    admission = consent(decide_start(REQUESTING, FOUND))

    assert admission.permissions == ("memory.read", "memory.write")
    assert (admission.digest, admission.approved_digest) == (THESE, "")
    assert "not approved: memory.read, memory.write" in admission.build_refusal.because
    assert "becket grant notes" in admission.build_refusal.because


CURIOUS = manifest_with(
    permissions=["memory.read"],
    environment={"pass": ["AWS_SECRET_ACCESS_KEY", "EDITOR", "HOME"], "set": {"RUST_LOG": "info"}},
    config={"token": {"type": "string", "secret": True, "env": "GITHUB_TOKEN"}, "mode": {"type": "string"}},
)
SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "EDITOR", "GITHUB_TOKEN")


@pytest.mark.parametrize("can_ask", [False, True])
def test_variables_of_the_host_need_consent_whatever_permissions_are_granted(*, can_ask: bool) -> None:
    admission = consent(decide_start(CURIOUS, FOUND, host_grants=Grants.of(["memory.read"]), can_ask=can_ask))

    assert (admission.permissions, admission.held, admission.requested) == ((), ("memory.read",), SECRET_VARIABLES)
    assert "the variable EDITOR" in admission.build_refusal.because
    entry = admission.build_approval()
    assert entry == GrantEntry(digest=THESE, variables=SECRET_VARIABLES)
    assert isinstance(decide_start(CURIOUS, FOUND, entry=entry, host_grants=Grants.of(["memory.read"])), StartAllowed)


def test_consent_from_before_variables_were_requested_covers_permissions_only() -> None:
    entry = GrantEntry(("memory.read",), ("memory.write",), THESE)

    admission = consent(decide_start(CURIOUS, FOUND, entry=entry))

    assert (admission.permissions, admission.held, admission.requested) == ((), ("memory.read",), SECRET_VARIABLES)
    assert admission.build_approval() == GrantEntry(("memory.read",), ("memory.write",), THESE, SECRET_VARIABLES)


def test_consent_to_variables_is_for_these_files_alone_whatever_the_program_grants() -> None:
    entry = GrantEntry(digest=OTHERS, variables=SECRET_VARIABLES)
    grants = Grants.of(["memory.read"])

    admission = consent(decide_start(CURIOUS, FOUND, entry=entry, host_grants=grants))

    assert admission.requested == SECRET_VARIABLES
    entry = admission.build_approval()
    assert admitted(decide_start(CURIOUS, FOUND, entry=entry, host_grants=grants)).bound_to == THESE


def test_consent_to_other_files_drops_the_variables_approved_for_the_earlier_ones() -> None:
    entry = GrantEntry(("audio.input",), (), OTHERS, ("OLD_VARIABLE",))

    assert consent(decide_start(CURIOUS, FOUND, entry=entry)).build_approval().variables == SECRET_VARIABLES


def test_an_unapproved_variable_is_prompted_for_alone() -> None:
    entry = GrantEntry(("memory.read",), (), THESE, ("EDITOR", "GITHUB_TOKEN"))

    assert consent(decide_start(CURIOUS, FOUND, entry=entry)).requested == ("AWS_SECRET_ACCESS_KEY",)


def test_a_variable_that_the_operator_gives_needs_no_consent() -> None:
    variables = list_variables(CURIOUS.environment, ("GITHUB_TOKEN",), Environment(passed=SECRET_VARIABLES))

    admission = decide_start(CURIOUS, FOUND, host_grants=Grants.of(["memory.read"]), variables=variables)

    assert admitted(admission).bound_to == ""


def test_a_variable_that_loads_code_is_approved_with_its_value_and_never_taken_from_the_host() -> None:
    loading = manifest_with(environment={"set": {"PYTHONPATH": "lib\n"}})

    admission = consent(decide_start(loading, FOUND, host_grants=Grants()))

    assert admission.requested == ("PYTHONPATH",)
    assert "it sets the variable PYTHONPATH to lib\\n: programs load code by it" in admission.prompt_text.splitlines()
    assert isinstance(
        decide_start(loading, FOUND, host_grants=Grants(), entry=admission.build_approval()), StartAllowed
    )
    passing = manifest_with(environment={"pass": ["PYTHONPATH"]})
    variables = list_variables(passing.environment, (), Environment(passed=("PYTHONPATH",)))
    assert isinstance(decide_start(passing, FOUND, host_grants=Grants()), StartRefused)
    assert isinstance(decide_start(passing, FOUND, host_grants=Grants(), variables=variables), StartAllowed)


def test_variables_that_the_program_env_sets_are_shown_and_approved_like_those_of_the_manifest() -> None:
    manifest = manifest_with(
        command=["nice", "env", "PYTHONPATH=lib dir", "MODE=\x1b[2J", "python3", "main.py"],
        environment={"set": {"MODE": "calm"}},
    )

    admission = consent(decide_start(manifest, FOUND, host_grants=Grants()))

    assert admission.requested == ("PYTHONPATH",)
    assert [line for line in admission.prompt_text.splitlines() if "variable" in line] == [
        "it sets the variable MODE to \\x1b[2J",
        "it sets the variable PYTHONPATH to 'lib dir': programs load code by it",
    ]
    assert isinstance(
        decide_start(manifest, FOUND, host_grants=Grants(), entry=admission.build_approval()), StartAllowed
    )


def test_the_prompt_names_every_variable_outside_the_base_list_and_no_value_of_the_host() -> None:
    available = {"HOME": "/root", "EDITOR": "canary", "SHELL_TOKEN": "canary", "LS_COLORS": "canary"}
    variables = list_variables(
        CURIOUS.environment,
        ("GITHUB_TOKEN",),
        Environment(passed=("GIVEN",)),
        available=available,
        defaults=DIALECTS["morphir"].host_defaults,
        inherits=True,
    )

    prompt = consent(decide_start(CURIOUS, FOUND, variables=variables)).prompt_text

    assert prompt.splitlines()[1:] == [
        "it requests the permission memory.read",
        "it requests the variable AWS_SECRET_ACCESS_KEY, which looks like a secret",
        "it requests the variable EDITOR",
        "it requests the variable GITHUB_TOKEN, which looks like a secret",
        "it sets the variable RUST_LOG to info",
        "the host's configuration gives it the variables GIVEN",
        "inherit_environment gives it the variables EDITOR, LS_COLORS, SHELL_TOKEN",
        "agree?",
    ]


def test_an_approval_holds_for_the_approved_files() -> None:
    entry = consent(decide_start(REQUESTING, FOUND)).build_approval()

    admission = admitted(decide_start(REQUESTING, FOUND, entry=entry))

    assert entry == GrantEntry(("memory.read", "memory.write"), (), THESE)
    assert admission.grants == Grants.of(["memory.read", "memory.write"])
    assert admission.undecided == ()
    assert admission.entry == entry


def test_consent_to_some_permissions_refuses_the_others() -> None:
    entry = consent(decide_start(REQUESTING, FOUND)).build_approval(["memory.read"])

    assert entry == GrantEntry(("memory.read",), ("memory.write",), THESE)
    assert admitted(decide_start(REQUESTING, FOUND, entry=entry)).grants == Grants.of(["memory.read"], ["memory.write"])


def test_changed_files_need_new_consent_and_denials_stay() -> None:
    entry = GrantEntry(("memory.read", "audio.input"), ("memory.write",), OTHERS)

    admission = consent(decide_start(REQUESTING, FOUND, entry=entry))

    assert admission.approved_digest == OTHERS
    assert admission.permissions == ("memory.read",)
    assert "files have changed" in admission.build_refusal.because
    assert admission.build_approval() == GrantEntry(("memory.read",), ("memory.write",), THESE)


def test_changed_files_need_consent_also_where_all_their_requests_are_denied() -> None:
    entry = GrantEntry((), ("memory.read", "memory.write"), OTHERS)

    admission = consent(decide_start(REQUESTING, FOUND, entry=entry))

    assert (admission.permissions, admission.approved_digest) == ((), OTHERS)
    assert admission.build_approval() == replace(entry, digest=THESE)


def test_in_development_changed_files_start_and_this_is_reported() -> None:
    entry = GrantEntry(("memory.read",), ("memory.write",), OTHERS)

    admission = admitted(decide_start(REQUESTING, FOUND, entry=entry, in_development=True))

    assert admission.grants == Grants.of(["memory.read"], ["memory.write"])
    assert admission.approved_digest == OTHERS
    assert admission.entry == entry  # outside of development these files need consent again


@pytest.mark.parametrize("in_development", [False, True])
def test_a_denial_is_not_consent_to_the_rest(*, in_development: bool) -> None:
    entry = GrantEntry((), ("memory.write",))

    admission = consent(decide_start(REQUESTING, FOUND, entry=entry, in_development=in_development))

    assert admission.permissions == ("memory.read",)
    assert admission.build_approval() == GrantEntry(("memory.read",), ("memory.write",), THESE)


def test_development_mode_does_not_replace_consent() -> None:
    assert isinstance(decide_start(REQUESTING, FOUND, in_development=True), NeedsConsent)


def test_a_grant_written_without_a_digest_is_bound_to_the_files_that_are_there() -> None:
    entry = GrantEntry(("memory.read",), ("memory.write",))

    admission = admitted(decide_start(REQUESTING, FOUND, entry=entry))

    assert admission.entry == GrantEntry(("memory.read",), ("memory.write",), THESE)
    assert admitted(decide_start(REQUESTING, PreflightResult(), entry=entry)).entry == entry


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        (GrantEntry(("memory.read",), (), THESE), None),
        (None, Grants.of(["memory.read"])),
        (GrantEntry(("memory.read",), (), THESE), Grants()),
    ],
)
def test_an_extension_with_some_of_its_permissions_is_refused_without_a_prompt_for_the_rest(
    entry: GrantEntry | None, host: Grants | None
) -> None:
    admission = consent(decide_start(REQUESTING, FOUND, entry=entry, host_grants=host))

    assert (admission.permissions, admission.held) == (("memory.write",), ("memory.read",))
    assert "memory.write" in admission.build_refusal.because
    assert "becket revoke notes memory.write" in admission.build_refusal.because
    assert admitted(decide_start(REQUESTING, FOUND, entry=entry, host_grants=host, can_ask=True)).undecided == (
        "memory.write",
    )
    denied = replace(entry or GrantEntry(), deny=("memory.write",))
    assert admitted(decide_start(REQUESTING, FOUND, entry=denied, host_grants=host)).undecided == ()


def test_grants_of_the_host_hold_for_any_files() -> None:
    host_grants = Grants.of(["memory.read"], ["memory.write"])

    admission = admitted(
        decide_start(REQUESTING, FOUND, host_grants=host_grants, entry=GrantEntry(("memory.write",), (), OTHERS))
    )

    assert admission.grants == host_grants
    assert admission.undecided == ()


@pytest.mark.parametrize(
    ("entry", "host", "in_development", "bound_to"),
    [
        (GrantEntry(("memory.read",), (), THESE), None, False, THESE),
        (GrantEntry(("memory.read",)), None, False, THESE),
        (GrantEntry((), (), THESE), None, False, THESE),
        (GrantEntry(("memory.read",), (), THESE), None, True, ""),
        (GrantEntry((), ("memory.read", "memory.write"), THESE), None, False, THESE),
        (GrantEntry((), ("memory.read", "memory.write")), None, False, ""),
        (None, Grants.of(["memory.read"]), False, ""),
        (GrantEntry((), ("memory.write",), THESE), Grants.of(["memory.read"]), False, ""),
        (GrantEntry(("memory.read",), (), THESE), Grants.of(["memory.read"]), False, ""),
        (GrantEntry(("memory.write",), (), THESE), Grants.of(["memory.read"]), False, THESE),
        (GrantEntry(("memory.write",), (), OTHERS), Grants.of(["memory.read"]), False, ""),
        (GrantEntry(("audio.input",), (), THESE), Grants.of(["memory.read"]), False, ""),
    ],
)
def test_an_extension_is_bound_to_its_files_where_a_permission_depends_on_consent_to_them(
    entry: GrantEntry | None, host: Grants | None, in_development: bool, bound_to: str
) -> None:
    # With a prompt, undecided permissions do not keep an approved extension from starting.
    can_ask = host is not None or entry is None or bool(entry.allow or entry.digest)
    admission = decide_start(
        REQUESTING, FOUND, entry=entry, host_grants=host, in_development=in_development, can_ask=can_ask
    )

    assert admitted(admission).bound_to == bound_to


def test_a_permission_that_was_not_requested_is_never_granted() -> None:
    everything = GrantEntry(tuple(sorted(PERMISSIONS)), (), THESE)

    assert admitted(decide_start(REQUESTING, FOUND, entry=everything)).grants.allow == {"memory.read", "memory.write"}
    assert admitted(decide_start(REQUESTING, FOUND, host_grants=Grants.of(PERMISSIONS))).grants.allow == {
        "memory.read",
        "memory.write",
    }


NAMES = st.frozensets(st.sampled_from(["memory.read", "memory.write", "audio.input"]))
DIGESTS = st.sampled_from(["", THESE, OTHERS])


@given(
    NAMES,
    st.none() | st.builds(Grants, NAMES, NAMES),
    st.none() | st.tuples(NAMES, NAMES, DIGESTS),
    st.booleans(),
    st.booleans(),
)
def test_only_requested_granted_and_undenied_permissions_are_held(
    wanted: frozenset[str],
    host: Grants | None,
    written: tuple[frozenset[str], frozenset[str], str] | None,
    in_development: bool,
    can_ask: bool,
) -> None:
    entry = None if written is None else GrantEntry(tuple(written[0]), tuple(written[1]), written[2])
    admission = decide_start(
        manifest_with(permissions=sorted(wanted)),
        FOUND,
        host_grants=host,
        entry=entry,
        in_development=in_development,
        can_ask=can_ask,
    )

    agrees = entry is not None and bool(entry.allow or entry.digest)
    holds = entry is not None and agrees and (in_development or entry.digest != OTHERS)
    allow = (host.allow if host else frozenset()) | (frozenset(entry.allow) if entry and holds else frozenset())
    deny = (host.deny if host else frozenset()) | (frozenset(entry.deny) if entry else frozenset())
    match admission:
        case StartAllowed():
            assert {name for name in PERMISSIONS if admission.grants.allows(name)} == (allow - deny) & wanted
            assert set(admission.undecided) == wanted - allow - deny
            assert can_ask or not admission.undecided
        case NeedsConsent():
            assert set(admission.permissions) == wanted - allow - deny
            assert (host is None and not holds) or not can_ask
            assert admission.permissions or can_ask or (entry is not None and entry.digest == OTHERS)
        case _:
            pytest.fail("nothing was wrong with it")


# -- the text of a prompt


def test_the_prompt_shows_the_whole_command_escaped() -> None:
    command = ("/usr/bin/python3", "-c", "print('\x1b[2J')\nagree? yes", "")
    found = PreflightResult(command=command, runs_in="/srv/my notes\n", digest=THESE)
    manifest = manifest_with(permissions=["memory.read"], environment={"pass": ["MY_TOKEN"]})

    prompt = consent(decide_start(manifest, found, entry=GrantEntry(digest=OTHERS))).prompt_text

    assert prompt.splitlines() == [
        "notes 1.0.0 wants to run: /usr/bin/python3 -c 'print('\\x1b[2J')\\nagree? yes' ''",
        "it runs in the folder '/srv/my notes\\n', and loads code from there: -c",
        "its files have changed since they were approved",
        "it requests the permission memory.read",
        "it requests the variable MY_TOKEN, which looks like a secret",
        "agree?",
    ]
    assert prompt.replace("\n", "").isprintable()
    assert "changed" not in consent(decide_start(manifest, found)).prompt_text


# -- from the folder to the file and back


def test_a_change_of_any_file_after_consent_prompts_again(tmp_path: Path) -> None:
    candidate = candidate_in(tmp_path, 'permissions = ["memory.read"]\n')
    grants = tmp_path / "state" / "grants.toml"

    def decide() -> StartDecision:
        found = run_preflight(candidate, variables={}, program_folders=SYSTEM)
        return decide_start(candidate.manifest, found, entry=load_grants(grants).get("notes"))

    requests_made = consent(decide())
    edit_grants(grants, "notes", lambda _: requests_made.build_approval())
    assert admitted(decide()).grants.allows("memory.read")

    (Path(candidate.folder) / "main.py").write_text("import evil", encoding="utf-8")
    assert consent(decide()).approved_digest == requests_made.digest

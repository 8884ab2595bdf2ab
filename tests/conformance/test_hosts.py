"""becket's own hosts and clients against the cases for hosts of every foreign dialect, and the folders of the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.adapters.mcp.servers import KIT, needs_kit
from tests.conformance.case_selection import choose_cases

from becket.adapters.roder.manifest import manifest_checksum
from becket.conformance import CaseVerdict, HostLink, Role, list_suites, load_suite, run_cases, select_cases
from becket.conformance.host_link import fill_command, write_folder
from becket.host.starting.discovery import discover_extensions

EXAMPLES = Path(__file__).parents[2] / "examples" / "conformance"
CLIENTS = Path(__file__).parent / "clients"
FOREIGN = [dialect for dialect in list_suites() if dialect != "native"]
LEAST = {"mcp": 10}  # of the others 5
PATIENCE = 60.0  # seconds for one message on a loaded machine
PROGRAMS = {
    "cigen": ("cigen_core.py", "{child}"),
    "lsp": ("language_client.py", "{child}"),
    "mcp": ("mcp_client.py", "{child}"),
    "morphir": ("host.py", "--dialect", "morphir", "{child}"),
    "nexo": ("host.py", "--dialect", "nexo", "{child}"),
    "roder": ("host.py", "{manifest}"),  # it compares the first response with the manifest
    "synaps": ("host.py", "--dialect", "synaps", "{child}"),
}
IDS = {"cigen": "cigen-provider-conform"}
ONE_CALL = {"mcp": "MCPH-TL-002", "morphir": "MORH-RQ-003", "nexo": "NEXH-RQ-003", "synaps": "SYNH-RQ-002"}


def failures_of(dialect: str, words: tuple[str, ...], ids: Iterable[str]) -> dict[str, str]:
    suite = load_suite(dialect)
    cases = select_cases(suite.cases, Role.HOST, ids)
    command = [sys.executable, str(EXAMPLES / words[0]), *words[1:]]
    results = run_cases(
        suite, cases, lambda: HostLink(command, suite.setups[Role.HOST].files), timeout=PATIENCE, workers=2
    )
    return {one.case.id: f"{one.verdict}: {one.reason}" for one in results if one.verdict is not CaseVerdict.PASS}


def test_every_foreign_dialect_has_a_program() -> None:
    assert sorted(PROGRAMS) == sorted(FOREIGN)


@pytest.mark.parametrize("dialect", FOREIGN)
def test_a_dialect_has_enough_cases_for_hosts(dialect: str) -> None:
    assert len(select_cases(load_suite(dialect).cases, Role.HOST)) >= LEAST.get(dialect, 5)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("dialect", FOREIGN)
def test_a_host_of_becket_passes_the_cases_of_a_foreign_dialect(dialect: str) -> None:
    assert failures_of(dialect, PROGRAMS[dialect], [case.id for case in choose_cases(dialect, Role.HOST)]) == {}


@pytest.mark.process
@pytest.mark.slow
def test_a_host_of_extensions_responds_to_the_requests_of_an_mcp_server() -> None:
    ids = ("MCPH-LC-009", "MCPH-RQ-001", "MCPH-RQ-003", "MCPH-TL-009")

    assert failures_of("mcp", ("host.py", "--dialect", "mcp", "{child}"), ids) == {}


@pytest.mark.process
@pytest.mark.slow
@needs_kit
def test_the_official_client_of_mcp_passes_the_cases_that_share_a_process() -> None:
    suite = load_suite("mcp")
    cases = [case for case in select_cases(suite.cases, Role.HOST) if not case.is_alone]
    command = [str(KIT), str(CLIENTS / "official_mcp.py"), "{child}"]

    results = run_cases(
        suite, cases, lambda: HostLink(command, suite.setups[Role.HOST].files), timeout=PATIENCE, workers=1
    )

    assert {one.case.id: one.reason for one in results if one.verdict is not CaseVerdict.PASS} == {}


# -- the folders


@pytest.mark.parametrize("dialect", list_suites())
def test_becket_discovers_the_extension_in_the_folder_of_the_suite(dialect: str, tmp_path: Path) -> None:
    folder = tmp_path / "conform"

    write_folder(folder, load_suite(dialect).setups[Role.HOST].files, ["true"])
    report = discover_extensions([folder])

    assert report.diagnostics == ()
    (found,) = report.candidates
    assert (found.manifest.dialect, found.id) == (dialect, IDS.get(dialect, "conform"))
    (command, *arguments) = found.manifest.command
    assert os.access(folder / command, os.X_OK)
    assert arguments == []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["native", *ONE_CALL])
def test_a_host_calls_the_extension_that_it_finds_in_the_folder(dialect: str) -> None:
    assert failures_of(dialect, ("host.py", "{manifest}"), [ONE_CALL.get(dialect, "NH-TL-002")]) == {}


def test_the_checksum_of_the_roder_suite_is_that_of_its_manifest() -> None:
    host = load_suite("roder").setups[Role.HOST]

    assert host.variables["checksum"] == manifest_checksum(host.files["roder-extension.toml"].encode())


def test_a_folder_may_have_any_name_and_its_program_any_arguments(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" c'
    child = ["echo", "it's", "$HOME"]

    write_folder(folder, load_suite("mcp").setups[Role.HOST].files, child)
    (found,) = discover_extensions([folder]).candidates

    (command,) = found.manifest.command
    assert subprocess.run([command], check=True, capture_output=True).stdout == b"it's $HOME\n"


# -- the command line


def test_a_word_of_its_own_becomes_the_words_of_the_child_and_any_other_has_them_quoted(tmp_path: Path) -> None:
    words = fill_command(["run", "{child}", "--child={child}", "--in={manifest}"], ["a b", "c"], tmp_path)

    assert words == ["run", "a b", "c", "--child='a b' c", f"--in={tmp_path}"]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("dialect", FOREIGN)
def test_a_command_without_placeholders_finds_both_in_its_environment(dialect: str) -> None:
    files = load_suite(dialect).setups[Role.HOST].files
    script = 'ls -A "$BECKET_CONFORM_FOLDER" | eval "$BECKET_CONFORM_CHILD"'
    link = HostLink(["sh", "-c", script], files)
    try:
        names = (link.read(PATIENCE) or b"").decode().split()
        assert sorted(names) == sorted({Path(name).parts[0] for name in files})
    finally:
        link.kill()

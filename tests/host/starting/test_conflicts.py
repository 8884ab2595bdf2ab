"""Of several extensions with one id, the one that their own system would use is used."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.synaps.plugins import write_plugin
from tests.host.folders import write_extension

from becket.host.diagnostics import Severity
from becket.host.starting.discovery import DiscoveryReport, discover_extensions

NEXO = """
[plugin]
id = "notes"
version = "1.0.0"
[capabilities]
tools = ["t"]
[transport]
kind = "stdio"
command = "python3"
args = ["main.py"]
"""
RODER = """
id = "notes"
name = "Notes"
version = "1.0.0"
api_version = "*"
provides = [{ type = "event_sink", id = "s" }]
[launch]
command = "python3"
args = ["main.py"]
"""
MORPHIR = """
[[extensions]]
name = "notes"
source = { type = "process", command = "python3", args = ["FIRST"] }
[[extensions]]
name = "notes"
source = { type = "process", command = "python3", args = ["LAST"] }
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "main.py").write_text("print()\n", encoding="utf-8")
    return folder


def taken(report: DiscoveryReport) -> str:
    (candidate,) = report.candidates
    return candidate.folder


def severities(report: DiscoveryReport) -> list[Severity]:
    return [note.severity for note in report.diagnostics if "same id" in note.problem]


def test_nexo_uses_the_extension_of_the_first_root(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "x", "plugin.toml", NEXO)
    write(tmp_path / "b" / "x", "plugin.toml", NEXO)

    report = discover_extensions([tmp_path / "a", tmp_path / "b"])

    assert taken(report) == str(first)
    assert severities(report) == [Severity.WARNING]


def test_nexo_uses_the_first_path_in_one_root(tmp_path: Path) -> None:
    write(tmp_path / "b", "plugin.toml", NEXO)
    first = write(tmp_path / "a", "plugin.toml", NEXO)

    assert taken(discover_extensions([tmp_path])) == str(first)


def test_synaps_uses_the_extension_of_the_later_root(tmp_path: Path) -> None:
    write_plugin(tmp_path / "user", "notes", "", ["tools.register"])
    project = write_plugin(tmp_path / "project", "notes", "", ["tools.register"])

    report = discover_extensions([tmp_path / "user", tmp_path / "project"])

    assert taken(report) == str(project)
    assert severities(report) == [Severity.WARNING]


def test_roder_uses_the_first_and_reports_the_second_as_an_error(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "x", "roder-extension.toml", RODER)
    write(tmp_path / "b" / "x", "roder-extension.toml", RODER)

    report = discover_extensions([tmp_path / "a", tmp_path / "b"])

    assert taken(report) == str(first)
    assert severities(report) == [Severity.ERROR]


def test_morphir_uses_the_last_entry_of_a_list(tmp_path: Path) -> None:
    write(tmp_path, "morphir.toml", MORPHIR)

    report = discover_extensions([tmp_path])

    (candidate,) = report.candidates
    assert candidate.manifest.command[-1] == "LAST"
    assert severities(report) == [Severity.WARNING]


def test_a_list_that_two_roots_reach_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "a", "morphir.toml", MORPHIR)

    report = discover_extensions([tmp_path, tmp_path / "a"])

    (candidate,) = report.candidates
    assert candidate.manifest.command[-1] == "LAST"
    assert severities(report) == [Severity.WARNING]


def test_between_systems_the_later_root_wins(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x", "plugin.toml", NEXO)
    later = write_extension(tmp_path / "b" / "x", "notes")

    assert taken(discover_extensions([tmp_path / "a", tmp_path / "b"])) == str(later)

"""The manifest of a served extension: where it is found, and whether the class matches it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from becket.adapters.roder import (
    EventSink,
    InferenceEngine,
    RoderManifest,
    Service,
    SubagentDispatcher,
    TaskExecutor,
    ToolProvider,
    ToolSpec,
    manifest_checksum,
)
from becket.adapters.roder.served_manifest import (
    MANIFEST_VARIABLE,
    build_default_manifest,
    check_matches_class,
    find_manifest_path,
    load_manifest_file,
    load_served_manifest,
)
from becket.contract.handshake import Capabilities
from becket.contract.providers import Model, Provider
from becket.contract.tools import Tool
from becket.dialects.link_state import LinkState
from becket.errors import BadFile, Meaning, RpcError

TEXT = 'id = "demo"\nname = "Demo"\nversion = "1"\napi_version = "*"\nprovides = [{ type = "event_sink", id = "s" }]\n'
SCHEMA = {"type": "object"}
PROVIDER = Provider(id="local", display_name="L", description="d", models=(Model("small"),))


def state(*own: str, with_all: bool = True) -> LinkState:
    declared = Capabilities((Tool("count", "Counts.", SCHEMA),), (PROVIDER,)) if with_all else Capabilities()
    commands = (("tidy", "Tidies."),) if with_all else ()
    return LinkState("demo", declared, version="1.0.0", commands=commands, own_methods=frozenset(own))


# -- where it is


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with two more in it: one of a program, and one that is the current one."""
    for name in ("program", "current"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "current")
    monkeypatch.delenv(MANIFEST_VARIABLE, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "program" / "demo.py"), raising=False)
    return tmp_path


def test_a_variable_names_the_file_before_all_else() -> None:
    assert find_manifest_path({MANIFEST_VARIABLE: "/somewhere/m.toml"}, "/p/demo.py", "/c") == "/somewhere/m.toml"


def test_the_file_beside_the_program_comes_before_that_of_the_current_folder(folders: Path) -> None:
    in_current, beside = folders / "current" / "roder-extension.toml", folders / "program" / "roder-extension.toml"
    program, current = str(folders / "program" / "demo.py"), str(folders / "current")

    assert find_manifest_path({}, program, current) is None
    in_current.write_text(TEXT, encoding="utf-8")
    assert find_manifest_path({MANIFEST_VARIABLE: ""}, program, current) == str(in_current)
    beside.write_text(TEXT, encoding="utf-8")
    assert find_manifest_path({}, program, current) == str(beside)


def test_the_file_of_the_program_that_runs_is_found_and_read(folders: Path) -> None:
    (folders / "program" / "roder-extension.toml").write_text(TEXT, encoding="utf-8")

    side = load_served_manifest(state())

    assert side.has_file
    assert side.loaded.checksum == manifest_checksum(TEXT.encode())
    assert side.loaded.folder == str(folders / "program")
    assert side.loaded.manifest.provides == (EventSink("s"),)


def test_a_program_without_a_file_is_reported_and_served(folders: Path, caplog: pytest.LogCaptureFixture) -> None:
    side = load_served_manifest(state())

    assert not side.has_file
    assert "there is no roder-extension.toml" in caplog.text


def test_the_file_of_a_program_without_a_name_is_searched_by_its_arguments(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__")
    monkeypatch.setattr(sys, "argv", [str(folders / "program" / "demo.py")])
    (folders / "program" / "roder-extension.toml").write_text(TEXT, encoding="utf-8")

    assert load_served_manifest(state()).has_file


def test_a_file_that_cannot_be_used_is_reported_in_the_response(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MANIFEST_VARIABLE, str(folders / "nowhere.toml"))

    with pytest.raises(RpcError) as caught:
        load_served_manifest(state())

    assert caught.value.meaning is Meaning.INCOMPATIBLE
    assert "nowhere.toml" in caught.value.message


def test_a_file_of_another_shape_is_refused_with_all_its_problems(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text('id = 1\nprovides = [{ type = "surprise" }]', encoding="utf-8")

    with pytest.raises(BadFile) as caught:
        load_manifest_file(str(path))

    assert {"/id", "/name"} <= {pointer for pointer, _ in caught.value.problems}


# -- the services of the class


def test_a_class_is_described_as_services_of_all_types() -> None:
    loaded = build_default_manifest(state("events/handle", "subagents/dispatch"))

    assert loaded.manifest.provides == (
        ToolProvider("demo", (ToolSpec("count", "Counts.", SCHEMA),)),
        InferenceEngine("local"),
        TaskExecutor("tidy"),
        EventSink("demo"),
        SubagentDispatcher("demo"),
    )
    assert loaded.checksum == "cbf29ce484222325"
    assert loaded.manifest.version == "1.0.0"


def test_a_class_that_offers_nothing_has_no_services() -> None:
    assert build_default_manifest(state(with_all=False)).manifest.provides == ()


# -- whether class and manifest match

ALL: tuple[Service, ...] = (
    ToolProvider("t", (ToolSpec("count", "other words", SCHEMA),)),
    InferenceEngine("local"),
    TaskExecutor("tidy"),
)


def check_agreement(provides: tuple[Service, ...], here: LinkState) -> None:
    check_matches_class(RoderManifest(id="demo", name="D", version="1", api_version="*", provides=provides), here)


def test_a_manifest_with_the_names_of_the_class_matches_it() -> None:
    check_agreement(ALL, state())
    check_agreement((*ALL, EventSink("s"), SubagentDispatcher("d")), state("events/handle", "subagents/dispatch"))


@pytest.mark.parametrize(
    ("provides", "here", "problem"),
    [
        (ALL[1:], state(), "the class has the tool `count`, which the file does not list"),
        (ALL[::2], state(), "the class has the provider `local`, which the file does not list"),
        (ALL[:2], state(), "the class has the command `tidy`, which the file does not list"),
        ((*ALL, InferenceEngine("x")), state(), "the file lists the provider `x`, which the class has not"),
        ((*ALL, TaskExecutor("x")), state(), "the file lists the command `x`, which the class has not"),
        (
            (*ALL, ToolProvider("u", (ToolSpec("x", "d", SCHEMA),))),
            state(),
            "the file lists the tool `x`, which the class has not",
        ),
        (
            (*ALL, EventSink("s")),
            state(),
            "the file lists the event_sink `s`, and the class does not handle `events/handle`",
        ),
        (ALL, state("events/handle"), "the class handles `events/handle`, and the file lists no event_sink"),
        (
            (*ALL, SubagentDispatcher("d")),
            state(),
            "the file lists the subagent_dispatcher `d`, and the class does not handle `subagents/dispatch`",
        ),
        (
            ALL,
            state("subagents/dispatch"),
            "the class handles `subagents/dispatch`, and the file lists no subagent_dispatcher",
        ),
    ],
)
def test_differences_between_manifest_and_class_are_reported(
    provides: tuple[Service, ...], here: LinkState, problem: str
) -> None:
    with pytest.raises(RpcError) as caught:
        check_agreement(provides, here)

    assert caught.value.message.endswith(problem)


@pytest.mark.parametrize(
    ("method", "service"),
    [
        ("tools/call", ToolProvider("t", (ToolSpec("any", "d", SCHEMA),))),
        ("inference/streamTurn", InferenceEngine("any")),
        ("tasks/execute", TaskExecutor("any")),
    ],
)
def test_a_class_that_serves_a_method_itself_matches_any_listed_names(method: str, service: Service) -> None:
    check_agreement((service,), state(method, with_all=False))

"""How a child is started: descriptors, environment, program lookup, and errors."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.peer.children import QUICK

from becket import Peer, StartFailed
from becket.peer.transport.child_process import build_environment, find_executable
from becket.testing import check_leaks, child

pytestmark = [pytest.mark.loops, pytest.mark.process]


async def describe(**options: Any) -> dict[str, Any]:
    """Returns the environment that a child reports when it is started with these options."""
    with anyio.fail_after(60):
        async with Peer.connect_process(child("describes_itself"), **options) as peer:
            found: dict[str, Any] = await peer.call("describe")
            return found


def write_program(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


# -- descriptors and environment


async def test_a_child_gets_three_descriptors_and_no_other() -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    try:
        found = await describe()
    finally:
        os.close(read)
        os.close(write)

    assert found["descriptors"] == [0, 1, 2]


async def test_a_child_gets_pipes_that_block() -> None:
    assert (await describe())["blocking"] == [True, True, True]


async def test_a_child_leads_a_session_of_its_own() -> None:
    found = await describe()

    assert found["pid"] == found["group"] == found["session"]
    assert found["session"] != os.getsid(0)


async def test_a_child_starts_in_the_folder_that_it_was_given(tmp_path: Path) -> None:
    assert (await describe(cwd=tmp_path))["folder"] == str(tmp_path)


async def test_a_secret_of_the_host_does_not_reach_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "canary-4711")
    monkeypatch.setenv("PYTHONPATH", "/canary-4711")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/canary-4711")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    monkeypatch.setenv("LANG", "() { :;}; echo canary-4711")

    seen = (await describe(env={"OWN": "1"}))["environment"]

    assert "canary-4711" not in str(seen)
    assert (seen["OWN"], seen["PATH"], seen["LC_CTYPE"]) == ("1", os.environ["PATH"], "C.UTF-8")


async def test_a_child_gets_the_whole_environment_if_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "canary-4711")

    seen = (await describe(inherit_env=True, env={"HOME": "/elsewhere"}))["environment"]

    assert (seen["CANARY_TOKEN"], seen["HOME"]) == ("canary-4711", "/elsewhere")


def test_only_names_on_the_list_and_locales_are_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR", "BASH_ENV", "GIT_DIR", "PYTHONSTARTUP", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "1")

    assert build_environment({"A": "2"}, inherit=False) == {"PATH": "1", "HOME": "1", "LC_ALL": "1", "A": "2"}


# -- program lookup


async def test_arguments_reach_a_child_unchanged_and_without_a_shell() -> None:
    odd = ["$(id)", "`id`", "; exit 1", "a b", "*", "-c", "new\nline", ""]
    with anyio.fail_after(60):
        async with Peer.connect_process([*child("describes_itself"), *odd]) as peer:
            found = await peer.call("describe")

    assert found["arguments"][-len(odd) :] == odd


def test_a_program_is_found_at_an_absolute_path_by_the_path_of_the_child(tmp_path: Path) -> None:
    tool = write_program(tmp_path / "tool", "#!/bin/sh\n")

    assert find_executable("tool", {"PATH": f"/nowhere:{tmp_path}"}, None) == str(tool)


@pytest.mark.parametrize("path", ["", ":", ".", "./", "relative", ":/nowhere", "/nowhere:.", "/nowhere:"])
def test_the_current_folder_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    write_program(tmp_path / "tool", "#!/bin/sh\n")
    (tmp_path / "relative").mkdir()
    write_program(tmp_path / "relative" / "tool", "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StartFailed):
        find_executable("tool", {"PATH": path}, tmp_path)


def test_a_relative_path_is_resolved_from_the_folder_of_the_child(tmp_path: Path) -> None:
    tool = write_program(tmp_path / "tool", "#!/bin/sh\n")

    assert find_executable("./tool", {}, tmp_path) == str(tool)


# -- when it cannot be started


@pytest.fixture
def unusable(tmp_path: Path) -> dict[str, str]:
    """Returns programs that cannot be started, by what is wrong with them."""
    other_machine = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x7f\x7f" + bytes(44)
    foreign = tmp_path / "foreign"
    foreign.write_bytes(other_machine)
    foreign.chmod(0o755)
    return {
        "missing": str(tmp_path / "missing"),
        "folder": str(tmp_path),
        "not executable": str(write_program(tmp_path / "data", "#!/bin/sh\n", 0o644)),
        "no interpreter": str(write_program(tmp_path / "lost", "#!/no/such/interpreter\n")),
        "not a program of this system": str(foreign),
        "no `#!` line": str(write_program(tmp_path / "bare", "print(1)\n")),
        "not on the path": "no-such-program-anywhere",
    }


@pytest.mark.parametrize(
    "problem",
    [
        "missing",
        "folder",
        "not executable",
        "no interpreter",
        "not a program of this system",
        "no `#!` line",
        "not on the path",
    ],
)
async def test_a_program_that_cannot_be_started_is_named_with_its_path(unusable: dict[str, str], problem: str) -> None:
    command = unusable[problem]
    with pytest.raises(StartFailed) as caught:
        async with Peer.connect_process([command]):
            pytest.fail("it was started")

    assert caught.value.id == command
    assert command in str(caught.value)


async def test_an_interpreter_that_does_not_exist_is_named(unusable: dict[str, str]) -> None:
    with pytest.raises(StartFailed) as caught:
        async with Peer.connect_process([unusable["no interpreter"]]):
            pytest.fail("it was started")

    assert "/no/such/interpreter" in caught.value.because


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(StartFailed) as caught:
        async with Peer.connect_process(child("echoes"), cwd=missing):
            pytest.fail("it was started")

    assert str(missing) in caught.value.because


@pytest.mark.parametrize("command", ["echo hello", [], ()])
async def test_a_command_that_is_not_a_list_of_strings_is_refused(command: Any) -> None:
    with pytest.raises(TypeError):
        async with Peer.connect_process(command):
            pytest.fail("it was started")


@pytest.mark.parametrize("bad", [["cat", "nul\0byte"], ["cat", "lone \udcff surrogate \ud800"]])
async def test_arguments_that_the_system_cannot_take_leave_nothing_open(bad: list[str]) -> None:
    with pytest.raises((ValueError, StartFailed)):
        async with Peer.connect_process(bad):
            pytest.fail("it was started")


async def test_an_environment_that_the_system_cannot_take_leaves_nothing_open() -> None:
    with pytest.raises((ValueError, StartFailed)):
        async with Peer.connect_process(child("echoes"), env={"A=B": "1"}):
            pytest.fail("it was started")


async def test_a_dialect_that_does_not_exist_starts_nothing() -> None:
    with pytest.raises(ValueError, match="klingon"):
        async with Peer.connect_process(child("ignores_sigterm"), dialect="klingon", limits=QUICK):
            pytest.fail("it was started")


async def test_a_framing_that_cannot_be_made_leaves_no_process() -> None:
    def broken(limits: object) -> Any:
        raise RuntimeError("no such framing")

    with pytest.raises(RuntimeError, match="no such framing"):
        async with Peer.connect_process(child("ignores_sigterm"), framing=broken, limits=QUICK):
            pytest.fail("it was started")


# -- when this process has no room for it


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Leaves this process exactly so many free descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (fd for fd in range(soft) if not is_open(fd))
    for _ in range(count):
        next(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(free), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("count", range(8))
async def test_a_start_without_enough_descriptors_leaves_nothing_and_the_next_one_works(count: int) -> None:
    with check_leaks():
        with free_descriptors(count), pytest.raises(StartFailed) as caught:
            async with Peer.connect_process(child("echoes")):
                pytest.fail("it was started")
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == errno.EMFILE

    with anyio.fail_after(60):
        async with Peer.connect_process(child("echoes")) as peer:
            assert await peer.call("echo", [1]) == [1]


@pytest.mark.parametrize("call", ["pidfd_open", "set_blocking"])
@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOMEM])
async def test_a_start_that_fails_half_way_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StartFailed):
        async with Peer.connect_process(child("ignores_sigterm"), limits=QUICK):
            pytest.fail("it was started")


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.ENOMEM, errno.E2BIG])
async def test_a_system_without_room_for_a_process_is_reported_and_nothing_stays_open(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with check_leaks(), pytest.raises(StartFailed) as caught:
        async with Peer.connect_process(child("echoes")):
            pytest.fail("it was started")

    assert os.strerror(error) in caught.value.because


async def test_a_program_without_execute_permission_has_its_own_error(tmp_path: Path) -> None:
    script = write_program(tmp_path / "script", "#!/etc/hostname\n")

    with pytest.raises(StartFailed) as caught:
        async with Peer.connect_process([str(script)]):
            pytest.fail("it was started")

    assert str(script) in caught.value.because

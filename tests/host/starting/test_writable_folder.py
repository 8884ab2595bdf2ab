"""Programs of other systems write in their own folder, as their hosts allow, without root."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.host.folders import NOBODY, open_folder, write_extension

from becket.errors import StartFailed
from becket.host import Host, HostSettings
from becket.host.events import ExtensionRestarted
from becket.permissions.policies import Decision

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

EXAMPLES = Path(__file__).parents[3] / "examples" / "dialects"
PROGRAM = Path(__file__).parents[1] / "programs" / "hosts_as_nobody.py"
# Begins as a program that stores its state in its own folder, and continues as the example.
WRITING = """
import os, runpy
folder = os.path.dirname(os.path.abspath(__file__))
os.makedirs(os.path.join(folder, "cache"), exist_ok=True)
with open(os.path.join(folder, "written"), "a", encoding="utf-8") as file:
    file.write(f"{os.path.basename(folder)} ")
runpy.run_path(os.path.join(folder, "original.py"), run_name="__main__")
"""
MANIFEST = 'id = "{id}"\nversion = "1.0.0"\ncommand = ["python3", "{file}"]\ndialect = "{dialect}"\n'


def find_interpreter_for_nobody() -> str | None:
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            subprocess.run([program, "-c", "import tomllib"], user=NOBODY, check=True)
            return program
        except (OSError, subprocess.CalledProcessError):
            continue
    return None


def write_extensions(root: Path) -> None:
    for name in ("synaps/journal", "nexo/weather", "roder/workshop"):
        shutil.copytree(EXAMPLES / name, root / Path(name).name)
    for dialect, id, file in (("morphir", "validator", "validator.py"), ("cigen", "make", "provider.py")):
        (root / id).mkdir()
        shutil.copy(EXAMPLES / dialect / file, root / id / file)
        (root / id / "becket.toml").write_text(MANIFEST.format(id=id, file=file, dialect=dialect), encoding="utf-8")
    for program in [*root.glob("*/*.py")]:
        program.rename(program.with_name("original.py"))
        program.write_text(WRITING, encoding="utf-8")


def agree(prompt: str, decision: Decision) -> bool:
    return True


def test_each_start_may_write_to_a_folder_of_its_own_and_finds_nothing_of_the_one_before() -> None:
    interpreter = find_interpreter_for_nobody() if os.geteuid() == 0 else sys.executable
    if interpreter is None:
        pytest.skip("the user nobody can run no Python here")
    environment = {**os.environ, "PATH": f"{os.path.dirname(interpreter)}:{os.environ['PATH']}"}
    with open_folder() as folder:
        write_extensions(folder / "root")
        run = subprocess.run(
            [sys.executable, PROGRAM, folder, interpreter],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )

    received = json.loads(run.stdout)
    ids = ("journal", "make", "validator", "weather", "workshop")
    started = {id: [f"1: {id} "] for id in ids}
    reloaded = {id: [f"1: {id} ", f"2: {id} "] for id in ids}
    assert received["user"] != 0
    assert received["seen"] == [started, reloaded, started, reloaded]


@pytest.mark.loops
async def test_a_restart_finds_nothing_of_the_process_that_was_killed_and_the_log_names_the_data_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "becket.host")
    write_extensions(tmp_path / "root")
    with anyio.fail_after(60):
        async with Host(
            [tmp_path / "root"], data=tmp_path / "data", ask=agree, settings=HostSettings(only=["weather"])
        ) as host:
            restarted = anyio.Event()
            host.on(ExtensionRestarted)(lambda event: restarted.set())
            await host.ready("weather")
            (status,) = host.status()
            assert status.pid is not None
            os.kill(status.pid, signal.SIGKILL)
            await restarted.wait()

    folder = tmp_path / "data" / "working" / "weather"
    assert (folder / "1" / "weather" / "written").read_text(encoding="utf-8") == "weather "
    assert os.listdir(folder) == ["1"]
    named = [record for record in caplog.records if str(tmp_path / "data" / "data" / "weather") in record.getMessage()]
    assert [(record.name, record.levelname) for record in named] == [("becket.host", "INFO")] * 2


LISTED = """
[[process_extensions]]
id = "workshop"
manifest = "{folder}roder-extension.toml"
command = "python3"
args = ["{folder}workshop.py"]
"""


def write_listed(project: Path, folder: str) -> Path:
    """Writes an extension of Roder that the configuration of a project lists; returns its folder."""
    shutil.copytree(EXAMPLES / "roder" / "workshop", project / folder)
    program = project / folder / "workshop.py"
    program.rename(program.with_name("original.py"))
    program.write_text(WRITING, encoding="utf-8")
    (project / ".roder").mkdir()
    (project / ".roder" / "config.toml").write_text(LISTED.format(folder=folder), encoding="utf-8")
    return project / folder


async def start_workshop(project: Path, data: Path) -> list[str]:
    """Returns the prompts of a host that starts the workshop."""
    prompts: list[str] = []

    def agree_and_note(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return True

    async with Host([project], data=data, ask=agree_and_note) as host:
        await host.ready("workshop")
        (status,) = host.status()
        assert os.readlink(f"/proc/{status.pid}/cwd") == str(project)
    return prompts


@pytest.mark.loops
async def test_a_listed_program_with_a_folder_of_its_own_runs_in_a_copy_and_works_in_the_project(
    tmp_path: Path,
) -> None:
    project, data = tmp_path / "project", tmp_path / "data"
    folder = write_listed(project, "tools/workshop/")
    with anyio.fail_after(60):
        assert len(await start_workshop(project, data)) == 1
        assert await start_workshop(project, data) == []
        (project / "readme").touch()
        assert await start_workshop(project, data) == []
        (folder / "added.py").touch()
        assert len(await start_workshop(project, data)) == 1
    assert (data / "working" / "workshop" / "1" / "workshop" / "written").read_text(encoding="utf-8") == "workshop "
    assert sorted(os.listdir(folder)) == ["added.py", "original.py", "roder-extension.toml", "workshop.py"]


@pytest.mark.loops
async def test_a_start_that_fails_leaves_its_folder_to_the_next(tmp_path: Path) -> None:
    write_extension(
        tmp_path / "root" / "notes", "notes", 'dialect = "nexo"\n', files={"main.py": "raise SystemExit(3)"}
    )
    with anyio.fail_after(60):
        async with Host([tmp_path / "root"], data=tmp_path / "data", ask=agree) as host:
            with pytest.raises(StartFailed):
                await host.ready("notes")
            with pytest.raises(StartFailed):
                await host["notes"].start()
    assert os.listdir(tmp_path / "data" / "working" / "notes") == ["1"]

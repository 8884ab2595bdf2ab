"""Variables of Roder extensions: those of the operator, and those of a folder after consent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from becket.errors import ExtensionRefused
from becket.host import Host
from becket.host.host_config import load_host_config
from becket.permissions.policies import Decision

pytestmark = pytest.mark.process

MANIFEST = """
id = "painter"
name = "Painter"
version = "0.1.0"
api_version = "*"
provides = [
  { type = "tool_provider", id = "tools", tools = [
    { name = "look", description = "Looks.", parameters = { type = "object" } },
  ] },
]
"""
PROGRAM = """
import os

from brush import SIZE

from becket.dialects import DIALECTS
from becket.extension import ExtensionServer, tool


class Painter(ExtensionServer):
    id = "painter"
    version = "0.1.0"
    dialect = DIALECTS["roder"]

    @tool("Looks.")
    async def look(self) -> str:
        return f"{SIZE} {os.environ.get('COLOUR')}"


Painter().run()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an extension whose program needs a module that only PYTHONPATH leads to."""
    for name, size in (("lib", "thin"), ("other", "wide")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "brush.py").write_text(f"SIZE = '{size}'\n", encoding="utf-8")
    folder = tmp_path / "project" / "painter"
    folder.mkdir(parents=True)
    (folder / "roder-extension.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "main.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "project" / ".roder").mkdir()
    return tmp_path / "project"


def list_extension(project: Path, *lines: str, command: str = "python3", arguments: str = '"painter/main.py"') -> None:
    entry = ["[[process_extensions]]", 'id = "painter"', 'manifest = "painter/roder-extension.toml"']
    entry += [f'command = "{command}"', f"args = [{arguments}]", *lines]
    (project / ".roder" / "config.toml").write_text("\n".join(entry), encoding="utf-8")


async def look(host: Host) -> str:
    painter = await host.ready("painter")
    return await painter.call_tool("look", {})


def prompting(prompts: list[str], *, allow: bool = True) -> Callable[[str, Decision], bool]:
    def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return allow

    return ask


def about_variables(prompt: str) -> list[str]:
    return [line for line in prompt.splitlines() if line.startswith("it sets the variable ")]


async def test_variables_of_the_host_configuration_are_applied_without_consent(project: Path, tmp_path: Path) -> None:
    list_extension(project)
    (tmp_path / "host.toml").write_text(
        f"""
        roots = ["project"]
        data = "data"
        [extensions.painter]
        allow = ["tools.register"]
        env = {{ PYTHONPATH = "{tmp_path}/lib", COLOUR = "red" }}
        """,
        encoding="utf-8",
    )

    with anyio.fail_after(60):
        async with Host(load_host_config(tmp_path / "host.toml")) as host:
            seen = await look(host)

    assert seen == "thin red"


async def test_operator_settings_override_those_of_the_folder(project: Path, tmp_path: Path) -> None:
    list_extension(project, f'env = {{ PYTHONPATH = "{tmp_path}/other", COLOUR = "blue" }}')
    (tmp_path / "host.toml").write_text(
        f"""
        roots = ["project"]
        data = "data"
        [extensions.painter]
        allow = ["tools.register"]
        env = {{ PYTHONPATH = "{tmp_path}/lib" }}
        """,
        encoding="utf-8",
    )

    with anyio.fail_after(60):
        async with Host(load_host_config(tmp_path / "host.toml")) as host:
            seen = await look(host)

    assert seen == "thin blue"


async def test_variables_of_a_folder_are_applied_after_consent_that_shows_names_and_values(
    project: Path, tmp_path: Path
) -> None:
    list_extension(project, f'env = {{ PYTHONPATH = "{tmp_path}/lib", COLOUR = "red" }}')
    refused: list[str] = []
    approved: list[str] = []

    with anyio.fail_after(60):
        async with Host([project], data=None, ask=prompting(refused, allow=False)) as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("painter")
        async with Host([project], data=tmp_path / "data", ask=prompting(approved)) as host:
            seen = await look(host)

    assert seen == "thin red"
    assert approved == refused
    assert about_variables(approved[0]) == [
        "it sets the variable COLOUR to red",
        f"it sets the variable PYTHONPATH to {tmp_path}/lib: programs load code by it",
    ]


async def test_a_change_of_the_variables_of_a_folder_needs_consent_again(project: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    async def start(variables: str) -> str:
        list_extension(project, f"env = {{ {variables} }}")
        async with Host([project], data=tmp_path / "data", ask=prompting(prompts)) as host:
            return await look(host)

    with anyio.fail_after(60):
        await start(f'PYTHONPATH = "{tmp_path}/lib", COLOUR = "red"')
        await start(f'PYTHONPATH = "{tmp_path}/lib", COLOUR = "red"')
        assert len(prompts) == 1
        assert await start(f'PYTHONPATH = "{tmp_path}/lib", COLOUR = "blue"') == "thin blue"
        assert await start(f'PYTHONPATH = "{tmp_path}/other", COLOUR = "blue"') == "wide blue"

    assert [about_variables(prompt) for prompt in prompts[1:]] == [
        [
            "it sets the variable COLOUR to blue",
            f"it sets the variable PYTHONPATH to {tmp_path}/lib: programs load code by it",
        ],
        [
            "it sets the variable COLOUR to blue",
            f"it sets the variable PYTHONPATH to {tmp_path}/other: programs load code by it",
        ],
    ]


async def test_variables_that_the_program_env_sets_are_shown_as_those_of_the_folder(
    project: Path, tmp_path: Path
) -> None:
    words = f'"PYTHONPATH={tmp_path}/lib", "COLOUR=red", "python3", "painter/main.py"'
    list_extension(project, command="env", arguments=words)
    prompts: list[str] = []

    with anyio.fail_after(60):
        async with Host([project], data=tmp_path / "data", ask=prompting(prompts)) as host:
            seen = await look(host)

    assert seen == "thin red"
    assert about_variables(prompts[0]) == [
        "it sets the variable COLOUR to red",
        f"it sets the variable PYTHONPATH to {tmp_path}/lib: programs load code by it",
    ]

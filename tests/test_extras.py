"""A dependency that few programs need is an extra: becket works without it, and errors name it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from becket import _extras
from becket.cli.support.exit_codes import ExitCode
from becket.errors import MissingExtra


def run_without(modules: list[str], program: str) -> str:
    """Returns what a program prints in a fresh interpreter in which these modules are not installed."""
    blocked = "; ".join(f"sys.modules[{module!r}] = None" for module in modules)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", f"import sys; {blocked}\n{program}"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        timeout=60,
        env=environment,
        encoding="utf-8",
    )
    return done.stdout


CATCH = "\nexcept becket.errors.MissingExtra as error:\n  print(error, isinstance(error, ImportError))"
CASES = [
    ("lsprotocol", "lsp", "from becket.adapters.lsp import LanguageClient"),
    ("lsprotocol", "lsp", "from becket.adapters import lsp; lsp.TEXT_DOCUMENT_HOVER"),
    ("pygls", "lsp", "from becket.adapters.lsp import serve"),
    ("google", "cigen", "becket.Peer; becket.DIALECTS['cigen'].build_connection(becket.Limits())"),
    ("trio", "trio", "becket.ExtensionServer().run(loop='trio')"),
    ("uvloop", "uvloop", "becket.ExtensionServer().run(loop='uvloop')"),
    ("yaml", "yaml", "from becket.conversion.files.yaml import parse_yaml; parse_yaml(b'a: 1', 'x.yaml')"),
    ("google", "cigen", "import becket.adapters.cigen.protobuf"),
    ("google", "cigen", "import becket.conformance.cigen_wire"),
]
PACKAGES = {"google": "protobuf", "yaml": "PyYAML"}  # where the name on the package index is another


@pytest.mark.process
@pytest.mark.parametrize(("module", "extra", "use"), CASES)
def test_a_missing_extra_is_named(module: str, extra: str, use: str) -> None:
    printed = run_without([module], f"import becket.errors\ntry:\n  {use}{CATCH}")

    package = PACKAGES.get(module, module)
    assert printed.strip() == f"`{package}` is not installed: pip install 'becket[{extra}]' True"


COMMAND = """
import becket.cli.entry
sys.argv = ["becket", *{words}]
try:
  becket.cli.entry.main()
except SystemExit as end:
  print(end.code)
"""
MISSING = "`protobuf` is not installed: pip install 'becket[cigen]'"


@pytest.mark.process
@pytest.mark.parametrize("command", ["conform", "conform --host"])
def test_conform_for_a_dialect_whose_package_is_missing_names_the_extra_and_starts_nothing(
    command: str, tmp_path: Path
) -> None:
    words = [*command.split(), "--dialect", "cigen", "--", "touch", str(tmp_path / "started")]

    assert run_without(["google"], COMMAND.format(words=words)) == f"error: {MISSING}\n{ExitCode.FAILED}\n"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.process
def test_check_for_a_dialect_whose_package_is_missing_names_the_extra() -> None:
    words = ["check", "--dialect", "cigen", "--", "cat"]

    assert run_without(["google"], COMMAND.format(words=words)) == f"error: {MISSING}\n{ExitCode.FAILED}\n"


@pytest.mark.process
def test_the_dialect_whose_package_is_missing_is_reported_as_not_tried() -> None:
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    words = ["check", "--no-conformance", "--dialect", "auto", "--timeout", "0.3", "--", *silent]
    lines = run_without(["google"], COMMAND.format(words=words)).splitlines()

    assert f"cigen was not tried: {MISSING}" in lines
    assert any("morphir: no; cigen: not tried; mcp: no" in line for line in lines)
    assert lines[-1] == str(ExitCode.FAILED)


@pytest.mark.process
def test_the_host_the_command_line_and_every_dialect_do_without_extras() -> None:
    program = (
        "import becket, becket.host.host, becket.testing, becket.cli.main\n"
        "for name in becket.DIALECTS:\n"
        "  dialect = becket.DIALECTS[name]\n"
        "  dialect.load_mapping and dialect.load_mapping()\n"
        "print(len(becket.DIALECTS))"
    )

    assert run_without(["lsprotocol", "pygls", "google", "yaml", "pydantic"], program).strip() == "9"


@pytest.mark.process
def test_the_adapter_of_lsp_exports_its_dialect_without_an_extra() -> None:
    program = "from becket.adapters.lsp import LSP; from becket import DIALECTS; print(LSP is DIALECTS['lsp'])"

    assert run_without(["lsprotocol", "pygls"], program).strip() == "True"


@pytest.mark.process
def test_the_command_line_is_part_of_the_default_install() -> None:
    program = "sys.argv = ['becket', '--version']; import becket.cli.entry; becket.cli.entry.main()"

    assert "becket" in run_without(["lsprotocol", "pygls", "google", "yaml", "pydantic"], program)


@pytest.mark.parametrize("extra", ["all", "cigen", "lsp", "pydantic", "trio", "uvloop", "yaml"])
def test_the_extras_that_errors_name_exist(extra: str) -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert extra in project["optional-dependencies"]


def test_a_missing_module_of_becket_is_not_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, _extras.needs_extra("lsp"):
        import becket.no_such_module  # type: ignore[import-not-found]  # noqa: F401

    assert not isinstance(caught.value, MissingExtra)

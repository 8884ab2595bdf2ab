"""A process gets the variables that it needs and declares; no secret that it did not declare, and nothing dangerous."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becket.host.environment import (
    VariablePolicy,
    build_environment,
    build_own_variables,
    clean_path,
    find_dangerous_names,
    is_dangerous_name,
    is_secret_name,
)
from becket.host.manifest import Environment

HARMLESS = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/ada",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
    "USER": "ada",
    "SHELL": "/bin/sh",
    "TERM": "xterm",
}
SECRETS = {
    "OPENAI_API_KEY": "canary",
    "GITHUB_TOKEN": "canary",
    "DB_PASSWORD": "canary",
    "DB_PASSWD": "canary",
    "DB_PWD": "canary",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "MY_CREDENTIALS": "canary",
    "MY_CREDENTIAL_FILE": "canary",
    "GITLAB_PAT": "canary",
    "BASIC_AUTH": "canary",
    "SOME_APIKEY": "canary",
    "THE_BEARER": "canary",
    "WEB_SESSION": "canary",
    "PRIVATE_KEY_PATH": "canary",
    "mysecretthing": "canary",
    "my_token": "canary",
}
DANGEROUS = {
    "LD_PRELOAD": "/tmp/evil.so",
    "LD_LIBRARY_PATH": "/tmp",
    "DYLD_INSERT_LIBRARIES": "/tmp/evil.dylib",
    "PYTHONPATH": "/tmp",
    "PYTHONSTARTUP": "/tmp/evil.py",
    "NODE_OPTIONS": "--require /tmp/evil.js",
    "BASH_ENV": "/tmp/evil.sh",
    "ENV": "/tmp/evil.sh",
    "PERL5LIB": "/tmp",
    "PERL5OPT": "-Mevil",
    "RUBYOPT": "-r/tmp/evil",
    "GIT_SSH_COMMAND": "evil",
    "BASH_FUNC_ls%%": "() { evil; }",
    "JAVA_TOOL_OPTIONS": "-javaagent:evil.jar",
    "ld_preload": "/tmp/evil.so",
}
OTHERS = {"EDITOR": "vi", "DISPLAY": ":0", "SSH_AUTH_SOCK": "/tmp/agent", "XDG_RUNTIME_DIR": "/run/user/1000"}
ALL = HARMLESS | SECRETS | DANGEROUS | OTHERS


# -- names


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_that_looks_like_a_secret_is_known_as_one(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", [*HARMLESS, *OTHERS, "KEYBOARD", "TOKENS", "PATH_TO_KEYS", "AUTHOR"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", DANGEROUS)
def test_a_name_that_changes_what_is_loaded_is_known(name: str) -> None:
    assert is_dangerous_name(name)


@pytest.mark.parametrize("name", [*HARMLESS, *OTHERS, *SECRETS, "PYT", "LDAP_URL", "GITHUB_ACTOR", "PERL_HOME"])
def test_other_names_are_not_dangerous(name: str) -> None:
    assert not is_dangerous_name(name)


# -- what is taken over


def test_only_the_names_that_all_programs_need_are_taken_over() -> None:
    assert build_environment(ALL).variables == HARMLESS


def test_nothing_is_made_up_but_a_search_path() -> None:
    assert build_environment({}).variables == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_what_begins_like_a_permitted_name_and_looks_like_a_secret_is_not_taken_over() -> None:
    assert "LC_TOKEN" not in build_environment({"LC_TOKEN": "canary"}).variables


def test_values_that_an_old_shell_would_run_are_dropped() -> None:
    found = build_environment(
        {"LANG": "() { :; }; evil", "EDITOR": "() { evil; }"},
        Environment(passed=("EDITOR",), set={"VISUAL": "() { evil; }"}),
    )

    assert found.variables == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_all_but_secrets_and_dangers_may_be_the_policy() -> None:
    found = build_environment(ALL, policy=VariablePolicy(all_harmless=True))

    assert found.variables == HARMLESS | OTHERS


def test_a_policy_may_have_names_of_its_own() -> None:
    policy = VariablePolicy(frozenset({"HOME", "XDG_RUNTIME_DIR"}))

    assert build_environment(ALL, policy=policy).variables.keys() == {"HOME", "XDG_RUNTIME_DIR", "PATH"}


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=5)))
def test_whatever_is_there_no_undeclared_secret_and_no_danger_gets_through(available: dict[str, str]) -> None:
    for policy in (VariablePolicy(all_harmless=True), VariablePolicy(beginnings=("",))):
        found = build_environment(available | SECRETS | DANGEROUS, policy=policy)
        assert "canary" not in found.variables.values()
        assert not any(map(is_dangerous_name, found.variables))


# -- what is declared


def test_declared_variables_are_let_through_and_secrets_among_them_are_told() -> None:
    declared = Environment(passed=("EDITOR", "GITHUB_TOKEN", "NOT_THERE"), set={"RUST_LOG": "info", "MY_KEY": "k"})

    found = build_environment(ALL, declared)

    own = {"EDITOR": "vi", "GITHUB_TOKEN": "canary", "RUST_LOG": "info", "MY_KEY": "k"}
    assert found.variables == HARMLESS | own
    assert found.secrets == ("GITHUB_TOKEN", "MY_KEY")
    assert found.refused == ()


def test_dangerous_variables_are_refused_however_they_are_declared() -> None:
    declared = Environment(passed=("LD_PRELOAD", "NODE_OPTIONS"), set={"PYTHONPATH": "/tmp", "GIT_SSH": "x"})

    found = build_environment(ALL, declared)

    assert found.variables == HARMLESS
    assert found.refused == find_dangerous_names(declared) == ("GIT_SSH", "LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH")
    assert found.secrets == ()


def test_later_declarations_stand_above_earlier_ones_and_the_hosts_own_above_all() -> None:
    found = build_environment(
        {"A": "available"},
        Environment(passed=("A",), set={"B": "1", "C": "1"}),
        Environment(set={"B": "2", "A": "2"}),
        own={"C": "3", "PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert found.variables.items() >= {"A": "2", "B": "2", "C": "3", "PYTHONDONTWRITEBYTECODE": "1"}.items()


@pytest.mark.process
def test_a_real_child_sees_exactly_this(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, **{name: "1" for name in DANGEROUS if name.isidentifier()}}.items():
        monkeypatch.setenv(name, value)
    found = build_environment(os.environ, own=build_own_variables("notes", None))

    code = "import os, json; print(json.dumps(dict(os.environ)))"
    run = subprocess.run([sys.executable, "-c", code], env=found.variables, stdout=subprocess.PIPE, check=True)

    assert b"canary" not in run.stdout
    assert b"LD_" not in run.stdout


# -- the host's own


def test_an_extension_is_told_who_it_is_and_where_it_may_write() -> None:
    assert build_own_variables("notes", "/data/notes") == {
        "BECKET_EXTENSION_ID": "notes",
        "BECKET_DATA": "/data/notes",
        "PYTHONPYCACHEPREFIX": "/data/notes/pycache",
    }


def test_in_a_copy_python_keeps_byte_code_where_it_always_does() -> None:
    assert build_own_variables("notes", "/data/notes", is_copy=True) == {
        "BECKET_EXTENSION_ID": "notes",
        "BECKET_DATA": "/data/notes",
    }


@pytest.mark.process
@pytest.mark.parametrize("has_data", [True, False])
def test_a_python_child_leaves_no_byte_code_in_its_folder(tmp_path: Path, has_data: bool) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "main.py").write_text("import part", encoding="utf-8")
    (folder / "part.py").write_text("", encoding="utf-8")
    variables = build_environment(
        {}, own=build_own_variables("notes", str(tmp_path / "data") if has_data else None)
    ).variables

    subprocess.run([sys.executable, "main.py"], cwd=folder, env=variables, check=True)

    assert sorted(path.name for path in folder.iterdir()) == ["main.py", "part.py"]
    assert (tmp_path / "data" / "pycache").is_dir() == has_data


# -- search paths


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin", "/usr/bin"),
        ("/usr/bin:", "/usr/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        (".:/usr/bin:./bin:bin:../x", "/usr/bin"),
        ("/bin:/usr/bin:/bin", "/bin:/usr/bin"),
        ("", "/usr/local/bin:/usr/bin:/bin"),
        (".", "/usr/local/bin:/usr/bin:/bin"),
    ],
)
def test_a_search_path_keeps_its_absolute_parts_alone(path: str, clean: str) -> None:
    assert clean_path(path) == clean
    assert build_environment({"PATH": path}).variables["PATH"] == clean
    assert build_environment({}, Environment(set={"PATH": path})).variables["PATH"] == clean

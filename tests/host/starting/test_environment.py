"""A process gets the base list, its declared variables and those of the operator; others are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from becket.contract.handshake import HostInfo
from becket.dialects import DIALECTS
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, EnvironmentContext, HostDefaults
from becket.host.starting.environment import (
    VariablePolicy,
    build_default_environment,
    build_extension_environment,
    build_host_variables,
    build_variable_policy,
    clean_path,
    is_dangerous_name,
    is_secret_name,
    list_variables,
    prefer_own_python,
)
from becket.host.starting.manifest import Environment
from becket.host.starting.temporary_folders import TemporaryFolders, make_default_variables

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
    "TOKEN": "canary",
    "DB_PASS": "canary",
    "DATABASE_URL": "canary",
    "SSH_AUTH_SOCK": "canary",
    "AWS_ACCESS_KEY_ID": "canary",
    "KUBECONFIG": "canary",
    "REDIS_URI": "canary",
    "SENTRY_DSN": "canary",
    "GPG_PASSPHRASE": "canary",
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
OTHERS = {"EDITOR": "vi", "DISPLAY": ":0", "PWD": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1000"}
ALL = HARMLESS | SECRETS | DANGEROUS | OTHERS


# -- names


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_that_looks_like_a_secret_is_recognised(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", [*HARMLESS, *OTHERS, "KEYBOARD", "TOKENS", "PATH_TO_KEYS", "AUTHOR", "COMPASS", "BYPASS", "HOST_URL"]
)
def test_other_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", DANGEROUS)
def test_a_variable_that_changes_which_code_is_loaded_is_recognised(name: str) -> None:
    assert is_dangerous_name(name)


@pytest.mark.parametrize("name", [*HARMLESS, *OTHERS, *SECRETS, "PYT", "LDAP_URL", "GITHUB_ACTOR", "PERL_HOME"])
def test_other_names_are_not_dangerous(name: str) -> None:
    assert not is_dangerous_name(name)


# -- what is inherited


def test_only_the_names_that_all_programs_need_are_inherited() -> None:
    assert build_extension_environment(ALL) == HARMLESS


def test_only_a_search_path_has_a_default() -> None:
    assert build_extension_environment({}) == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_a_name_with_a_permitted_prefix_that_looks_like_a_secret_is_not_inherited() -> None:
    assert "LC_TOKEN" not in build_extension_environment({"LC_TOKEN": "canary"})


def test_values_of_the_host_that_an_old_shell_would_run_are_dropped() -> None:
    available = {"LANG": "() { :; }; evil", "EDITOR": "() { evil; }"}
    found = build_extension_environment(available, Environment(passed=("EDITOR",)))

    assert found == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_values_that_an_old_shell_would_run_are_set_by_the_operator_or_after_consent() -> None:
    declared, operator = Environment(set={"FILTER": "() => true"}), Environment(set={"SORT": "() => 1"})

    assert build_extension_environment({}, declared, operator) == {
        "FILTER": "() => true",
        "SORT": "() => 1",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    assert list_variables(declared, (), operator).requested == ("FILTER",)


def test_a_policy_may_pass_all_but_secret_and_dangerous_variables() -> None:
    found = build_extension_environment(ALL, policy=VariablePolicy(all_harmless=True))

    assert found == HARMLESS | OTHERS


def test_a_policy_may_have_names_of_its_own() -> None:
    policy = VariablePolicy(frozenset({"HOME", "XDG_RUNTIME_DIR"}))

    assert build_extension_environment(ALL, policy=policy).keys() == {"HOME", "XDG_RUNTIME_DIR", "PATH"}


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=5)))
def test_no_undeclared_secret_and_no_dangerous_variable_is_passed(available: dict[str, str]) -> None:
    for policy in (VariablePolicy(all_harmless=True), VariablePolicy(prefixes=("",))):
        found = build_extension_environment(available | SECRETS | DANGEROUS, policy=policy)
        assert "canary" not in found.values()
        assert not any(map(is_dangerous_name, found))


# -- what is declared


def test_declared_variables_are_passed() -> None:
    declared = Environment(passed=("EDITOR", "GITHUB_TOKEN", "NOT_THERE"), set={"RUST_LOG": "info", "MY_KEY": "k"})

    found = build_extension_environment(ALL, declared)

    own = {"EDITOR": "vi", "GITHUB_TOKEN": "canary", "RUST_LOG": "info", "MY_KEY": "k"}
    assert found == HARMLESS | own


def test_dangerous_variables_of_the_host_are_not_passed_even_if_declared() -> None:
    declared = Environment(passed=("LD_PRELOAD", "NODE_OPTIONS"), set={"PYTHONPATH": "/srv"})

    assert build_extension_environment(ALL, declared) == HARMLESS | {"PYTHONPATH": "/srv"}


def test_the_operator_may_pass_and_set_any_variable() -> None:
    operators = Environment(passed=("LD_PRELOAD",)), Environment(set={"NODE_OPTIONS": "--no-warnings"})

    found = build_extension_environment(ALL, Environment(), *operators)

    assert found == HARMLESS | {"LD_PRELOAD": "/tmp/evil.so", "NODE_OPTIONS": "--no-warnings"}


def test_operator_settings_override_the_manifest_and_variables_of_the_host_override_all() -> None:
    found = build_extension_environment(
        {"A": "available"},
        Environment(set={"A": "1", "B": "1", "C": "1", "D": "1"}),
        Environment(passed=("A",), set={"B": "2", "C": "2"}),
        Environment(set={"B": "3"}),
        own={"D": "4", "PYTHONDONTWRITEBYTECODE": "1"},
    )

    known = {"A": "available", "B": "3", "C": "2", "D": "4", "PYTHONDONTWRITEBYTECODE": "1"}
    assert found == known | {"PATH": "/usr/local/bin:/usr/bin:/bin"}


BOTH = Environment(passed=("A", "B"), set={"A": "set"})


@pytest.mark.parametrize("tables", [(BOTH,), (Environment(), BOTH)], ids=["manifest", "operator"])
def test_a_value_that_a_table_sets_overrides_the_one_that_it_passes(tables: tuple[Environment, ...]) -> None:
    found = build_extension_environment({"A": "of the host", "B": "of the host"}, *tables)

    assert (found["A"], found["B"]) == ("set", "of the host")


# -- what stands outside the base list


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_no_dialect_gives_a_program_more_than_its_base_list(dialect: str) -> None:
    defaults = DIALECTS[dialect].host_defaults

    found = build_extension_environment(ALL, policy=build_variable_policy(defaults))

    assert found.keys() <= HARMLESS.keys() | ({"XDG_RUNTIME_DIR"} if dialect == "synaps" else set())
    assert list_variables(Environment(), available=ALL, defaults=defaults).names == ()


@pytest.mark.parametrize(
    ("dialect", "seen"), [("morphir", SECRETS | OTHERS), ("cigen", SECRETS | OTHERS), ("nexo", OTHERS)]
)
def test_the_operator_restores_what_the_hosts_of_a_system_pass_on_and_all_of_it_is_named(
    dialect: str, seen: dict[str, str]
) -> None:
    defaults = DIALECTS[dialect].host_defaults

    found = build_extension_environment(ALL, policy=build_variable_policy(defaults, inherits=True))
    listed = list_variables(Environment(), available=ALL, defaults=defaults, inherits=True)

    assert found == HARMLESS | seen
    assert listed.inherited == listed.names == tuple(sorted(seen))
    assert listed.requested == ()


def test_variables_are_listed_by_their_source() -> None:
    declared = Environment(passed=("HOME", "LC_TOKEN", "EDITOR"), set={"RUST_LOG": "info", "LANG": "C", "LD_X": "1"})

    listed = list_variables(declared, ("NOTES_DIR", ""), Environment(passed=("A",)), Environment(set={"B": "1"}))

    assert listed.passed == ("EDITOR", "LC_TOKEN", "NOTES_DIR")
    assert listed.set == {"LANG": "C", "LD_X": "1", "RUST_LOG": "info"}
    assert listed.given == ("A", "B")
    assert listed.names == ("A", "B", "EDITOR", "LANG", "LC_TOKEN", "LD_X", "NOTES_DIR", "RUST_LOG")
    assert listed.dangerous == {"LD_X": "1"}


def test_variables_of_the_operator_need_no_consent_unless_they_load_code() -> None:
    declared = Environment(passed=("A", "B", "C"), set={"RUST_LOG": "info", "LD_X": "1", "LD_Y": "1"})
    given = Environment(passed=("A",), set={"LD_Y": "2"})

    defaults = DIALECTS["morphir"].host_defaults
    listed = list_variables(declared, (), given, available={"C": "1"}, defaults=defaults, inherits=True)

    assert listed.requested == ("B", "LD_X")
    assert list_variables(declared, (), given, allowed=("B", "C", "D")).requested == ("LD_X",)


def test_a_search_path_that_a_manifest_sets_needs_consent_unless_the_operator_sets_it() -> None:
    declared = Environment(set={"PATH": "/opt/evil"})

    assert list_variables(declared).requested == ("PATH",)
    assert list_variables(declared, (), Environment(set={"PATH": "/usr/bin"})).requested == ()
    assert list_variables(Environment(passed=("PATH",))).requested == ()


@pytest.mark.process
def test_a_real_child_gets_exactly_the_built_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, **{name: "1" for name in DANGEROUS if name.isidentifier()}}.items():
        monkeypatch.setenv(name, value)
    found = build_extension_environment(os.environ, own=build_host_variables("notes", None))

    code = "import os, json; print(json.dumps(dict(os.environ)))"
    run = subprocess.run([sys.executable, "-c", code], env=found, stdout=subprocess.PIPE, check=True)

    assert b"canary" not in run.stdout
    assert b"LD_" not in run.stdout


# -- the host's own


def test_an_extension_gets_its_id_and_its_writable_directory() -> None:
    assert build_host_variables("notes", "/data/notes") == {
        "BECKET_EXTENSION_ID": "notes",
        "BECKET_DATA": "/data/notes",
        "PYTHONPYCACHEPREFIX": "/data/notes/pycache",
    }


def test_in_a_copy_python_writes_byte_code_to_the_usual_cache() -> None:
    assert build_host_variables("notes", "/data/notes", is_copy=True) == {
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
    own = build_host_variables("notes", str(tmp_path / "data") if has_data else None)
    variables = build_extension_environment({}, own=own)

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
def test_only_the_absolute_parts_of_a_search_path_are_used(path: str, clean: str) -> None:
    assert clean_path(path) == clean
    assert build_extension_environment({"PATH": path})["PATH"] == clean
    assert build_extension_environment({}, Environment(set={"PATH": path}))["PATH"] == clean


# -- without a host


def test_a_program_without_a_hosts_files_gets_its_base_list_and_its_name() -> None:
    declared = Environment(passed=("EDITOR",), set={"A": "1"})
    found = build_default_environment("notes", STANDARD_HOST_DEFAULTS, ALL, declared, defaults_set={})

    own = {"BECKET_EXTENSION_ID": "notes", "PYTHONDONTWRITEBYTECODE": "1"}
    assert found == HARMLESS | {"EDITOR": ALL["EDITOR"], "A": "1"} | own


def test_a_system_sets_variables_of_its_own_by_what_the_host_knows() -> None:
    known: list[EnvironmentContext] = []

    def set_variables(context: EnvironmentContext) -> dict[str, str]:
        known.append(context)
        return {"BECKET_EXTENSION_ID": "other", "SYSTEM": "1"}

    context = EnvironmentContext("notes", HostInfo("becket", "1.0"), None, ALL)
    defaults = HostDefaults(inherited_variables=("HOME",), build_variables=set_variables)
    defaults_set = make_default_variables(defaults, context, TemporaryFolders())
    found = build_default_environment("notes", defaults, ALL, defaults_set=defaults_set)

    assert known == [context]
    own = {"BECKET_EXTENSION_ID": "other", "SYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    assert found == {"HOME": "/home/ada", "PATH": "/usr/local/bin:/usr/bin:/bin"} | own


@pytest.mark.parametrize("before", [{"PATH": "/usr/bin", "HOME": "/root"}, {"HOME": "/root"}])
def test_programs_of_this_environment_come_first_on_the_search_path(
    before: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/opt/venv")
    monkeypatch.setattr(sys, "executable", "/opt/venv/bin/python")

    assert prefer_own_python(before) == before | {"PATH": f"/opt/venv/bin:{before.get('PATH', '')}"}


def test_without_an_environment_of_its_own_the_search_path_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)

    assert prefer_own_python({"PATH": "/usr/bin", "HOME": "/root"}) == {"PATH": "/usr/bin", "HOME": "/root"}


@pytest.mark.parametrize("inherits", [True, False])
def test_a_system_whose_hosts_pass_few_variables_passes_no_more(inherits: bool) -> None:
    assert build_variable_policy(HostDefaults(inherited_environment="few"), inherits=inherits) == build_variable_policy(
        STANDARD_HOST_DEFAULTS
    )

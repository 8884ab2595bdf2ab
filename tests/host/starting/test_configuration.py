"""A value comes from the first source that has one, has its type, and is not shown if secret."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from becket.host.redaction import HIDDEN
from becket.host.starting.configuration import ConfigSource, ResolvedConfig, resolve_config, variable_for
from becket.host.starting.manifest import ConfigEntry, ConfigType

TEXT = ConfigEntry(type=ConfigType.STRING)


def resolve_one(entry: ConfigEntry, variable: str = "", **sources: dict[str, object]) -> ResolvedConfig:
    variables = {"BECKET_CONFIG__NOTES__MODE": variable} if variable else {}
    return resolve_config("notes", {"mode": entry}, variables=variables, **sources)  # type: ignore[arg-type]


# -- order


def test_the_first_source_that_has_a_value_counts() -> None:
    entry = ConfigEntry(type=ConfigType.STRING, default="from the default", env="NOTES_MODE")
    variables = {"BECKET_CONFIG__NOTES__MODE": "from its own variable", "NOTES_MODE": "from the named variable"}
    stored, configured = {"mode": "from the store"}, {"mode": "from the host"}
    found: list[tuple[object, ConfigSource]] = []
    for step in range(5):
        resolved = resolve_config(
            "notes",
            {"mode": entry},
            variables=dict(list(variables.items())[step:]),
            stored=stored if step <= 2 else {},
            configured=configured if step <= 3 else {},
        )
        found.append((resolved.values["mode"], resolved.sources["mode"]))

    assert found == [
        ("from its own variable", ConfigSource.VARIABLE),
        ("from the named variable", ConfigSource.VARIABLE),
        ("from the store", ConfigSource.STORE),
        ("from the host", ConfigSource.HOST),
        ("from the default", ConfigSource.DEFAULT),
    ]


def test_an_empty_variable_counts_as_absent() -> None:
    resolved = resolve_config(
        "notes",
        {"mode": ConfigEntry(type=ConfigType.STRING, env="MODE", default="d")},
        variables={"MODE": "", "BECKET_CONFIG__NOTES__MODE": ""},
    )

    assert resolved.values == {"mode": "d"}


def test_a_key_without_a_value_is_left_out() -> None:
    assert resolve_one(TEXT) == ResolvedConfig()


def test_a_required_key_without_a_value_is_a_problem_with_a_hint() -> None:
    needed = ConfigEntry(type=ConfigType.STRING, required=True)
    named = ConfigEntry(type=ConfigType.STRING, required=True, env="NOTES_MODE")

    assert resolve_one(needed).problems == (("/mode", "is required, and `BECKET_CONFIG__NOTES__MODE` is not set"),)
    assert resolve_one(named).problems == (("/mode", "is required, and `NOTES_MODE` is not set"),)
    assert resolve_config("notes", {"_x": needed}, variables={}).problems == (
        ("/_x", "is required, and it is not set"),
    )


def test_unknown_keys_are_reported() -> None:
    resolved = resolve_one(TEXT, configured={"mod": "x", "mode": "y"})

    assert resolved.unknown == ("mod",)
    assert resolved.values == {"mode": "y"}


# -- types


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("string", " 5 ", " 5 "),
        ("integer", " 5 ", 5),
        ("integer", "-5", -5),
        ("number", "0.5", 0.5),
        ("number", "5", 5.0),
        ("boolean", "true", True),
        ("boolean", " YES ", True),
        ("boolean", "1", True),
        ("boolean", "off", False),
        ("boolean", "0", False),
    ],
)
def test_a_text_becomes_a_value_of_its_type(type: str, text: str, value: object) -> None:
    for resolved in (
        resolve_one(ConfigEntry(type=ConfigType(type)), text),
        resolve_one(ConfigEntry(type=ConfigType(type)), stored={"mode": text}),
    ):
        assert resolved.problems == ()
        assert resolved.values["mode"] == value
        assert resolved.values["mode"].__class__ is value.__class__


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("integer", "5.5"),
        ("integer", "five"),
        ("integer", "0x10"),
        ("integer", "1_000"),
        ("integer", "9" * 5_000),
        ("integer", "\udcff"),
        ("number", "nan"),
        ("number", "inf"),
        ("number", "1,5"),
        ("boolean", "maybe"),
        ("boolean", "2"),
    ],
)
def test_text_that_is_not_a_value_of_its_type_is_a_problem_that_does_not_repeat_it(type: str, text: str) -> None:
    resolved = resolve_one(ConfigEntry(type=ConfigType(type), default=1), text)

    assert resolved.problems == (("/mode", f"has a value that is not a {type}, from the variable"),)
    assert resolved.values == {}  # a wrong value is not passed over for a later one


@pytest.mark.parametrize(("type", "value"), [("integer", "5"), ("integer", True), ("string", 5), ("boolean", 1)])
def test_a_value_of_the_host_must_be_of_its_type_already(type: str, value: object) -> None:
    resolved = resolve_one(ConfigEntry(type=ConfigType(type)), configured={"mode": value})

    assert resolved.problems == (("/mode", f"has a value that is not a {type}, from the host"),)


def test_a_value_must_be_one_of_the_choices() -> None:
    entry = ConfigEntry(type=ConfigType.STRING, choices=("dark", "light"), default="blue")

    assert resolve_one(entry, "dark").values == {"mode": "dark"}
    assert resolve_one(entry).problems == (("/mode", "has a value that is none of: dark, light, from the default"),)


# -- secrets

SECRET = ConfigEntry(type=ConfigType.STRING, secret=True, env="NOTES_TOKEN")


def test_a_secret_is_given_and_never_shown() -> None:
    resolved = resolve_config(
        "notes", {"token": SECRET, "mode": TEXT}, variables={"NOTES_TOKEN": "canary"}, configured={"mode": "dark"}
    )

    assert resolved.values == {"token": "canary", "mode": "dark"}
    assert resolved.secrets == {"token"}
    assert resolved.redacted() == {"token": HIDDEN, "mode": "dark"}
    assert "canary" not in repr(resolved)
    assert "dark" in repr(resolved)


def test_a_secret_comes_from_the_secrets_and_not_from_the_store() -> None:
    resolved = resolve_config("notes", {"token": SECRET}, variables={}, stored={"token": "***"})
    assert resolved.values == {}

    resolved = resolve_config(
        "notes", {"token": SECRET, "mode": TEXT}, variables={}, secrets={"token": "canary", "mode": "dark"}
    )
    assert resolved.values == {"token": "canary"}
    assert resolved.sources == {"token": ConfigSource.SECRETS}
    assert "canary" not in repr(resolved)


@pytest.mark.parametrize("type", ConfigType)
def test_no_problem_repeats_a_secret(type: ConfigType) -> None:
    entry = ConfigEntry(type=type, secret=True, choices=("a",), env="NOTES_TOKEN")

    resolved = resolve_config("notes", {"token": entry}, variables={"NOTES_TOKEN": "canary"})

    assert resolved.problems
    assert "canary" not in str(resolved.problems)


# -- names of variables


@pytest.mark.parametrize(
    ("extension", "key", "variable"),
    [
        ("notes", "mode", "BECKET_CONFIG__NOTES__MODE"),
        ("acme.notes-2", "api-url", "BECKET_CONFIG__ACME_NOTES_2__API_URL"),
        ("acme", "notes_token", "BECKET_CONFIG__ACME__NOTES_TOKEN"),
        ("acme-notes", "token", "BECKET_CONFIG__ACME_NOTES__TOKEN"),
        ("acme", "_token", None),
        ("acme-", "token", None),
        ("a--b", "token", None),
        ("acme", "größe", None),
    ],
)
def test_a_variable_is_named_after_the_extension_and_the_key(extension: str, key: str, variable: str | None) -> None:
    assert variable_for(extension, key) == variable


IDS = st.from_regex(r"[a-z0-9][a-z0-9_]{0,6}", fullmatch=True)
KEYS = st.from_regex(r"[a-z0-9_]{1,7}", fullmatch=True)


@given(IDS, KEYS, IDS, KEYS)
def test_no_extension_reads_the_variable_of_another(one: str, key: str, other: str, its_key: str) -> None:
    variable = variable_for(one, key)

    if variable is not None and variable == variable_for(other, its_key):
        assert (one, key) == (other, its_key)

"""The settings of a host, and the keywords that they were in 0.1."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from becket.host import Host, HostSettings, SupervisionPolicy
from becket.host.host_settings import group_arguments

ADAPTERS = """
import sys
from becket import Host

Host([], data=None)
print([name for name in sys.modules if name.startswith("becket.adapters")])
"""


def test_values_by_name_become_arguments_and_settings() -> None:
    values = {"roots": ["x"], "data": None, "name": "desk", "watch": None}

    assert group_arguments(values) == {"roots": ["x"], "data": None, "settings": HostSettings(name="desk")}


@pytest.mark.parametrize(
    ("name", "value"), [("audit", "loud"), ("schemas", "maybe"), ("inherit_environment", ("native",))]
)
def test_a_value_that_is_not_allowed_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=value if isinstance(value, str) else value[0]):
        HostSettings(**{name: value})


@pytest.mark.process
def test_a_host_imports_no_adapter_before_it_needs_one() -> None:
    ended = subprocess.run([sys.executable, "-c", ADAPTERS], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout == "[]\n"


def test_a_keyword_that_a_host_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`Host` has no keyword `discover`.*discovery"):
        Host(discover=None)


@pytest.mark.parametrize(
    ("keywords", "settings"),
    [
        ({"watch": "reload"}, HostSettings(watch="reload")),
        ({"only": None, "limits": None}, HostSettings()),
        ({"mcp": 1}, HostSettings(dialects={"mcp": 1})),
        ({"care": SupervisionPolicy(drain_timeout=1)}, HostSettings(supervision=SupervisionPolicy(drain_timeout=1))),
    ],
    ids=str,
)
def test_a_keyword_of_0_1_is_a_setting_for_one_more_release(keywords: dict[str, Any], settings: HostSettings) -> None:
    with pytest.warns(DeprecationWarning, match=r"HostSettings\("):
        host = Host(data=None, **keywords)

    assert host.settings == settings

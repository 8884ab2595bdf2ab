"""What can be imported from `becket.contract` itself."""

from __future__ import annotations

import sys
from subprocess import run

import pytest

import becket.contract as contract


@pytest.mark.parametrize("name", contract.__all__)
def test_each_name_is_that_of_its_family(name: str) -> None:
    assert getattr(contract, name) is getattr(sys.modules[contract.EXPORTS[name]], name)


def test_every_name_has_a_home_and_no_other_has() -> None:
    assert sorted(contract.EXPORTS) == sorted(contract.__all__)


def test_importing_one_family_leaves_the_others_alone() -> None:
    program = "import sys; from becket.contract import Block; print('becket.contract.providers' in sys.modules)"
    assert run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"

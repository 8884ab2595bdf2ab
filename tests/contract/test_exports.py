"""The exports of `becket.contract`."""

from __future__ import annotations

import sys
from subprocess import run


def test_importing_one_family_leaves_the_others_alone() -> None:
    program = "import sys; from becket.contract import Block; print('becket.contract.providers' in sys.modules)"
    assert run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"

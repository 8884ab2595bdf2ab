"""The conformance suite: numbered cases that drive any extension or host, with a verdict for each.

`load_suite` loads the cases of a dialect, `run_cases` runs them, and `becket conform` is the command. README.md in this
folder describes how a case is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.conformance.case import (
        ConformanceCase as ConformanceCase,
        Suite as Suite,
        list_suites as list_suites,
        load_suite as load_suite,
        select_cases as select_cases,
    )
    from becket.conformance.host_link import HostLink as HostLink
    from becket.conformance.links import ProcessLink as ProcessLink
    from becket.conformance.runner import (
        CaseResult as CaseResult,
        CaseVerdict as CaseVerdict,
        run_cases as run_cases,
    )
    from becket.conformance.script import Role as Role

EXPORTS = {
    "becket.conformance.case": "ConformanceCase Suite list_suites load_suite select_cases",
    "becket.conformance.host_link": "HostLink",
    "becket.conformance.links": "ProcessLink",
    "becket.conformance.runner": "CaseResult CaseVerdict run_cases",
    "becket.conformance.script": "Role",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)

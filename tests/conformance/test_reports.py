"""Reports of conformance runs: counts, JUnit XML, known failures, and the page, also in a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from becket.conformance import CaseResult, CaseVerdict, ConformanceCase, Role, load_suite
from becket.conformance.conversation import Entry, Sender
from becket.conformance.report import Run, build_junit, compare, count_verdicts, load_expected
from becket.conformance.report_page import MAX_BYTES, build_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\x1b[31m"
VERDICTS = [*CaseVerdict]


def case_of(number: int, family: str = "framing") -> ConformanceCase:
    return ConformanceCase(
        id=f"N-FR-{number:03}",
        title=f"Case {number} {HOSTILE}",
        clause="wire.md#ids",
        family=family,
        role=Role.EXTENSION,
        steps=(),
        script='> {"id": 1}\n< {"id": 1}',
    )


def run_of(count: int, text: str = HOSTILE, entries: int = 3) -> Run:
    results = [
        CaseResult(
            case_of(number, "framing" if number % 2 else "shutdown"),
            VERDICTS[number % 4],
            text,
            0.1,
            tuple(Entry(0.1 * at, [*Sender][at % 3], text) for at in range(entries)),
        )
        for number in range(1, count + 1)
    ]
    return Run("native", "extension", ("./program", HOSTILE), tuple(results))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_verdicts_are_counted_and_what_is_not_offered_never_passes() -> None:
    counts = count_verdicts(run_of(9).results)

    assert counts == {"pass": 2, "tolerated": 3, "fail": 2, "not offered": 2}


def test_known_failures_are_compared_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    cases = [case_of(number) for number in range(1, 5)]
    file.write_text("# broken\nN-FR-001  # tolerated now\n\nN-FR-002\nN-FR-003\n", encoding="utf-8")
    expected = load_expected(file, cases)

    difference = compare(run_of(6).results, expected)

    assert difference.failures == ("N-FR-006",)
    assert difference.passes == ("N-FR-001",)


def test_a_known_failure_must_be_a_case(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("N-FR-001\nN-XX-999\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"known\.txt:2"):
        load_expected(file, [case_of(1)])


def test_junit_has_a_suite_for_each_family_and_skips_what_is_not_offered() -> None:
    root = build_junit(run_of(8))

    suites = {suite.get("name"): suite for suite in root}
    assert len(suites) == 2
    assert sum(int(suite.get("failures", "")) for suite in root) == 2
    assert sum(int(suite.get("skipped", "")) for suite in root) == 2
    assert len(root.findall(".//failure")) == 2


def test_junit_skips_known_failures_and_fails_those_that_pass() -> None:
    root = build_junit(run_of(8), frozenset({"N-FR-002", "N-FR-004"}))  # one fails, one passes

    def names(kind: str) -> set[str]:
        return {case.attrib["name"].partition(":")[0] for case in root.iter("testcase") if case.find(kind) is not None}

    assert names("skipped") == {"N-FR-002", "N-FR-003", "N-FR-007"}
    assert names("failure") == {"N-FR-004", "N-FR-006"}
    assert sum(int(suite.attrib["failures"]) for suite in root) == 2
    assert sum(int(suite.attrib["skipped"]) for suite in root) == 3


def test_the_page_holds_all_text_as_data_and_none_as_markup() -> None:
    page = build_page(run_of(4))

    assert "alert(1)</script>" not in page
    assert page.count("<script") == 2
    assert data_of(page)["cases"][0]["title"].endswith(HOSTILE)
    assert not re.search(r"(src|href)=\"(?!data:)[^#]", page)  # refers to nothing outside


def test_the_page_of_400_talkative_cases_has_at_most_500_kilobytes() -> None:
    page = build_page(run_of(400, "x" * 2_000, 60))

    assert len(page.encode()) <= MAX_BYTES
    rows = data_of(page)["cases"]
    assert len(rows) == 400
    assert rows[0]["dropped"] > 0


def test_the_native_cases_are_ordered_by_family() -> None:
    families = [*dict.fromkeys(case.family for case in load_suite("native").cases if case.role is Role.EXTENSION)]

    assert families[:3] == ["framing", "json-rpc", "handshake"]
    assert families[-1] == "shutdown"


# -- in a browser


@pytest.fixture
def browser_page() -> Iterator[Page]:
    """Opens a page of a headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="`make docs` tests the page in a browser")
    installed = [path for name in BROWSERS if (path := shutil.which(name))]
    with playwright.sync_playwright() as kit:
        program = installed[0] if installed else kit.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("there is no Chromium: `make chromium` installs one where it can")
        browser = kit.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.process
def test_the_page_renders_filters_and_opens_a_case(browser_page: Page, tmp_path: Path) -> None:
    page, file = browser_page, tmp_path / "conform.html"
    file.write_text(build_page(run_of(40)), encoding="utf-8")
    errors: list[str] = []
    requested: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.on("request", lambda request: requested.append(request.url))

    page.goto(file.as_uri())
    rows = page.locator("#rows tr")
    assert rows.count() == 40
    page.get_by_role("button", name="fail").click()
    assert rows.count() == 10
    page.get_by_label("Family").select_option("framing")
    assert rows.count() == 0
    page.get_by_label("Family").select_option("shutdown")
    page.get_by_label("Search").fill("N-FR-006")
    assert rows.count() == 1
    page.get_by_role("link", name="N-FR-006").click()
    page.get_by_role("heading", name="N-FR-006").wait_for()
    assert page.locator("#case svg line.suite").count() > 0
    assert page.locator("#case .reason").inner_text().startswith("</script>")

    page.goto(f"{file.as_uri()}#N-FR-002")  # a permalink
    page.reload()
    page.get_by_role("heading", name="N-FR-002").wait_for()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.get_by_role("button", name="Close").click()
    assert page.locator("#case").is_hidden()

    assert errors == []
    assert [url for url in requested if not url.startswith(("file:", "data:"))] == []

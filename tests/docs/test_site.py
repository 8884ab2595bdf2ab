"""The documentation site: its links lead somewhere, and its search finds pages. `make docs` builds it and runs this."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from tests.docs.pages import ROOT
from tools.site_pages import public_modules

if TYPE_CHECKING:
    from playwright.sync_api import Page

SITE = ROOT / "build" / "site"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="the site is built and tested by `make docs`")
pytestmark = [
    pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built: run `make docs`"),
    pytest.mark.process,
]


class Links(HTMLParser):
    """Collects the ids of a page, and the addresses that it refers to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids = {""}
        self.targets: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes the ids and addresses of one element."""
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def test_every_link_of_the_site_leads_to_a_file_and_an_anchor_of_it() -> None:
    pages = {page: Links(page) for page in SITE.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 60
    broken: list[str] = []
    for page, links in pages.items():
        for link in links.targets:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            is_anchored = target not in pages or unquote(parts.fragment) in pages[target].ids | {"__skip"}
            if not target.exists() or not is_anchored:
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []


@pytest.mark.parametrize("module", public_modules())
def test_the_reference_of_a_module_has_exactly_its_exports(module: str) -> None:
    page = Links(SITE / "reference" / f"{module}.html")
    documented = {name for name in page.ids if re.fullmatch(rf"{re.escape(module)}\.\w+", name)}
    exported = set(import_module(module).__all__)
    if module == "becket.adapters.lsp":
        exported |= set(import_module("becket.adapters.lsp.methods").__all__)

    assert documented == {f"{module}.{name}" for name in exported}


@pytest.fixture
def address() -> Iterator[str]:
    """Serves the site for one test, and returns where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Drops the line."""


@pytest.fixture
def browser_page() -> Iterator[Page]:
    """Opens a page of a headless Chromium."""
    installed = [path for name in BROWSERS if (path := shutil.which(name))]
    with playwright.sync_playwright() as kit:
        program = installed[0] if installed else kit.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("there is no Chromium: `make chromium` installs one where it can")
        browser = kit.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def test_a_reader_searches_and_follows_links(browser_page: Page, address: str) -> None:
    page = browser_page
    errors: list[str] = []
    requested: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))

    page.set_viewport_size({"width": 1400, "height": 900})  # wide enough for all columns
    page.goto(address)
    page.get_by_role("link", name="Hosting extensions").first.click()
    page.get_by_role("heading", level=1, name="Hosting extensions").wait_for()

    page.get_by_role("button", name="Search").first.click()
    page.get_by_role("combobox", name="Search").fill("circuit breaker")
    result = page.get_by_role("option").first
    result.wait_for()
    result.click()
    page.wait_for_url(lambda url: not url.endswith("/hosting.html"))
    assert "breaker" in page.content().lower()

    page.get_by_role("link", name="errors", exact=True).first.click()
    page.get_by_role("heading", level=1, name="becket.errors").wait_for()
    page.get_by_role("heading", name="CallTimeout").first.wait_for()

    assert errors == []
    assert [url for url in requested if not url.startswith(address)] == []  # nothing is loaded from elsewhere

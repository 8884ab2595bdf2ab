"""The README on PyPI: links to files of the repository become absolute, or plain text while there is no address, and
the package is installed by its name."""

from __future__ import annotations

from tests.docs.pages import ROOT
from tools.markdown_links import find_links, is_relative
from tools.published_readme import publish_readme

ADDRESS = "https://example.org/becket"
README = """\
See [peers](docs/peer.md#calls), [docs/wire.md](docs/wire.md), [examples/](examples),
[the specification](https://www.jsonrpc.org) and [below](#below).

![a table](docs/run.svg)

```python wire
table = {"[a](b.md)": 1}
```
"""


def test_links_lead_to_the_files_of_the_version() -> None:
    published = publish_readme(README, ADDRESS, "0.2.0")

    assert f"[peers]({ADDRESS}/blob/v0.2.0/docs/peer.md#calls)" in published
    assert f"![a table]({ADDRESS}/raw/v0.2.0/docs/run.svg)" in published


def test_without_an_address_links_become_text_with_the_path_and_pictures_are_left_out() -> None:
    published = publish_readme(README, "", "0.2.0")

    assert published.startswith(
        "See peers (docs/peer.md), docs/wire.md, examples/,\n"
        "[the specification](https://www.jsonrpc.org) and [below](#below).\n\n```"
    )
    assert "run.svg" not in published


def test_the_commands_install_the_package_by_its_name() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install .\n" in readme

    for address in ("", ADDRESS):
        install = publish_readme(readme, address, "0.2.0").partition("## Install\n")[2].partition("\n## ")[0]
        assert install.startswith("\nbecket needs Python 3.11 or newer.\n\n```sh\npython -m pip install becket\n")
        assert "python -m pip install 'becket[lsp]' " in install
        assert "python -m pip install 'becket[trio,uvloop]' " in install
        assert "'.[" not in install
        assert "checkout" not in install


def test_code_is_unchanged() -> None:
    for address in ("", ADDRESS):
        assert '```python wire\ntable = {"[a](b.md)": 1}\n```\n' in publish_readme(README, address, "0.2.0")


def test_no_link_of_our_readme_is_relative_on_pypi() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(map(is_relative, find_links(readme)))

    for address in ("", ADDRESS):
        published = publish_readme(readme, address, "0.2.0")
        assert [link for link in find_links(published) if is_relative(link)] == []

"""The README as it stands on PyPI, where links to files need the address of the repository, and a checkout is missing.
Pure."""

from __future__ import annotations

import re

from tools.markdown_links import is_relative, rewrite_links

__all__ = ["publish_readme"]

INSTALLED_FOLDER = re.compile(r"(pip install '?)\.(?=[\[\s])")
ABOUT_THE_CHECKOUT = re.compile(r"\s+These commands install it from a checkout;.*?(?=\n\n)", re.DOTALL)


def publish_readme(readme: str, repository: str, version: str) -> str:
    """Returns the README with absolute links to the files of a version, and with commands that install the package.

    Without an address of the repository, links become their text and the path, and pictures are left out."""

    def replace(link: re.Match[str]) -> str:
        picture, text, target = link["picture"], link["text"], link["target"]
        if not is_relative(target):
            return link[0]
        if not repository:
            path = target.partition("#")[0]
            return "" if picture else text if text.rstrip("/") == path else f"{text} ({path})"
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version}/{target})"

    installed = INSTALLED_FOLDER.sub(r"\1becket", ABOUT_THE_CHECKOUT.sub("", readme))
    return re.sub(r"\n{3,}", "\n\n", rewrite_links(installed, replace))

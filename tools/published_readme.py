"""The README as it stands on PyPI, where links to files of the repository need its address. Pure."""

from __future__ import annotations

import re

from tools.markdown_links import is_relative, rewrite_links

__all__ = ["publish_readme"]


def publish_readme(readme: str, repository: str, version: str) -> str:
    """Returns the README with absolute links to the files of a version.

    Without an address of the repository, links are left as their text and pictures are left out."""

    def replace(link: re.Match[str]) -> str:
        picture, text, target = link["picture"], link["text"], link["target"]
        if not is_relative(target):
            return link[0]
        if not repository:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return re.sub(r"\n{3,}", "\n\n", rewrite_links(readme, replace))

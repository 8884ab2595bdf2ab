"""Build hook for hatchling: makes the README and the addresses of the package from what stands in pyproject.toml.

The README links to files of the repository. On PyPI these links need the address of the repository; without one they
become plain text, and pictures are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the build backend loads this file alone
from tools.published_readme import publish_readme  # noqa: E402


class PackageMetadata(MetadataHookInterface):
    """Fills in the fields that pyproject.toml names as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the text of the README, and the addresses that exist."""
        settings = cast("dict[str, str]", self.config)  # pyright: ignore[reportUnknownMemberType] of hatchling
        repository, documentation = settings["repository"], settings["documentation"]
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        text = publish_readme(readme, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        addresses = {"Documentation": documentation, "Source": repository}
        if repository:
            addresses["Changelog"] = f"{repository}/blob/v{metadata['version']}/CHANGELOG.md"
            addresses["Issues"] = f"{repository}/issues"
        metadata["urls"] = {name: address for name, address in addresses.items() if address}

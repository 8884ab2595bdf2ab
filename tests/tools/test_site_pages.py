"""Which files of the repository and which modules the documentation site shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import site_pages


@pytest.mark.parametrize(
    ("path", "is_shown"),
    [
        ("kit/main.rs.md", True),
        ("kit/build", True),  # a script
        ("kit/build/bin/program", False),
        ("kit/target/debug/program", False),
        ("kit/node_modules/one/README.md", False),
        ("kit/__pycache__/one.txt", False),
        ("kit/.venv/one.txt", False),
    ],
)
def test_files_that_a_build_has_made_are_not_shown(
    path: str, is_shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_pages, "ROOT", tmp_path)
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x90")

    assert site_pages.is_shown(file) is is_shown


def test_modules_that_only_forward_deprecated_names_have_no_page() -> None:
    modules = site_pages.public_modules()

    assert "becket.contract.json_narrowing" in modules
    assert not {"becket.contract.given", "becket.contract.handshake_rules", "becket.contract.shapes"} & {*modules}


def test_the_page_of_a_module_lists_names_that_are_exported_at_run_time() -> None:
    assert {"Host", "Peer", "ExtensionServer"} <= {*site_pages.exported_names("becket")}
    assert "      members:\n" in site_pages.reference_text("becket")
    assert "        - Host\n" in site_pages.reference_text("becket")

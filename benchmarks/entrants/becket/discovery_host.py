"""What it takes becket to look through so many folders, or servers of MCP in lists: to find them, and to decide."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from becket.host import Host
from becket.host.starting.conflicts import prune_nested
from becket.host.starting.discovery import DiscoverySettings, discover_extensions
from benchmarks.hosting.measurement import load_settings, print_figures

MANIFEST = """
id = "e{number}"
version = "1.0.0"
command = ["python3", "main.py"]
permissions = ["memory.read", "tools.register"]

[requires]
bins = ["python3"]
"""
DEPTH = 12
LISTED = 1_000  # servers of one `.mcp.json`: a larger file is refused

settings = load_settings()


def fastest_us(task: Callable[[], int], size: int) -> float:
    """Returns the processor time for each folder, in the fastest of some runs; the task returns how many it found."""
    times: list[float] = []
    for _ in range(settings["repeats"]):
        began = time.process_time()
        found = task()
        times.append(time.process_time() - began)
        assert found == size, f"{found} of {size}"
    return min(times) / size * 1e6


def with_manifests(root: Path, size: int) -> float:
    for number in range(size):
        folder = root / f"f{number}"
        folder.mkdir()
        (folder / "becket.toml").write_text(MANIFEST.format(number=number), encoding="utf-8")
        (folder / "main.py").touch()
    return fastest_us(lambda: len(discover_extensions([root]).candidates), size)


def without_manifests(root: Path, size: int) -> float:
    (root / "last").mkdir(parents=True)
    (root / "last" / "becket.toml").write_text(MANIFEST.format(number=0), encoding="utf-8")
    for number in range(size):
        (root / f"f{number}").mkdir()
    return fastest_us(lambda: len(discover_extensions([root]).candidates) * size, size)


def deep(root: Path, size: int) -> float:
    """Folders in chains of twelve, with an extension at the end of each."""
    chains = max(1, size // DEPTH)
    for number in range(chains):
        folder = root.joinpath(f"f{number}", *"abcdefghijk")
        folder.mkdir(parents=True)
        (folder / "becket.toml").write_text(MANIFEST.format(number=number), encoding="utf-8")
    look = DiscoverySettings(depth=16)
    return fastest_us(lambda: len(discover_extensions([root], settings=look).candidates) * size // chains, size)


def listed(root: Path, size: int) -> float:
    write_lists(root, size)
    return fastest_us(lambda: len(discover_extensions([root]).candidates), size)


def surveyed(root: Path, size: int) -> float:
    """As `becket list` does: whether each may start, and which variables it gets. There are no such programs."""
    write_lists(root, size)
    return fastest_us(lambda: len(Host([root], data=None).survey().start_decisions), size)


def write_lists(root: Path, size: int) -> None:
    for start in range(0, size, LISTED):
        folder = root / f"f{start}"
        folder.mkdir()
        servers = {f"s{number}": {"command": "absent"} for number in range(start, min(size, start + LISTED))}
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def pruning(root: Path, size: int) -> float:
    """Paths alone: half of them lie in the other half."""
    outer = [f"{root}/a/b/c/d/e/f/g/f{number}" for number in range(size // 2)]
    folders = [*outer, *(f"{folder}/h/i/j/k" for folder in outer)]
    owned = set(folders)
    return fastest_us(lambda: 2 * len(prune_nested(folders, owned)), size)


TASKS = {
    "an extension in each": with_manifests,
    "an extension in none": without_manifests,
    f"an extension in each {DEPTH}th, {DEPTH} levels deep": deep,
    f"servers of MCP, {LISTED:,} in a list": listed,
    "the same, and whether each may start": surveyed,
    "pruning those within others, paths alone": pruning,
}

figures: dict[str, dict[str, float]] = {}
for name, measure in TASKS.items():
    for size in settings["sizes"]:
        with tempfile.TemporaryDirectory() as folder:
            figures.setdefault(name, {})[str(size)] = measure(Path(folder).resolve(), size)
print_figures(figures)  # type: ignore[arg-type]

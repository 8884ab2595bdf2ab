"""The editor of a setting over the handle that a host gives, which outlives the copy that draws."""

from __future__ import annotations

import textwrap
from pathlib import Path

import anyio
import pytest
from tests.host.folders import write_extension

from becket.contract import EditorCommitted, EditorRender, EditorRow, EditorTaken
from becket.contract.config import ConfigSet
from becket.errors import LocalProtocolError
from becket.host import Host

pytestmark = [pytest.mark.process, pytest.mark.loops]

LAMP = """
from becket.contract import EditorCommitted, EditorRender, EditorRow
from becket.extension import ExtensionServer, handles

class Lamp(ExtensionServer):
    id, version = "lamp", "1.0.0"

    def on_editor_open(self, opened):
        return EditorRender((EditorRow("white"), EditorRow("blue")), 0)

    def on_editor_key(self, pressed):
        return EditorCommitted("blue") if pressed.key == "Enter" else None

    def on_editor_commit(self, taken):
        return EditorRender((EditorRow(taken.value),))

    @handles("lamp/colour")
    def colour(self) -> str | None:
        return self.host.blocking.config.get("colour")

if __name__ == "__main__":
    Lamp().run()
"""


async def test_the_handle_of_a_host_opens_the_editor_of_a_setting(tmp_path: Path) -> None:
    write_extension(tmp_path / "lamp", "lamp", files={"main.py": textwrap.dedent(LAMP)})
    with anyio.fail_after(60):
        async with Host([tmp_path], data=None, grants={"lamp": []}) as host:
            lamp = await host.ready("lamp")
            taken: list[EditorCommitted] = []
            lamp.on(EditorCommitted)(taken.append)

            assert await lamp.open_editor("look", "colour") == EditorRender((EditorRow("white"), EditorRow("blue")), 0)
            assert await lamp.press_editor_key("look", "colour", "Down") is None
            assert await lamp.press_editor_key("look", "colour", "Enter") is None
            assert taken == [EditorCommitted("blue")]
            taken = await lamp.commit_editor("look", "colour", "red")
            assert taken == EditorTaken("red", render=EditorRender((EditorRow("red"),)))


async def test_the_stored_values_of_the_host_are_the_configuration_of_the_extension(tmp_path: Path) -> None:
    write_extension(tmp_path / "lamp", "lamp", files={"main.py": textwrap.dedent(LAMP)})
    host = Host([tmp_path], data=None, grants={"lamp": []})
    with pytest.raises(LocalProtocolError):
        _ = host.store
    with anyio.fail_after(60):
        async with host:
            lamp = await host.ready("lamp")
            assert await lamp.call("lamp/colour") is None
            await anyio.to_thread.run_sync(host.store.set_config, "lamp", ConfigSet("colour", "blue"))
            assert await lamp.call("lamp/colour") == "blue"

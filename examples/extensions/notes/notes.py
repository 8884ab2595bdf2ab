"""Notes that a model keeps, finds and counts. The host stores them: they outlive this program."""

from __future__ import annotations

from becket import ExtensionServer, tool


class Notes(ExtensionServer):
    id = "notes"
    version = "1.0.0"

    @tool
    async def keep(self, text: str, tags: tuple[str, ...] = ()) -> str:
        """Keeps a note.

        Args:
            text: What to remember.
            tags: Words to find it by.
        """
        await self.host.memory.append(text, tags=tags)
        return f"kept: {text}"

    @tool(read_only=True)
    async def find(self, text: str = "", tag: str | None = None, limit: int = 10) -> str:
        """Finds notes, the newest first.

        Args:
            text: What they contain, in upper or lower case.
            tag: How one of their tags begins.
            limit: How many to show.
        """
        notes = await self.host.memory.query(text, tag_prefix=tag, limit=limit)
        return "\n".join(f"- {note.content}" for note in notes) or "There is no such note."

    @tool("Counts the notes that contain a text.", read_only=True)
    async def count(self, text: str = "") -> int:
        return len(await self.host.memory.query(text, limit=1_000))


if __name__ == "__main__":
    Notes().run()

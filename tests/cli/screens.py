"""A terminal screen for tests: as much of a terminal as `rich` and `click` need."""

from __future__ import annotations

import re

TOKENS = re.compile(r"\x1b\[(?P<numbers>[0-9;?]*)(?P<order>[@-~])|\x1b\][^\x07]*\x07|\x1b.|(?P<other>[^\x1b])", re.S)
BEGUN = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x07]*)?\Z")


class Picture:
    """The lines that are seen, and those that have scrolled out at the top."""

    def __init__(self, columns: int, rows: int) -> None:
        self.lines = [""]
        self.is_cursor_shown = True
        self._columns = columns
        self._rows = rows
        self._row = 0
        self._column = 0
        self._begun = ""  # an escape sequence whose end has not been written yet

    def write(self, text: str) -> None:
        """Draws what was written."""
        text = self._begun + text
        begun = BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        for token in TOKENS.finditer(text.removesuffix(self._begun)):
            if token["order"]:
                self._obey(token["order"], token["numbers"])
            elif token["other"]:
                self._put(token["other"])

    def _obey(self, order: str, numbers: str) -> None:
        if numbers.startswith("?"):
            self.is_cursor_shown = order == "h" if numbers == "?25" else self.is_cursor_shown
            return
        number = int(numbers.partition(";")[0] or 0)
        match order:
            case "A":
                top = max(0, len(self.lines) - self._rows)  # nothing moves into what has scrolled out
                self._row = max(top, self._row - max(1, number))
            case "B":
                self._row = min(len(self.lines) - 1, self._row + max(1, number))
            case "G":
                self._column = max(0, number - 1)
            case "K":
                line = self.lines[self._row]
                self.lines[self._row] = "" if number == 2 else line[: self._column]
            case "m":
                pass
            case _:
                raise AssertionError(f"an order that this terminal does not know: {numbers}{order}")

    def _put(self, char: str) -> None:
        match char:
            case "\r":
                self._column = 0
            case "\n":
                self._row += 1
                if self._row == len(self.lines):
                    self.lines.append("")
            case "\b":
                self._column = max(0, self._column - 1)
            case _ if char < " ":
                pass
            case _:
                if self._column == self._columns:
                    self._put("\r")
                    self._put("\n")
                line = self.lines[self._row].ljust(self._column)
                self.lines[self._row] = line[: self._column] + char + line[self._column + 1 :]
                self._column += 1

    @property
    def seen(self) -> list[str]:
        """The lines that are on the screen now, without space at their ends; nor are there empty ones at the end."""
        lines = [line.rstrip() for line in self.lines[-self._rows :]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

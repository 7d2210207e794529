"""A rule's page: documentation, specification and test in one Markdown file.

In: rules/NAME.md. Out: its text, its code blocks with their `# error` lines, and the table of what was measured.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from fusionlint.finding import Measurement
from fusionlint.lazily import regex

# A block opens with ```python ROLE [SPEC]: role is bad, good, quiet or a file name; SPEC says what to compile.
_BLOCK = regex(r"^```python[ \t]+(?P<role>\S+)[ \t]*(?P<spec>[^\n]*)\n(?P<code>.*?)^```", re.M | re.S)
_TABLE = regex(r"\n*(?:[^|`#\n][^\n]*\n+)?(?:\|[^\n]*\n?)+")
_ROW = regex(r"^\|(.+)\|[ \t]*$", re.M)
_PAIR = regex(r"^([\d.,]+)\s*(kB|MB|GB|B)?\s*->\s*([\d.,]+)\s*(kB|MB|GB|B)?$")
_UNIT = {None: 1.0, "": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}

# Bytes alone are harm from a quarter more on: less drowns in what padding and layouts do to the count.
_BYTES_THAT_MATTER = 1.25
# Launches saved by moving this many times the bytes are no gain: a CPU that unrolls a loop computes its steps anew.
_BYTES_TOO_MANY = 4
# What the tables of launches are of.
_HARDWARE = ("cpu", "h100", "v5e")
_SIZES = ("bytes", "memory", "flops")


class Block(NamedTuple):
    """One code block of a page; `line` is where its code starts, `errors` are lines within the code, 1-based."""

    role: str
    spec: str
    code: str
    line: int
    end: int  # where the block ends, in characters of the page

    @property
    def errors(self) -> tuple[int, ...]:
        lines = self.code.splitlines()
        return tuple(i for i, text in enumerate(lines, 1) if re.search(r"#\s*error\b", text))


class Pair(NamedTuple):
    """A bad form and the good one that follows it; `table` is the span of the page's text where its table stands or
    belongs. With a spec it is measured."""

    bad: Block
    good: Block
    table: tuple[int, int]


@dataclass(frozen=True)
class Page:
    """One page. What is read off its text is kept: every finding asks for the numbers again."""

    name: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence below the heading."""
        body = re.sub(r"\A#[^\n]*\n+", "", self.text)
        return re.split(r"(?<=[.])\s", body.strip(), maxsplit=1)[0].replace("\n", " ")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(m["role"], m["spec"].strip(), m["code"], self.text.count("\n", 0, m.start("code")) + 1, m.end())
            for m in _BLOCK.finditer(self.text)
        )

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Each bad block with the good block that comes next."""
        blocks = self.blocks
        found = []
        for bad, good in itertools.pairwise(b for b in blocks if b.role != "quiet"):
            if bad.role == "bad" and good.role.startswith("good"):
                table = _TABLE.match(self.text, good.end)
                found.append(Pair(bad, good, table.span() if table else (good.end, good.end)))
        return tuple(found)

    @cached_property
    def measurements(self) -> tuple[tuple[Measurement, ...], ...]:
        """For each pair that was measured the cells of its table, one Measurement each."""
        return tuple(cells for pair in self.pairs if (cells := self.measured(pair)))

    def measured(self, pair: Pair) -> tuple[Measurement, ...]:
        """The cells of one pair's table."""
        return tuple(_measurements(self.text[slice(*pair.table)]))

    @property
    def jax_version(self) -> str:
        """The version of jax that the page was measured with, "" before it was."""
        named = re.search(r"[Mm]easured with jax (\d+\.\d+\.\d+)", self.text)
        return named[1] if named else ""

    @cached_property
    def targets_of(self) -> tuple[tuple[str, ...], ...]:
        """For each measured pair the targets on which its table shows harm; ("any",) where hardware does not matter."""
        return tuple(tuple(_harmed_targets(cells)) for cells in self.measurements)

    @cached_property
    def unclaimed(self) -> tuple[tuple[str, ...], ...]:
        """For each measured pair the hardware of the other tables that its own leaves out: a CPU, where the clock says
        that the good form is the slower one, is not claimed for."""
        launched = [{cell.target for cell in cells if cell.quantity == "launches"} for cells in self.measurements]
        return tuple(tuple(one for one in _HARDWARE if names and one not in names) for names in launched)

    @property
    def is_of_arithmetic(self) -> bool:
        """Whether the page tells of nothing but how much a CPU computes."""
        counted = [{cell.quantity for cell in cells} for cells in self.measurements]
        return bool(counted) and all("flops" in quantities for quantities in counted)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets on which one of the tables shows harm: where the rule may speak."""
        return tuple(dict.fromkeys(name for targets in self.targets_of for name in targets))


def read_page(name: str, folder: Path) -> Page:
    """The page called `name` in `folder`. KeyError without one."""
    try:
        return Page(name, (folder / f"{name}.md").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KeyError(name) from None


@cache
def pages_folder() -> Path:
    """Where the pages lie: a wheel carries them as fusionlint/pages, a checkout has them in rules/."""
    here = Path(__file__).parent
    installed = here / "pages"
    return installed if installed.is_dir() else here.parent / "rules"


def number(value: str, unit: str | None) -> float:
    """`number("94.2", "kB") == 94200.0`."""
    return float(value.replace(",", "")) * _UNIT[unit]


def _measurements(text: str) -> Iterator[Measurement]:
    head: list[str] = []
    for row in _ROW.finditer(text):
        cells = [cell.strip() for cell in row[1].split("|")]
        if cells[0] == "target":
            head = cells
            continue
        for quantity, cell in zip(head[1:], cells[1:], strict=False):
            if pair := _PAIR.match(cell):
                yield Measurement(cells[0], quantity, number(pair[1], pair[2]), number(pair[3], pair[4]))


def _harmed_targets(cells: tuple[Measurement, ...]) -> Iterator[str]:
    """The targets, in the table's order, whose row shows harm."""
    for name in dict.fromkeys(m.target for m in cells):
        if _harmed([m for m in cells if m.target == name]):
            yield name


def _harmed(cells: list[Measurement]) -> bool:
    """More launches, compilations or dispatches; or as many of them, and clearly more bytes, memory or
    arithmetic."""
    counts = [m for m in cells if m.quantity not in _SIZES]
    sizes = [m for m in cells if m.quantity in _SIZES]
    if any(m.bad > m.good for m in counts):
        bought = any(m.good > _BYTES_TOO_MANY * m.bad for m in sizes)
        return not bought and all(m.bad >= m.good for m in counts)
    same = all(m.bad == m.good for m in counts)
    # What saves memory by moving far more bytes, or the other way round, is a trade, and no harm.
    traded = any(m.good > _BYTES_THAT_MATTER * m.bad for m in sizes)
    return same and not traded and any(m.bad > _BYTES_THAT_MATTER * m.good for m in sizes)

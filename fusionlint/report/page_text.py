"""A page in Markdown -> what a terminal shows: wrapped paragraphs, indented code, aligned tables, lines in red."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import zip_longest

from click import style

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=ticks)`*[ \t]*$\n?", re.M | re.S)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.]) ")
# Not the powers of `x**2 + y**2`.
_BOLD = re.compile(r"(?<![\w)\]])\*\*(?=\S)([^`*]+?)(?<=\S)\*\*(?!\w)")
_CODE = re.compile(r"`[^`]+`")
_ERROR = re.compile(r"#\s*error\b")
_COLOURS = {"bad": "red", "good": "green"}
# Pages lie side by side: on a terminal the name is the link.
_LINK = re.compile(r"\[(?P<name>[\w-]+)\]\((?P=name)\.md\)")
_LINK_ALONE = re.compile(rf"\({_LINK.pattern}\)")
# What the words of a block's head mean to those who do not write pages.
_MEANT = {
    "off-tpu": "not for TPU",
    "off-gpu": "not for GPU",
    "accelerators": "not for CPU",
    "gpus": "for GPU alone",
    "tpus": "for TPU alone",
}


def page_text(markdown: str, width: int) -> str:
    """The page for a terminal of `width` columns, ending in a newline; code and tables are never wrapped."""
    return "\n\n".join(_parts(markdown, width)) + "\n"


def _parts(markdown: str, width: int) -> Iterator[str]:
    end = 0
    for fence in _FENCE.finditer(markdown):
        yield from _prose(markdown[end : fence.start()], width)
        yield _code(fence["info"], fence["code"])
        end = fence.end()
    yield from _prose(markdown[end:], width)


def _code(info: str, code: str) -> str:
    """The block below what it is for: `bad  pack(f32[1024])  (not for CPU)`."""
    _, role, spec = [*info.split(maxsplit=2), "", "", ""][:3]
    notes = []
    if role == "good-in-distribution":
        role, notes = "good", ["other random numbers"]
    word, _, rest = spec.partition(" ")
    if word in _MEANT:
        spec, notes = rest, [*notes, _MEANT[word]]
    said = f"{spec}  ({', '.join(notes)})" if notes else spec
    head = [f"  {style(role, fg=_COLOURS.get(role), bold=True)}  {said}".rstrip()] if role else []
    lines = [f"    {line}".rstrip() for line in code.splitlines()]
    return "\n".join([*head, *(style(line, fg="red", bold=True) if _ERROR.search(line) else line for line in lines)])


def _prose(text: str, width: int) -> Iterator[str]:
    for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
        for unit in _units(paragraph.splitlines()):
            if unit[0].startswith("#"):
                mark, _, title = unit[0].partition(" ")
                yield style(title, bold=True, underline=True if mark == "#" else None)
            elif unit[0].startswith("|"):
                yield _table(unit)
            else:
                yield _wrapped(unit, width)


def _units(lines: list[str]) -> Iterator[list[str]]:
    """Lines that belong together: a heading, the rows of a table, an item of a list, sentences."""
    unit: list[str] = []
    for line in lines:
        in_table = bool(unit) and unit[0].startswith("|") and line.startswith("|")
        in_text = bool(unit) and not unit[0].startswith(("#", "|")) and not line.startswith(("#", "|"))
        if unit and not in_table and not (in_text and not _ITEM.match(line)):
            yield unit
            unit = []
        unit.append(line)
    if unit:
        yield unit


def _wrapped(lines: list[str], width: int) -> str:
    """One paragraph; code is not broken at its spaces, and an item of a list hangs below its mark."""
    item = _ITEM.match(lines[0])
    text = " ".join(line.strip() for line in lines)
    text = _LINK.sub(r"\g<name>", _LINK_ALONE.sub(r"(see \g<name>)", text))
    whole = _CODE.sub(lambda code: code[0].replace(" ", "\xa0"), text)
    indent = " " * (len(item[0]) if item else 0)
    wrapped = textwrap.fill(whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return _BOLD.sub(lambda bold: style(bold[1], bold=True), wrapped.replace("\xa0", " "))


def _table(rows: list[str]) -> str:
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    cells = [row for row in cells if not all(set(cell) <= {"-", ":"} for cell in row)]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    head, *body = ["  ".join(["", *map(str.ljust, row, widths)]).rstrip() for row in cells]
    return "\n".join([style(head, bold=True), *body])

"""Findings, as in the JSON of `check` -> what the language server protocol says of a text.

Lines and columns are 1-based characters there; the protocol's are 0-based, and counted as the editor counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lsprotocol import types
from pygls.workspace import PositionCodec
from pygls.workspace.position_codec import ServerTextPosition

from fusionlint.finding import MAY_CHANGE
from fusionlint.serving.checks import Told
from fusionlint.source.fix import split_lines
from fusionlint.source.ignores import UNUSED

SOURCE = "fusionlint"
FIX_ALL = "source.fixAll.fusionlint"


class Text:
    """The text of a document, and how its editor counts."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.lines = split_lines(text)
        self._codec = codec

    def range(self, told: Told) -> types.Range:
        """The span of a finding or an edit."""
        return types.Range(
            self._position(told["line"], told["column"]), self._position(told["end_line"], told["end_column"])
        )

    def end_of(self, line: int) -> types.Position:
        """The end of what is written on a line, 1-based."""
        return self._position(line, len(self.lines[line - 1].rstrip()) + 1)

    @property
    def whole(self) -> types.Range:
        """All of it."""
        return types.Range(types.Position(0, 0), types.Position(len(self.lines) + 1, 0))

    def _position(self, line: int, column: int) -> types.Position:
        at: types.Position = self._codec.position_to_client_units(self.lines, ServerTextPosition(line - 1, column - 1))
        return at


def diagnostic(told: Told, text: Text) -> types.Diagnostic:
    """What an editor underlines: a warning, information where it is assumed how the code runs."""
    severity = types.DiagnosticSeverity
    is_unused = told["rule"] == UNUSED
    kind = severity.Hint if is_unused else severity.Information if told["assumed"] else severity.Warning
    return types.Diagnostic(
        text.range(told),
        "\n".join((told["message"], *told["details"])),
        severity=kind,
        code=told["rule"],
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if is_unused else None,
    )


def actions(told: Told, text: Text, uri: str) -> Iterator[types.CodeAction]:
    """What can be done about a finding: its fix, and a comment that silences it."""
    found = [diagnostic(told, text)]
    suggestion: dict[str, Any] = told["suggestion"] or {}
    if suggestion.get("edits"):
        edits = [types.TextEdit(text.range(edit), edit["text"]) for edit in suggestion["edits"]]
        title = f"write: {suggestion['text']}{'' if suggestion['safe'] else f' ({MAY_CHANGE})'}"
        yield _quick_fix(title, edits, uri, found, is_preferred=suggestion["safe"])
    line = text.lines[told["line"] - 1].rstrip()
    if told["rule"] != UNUSED and not line.endswith("\\"):
        comment = types.TextEdit(_at(text.end_of(told["line"])), f"  # fusionlint: ignore[{told['rule']}]")
        yield _quick_fix(f"silence {told['rule']} on this line", [comment], uri, found)


def fix_all(before: Text, after: str, uri: str) -> types.CodeAction:
    """All safe fixes at once, as editors ask for when they save."""
    edit = types.WorkspaceEdit(changes={uri: [types.TextEdit(before.whole, after)]})
    return types.CodeAction("fix all that is safe", kind=FIX_ALL, edit=edit)


def overlap(one: types.Range, other: types.Range) -> bool:
    """Whether two spans have a place in common; the end of one is a place of it."""
    return _key(one.start) <= _key(other.end) and _key(other.start) <= _key(one.end)


def _quick_fix(
    title: str,
    edits: Sequence[types.TextEdit],
    uri: str,
    found: Sequence[types.Diagnostic],
    *,
    is_preferred: bool = False,
) -> types.CodeAction:
    return types.CodeAction(
        title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[*found],
        is_preferred=is_preferred,
        edit=types.WorkspaceEdit(changes={uri: [*edits]}),
    )


def _at(position: types.Position) -> types.Range:
    return types.Range(position, position)


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character

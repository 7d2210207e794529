"""What a file says it wants no findings of: `# fusionlint: ignore[rule]` on a line, `# fusionlint: ignore-file[rule]`.

In: a file's bytes, later what was found in it. Out: the comments, which findings they silence, and which comments
silence nothing.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fusionlint.finding import Edit, Finding, Location, Problem, Suggestion
from fusionlint.lazily import regex
from fusionlint.source.fix import split_lines
from fusionlint.source.scope import usual

UNUSED = "unused-ignore"
UNUSED_MEANS = "A `# fusionlint: ignore` comment that silences nothing."

# Without a list of names it is about every rule.
_IGNORE = regex(r"#\s*fusionlint:\s*ignore(?P<file>-file)?(?![\w-])(?:\s*\[(?P<names>[^\]]*)\])?")
# A list of rules without brackets around it: `ignore: a`, `ignore(a)`, `ignore[a`.
_LIST = regex(r"[ \t]*(?P<mark>[:(\[])?[ \t]*(?P<name>[\w-]+)")
# What is no part of a statement, or does not begin one.
_BETWEEN = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Ignore(NamedTuple):
    """One comment; `names` are the rules in its brackets, None without brackets. `code` is the whole line, `first` and
    `last` are the lines of the statement that it stands in or behind, of a compound one those of its head."""

    location: Location
    names: tuple[str, ...] | None
    whole_file: bool
    code: str
    first: int
    last: int

    def silences(self, finding: Finding) -> bool:
        """Whether the finding is of one of its rules, and begins or ends on its line, begins in a statement that does,
        or is anywhere in its file."""
        named, line = self.names is None or finding.rule in self.names, self.location.line
        begins, ends = finding.location.line, finding.location.end_line
        of_statement = line in (self.first, self.last) and self.first <= begins <= self.last
        return named and (self.whole_file or line in (begins, ends) or of_statement)

    def is_meant_for(self, finding: Finding) -> bool:
        """Whether the finding, of one of its rules, begins in its statement: on the first or last line it silences."""
        named = self.names is None or finding.rule in self.names
        return named and self.first <= finding.location.line <= self.last

    def without(self, names: Iterable[str]) -> Edit:
        """Takes the rules `names` out of the brackets; where none is left, the comment is taken away."""
        dropped = {*names}
        kept = [name for name in self.names or () if name not in dropped]
        if kept:
            return Edit(self.location, f"# fusionlint: {self.word}[{', '.join(kept)}]")
        return self._removed()

    @property
    def written(self) -> str:
        """`# fusionlint: ignore[a, b]`, however it is spaced."""
        return f"# fusionlint: {self.word}" + ("" if self.names is None else f"[{', '.join(self.names)}]")

    @property
    def word(self) -> str:
        """What it asks for."""
        return "ignore-file" if self.whole_file else "ignore"

    def _removed(self) -> Edit:
        """With the space before it; with its line, if nothing else is on it. Other comments on the line stay."""
        where, code = self.location, self.code.rstrip("\r\n")
        before, after = code[: where.column - 1], code[where.end_column - 1 :]
        if after.strip():
            end = len(code) - len(after.lstrip()) + 1
            text = "" if after.lstrip().startswith("#") else "# "
            return Edit(Location(where.path, where.line, where.column, where.line, end), text)
        if before.strip() or code == self.code:
            start = len(before.rstrip()) + 1
            return Edit(Location(where.path, where.line, start, where.line, len(code) + 1), "")
        return Edit(Location(where.path, where.line, 1, where.line + 1, 1), "")


def ignores(data: bytes, path: str) -> tuple[Ignore, ...]:
    """The ignore comments of a file that parses; what looks like one in a string is none."""
    if b"fusionlint:" not in data:
        return ()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    lines = split_lines(data.decode(encoding))
    return tuple(_ignores(lines, path))


def _ignores(lines: Sequence[str], path: str) -> Iterator[Ignore]:
    comments: list[tokenize.TokenInfo] = []  # those of the statement that is open
    first = 0  # its first line, 0 between statements
    for token in tokenize.generate_tokens(iter([*lines, ""]).__next__):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            comments.append(token)
        elif token.type not in _BETWEEN:
            first = first or line
        if token.type == tokenize.NEWLINE or not first:
            yield from (one for comment in comments for one in _asked(comment, lines, path, (first or line, line)))
            comments, first = [], 0


def _asked(token: tokenize.TokenInfo, lines: Sequence[str], path: str, statement: tuple[int, int]) -> Iterator[Ignore]:
    """What a comment asks for, in or behind a statement of these lines."""
    line, start = token.start
    for match in _IGNORE.finditer(token.string):
        where = Location(path, line, start + match.start() + 1, line, start + match.end() + 1)
        names = None if match["names"] is None else tuple(filter(None, map(str.strip, match["names"].split(","))))
        yield Ignore(where, names, bool(match["file"]), lines[line - 1], *statement)


def unknown_names(comments: Iterable[Ignore], known: Sequence[str]) -> Iterator[Problem]:
    """One line for every name in a comment that no rule has, and for rules that a comment names without brackets."""
    for comment in comments:
        where = comment.location
        meant = _LIST.match(comment.code, where.end_column - 1) if comment.names is None else None
        if meant and (meant["mark"] or meant["name"] in known):
            right = f"# fusionlint: {comment.word}[{meant['name'] if meant['name'] in known else 'rule-name'}]"
            message = f"`{comment.written}` without brackets silences every rule; to name some: `{right}`"
            yield Problem(where.path, where.line, message)
        if comment.names == ():
            yield Problem(where.path, where.line, f"`{comment.written}` names no rule")
        for name in comment.names or ():
            if name not in known:
                yield Problem(where.path, where.line, f"`{comment.written}`: {_no_rule(name, known)}")


def unused(
    comments: Iterable[Ignore],
    used: Iterable[tuple[Ignore, str]],
    left: Sequence[Finding],
    ran: Iterable[str],
    known: Sequence[str],
) -> Iterator[Finding]:
    """A finding for every comment that is too wide: of whose names some silence nothing.

    `used` are comments with the rules that they silenced, `left` the findings that none did; only rules that `ran` can
    be said to silence nothing, and of comments for all rules only if all ran that usually do.
    """
    used, ran = {*used}, {*ran}
    for comment in comments:
        is_used = any(one == comment for one, _ in used)
        meant = next((one for one in left if comment.is_meant_for(one) and not is_used), None)
        if meant is not None and not comment.whole_file:
            yield _misplaced(comment, meant)
            continue
        if comment.names is None:
            idle = ran.issuperset({*known}.intersection(usual())) and not is_used
            if idle:
                yield _unused(comment, (), "it silences nothing")
            continue
        strange = [name for name in comment.names if name not in known]
        silent = [name for name in comment.names if name in ran and (comment, name) not in used]
        reasons = [_no_rule(name, known) for name in strange]
        if silent:
            found = "is not found" if len(silent) == 1 else "are not found"
            reasons.insert(0, f"{' and '.join(silent)} {found} {'in this file' if comment.whole_file else 'here'}")
        if not comment.names:
            reasons = ["it names no rule"]
        if reasons:
            yield _unused(comment, (*silent, *strange), "; ".join(reasons))


def _unused(comment: Ignore, names: tuple[str, ...], why: str) -> Finding:
    some = bool({*(comment.names or ())} - {*names})
    edit = comment.without(names)
    advice = edit.text if some else "the line without it"
    message = f"`{comment.written}`: {why}"
    return Finding(UNUSED, comment.location, message, Suggestion(advice, (edit,), safe=True))


def _misplaced(comment: Ignore, finding: Finding) -> Finding:
    """A comment in the middle of the statement that it is about."""
    begins = finding.location.line
    message = f"`{comment.written}`: it is in the middle of a statement; {finding.rule} is found on line {begins} of it"
    advice = f"the comment on line {begins}, or on the first or last line of the statement"
    return Finding(UNUSED, comment.location, message, Suggestion(advice))


def _no_rule(name: str, known: Sequence[str]) -> str:
    import difflib  # nobody needs it who writes what there is

    close = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"did you mean {close[0]!r}?" if close else "`fusionlint rule` lists them"
    return f"there is no rule {name!r}; {hint}"

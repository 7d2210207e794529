"""How fast `check` is, beside `ast.parse` and other linters, on the same files.

    python benchmarks/check_speed.py [FOLDER...] [--rounds 3] [--jobs 2] [--peers DIR] [--install-peers] [--json FILE]

Each line is of whole processes, started anew: the median of all rounds in wall and CPU seconds, the highest memory, and
the ratio to `ast.parse` over the same files in one process. A round does everything once, so that what else the machine
does falls on all. Without FOLDER the source distributions of tests/projects.py are read. Files are copied first; on the
copy one file is changed. A peer too slow for all files gets every Nth, and its ratio is scaled by lines; fusionlint is
timed on those files too. `--peers` is a folder with a virtual environment for each, made by `--install-peers` (without
`--peers` in a temporary folder). Exit status 1 where a limit does not hold, 2 where `check` fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import peers
import speeds
from corpora import Corpus, copied, functions, largest, lines_of, most_imported, nearest, thinned
from peers import PEERS, Peer
from processes import Run, timed
from speeds import Claim, Row, as_json, claim_line, claims, ours, skipped_rows, table, unequal, warm

ROOT = Path(__file__).parents[1]
PARSING = """
import ast, sys, warnings
warnings.simplefilter("ignore")
failed = 0
for path in sys.stdin.read().splitlines():
    with open(path, "rb") as file:
        text = file.read()
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        failed += 1
print(failed)
"""
# In so many files a function is copied.
COPIES = 9
# The script, as users call it: `python -m` would first look for modules among the files that are checked.
CHECK = (str(Path(sys.executable).with_name("fusionlint")), "check")


class CheckError(Exception):
    """`fusionlint check` ended otherwise than by saying what it found."""


class PeerError(Exception):
    """Another linter did not come to its end."""


@dataclass(frozen=True)
class Setting:
    """The files, and how `check` is called: `changed` and `imported` are those that are changed, `options` what this
    version of `check` knows."""

    whole: Corpus
    half: Corpus
    largest: Corpus
    alone: Corpus
    changed: Path
    imported: Path
    home: Path
    jobs: int
    options: frozenset[str]

    @property
    def uncached(self) -> tuple[str, ...]:
        return ("--no-cache",) if "--no-cache" in self.options else ()


def prepared(folders: Sequence[Path], home: Path, jobs: int) -> Setting:
    """Copies of the files in `home`."""
    whole = copied(folders, home / "whole")
    (whole.folder / ".semgrepignore").touch()  # semgrep leaves out tests by default
    changed = nearest(whole, 300)
    alone = thinned(Corpus(whole.folder / changed.parent, (Path(changed.name),)), home / "alone", 1)
    half = thinned(whole, home / "half", 2)
    done = subprocess.run([*CHECK, "--help"], capture_output=True, text=True, check=True)
    options = frozenset(option for option in ("--no-cache", *speeds.NEEDS) if option in done.stdout)
    return Setting(whole, half, largest(whole), alone, changed, most_imported(whole), home, jobs, options)


def check(setting: Setting, folder: Path, *arguments: str, stdin: bytes = b"") -> Run:
    """`fusionlint check`, as a user runs it in `folder`."""
    run = timed([*CHECK, "--jobs", str(setting.jobs), *arguments], folder, stdin)
    if run.crashed:
        raise CheckError(f"check {' '.join(arguments)} ended with {run.code}\n{run.errors[-2000:]}")
    return run


def one_round(setting: Setting, number: int) -> Iterator[tuple[str, Run]]:
    """Everything once; the files are afterwards as they were."""
    whole = setting.whole.folder
    yield speeds.PARSE, parsed(setting.whole)
    yield speeds.CLICK, timed([sys.executable, "-c", "import click"], setting.home)
    yield speeds.UNCACHED, check(setting, whole, *setting.uncached, ".")
    yield speeds.HALF, check(setting, setting.half.folder, *setting.uncached, ".")
    yield speeds.LARGEST, check(setting, setting.largest.folder, *setting.uncached, ".")
    yield speeds.ALONE, check(setting, setting.alone.folder, *setting.uncached, *map(str, setting.alone.files))
    yield speeds.INSIDE, check(setting, whole, *setting.uncached, str(setting.changed))
    if "--cache-dir" in setting.options:
        yield from _cached(setting, number, ("--cache-dir", str(setting.home / f"cache-{number}")))


def parsed(corpus: Corpus) -> Run:
    """`ast.parse` over the files in one process, which prints how many it could not parse."""
    run = timed([sys.executable, "-c", PARSING], corpus.folder, "\n".join(map(str, corpus.files)).encode())
    if run.code:
        raise CheckError(run.errors)
    return run


def _cached(setting: Setting, number: int, cache: tuple[str, ...]) -> Iterator[tuple[str, Run]]:
    """A fresh cache, then the same again, then with one change after the other."""
    whole = setting.whole.folder
    yield speeds.COLD, check(setting, whole, *cache, ".")
    yield speeds.WARM, check(setting, whole, *cache, ".")
    before = {file: (whole / file).read_bytes() for file in (setting.changed, setting.imported)}
    function = f"\n\ndef added_in_round_{number}(x):\n    return x + {number}\n"
    changes = (
        (speeds.COMMENT, setting.changed, f"\n# round {number}\n"),
        (speeds.FUNCTION, setting.changed, function),
        (speeds.IMPORTED, setting.imported, function),
    )
    for name, file, text in changes:
        with (whole / file).open("a") as changed:
            changed.write(text)
        yield name, check(setting, whole, *cache, ".")
    if "--stdin-filename" in setting.options:
        arguments = (*cache, "-", "--stdin-filename", str(setting.changed))
        saved = (whole / setting.changed).read_bytes()
        yield speeds.SAVED, check(setting, whole, *arguments, stdin=saved)
        for name, word in ((speeds.EDITED, "edited"), (speeds.RETYPED, "retyped")):
            edited = saved + function.replace("added", word).encode()
            yield name, check(setting, whole, *arguments, stdin=edited)
        yield speeds.ASKED_AGAIN, check(setting, whole, *arguments, stdin=edited)
    for file, data in before.items():
        (whole / file).write_bytes(data)
    copies = [_with_a_copy(setting, file, function, cache) for file, function in functions(setting.whole, COPIES)]
    if copies:
        yield speeds.COPIED, sorted(copies, key=lambda run: run.seconds)[len(copies) // 2]


def _with_a_copy(setting: Setting, file: Path, function: str, cache: tuple[str, ...]) -> Run:
    """With one of a file's own functions once more at its end, under another name: it calls what people call."""
    path = setting.whole.folder / file
    check(setting, setting.whole.folder, *cache, ".")
    saved = path.read_bytes()
    path.write_bytes(saved + f"\n\n{function}".encode())
    try:
        return check(setting, setting.whole.folder, *cache, ".")
    finally:
        path.write_bytes(saved)


def rows_of(setting: Setting, rounds: Sequence[Mapping[str, Run]]) -> list[Row]:
    """The rows of the rounds, in the order of what they did."""
    sizes = {
        **dict.fromkeys((speeds.ALONE, speeds.INSIDE, *speeds.NEEDS["--stdin-filename"]), setting.alone),
        speeds.HALF: setting.half,
        speeds.LARGEST: setting.largest,
        speeds.CLICK: Corpus(setting.home, ()),
    }
    whole = setting.whole
    return [_row(what, [done[what] for done in rounds], sizes.get(what, whole), whole) for what in rounds[0]]


def _row(what: str, runs: Iterable[Run], corpus: Corpus, whole: Corpus, remark: str = "") -> Row:
    scale = whole.lines / corpus.lines if len(corpus.files) > 1 else 1.0
    return Row(what, tuple(runs), len(corpus.files), corpus.lines, scale, remark)


def peer_rows(setting: Setting, peer: Peer, program: Path, rounds: int) -> Iterator[Row]:
    """The peer cold and, where it has a cache, warm; where it does not get all files, `check` on those it gets."""
    corpus = setting.whole
    if peer.every > 1 or peer.can_read:
        corpus = thinned(setting.whole, setting.home / peer.name, peer.every, peer.can_read)
        (corpus.folder / ".semgrepignore").touch()
    rules = setting.home / "rules.yml"
    rules.write_text(peers.RULES)
    done: dict[str, list[Run]] = {}
    for number in range(rounds):
        command = peer.command(program, setting.home / f"cache of {peer.name} {number}", rules, setting.jobs)
        for what in (peer.name, warm(peer.name))[: 1 + peer.has_cache]:
            run = timed(command, corpus.folder)
            if run.crashed:
                raise PeerError(f"{peer.name}: ended with {run.code}: {(run.errors.strip().splitlines() or [''])[-1]}")
            done.setdefault(what, []).append(told(what, run))
        if corpus is not setting.whole and peer.name in speeds.TIMES_FASTER:
            run = check(setting, corpus.folder, *setting.uncached, ".")
            done.setdefault(ours(peer.name), []).append(told(ours(peer.name), run))
    for what, runs in done.items():
        yield _row(what, runs, corpus, setting.whole, "" if what == ours(peer.name) else peer.remark)


def told(what: str, run: Run) -> Run:
    """The run, once said on stderr: all of it takes minutes."""
    print(f"{what}: {run.seconds:.2f} s, CPU {run.cpu:.2f} s, {run.parent:.0f} MB, {run.child:.0f} MB", file=sys.stderr)
    return run


def facts(setting: Setting, versions: Mapping[str, str]) -> dict[str, object]:
    """Where, when and on what this was timed."""
    return {
        "command": "python " + " ".join(sys.argv),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "revision": _revision(),
        "files": len(setting.whole.files),
        "lines": setting.whole.lines,
        "bytes": setting.whole.bytes,
        "changed": f"{setting.changed} ({lines_of(setting.whole.folder / setting.changed)} lines)",
        "most imported": str(setting.imported),
        "largest folder": f"{setting.largest.folder.name} ({len(setting.largest.files)} files)",
        "versions": dict(versions),
    }


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers", type=Path, metavar="DIR", help="virtual environments of the peers, one each")
    parser.add_argument("--install-peers", action="store_true", help="install what is not in DIR")
    parser.add_argument("--no-peers", action="store_true", help="time fusionlint alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures of all rounds")
    return parser.parse_args(arguments)


def pinned() -> list[Path]:
    """The source distributions of tests/projects.py, fetched where they are not there."""
    command = [sys.executable, str(ROOT / "tests" / "projects.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def timed_peers(options: argparse.Namespace, setting: Setting) -> tuple[list[Row], dict[str, str], list[str]]:
    """The rows of the peers that are there, their versions, and why others are not."""
    rows: list[Row] = []
    versions: dict[str, str] = {}
    skipped: list[str] = []
    folder = options.peers or (setting.home / "peers" if options.install_peers else None)
    for peer in () if options.no_peers else PEERS:
        complaint = peers.install(peer, folder.resolve()) if options.install_peers and folder else ""
        program = peers.program(peer, folder.resolve() if folder else None)
        if program is None:
            skipped.append(f"{peer.name}: {complaint or 'not installed; see --install-peers'}")
            continue
        try:
            rows += peer_rows(setting, peer, program, options.peer_rounds)
            versions[peer.name] = peers.version_of(peer, program)
        except PeerError as failed:
            skipped.append(str(failed))
    return rows, versions, skipped


def main() -> int:
    options = options_of()
    with tempfile.TemporaryDirectory(prefix="check-speed-") as home:
        setting = prepared(options.folders or pinned(), Path(home).resolve(), options.jobs)
        rounds: list[dict[str, Run]] = []
        try:
            check(setting, setting.alone.folder, *setting.uncached, ".")  # compiles its own modules, if nothing did
            for number in range(options.rounds):
                print(f"round {number + 1} ...", file=sys.stderr)
                rounds.append({what: told(what, run) for what, run in one_round(setting, number)})
            others, versions, skipped = timed_peers(options, setting)
        except CheckError as failed:
            print(failed, file=sys.stderr)
            return 2
        rows = [*rows_of(setting, rounds), *others]
        held = [*claims({row.what: row for row in rows}), Claim("runs that the cache changed", unequal(rounds), 0, "")]
        skipped = [*skipped_rows(setting.options), *skipped]
        head = {**facts(setting, versions), "not parsed by ast": int(rounds[0][speeds.PARSE].output)}
    print("\n".join(f"{name}: {value}" for name, value in head.items()), table(rows), sep="\n\n", end="\n\n")
    print("\n".join([*(claim_line(claim) for claim in held), *(f"skipped: {line}" for line in skipped)]))
    if options.json:
        options.json.write_text(as_json(head, rows, held, skipped))
    return int(not all(claim.holds for claim in held))


if __name__ == "__main__":
    sys.exit(main())

"""What is remembered changes nothing but the time: the same findings with a cache, without one, and after anything."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from edits import edited
from projects import PROJECTS, fetch

from fusionlint.rule import pages
from fusionlint.source import asking, components, connected, known, stale
from fusionlint.source.cache import FOLDER, Cache
from fusionlint.source.check import Result, check_files
from fusionlint.source.files import python_files
from fusionlint.source.kept import Joined, Text, Texts
from fusionlint.source.project import Project
from fusionlint.source.scope import Scope, speaking
from fusionlint.source.world import World, joined

EVERYTHING = Scope(speaking(tuple(pages()), ()))

PHYSICS = """
from jax import lax, numpy as jnp
from tools import lift

def stages(x):
    out = jnp.zeros(8)
    out = out.at[0].set(x)
    out = out.at[1].set(lift(x))
    return out
"""
TOOLS = """
import jax

def lift(x):
    return x + 1

def wrap(f):
    return jax.jit(f)
"""
DRIVER = """
import jax
from physics import stages
from tools import wrap

step = wrap(stages)

def train(x):
    seen = []
    for i in range(1000):
        x = step(x)
        seen.append(float(x[0]))
    return x, seen
"""
GAMES = """
import jax
from physics import *
from tools import wrap

class Game:
    def step(self, x):
        return stages(x)

class Race(Game):
    def __init__(self):
        self.fast = jax.jit(self.step)

    def step(self, x):
        x = x.at[0].set(1.0)
        x = x.at[1].set(lift(2.0))
        return x

def roll(game, x):
    return jax.lax.scan(lambda c, _: (game.step(c), None), x, None, 9)
"""
EXAMPLES = {"physics.py": PHYSICS, "tools.py": TOOLS, "driver.py": DRIVER, "games.py": GAMES}
# What may be written into a file: some say nothing to other files, some a lot.
LINES = [
    "# a comment",
    "LIMIT = 3",
    "import jax.numpy as np",
    "lift = None",
    "step = stages = wrap = lambda x: x",
    "def test_it():\n    stages(1)",
    "def more(x):\n    for i in range(9):\n        x = x.at[i].set(i)\n    return x",
    "from physics import stages as lift",
    "from absent import lift",
    "x = = 1",
    "stages = jax.jit(stages)",
    "def main():\n    return [stages(i) for i in range(99)]",
    "from games import *",
    "class Game:\n    def step(self, x):\n        return lift(x)",
    "play = jax.vmap(Race().step)",
    "def make():\n    game = Race()\n    return [game.fast(i) for i in range(999)]",
    "def lift(x):\n    return wrap(stages)(x)",
    "import numpy as jnp",
    "class Kit:\n    def set_up(self):\n        self.kept = stages(1)",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    for name, text in EXAMPLES.items():
        (folder / name).write_text(text)
    return folder


def checked(folder: Path, cache: Cache | None = None, jobs: int = 1) -> Result:
    return check_files(python_files([folder]), EVERYTHING, jobs, cache)


def edit(folder: Path, chance: random.Random) -> None:
    """Some change that people make: lines come and go, files come, go, and are called something else."""
    files = sorted(folder.glob("*.py"))
    path = chance.choice(files)
    match chance.randrange(6):
        case 0 | 1 | 2:
            lines = path.read_text().splitlines()
            lines.insert(
                chance.randrange(len(lines) + 1) if chance.random() < 0.5 else len(lines), chance.choice(LINES)
            )
            path.write_text("\n".join(lines) + "\n")
        case 3:
            name, text = chance.choice(sorted(EXAMPLES.items()))
            (folder / name).write_text(text)
        case 4:
            (folder / f"{chance.choice(['absent', 'tools', 'tests'])}.py").write_text(chance.choice([TOOLS, PHYSICS]))
        case 5 if len(files) > 1:
            path.rename(folder / f"{chance.choice(['absent', 'test_it', 'physics', 'other'])}.py")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("large", [components._LARGE, 1], ids=["small components", "large components"])
def test_edits_of_a_project_are_found_out_as_without_a_cache(
    large: int, seed: int, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_LARGE", large)
    chance, cache = random.Random(seed), tmp_path / "cache"
    for _ in range(12):
        assert checked(project, Cache(cache)) == checked(project)
        some = chance.choice(sorted(project.glob("*.py")))
        assert checked(some, Cache(cache)) == checked(some)
        edit(project, chance)


@pytest.mark.parametrize("seed", range(2))
def test_edits_of_a_real_project_are_found_out_as_without_a_cache(
    seed: int, tmp_path: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gymnax"
    shutil.copytree(fetch(PROJECTS["gymnax"]), folder)
    chance, cache = random.Random(seed), tmp_path / "cache"
    files = [path for path in python_files([folder]) if b"jax" in path.read_bytes()]
    checked(folder, Cache(cache))
    again = 0
    for _ in range(5):
        for path in chance.choices(files, k=chance.choice((1, 1, 3))):
            path.write_text(edited(path.read_text(), chance))
        moved = chance.choice(files)
        moved.rename(moved.with_stem(f"{moved.stem}_moved"))
        files = [path for path in files if path != moved] + [moved.with_stem(f"{moved.stem}_moved")]
        judged.clear()
        found = checked(folder, Cache(cache))
        again += len(judged)
        assert found == checked(folder)
    assert again < 2 * len(files)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that rules were asked about."""
    names: list[str] = []
    judge = asking._judge_one

    def noted(path: str) -> tuple[str, tuple[object, ...]]:
        names.append(Path(path).name)
        return judge(path)

    monkeypatch.setattr(asking, "_judge_one", noted)
    return names


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (lambda folder: None, []),
        (lambda folder: append(folder / "driver.py", "# a comment\n"), ["driver.py"]),
        (lambda folder: append(folder / "tools.py", "LIMIT = 3\n"), ["tools.py"]),
        (lambda folder: append(folder / "physics.py", "c = 3\n"), ["physics.py"]),
        (
            lambda folder: append(folder / "tools.py", "lift = None\n"),
            ["games.py", "physics.py", "tools.py"],
        ),
        (
            lambda folder: append(folder / "tools.py", "wrap = None\n"),
            ["driver.py", "tools.py"],
        ),
        (
            lambda folder: append(folder / "physics.py", "from tools import *\n"),
            ["games.py", "physics.py"],
        ),
        (lambda folder: append(folder / "tools.py", "def other():\n    stages()\n"), ["tools.py"]),
        (
            lambda folder: append(folder / "tools.py", "def other():\n    from physics import stages\n    stages()\n"),
            ["physics.py", "tools.py"],
        ),
        (lambda folder: append(folder / "physics.py", "def other():\n    pass\n"), ["physics.py"]),
        (lambda folder: (folder / "notes.txt").write_text("no code"), []),
        (lambda folder: (folder / "alone.py").write_text("x = 1\n"), ["alone.py"]),
        (lambda folder: (folder / "more.py").write_text("from tools import lift\n"), ["more.py"]),
        (
            lambda folder: (folder / "more.py").write_text("from physics import stages\n\nstages(3)\n"),
            ["more.py", "physics.py"],
        ),
        (lambda folder: (folder / "driver.py").rename(folder / "pilot.py"), ["pilot.py"]),
        (lambda folder: (folder / "driver.py").unlink(), []),
        (lambda folder: (folder / "games.py").unlink(), ["physics.py", "tools.py"]),
        (lambda folder: (folder / "tools.py").unlink(), ["driver.py", "games.py", "physics.py"]),
        (lambda folder: (folder / "jax.py").write_text("def jit(f):\n    return f\n"), ["jax.py"]),
    ],
    ids=[
        "nothing",
        "a comment",
        "a name that nobody writes",
        "a name that nobody reads who has it by a star",
        "a name that a file has by a star",
        "a name that one file imports",
        "a star",
        "a call of what is called so elsewhere",
        "a call of another file's",
        "a function that nobody calls",
        "no code",
        "a file that nothing imports",
        "a file that imports one",
        "a file that calls what one has",
        "a file is called otherwise",
        "a file goes",
        "a file goes that had others traced",
        "a file goes that others import",
        "a file comes that is called as a library is",
    ],
)
def test_only_what_may_have_changed_is_judged_again(
    change: Callable[[Path], object],
    again: list[str],
    project: Path,
    judged: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(components, "_LARGE", 1)
    cache = project.parent / "cache"
    checked(project, Cache(cache))
    judged.clear()
    change(project)
    checked(project, Cache(cache))
    assert sorted(judged) == again


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("# one more line\n" + PHYSICS, False),
        (PHYSICS.replace("zeros(8)", "zeros(9)"), False),
        (PHYSICS + "\ndef more(x):\n    def lifted(y):\n        return lift(y)\n    return lifted(stages(x))\n", False),
        (PHYSICS + "\n@jax.jit\ndef more(x):\n    return stages(x)\n", True),
        (PHYSICS + "\nclass More:\n    def run(self, x):\n        return stages(x)\n", True),
        (PHYSICS.replace("    return out", "    return wrap(out)"), True),
    ],
    ids=["a line", "a number", "a function", "a compiled function", "a class", "a call"],
)
def test_what_says_nothing_to_other_files_leaves_how_a_large_component_hangs_together(
    text: str, again: bool, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_LARGE", 1)
    first = "import jax\nfrom tools import wrap\n"
    (project / "physics.py").write_text(first + PHYSICS)
    checked(project, Cache(tmp_path / "cache"))
    known = list[set[str]]()

    def noted(project: Project) -> World:
        known.append({Path(path).name for path in project.known.files})
        return joined(project)

    monkeypatch.setattr(stale, "joined", noted)
    (project / "physics.py").write_text(first + text)
    after = checked(project, Cache(tmp_path / "cache"))
    assert len(known) == again
    assert all({"driver.py", "tools.py"} <= names for names in known)  # nothing in them can mean something else now
    assert after == checked(project)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("# one more line\n" + PHYSICS, False),
        (PHYSICS + "\ndef more(x):\n    return stages(x)\n", False),
        (PHYSICS + "\nimport driver\n", True),
        (PHYSICS.replace("from tools import lift", "from games import lift"), True),
    ],
    ids=["a comment", "a function", "an import more", "another import"],
)
def test_what_imports_what_it_did_is_connected_as_it_was(
    text: str, again: bool, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, asked = tmp_path / "cache", list[int]()

    def noted(leaves: dict[str, components.Leaf]) -> list[components.Component]:
        asked.append(len(leaves))
        return components.components(leaves)

    monkeypatch.setattr(connected, "components", noted)
    for paths in (project, project / "driver.py"):
        (project / "physics.py").write_text(PHYSICS)
        checked(paths, Cache(cache))
        asked.clear()
        (project / "physics.py").write_text(text)
        after = checked(paths, Cache(cache))
        assert bool(asked) is again
        assert after == checked(paths)


def test_a_file_around_that_could_not_be_read_is_read_when_it_can_be(project: Path, tmp_path: Path) -> None:
    (project / "tools.py").write_text(TOOLS + "\ndef half(x:\n")
    broken = checked(project / "driver.py", Cache(tmp_path / "cache"))
    (project / "tools.py").write_text(TOOLS)
    mended = checked(project / "driver.py", Cache(tmp_path / "cache"))
    assert mended == checked(project / "driver.py")
    assert mended.findings != broken.findings


@pytest.mark.parametrize("kind", ["run-*", "facts-*", "packs-*", "world-*", "notes-*"])
def test_a_damaged_cache_is_made_anew_and_said_so_once(
    kind: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_LARGE", 1)
    first = checked(project, Cache(tmp_path / "cache"))
    (damaged,) = (tmp_path / "cache").glob(kind)
    damaged.write_bytes(damaged.read_bytes()[:-7] + b"garbage")
    if kind != "run-*":  # the others are only read when something has changed
        append(project / "driver.py", "# a comment\n")
    second = checked(project, Cache(tmp_path / "cache"))
    assert [(Path(w.path), w.message) for w in second.warnings] == [(damaged, "was damaged; it is made anew")]
    assert second.findings == first.findings
    assert not checked(project, Cache(tmp_path / "cache")).warnings


def test_what_is_known_of_another_component_may_be_damaged(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "_LARGE", 1)
    checked(project, Cache(tmp_path / "cache"))
    (damaged,) = (tmp_path / "cache").glob("world-*")
    damaged.write_bytes(b"garbage")
    one = checked(project / "driver.py", Cache(tmp_path / "cache"))
    assert [Path(warning.path) for warning in one.warnings] == [damaged]
    assert one.findings == checked(project / "driver.py").findings
    assert not checked(project / "tools.py", Cache(tmp_path / "cache")).warnings


def test_what_a_killed_run_left_behind_does_no_harm(project: Path, tmp_path: Path) -> None:
    first = checked(project, Cache(tmp_path / "cache"))
    (tmp_path / "cache" / ".new-killed").write_bytes(b"half of it")
    assert checked(project, Cache(tmp_path / "cache")) == first


def test_where_nothing_can_be_written_there_is_no_cache(project: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    assert checked(project, Cache(tmp_path / "taken" / "cache")) == checked(project)


def run(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fusionlint", "check", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_two_runs_at_once_find_the_same(project: Path) -> None:
    command = [sys.executable, "-m", "fusionlint", "check", "."]
    both = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate()[0] for one in both]
    assert said[0] == said[1] == run("--no-cache", folder=project).stdout


def test_the_cache_lies_at_the_top_of_the_project_and_out_of_git(project: Path) -> None:
    (project / "inside").mkdir()
    shutil.move(project / "physics.py", project / "inside")
    run(folder=project / "inside")
    assert not (project / "inside" / FOLDER).exists()
    assert (project / FOLDER / ".gitignore").read_text().endswith("\n*\n")


def test_no_cache_leaves_nothing_and_says_the_same(project: Path) -> None:
    without = run("--no-cache", folder=project)
    assert not (project / FOLDER).exists()
    assert run(folder=project).stdout == run(folder=project).stdout == without.stdout


def test_what_is_kept_of_all_texts_is_newer_than_what_was_kept_of_a_few(tmp_path: Path) -> None:
    def kept(texts: dict[str, Text]) -> dict[str, Text]:
        cache = Cache(tmp_path)
        cache.keep_facts(b"key", texts, cache.facts(b"key"), lambda path: True)
        again = Cache(tmp_path)
        return {path: text._replace(facts=again.packed(text)) for path, text in again.facts(b"key").of.items()}

    texts = {f"{i}.py": Text(bytes([i]), b"facts %d" % i, b"outline", ()) for i in range(20)}
    assert kept(texts) == texts
    few = {**texts, "0.py": Text(b"few", b"other facts", b"outline", ())}
    assert kept(few) == few
    many = {path: Text(b"many" + text.digest, b"facts", b"outline", ()) for path, text in texts.items()}
    assert kept(many) == many


def test_what_is_no_longer_there_goes_when_all_is_kept_anew(tmp_path: Path) -> None:
    texts = {f"{i}.py": Text(bytes([i]), b"facts", b"outline", ()) for i in range(20)}
    Cache(tmp_path).keep_facts(b"key", texts, Texts({}, {}), lambda path: True)
    cache = Cache(tmp_path)
    known = cache.facts(b"key")
    new = {path: text._replace(digest=b"new") for path, text in [*known.of.items()][:10]}
    cache.keep_facts(b"key", new, known, lambda path: path in new)
    assert Cache(tmp_path).facts(b"key").digests.keys() == new.keys()


def as_joined(paths: Iterable[str], *together: str) -> Joined:
    return Joined(dict.fromkeys(paths, ("module", b"")), {}, {}, together)


def test_the_components_that_share_most_files_are_asked_first_however_old_they_are(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for name, paths in {"all": "abcdef", "half": "abc", "one": "a", "other": "xyz"}.items():
        cache.keep_world((b"code", name.encode()), b"said", as_joined(paths, name))
    assert [found.together for found in cache.other_worlds((b"code", b"own"), "abcd")] == [("all",), ("half",)]
    assert not [*cache.other_worlds((b"code", b"own"), "q")]
    assert not [*cache.other_worlds((b"other code", b"own"), "a")]


def test_a_component_that_others_were_made_of_is_kept_longer(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.keep_world((b"code", b"all"), b"said", as_joined("a"))
    for number in range(100):
        cache.keep_world((b"code", bytes([number])), b"said", as_joined([f"{number}"]))
        if number % 10 == 0:
            assert [*cache.other_worlds((b"code", b"own"), "a")]


def test_another_folder_can_hold_the_cache(project: Path, tmp_path: Path) -> None:
    run("--cache-dir", str(tmp_path / "elsewhere"), folder=project)
    assert not (project / FOLDER).exists()
    assert list((tmp_path / "elsewhere").glob("run-*"))


def test_other_rules_have_results_of_their_own(project: Path) -> None:
    everything = run(folder=project).stdout
    assert run("--select", "chained-at-set", folder=project).stdout != everything
    assert run(folder=project).stdout == everything


def test_a_known_text_is_not_read_again_where_it_goes_by_another_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    before = checked(project, Cache(folder))
    monkeypatch.setattr(known, "read_text", lambda _data, path: pytest.fail(f"{path} is read again"))
    monkeypatch.chdir(project)
    after = check_files(python_files([Path()]), EVERYTHING, 1, Cache(folder))
    assert [f.location.line for f in after.findings] == [f.location.line for f in before.findings] != []
    (project / "new.py").write_text("x = 1\n")
    with pytest.raises(pytest.fail.Exception):
        checked(project, Cache(folder))

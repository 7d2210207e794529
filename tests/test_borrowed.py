"""borrowed: what is known of the files of one component is known of them in another, unless it could be otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from projects import PROJECTS, fetch

from fusionlint.source.borrowed import as_they_were, borrowed
from fusionlint.source.components import Leaf, heard
from fusionlint.source.connected import connected
from fusionlint.source.facts import Facts
from fusionlint.source.files import python_files
from fusionlint.source.kept import Heard
from fusionlint.source.known import Known, content_of
from fusionlint.source.listings import look_again
from fusionlint.source.world import Packed, join

LIBRARY = {
    "lib/__init__.py": "",
    "lib/steps.py": "import jax\n\n@jax.jit\ndef step(x):\n    return x\n",
    "lib/other.py": "def other(x):\n    return x\n",
    "driver.py": "from lib.steps import step\n\ndef run(x):\n    return step(x)\n",
    "by_dots.py": "import lib\n\ndef run(x):\n    return lib.steps.step(x)\n",
    "by_name.py": "import lib\n\ndef name(x):\n    return lib.name(x)\n",
    "by_star.py": "from driver import *\n\ndef again(x):\n    return run(x)\n",
}


def known_in(folder: Path, files: dict[str, str]) -> tuple[dict[str, Facts], Known, list[str]]:
    """The facts of files that are written into a folder, and whom to ask about them."""
    for path in folder.rglob("*.py"):
        path.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    look_again()
    paths = sorted(str(folder / name) for name in files)
    known = Known(None)
    known.read({path: content for path in paths if isinstance(content := content_of(path), bytes)}, 1)
    return {path: known.facts(path) for path in paths}, known, paths


def comparable(world: Packed) -> object:
    """What a world holds; a file may have asked for more or fewer of its own names, which none of the others has."""
    asked = {path: {other: names for other, names in of.items() if other != path} for path, of in world.asked.items()}
    return world.contexts, {**world.files}, asked, world.kernels


@pytest.mark.parametrize(
    ("after", "known"),
    [
        ({}, set(LIBRARY)),
        ({"driver.py": None}, {*LIBRARY} - {"driver.py", "by_star.py"}),
        ({"lib/other.py": None}, {*LIBRARY} - {"lib/other.py"}),
        ({"lib/steps.py": None}, {*LIBRARY} - {"lib/steps.py", "driver.py", "by_dots.py"}),
        ({"lib/more.py": "def f():\n    pass\n"}, set(LIBRARY)),
        ({"lib/name.py": "def f():\n    pass\n"}, {*LIBRARY} - {"by_name.py"}),
        ({"lib/steps.py": "def step(x):\n    return x\n"}, {*LIBRARY} - {"lib/steps.py", "driver.py", "by_dots.py"}),
        ({"lib/steps.py": "# so\n" + LIBRARY["lib/steps.py"]}, set(LIBRARY)),
        ({"lib.py": "def name(x):\n    return x\n"}, {"lib/steps.py", "lib/other.py"}),
        ({"jax.py": "def jit(f):\n    return f\n"}, {*LIBRARY} - {"lib/steps.py", "driver.py", "by_dots.py"}),
    ],
    ids=[
        "nothing",
        "a file goes",
        "a file that nobody imports goes",
        "a file goes that others import",
        "a file comes",
        "a file comes where somebody means something else",
        "a file says something else",
        "a file says the same",
        "a module comes that is called as a package is",
        "a module comes that is called as a library is",
    ],
)
def test_a_file_is_known_where_nothing_that_it_rests_on_is_otherwise(
    after: dict[str, str | None], known: set[str], tmp_path: Path
) -> None:
    facts, then, paths = known_in(tmp_path, LIBRARY)
    world = join(facts).packed()
    said = {path: heard(then.leaf(path)) for path in paths}
    files = {name: text for name, text in {**LIBRARY, **after}.items() if text is not None}
    facts, now, paths = known_in(tmp_path, files)
    leaves = {path: now.leaf(path) for path in paths}
    found = as_they_were(facts, leaves, said_now(leaves), said, world.asked)
    assert {str(Path(path).relative_to(tmp_path)) for path in found} == known & files.keys()
    anew = join(facts_of(now, paths)).packed()
    assert comparable(
        join(facts, borrowed(facts, leaves, said_now(leaves), [world.kept(said)])).packed()
    ) == comparable(anew)


def said_now(leaves: dict[str, Leaf]) -> dict[str, Heard]:
    return {path: heard(leaf) for path, leaf in leaves.items()}


def facts_of(known: Known, paths: Iterable[str]) -> dict[str, Facts]:
    return {path: known.facts(path) for path in paths}


def test_one_file_of_a_real_project_borrows_all_that_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fetch(PROJECTS["gymnax"]))
    look_again()
    known = Known(None)
    paths = [str(path) for path in python_files([Path()])]
    known.read({path: content for path in paths if isinstance(content := content_of(path), bytes)}, 1)
    world = join(facts_of(known, paths)).packed()
    said = {path: heard(known.leaf(path)) for path in paths}
    one = next(path for path in paths if path.endswith("cartpole.py"))
    leaves = connected(known, [one]).leaves
    assert leaves.keys() <= said.keys()  # the files around are called as those that were named
    assert len(leaves) > 1
    facts = facts_of(known, leaves)
    assert as_they_were(facts, leaves, said_now(leaves), said, world.asked) == leaves.keys()
    assert comparable(
        join(facts, borrowed(facts, leaves, said_now(leaves), [world.kept(said)])).packed()
    ) == comparable(join(facts_of(known, leaves)).packed())

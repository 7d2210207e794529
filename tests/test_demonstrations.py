"""Of code that is run to be looked at nothing is said: a script that moves a picture on, a module's trial that shows
one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("argmax-then-pick",))
HEAD = "import jax, jax.numpy as jnp\nimport matplotlib.pyplot as plt\n"
LEAST = f"{HEAD}@jax.jit\ndef least(d):\n    return d[jnp.argmin(d)]\n"
MODULE = f"{HEAD}@jax.jit\ndef step(d):\n    return jnp.sin(d) * 2.0\n"
LOOP = "    for _ in range(800):\n        d = step(d)\n"
TRIED = f"{MODULE}def %s(d):\n{LOOP}    plt.%s()\n"
RUNS = 'if __name__ == "__main__":\n'


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("while True:\n    print(least(jnp.ones(3)))\n    plt.pause(0.1)\n", 0),
        ("while True:\n    print(least(jnp.ones(3)))\n", 1),
        # Now and then, and after each of some steps, which may be long.
        ("while True:\n    if least(jnp.ones(3)) > 8:\n        plt.pause(0.1)\n", 1),
        ("for _ in range(8):\n    print(least(jnp.ones(3)))\n    plt.pause(0.1)\n", 1),
        ("while True:\n    for _ in range(8):\n        print(least(jnp.ones(3)))\n        plt.pause(0.1)\n", 1),
        ("def show():\n    while True:\n        print(least(jnp.ones(3)))\n        plt.pause(0.1)\n", 1),
    ],
)
def test_a_script_that_pauses_for_its_picture_in_each_turn_is_looked_at(more: str, count: int) -> None:
    assert len(check_text((LEAST + more).encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (TRIED % ("main", "show") + f"{RUNS}    main(jnp.ones(3))\n", 0),
        (TRIED % ("look", "show") + f"{RUNS}    look(jnp.ones(3))\n", 0),
        (f"{MODULE}{RUNS}    d = jnp.ones(3)\n{LOOP}    plt.show()\n", 0),
        (TRIED % ("main", "close") + f"{RUNS}    main(jnp.ones(3))\n", 1),
        (f"{MODULE}{RUNS}    d = jnp.ones(3)\n{LOOP}", 1),
        (TRIED % ("look", "show"), 1),  # nobody knows who calls it
        (TRIED % ("look", "show") + f"look(jnp.ones(3))\n{RUNS}    look(jnp.ones(3))\n", 1),
        (TRIED % ("look", "show") + f"def both(d):\n    look(d)\n{RUNS}    look(jnp.ones(3))\n", 1),
    ],
)
def test_a_trial_that_shows_a_picture_is_looked_at_where_others_import_the_module(
    code: str, count: int, tmp_path: Path
) -> None:
    assert found_beside(code, "from sizes import step\n", tmp_path) == count
    assert found_beside(code, "import jax\n", tmp_path) == 1  # a script, which may be what the project is for


def test_what_others_call_too_is_no_trial(tmp_path: Path) -> None:
    code = TRIED % ("look", "show") + f"{RUNS}    look(jnp.ones(3))\n"
    assert found_beside(code, "import jax.numpy as jnp\nfrom sizes import look\nlook(jnp.ones(3))\n", tmp_path) == 1


def found_beside(code: str, other: str, folder: Path) -> int:
    files = [folder / "sizes.py", folder / "other.py"]
    (folder / "setup.py").write_text("")
    for path, text in zip(files, (code, other), strict=True):
        path.write_text(text)
    return len(check_files(files, Scope(("loop-over-jit",))).findings)

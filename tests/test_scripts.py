"""A function that a script defines and never names is dead: nobody can import it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("argmax-then-pick",))
LEAST = "import jax, jax.numpy as jnp\ndef least(d):\n    return d[jnp.argmin(d)]\n"
RUNS = "for i in range(8):\n    print(i)\n"


@pytest.mark.parametrize(
    ("more", "count"),
    [
        (RUNS, 0),
        (RUNS + "# the least of them\n", 0),
        ("", 1),  # a module, of which others may import it
        (RUNS + "fast = jax.jit(least)\n", 1),
        (RUNS + '__all__ = ["least"]\n', 1),
        ("print(8)\n", 1),
    ],
)
def test_what_a_script_never_names_is_dead(more: str, count: int) -> None:
    assert len(check_text((LEAST + more).encode(), "m.py", ONLY)) == count


def test_of_a_script_that_is_imported_it_may_be_used(tmp_path: Path) -> None:
    script, other = tmp_path / "run.py", tmp_path / "other.py"
    (tmp_path / "setup.py").write_text("")
    script.write_text(LEAST + RUNS)
    other.write_text("import run\n")
    files = [script, other]
    assert len(check_files(files, ONLY).findings) == 1
    other.write_text("import walk\n")
    assert len(check_files(files, ONLY).findings) == 0


@pytest.mark.parametrize(
    ("name", "more", "count"),
    [
        ("recipe-last.py", "", 0),
        ("recipe-last.py", '"""A copy."""\nn: int = 8\n', 0),
        ("recipe.py", "", 1),  # somebody may import it
        ("recipe-last.py", "fast = jax.jit(least)\n", 0),
        ("recipe-last.py", "jax.jit(least)(jnp.ones(3))\n", 1),
        ("recipe-last.py", "def run():\n    return 8\nfirst = run()\n", 1),
        ("recipe-last.py", "if __name__ == '__main__':\n    print(8)\n", 1),
        ("recipe-last.py", "@app.main\ndef main():\n    return least\n", 1),
    ],
)
def test_a_file_that_no_import_can_name_and_that_does_nothing_is_dead(name: str, more: str, count: int) -> None:
    assert len(check_text((LEAST + more).encode(), name, ONLY)) == count

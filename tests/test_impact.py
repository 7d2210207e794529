"""impact: which files a change can matter to, and which it cannot."""

from __future__ import annotations

import pytest

from fusionlint.source.facts import Raw
from fusionlint.source.impact import affected
from fusionlint.source.reading import read_raw

LIBRARY = """
import jax

@jax.jit
def step(x):
    return helper(x)

def helper(x):
    return x

def other(x):
    return x
"""
FILES = {
    "driver.py": "from library import step\nfor _ in range(9):\n    x = step(x)\n",
    "by_name.py": "import library\nlibrary.other(1)\n",
    "by_star.py": "from library import *\nprint(DEBUG)\n",
    "by_attribute.py": "def f(settings):\n    if settings.step:\n        pass\n",
    "elsewhere.py": "def g(x):\n    return x\n",
}  # fmt: skip


def touched(before: str, after: str, others: dict[str, str] = FILES) -> set[str] | None:
    texts = {**others, "library.py": after}
    now = {path: read_raw(text, path) for path, text in texts.items()}
    packed = {path: raw.packed() for path, raw in now.items()}
    then = {"library.py": read_raw(before, "library.py")}
    return affected(then, {"library.py": now["library.py"]}, packed, lambda path: texts[path].encode())


def test_what_changed_matters_to_who_mentions_it_and_to_what_it_mentions() -> None:
    assert touched(LIBRARY, LIBRARY.replace("@jax.jit\n", "")) == {
        "driver.py", "by_attribute.py", "library.py",
    }  # fmt: skip


def test_a_new_function_that_nobody_mentions_matters_to_its_own_file_alone() -> None:
    assert touched(LIBRARY, LIBRARY + "\ndef added(x):\n    return x\n") == {"library.py"}


def test_a_new_name_matters_to_who_has_all_names_and_reads_that_one() -> None:
    assert touched(LIBRARY, LIBRARY + "\nDEBUG = True\n") == {"by_star.py"}


def test_the_same_text_matters_to_nobody() -> None:
    assert touched(LIBRARY, LIBRARY.replace("return x\n", "return x  # so\n")) == set()


def test_another_star_matters_to_any_file() -> None:
    assert touched(LIBRARY, "from somewhere import *\n" + LIBRARY) is None


@pytest.mark.parametrize("module", ["m", ".m", "m" * 42, "m" * 300, "módulo", "..", "a.b"])
def test_a_star_is_seen_whatever_its_module_is_called(module: str) -> None:
    star = {"a.py": f"from {module} import *\nprint(DEBUG)\n"}
    assert touched(LIBRARY, LIBRARY + "DEBUG = 1\n", star) == {"a.py"}


def test_a_name_as_long_as_a_star_is_a_character_is_no_star() -> None:
    long = {"a.py": f"def {'f' * 42}(): ...\n" + "\n" * 38 + "print(2 * 3)\n"}
    packed = read_raw(long["a.py"], "a.py").packed()
    assert b"*" in packed
    assert Raw.unpacked(packed).bindings[""].keys() == {"f" * 42}
    assert touched(LIBRARY, LIBRARY + "DEBUG = 1\n", long) == set()

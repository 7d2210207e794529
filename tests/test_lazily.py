"""What is put off until it is used does then what it would have done at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest

from fusionlint.lazily import regex
from fusionlint.rule import all_rules

PROGRAM = """
import sys
from fusionlint.lazily import load, postpone

postpone("libcst")
import libcst
import libcst as cst
assert cst is libcst is sys.modules["libcst"]
assert "libcst._nodes" not in sys.modules
{use}
assert "libcst._nodes" in sys.modules
assert libcst.parse_module("x = 1\\n").code == "x = 1\\n"
assert isinstance(libcst.Name("x"), cst.BaseExpression)
"""


@pytest.mark.parametrize("use", ["cst.Name", "load('libcst'); load('libcst')", "from libcst import Name"])
def test_a_module_that_is_postponed_is_loaded_when_it_is_used(use: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(use=use)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_loaded_already_stays_as_it_is() -> None:
    program = "import libcst\nfrom fusionlint.lazily import postpone\npostpone('libcst')\n"
    program += "import sys\nassert sys.modules['libcst'] is libcst and 'Name' in vars(libcst)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_not_installed_is_missing_when_it_is_imported() -> None:
    program = "from fusionlint.lazily import postpone\npostpone('no_such_module')\nimport no_such_module"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ModuleNotFoundError: No module named 'no_such_module'" in done.stderr


def test_a_regex_is_compiled_when_it_is_used_and_is_the_one_that_re_makes() -> None:
    bad = regex("(")  # nothing is wrong until somebody asks
    with pytest.raises(re.error):
        bad.match("(")
    word = regex("(?P<first>a)B", re.IGNORECASE)
    assert word.match("Ab")
    assert not word.match("b")
    assert word.sub("c", "ab aB") == "c c"
    assert (word.pattern, word.groupindex) == ("(?P<first>a)B", {"first": 1})


def test_rules_ask_for_nodes_by_names_that_libcst_knows() -> None:
    for rule in all_rules():
        for sensor in rule.source_sensors:
            for name in sensor.nodes:
                assert issubclass(getattr(cst, name), cst.CSTNode), (rule.name, name)


def test_a_file_with_nothing_to_look_into_is_checked_without_libcst(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from fusionlint.rule import all_rules, pages
from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope, speaking

Path("a.py").write_text("import jax\\n\\ndef f(x):\\n    return x + 1\\n")
result = check_files([Path("a.py")], Scope(speaking(tuple(pages()), ())))
assert (result.files, result.problems) == (1, ())
assert len(all_rules()) > 50
assert "libcst._nodes" not in sys.modules, "some rule or pattern takes nodes of libcst when it is imported"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

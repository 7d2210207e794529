"""What functions make before there is anything to speed up, by what they are called and who calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.scope import Scope

MAKES = """
import jax.numpy as jnp
from jax import lax

def {name}(key, links):
    table = jnp.zeros((8, 8)).at[key[0], 1].set(key[1]).at[key[2], 3].set(key[3])
    return table * sized(links)

def sized(links):
    return links.at[links[0], 1].set(links[1]).at[links[2], 3].set(links[3])
"""
CALLS = """
import jax
from made import {name}

class Robot:
    def __init__(self, links):
        self.table = {name}(links, links)
"""
STEP = """
def step(state):
    return {name}(state, state)
"""
TRACED = """
@jax.jit
def traced(state):
    return {name}(state, state)
"""
LOOP = """
def main(states):
    for state in states:
        state = {name}(state, state)
    print(state)
"""


def found(folder: Path, name: str, *callers: str) -> int:
    (folder / "made.py").write_text(MAKES.format(name=name))
    for i, code in enumerate(callers):
        (folder / f"caller_{i}.py").write_text((CALLS.partition("class")[0] + code).format(name=name))
    checked = check_files(sorted(folder.glob("*.py")), Scope(("chained-at-set",)))
    assert not checked.problems
    return len(checked.findings)


@pytest.mark.parametrize("name", ["create_table", "_build_table", "gen_keys", "initialize_mesh", "get_env_and_config"])
def test_what_a_function_makes_before_all_else_is_left_alone_and_so_is_what_it_needs(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, name) == 0
    assert found(tmp_path, name, CALLS.partition("\n\n")[2]) == 0


@pytest.mark.parametrize("name", ["table", "generate_table", "creates", "update_table"])
def test_a_function_of_another_name_may_run_at_any_time(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, name) == 2


@pytest.mark.parametrize(
    ("name", "count"), [("init_from_pretrained", 0), ("restored_checkpoint", 0), ("tuned_from_scratch", 1)]
)
def test_what_puts_the_weights_of_a_file_in_their_places_is_left_alone(tmp_path: Path, name: str, count: int) -> None:
    code = f"""
import pickle
import jax.numpy as jnp

def {name}(path, params):
    with open(path, "rb") as file:
        return params.replace(table=extended(params.table, pickle.load(file)))

def extended(table, old):
    table = table.at[: len(old) - 8].set(old[:-8])
    return table.at[-8:].set(old[-8:])
"""
    (tmp_path / "loading.py").write_text(code)
    checked = check_files([tmp_path / "loading.py"], Scope(("boundary-writes",)))
    assert len(checked.findings) == count


def test_a_helper_of_what_the_host_makes_is_left_alone(tmp_path: Path) -> None:
    host = """
import time

def make_table(links, started):
    print(time.time() - started)
    return sized(links), started
"""
    code = MAKES.format(name="table")
    helper = f"import jax.numpy as jnp\nfrom jax import lax\n\n{code[code.index('def sized') :]}"
    (tmp_path / "made.py").write_text(helper + host + STEP.format(name="make_table"))
    assert check_files([tmp_path / "made.py"], Scope(("chained-at-set",))).findings == ()
    (tmp_path / "made.py").write_text(helper + host.replace("make_table", "table") + STEP.format(name="table"))
    assert len(check_files([tmp_path / "made.py"], Scope(("chained-at-set",))).findings) == 1


@pytest.mark.parametrize("caller", [STEP, TRACED, LOOP], ids=["a step", "a trace", "a loop"])
def test_who_calls_it_again_and_again_counts_for_more_than_its_name(tmp_path: Path, caller: str) -> None:
    assert found(tmp_path, "create_table", caller) == 2


def test_of_methods_and_what_is_handed_out_nobody_sees_who_calls_them(tmp_path: Path) -> None:
    code = MAKES.format(name="create_view").replace("(key, links):", "(self, key, links):")
    inside = "\n".join(f"    {line}" for line in code.partition("\n\n")[2].splitlines())
    (tmp_path / "views.py").write_text(f"import jax.numpy as jnp\nfrom jax import lax\n\nclass Views:\n{inside}\n")
    assert len(check_files(sorted(tmp_path.glob("*.py")), Scope(("chained-at-set",))).findings) == 2


@pytest.mark.parametrize(
    ("decorator", "name", "count"),
    [
        ("staticmethod", "build", 0),
        ("classmethod", "build_from_description", 0),
        ("staticmethod", "compose", 1),
        ("property", "build", 1),
    ],
)
def test_a_static_method_that_builds_objects_is_left_alone(
    tmp_path: Path, decorator: str, name: str, count: int
) -> None:
    code = f"""
import jax.numpy as jnp
from jax import lax

class Model:
    @{decorator}
    def {name}(links):
        return jnp.zeros((8, 8)).at[links[0], 1].set(links[1]).at[links[2], 3].set(links[3])
"""
    (tmp_path / "model.py").write_text(code)
    assert len(check_files([tmp_path / "model.py"], Scope(("chained-at-set",))).findings) == count


HOST = """
import json

def run(links, path):
    with open(path) as file:
        settings = json.load(file)
    return {name}(links, links), settings
"""
OF_ITS_OWN = """
import json

class Runner:
    def run(self, links, path):
        with open(path) as file:
            return {name}(links, links), json.load(file)
"""


@pytest.mark.parametrize("caller", [HOST, OF_ITS_OWN])
def test_what_host_code_alone_calls_once_is_left_alone(tmp_path: Path, caller: str) -> None:
    assert found(tmp_path, "_slabs", caller) == 1  # in what it calls, which anybody may


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(HOST.replace("return", "for _ in path:\n        yield"), id="in a loop"),
        pytest.param(HOST.replace("def run", "def update"), id="a step"),
        pytest.param(OF_ITS_OWN.replace("Runner:", "Runner(Trainer):"), id="for a base class, which may run it"),
        pytest.param(OF_ITS_OWN.replace("def run", "def _run"), id="a method for somebody who is not seen"),
        pytest.param("\nresult = {name}(1, 2)\n", id="a module, which may be imported for it"),
    ],
)  # fmt: skip
def test_what_host_code_may_call_again_and_again_is_not(tmp_path: Path, caller: str) -> None:
    assert found(tmp_path, "_slabs", caller) == 2


def test_what_says_that_it_is_computed_before_is_left_alone_under_a_trace_too(tmp_path: Path) -> None:
    assert found(tmp_path, "_precompute_tables", TRACED) < found(tmp_path, "tables", TRACED)
    assert found(tmp_path, "_precompute_tables", TRACED + LOOP) == found(tmp_path, "tables", TRACED + LOOP)


def test_what_is_not_private_anybody_may_call(tmp_path: Path) -> None:
    assert found(tmp_path, "slabs", HOST) == 2

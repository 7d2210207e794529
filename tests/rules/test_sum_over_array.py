"""sum-over-array: what the fix writes of an array that is no name."""

from __future__ import annotations

import pytest

from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join


@pytest.mark.parametrize(
    ("summed", "instead"),
    [
        ("x", "x.sum(0)"),
        ("x > 0", "(x > 0).sum(0)"),
        ("(x > 0)", "(x > 0).sum(0)"),
        ("jnp.sin(x)", "jnp.sin(x).sum(0)"),
    ],
)
def test_what_is_more_than_a_name_stands_in_parentheses(summed: str, instead: str) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x: jax.Array):\n    return sum({summed})\n"
    scope = Scope(("sum-over-array",))
    found = check_text(code.encode(), "m.py", scope)
    after = fix_text("m.py", code.encode(), found, scope, join({}), unsafe=True).after.decode()
    assert after == code.replace(f"sum({summed})", instead)


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("    return float(sum(~jnp.isnan(x)))", ["jnp.sum(~jnp.isnan(x))"]),
        ("    return int(max(jnp.abs(x))) + 1", ["jnp.max(jnp.abs(x))"]),
        ("    return float(min(jnp.abs(x)))", ["jnp.min(jnp.abs(x))"]),
        ("    return float(\n        sum(\n            ~jnp.isnan(x)\n        )\n    )", ["jnp.sum(~jnp.isnan(x))"]),
        ("    assert all(jnp.equal(x, 0))\n    return x", ["jnp.all(jnp.equal(x, 0))"]),  # no tracer has a truth
        ("    return int(max(x.shape)) + float(sum([1, 2])) + float(max(jnp.abs(x), 1))", []),
    ],
)
def test_on_the_host_the_same_goes_for_other_builtins(body: str, instead: list[str]) -> None:
    code = f"import jax.numpy as jnp\n\ndef f(x):\n{body}\n"
    found = check_text(code.encode(), "m.py", Scope(("sum-over-array",)))
    assert [f.suggestion.text for f in found if f.suggestion is not None] == instead


@pytest.mark.parametrize(("block", "count"), [("with jax.ensure_compile_time_eval():", 0), ("with open(path):", 1)])
def test_what_a_trace_does_early_is_done_once(block: str, count: int) -> None:
    code = f"import jax\nimport jax.numpy as jnp\n\nclass Net:\n    def __call__(self, x, path):\n        {block}\n"
    code += "            table = jnp.zeros(int(max(jnp.array(sorted(self.kinds)))) + 1)\n        return table[x]\n"
    assert len(check_text(code.encode(), "m.py", Scope(("sum-over-array",)))) == count


def test_a_sum_that_is_written_over_several_lines_is_one() -> None:
    code = "import jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef f(x: jax.Array, c):\n"
    code += "    return sum(\n        jnp.dot(c, row)\n        for row in x\n    )\n"
    (found,) = check_text(code.encode(), "m.py", Scope(("sum-over-array",)))
    assert found.location.line == 6


def test_in_what_is_called_again_and_again_it_is_told_of_host_code_too() -> None:
    code = """
import jax.numpy as jnp

class Strategy:
    def {name}(self, fitness):
        self.weights = jnp.sort(fitness)
        return float(sum(jnp.sort(fitness)))
"""
    scope = Scope(("sum-over-array",))
    assert [len(check_text(code.format(name=name).encode(), "m.py", scope)) for name in ("tell", "report")] == [1, 0]

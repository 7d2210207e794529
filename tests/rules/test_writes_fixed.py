"""What `--fix` makes of writes one after the other, and of loops of them: it has to compute the same, to the dtype."""

from __future__ import annotations

from pathlib import Path

from fusionlint.compiling import counting
from fusionlint.source.fixing import fix_text
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope
from fusionlint.source.world import join

SCOPE = Scope(("chained-at-set", "recurrence-by-at-set"))
HEAD = "import jax\nimport jax.numpy as jnp\n\nONE, OTHER = 1, 0\n\n\n@jax.jit\n"


def fixed(code: str) -> str:
    """The code after `check --fix --unsafe-fixes`."""
    found = check_text(code.encode(), "m.py", SCOPE)
    return fix_text("m.py", code.encode(), found, SCOPE, join({}), unsafe=True).after.decode()


SAME = {
    "rows and numbers of a vector, whatever the axes are": (
        """def f(x, a, b):
    return x.at[1].set(a).at[-1].set(2.5) * 2
""",
        (
            "f(f32[4], f32[], f32[])",
            "f(f32[4,3], f32[3], f32[])",
            "f(i32[4], f32[], f32[])",
            "f(f32[4,3,2], f32[2], f32[])",
        ),
    ),
    "sums, places twice": (
        """def f(x, a, b):
    x = x.at[1].add(a)
    x = x.at[1].add(b).at[3].subtract(a)
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(i32[4,3], i32[3], i32[])"),
    ),
    "a value made of what stands there, and of what was written": (
        """def f(x, a, b):
    x = x.at[0].set(jnp.maximum(x[0], a))
    y = jnp.sin(x[0]) + b
    x = x.at[2].set(x[0] + y)
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[3], f32[])"),
    ),
    "the last of any number of axes": (
        """def f(x, a, b):
    x = x.at[..., ONE].set(a)
    x = x.at[..., OTHER].set(b)
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[4], f32[])", "f(f32[5,4,3], f32[5,4], f32[4])"),
    ),
    "places on two axes": (
        """def f(x, a, b):
    n, m = x.shape
    t = jnp.diag(jnp.ones(n - 1), -1) - 2 * jnp.eye(n)
    t = t.at[0, 0].set(-1)
    t = t.at[-1, -1].set(-1)
    return t * a
""",
        ("f(f32[4,3], f32[], f32[])",),
    ),
    "one number at places that only the run knows": (
        """def f(x, a: int, b: int):
    board = jnp.zeros((4, 5), dtype=jnp.int8)
    board = board.at[a, b].set(1)
    board = board.at[b, a].set(1)
    return board * 2
""",
        ("f(f32[4,3], i32[], i32[])",),
    ),
    "a vector of numbers": (
        """def f(x, a, b):
    v = jnp.zeros(3, dtype=jnp.float32)
    v = v.at[0].set(a)
    v = v.at[1].set(1)
    v = v.at[2].set(b)
    return v * 2
""",
        ("f(f32[4,3], f32[], i32[])",),
    ),
    "once at one place": (
        """def f(x, a, b):
    x = x.at[1:3].mul(a)
    x = x.at[1:3].add(b)
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[3], f32[2,3])"),
    ),
    "a line of a table": (
        """def f(x, a, b):
    t = jnp.full((6, 2), -1)
    t = t.at[a, 0].set(b, mode="drop")
    t = t.at[a, 1].set(2 * b, mode="drop")
    return t * 2
""",
        ("f(f32[4], i32[5], i32[5])",),
    ),
    "rows of a loop, a number for one": (
        """def f(x, a, b):
    for i in range(4):
        y = a * i
        x = x.at[i].set(y)
    return x * 2
""",
        (
            "f(f32[4], f32[], f32[])",
            "f(f32[4,3], f32[3], f32[])",
            "f(i32[4,3], f32[], f32[])",
            "f(f32[4,3,2], f32[2], f32[])",
        ),
    ),
    "columns of a loop": (
        """def f(x, a, b):
    t = jnp.zeros((4, 3), dtype=jnp.float32)
    for i in range(3):
        t = t.at[:, i].set(a * i)
    return t * 2
""",
        ("f(f32[4], f32[4], f32[])", "f(f32[4], i32[], f32[])"),
    ),
    "numbers of a loop, at places with a gap": (
        """def f(x, a, b):
    t = jnp.zeros((9, 2), dtype=jnp.float32)
    for i in range(1, 4):
        s = jnp.sin(a[i])
        t = t.at[2 * i + 1, 1].set(s)
    return t * 2
""",
        ("f(f32[4], f32[4], f32[])",),
    ),
    "what each turn hands to the next": (
        """def f(x, a, b):
    out = jnp.zeros_like(a)
    for i in range(a.shape[0]):
        b = 0.5 * b + a[i]
        out = out.at[i].set(jnp.sin(b))
    return out * 2
""",
        ("f(f32[4], f32[5], f32[])", "f(f32[4], f32[5,3], f32[3])"),
    ),
    "each row made of the row before": (
        """def f(x, a, b):
    x = x.at[0].set(a)
    for i in range(1, 4):
        y = x[i - 1] * b
        x = x.at[i].set(x[i] + jnp.sin(y) + x[i - 1])
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[3], f32[])"),
    ),
    "each row made of the row behind": (
        """def f(x, a, b):
    for i in range(2, -1, -1):
        x = x.at[i].set(jnp.sin(x[i + 1]) * b)
    return x * 2
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[3], f32[3])"),
    ),
    "to arrays of places, and taken from others": (
        """def f(x, senders, receivers):
    forces = jnp.sin(x[senders] - x[receivers])
    x = x.at[senders].add(forces)
    x = x.at[receivers].add(-forces)
    return x * 2
""",
        ("f(f32[4], i32[6], i32[6])", "f(f32[4,3], i32[6], i32[6])"),
    ),
    "added at places of one shape": (
        """def f(x, edges, w):
    i, j = edges[:, 0], edges[:, 1]
    lengths = jnp.abs(w[i] - w[j])
    total = jnp.zeros(4).at[i].add(lengths).at[j].add(lengths)
    forces = jnp.zeros(4).at[i].add(w[j] * x[i]).at[j].add(-w[i] * x[j])
    return total * forces
""",
        ("f(f32[4], i32[6,2], f32[4])",),
    ),
    "rows at places that are a step apart": (
        """def f(grid, position, tiles):
    y, x = position
    return grid.at[y, x + 1].set(tiles[0]).at[y, x].set(tiles[1]) * 2
""",
        ("f(f32[4,5,2], i32[2], f32[3,2])", "f(f32[4,5], i32[2], f32[3])"),
    ),
    "flags beside those that are set": (
        """def f(x, a, b):
    done = x > 0
    done = done.at[0].set(jnp.logical_or(done[0], a > 0))
    done = done.at[2].set(jnp.logical_or(done[2], (b > 0) | (a > 1)))
    return done
""",
        ("f(f32[4], f32[], f32[])", "f(f32[4,3], f32[3], f32[])"),
    ),
    "numbers in what is new and as wide as there is": (
        """def f(x, a: int, b):
    y = jnp.zeros(4)
    y = y.at[a].set(b)
    y = y.at[-1].set(3)
    return y + x
""",
        ("f(f32[4], i32[], f32[])", "f(f32[4], i32[], i32[])", "f(f32[4], i32[], f16[])"),
    ),
    "one number wherever a table says": (
        """def f(x, a, b):
    for i in range(3):
        x = x.at[a[i, 0], a[i, 1]].set(1.0)
    return x * 2
""",
        ("f(f32[4,5], i32[3,2], f32[])", "f(f32[4,5,2], i32[3,2], f32[])"),
    ),
    "rows of what is new, of as many axes as another has": (
        """def f(x, a, b):
    y = jnp.zeros((3,) + x.shape[1:])
    y = y.at[0].set(x[1] * a)
    y = y.at[1].set(3.0 * b * x[0])
    y = y.at[2].set(x[2] * a)
    return y.T @ x
""",
        ("f(f32[3], f32[], f32[])", "f(f32[3,4], f32[], f32[])"),
    ),
    "a diagonal beside the first": (
        """def f(x, a, b):
    for i in range(1, 4):
        x = x.at[i, i - 1].set(1.0)
    return x @ x
""",
        ("f(f32[4,4], f32[], f32[])",),
    ),
}


def test_what_is_fixed_computes_the_same(tmp_path: Path) -> None:
    jobs, names = [], []
    for number, (name, (body, calls)) in enumerate(SAME.items()):
        after = fixed(HEAD + body)
        assert after != HEAD + body, name
        (tmp_path / f"bad_{number}.py").write_text(HEAD + body)
        (tmp_path / f"good_{number}.py").write_text(after)
        for call in calls:
            jobs.append(counting.agreeing_job(tmp_path / f"bad_{number}.py", tmp_path / f"good_{number}.py", call))
            names.append(f"{name}: {call}")
    differences = dict(zip(names, counting.agree_many(jobs), strict=True))
    assert {name: how for name, how in differences.items() if how is not None} == {}

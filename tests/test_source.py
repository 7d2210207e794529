"""Source: what names are called, who reads what was written, what loops and scopes there are."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

import fusionlint
from fusionlint.rule import Rule, Where
from fusionlint.source.reading import read_facts
from fusionlint.source.tree import Source
from fusionlint.source.walk import Walk
from fusionlint.source.world import join


def source_of(code: str) -> Source:
    world = join({"m.py": read_facts(code, "m.py", "m")})
    return Source("m.py", code.encode(), world.project, world.contexts)


def names(source: Source, name: str) -> list[cst.Name]:
    """The appearances of a variable in the order of the text."""
    found = [use.node for node in source.nodes(cst.Name) if node.value == name for use in source.uses(node)]
    return sorted(dict.fromkeys(found), key=source.location)


def lines(source: Source, nodes: list[cst.Name]) -> list[int]:
    return [source.location(node).line for node in nodes]


def called(code: str) -> str | None:
    """The qualified name of what the last call of the text calls."""
    source = source_of(code)
    calls = sorted(source.nodes(cst.Call), key=source.location)
    return source.qualified_name(calls[-1].func)


# What a name is called


@pytest.mark.parametrize(
    "code",
    [
        "import jax.numpy as jnp\njnp.stack([])",
        "import jax.numpy as jp\njp.stack([])",
        "import jax.numpy as np\nnp.stack([])",
        "import jax\njax.numpy.stack([])",
        "import jax.numpy\njax.numpy.stack([])",
        "from jax import numpy\nnumpy.stack([])",
        "from jax import numpy as n\ndef f():\n    return n.stack([])",
        "from jax.numpy import stack\nstack([])",
        "from jax.numpy import stack as pile\npile([])",
        "import jax.numpy as jnp\npile = jnp.stack\npile([])",
        "def f():\n    import jax.numpy as jnp\n    return jnp.stack([])",
        "try:\n    import jax.numpy as jnp\nexcept ImportError:\n    jnp = None\n"
        "def f(x):\n    import jax.numpy as jnp\n    return jnp.stack(x)",
    ],
)
def test_a_name_is_called_what_it_was_imported_as(code: str) -> None:
    assert called(code) == "jax.numpy.stack"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import numpy as np\nnp.stack([])", "numpy.stack"),
        ("import torch\ntorch.stack([])", "torch.stack"),
        ("stack([])", None),
        ("def stack(x): ...\nstack([])", "m:stack"),
        ("from jax.numpy import stack\ndef f(stack):\n    return stack([])", None),
        ("import jax.numpy as jnp\ndef f(jnp):\n    return jnp.stack([])", None),
        ("import jax.numpy as jnp\ndef f(x):\n    for jnp in x:\n        jnp.stack([])", None),
        ("import jax.numpy as jnp\ndef f(x):\n    with x as jnp:\n        jnp.stack([])", None),
        ("import jax.numpy as jnp\ndef f(x):\n    try: ...\n    except E as jnp:\n        jnp.stack([])", None),
        ("import jax.numpy as jnp\ndef f(x):\n    match x:\n        case [jnp, *_]: jnp.stack([])", None),
        ("import jax.numpy as jnp\npile = jnp.stack\npile = list\npile([])", None),
        ("from jax import numpy\nclass A:\n    numpy = 1\n    def f(self): numpy.stack([])", "jax.numpy.stack"),
        ("x[0].stack([])", None),
        ("f().stack([])", None),
    ],
)
def test_a_shadowed_or_unknown_name_is_not_guessed(code: str, name: str | None) -> None:
    assert called(code) == name


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("np.stack([])", "jax.numpy.stack"),
        ("if on:\n        np.stack([])", "jax.numpy.stack"),
        ("if off:\n        pass\n    else:\n        np.stack([])", "jax.numpy.stack"),
        ("if on:\n        pass\n    else:\n        np.stack([])", "numpy.stack"),
        ("if not on:\n        np.stack([])", "numpy.stack"),
        ("if on:\n        pass\n    elif off:\n        np.stack([])", "numpy.stack"),
        ("x if on else np.stack([])", "numpy.stack"),
        ("x = np.stack([]) if on else 0", "jax.numpy.stack"),
    ],
)
def test_what_a_flag_chose_is_the_other_where_the_flag_is_false(code: str, name: str) -> None:
    head = "import jax.numpy as jnp\nimport numpy as onp\ndef f(on, off):\n    np = jnp if on else onp\n    "
    assert called(head + code) == name


def test_alias_is_how_the_file_calls_a_module() -> None:
    assert source_of("import jax.numpy as jp").alias("jax.numpy") == "jp"
    assert source_of("from jax import lax").alias("jax.lax") == "lax"
    assert source_of("import numpy as np").alias("jax.numpy") is None


# Reads, writes and values


def reads_of_first(code: str) -> list[int]:
    """The lines that read what the first write of `x` stored."""
    source = source_of(code)
    first = next(use.node for use in source.uses(names(source, "x")[0]) if use.is_write)
    return lines(source, source.reads(first))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("x = 1\nf(x)\ng(x)\n", [2, 3], id="straight line"),
        pytest.param("x = 1\nf(x)\nx = 2\ng(x)\n", [2], id="until the next write"),
        pytest.param("x = 1\nx = x + 1\ng(x)\n", [2], id="a write reads before it stores"),
        pytest.param("x = 1\nx += 1\ng(x)\n", [2], id="an augmented write reads and stores"),
        pytest.param("x = 1\nif c:\n    x = 2\ng(x)\n", [4], id="a write in a branch may not happen"),
        pytest.param("x = 1\nif c:\n    x = 2\nelse:\n    f(x)\ng(x)\n", [5, 6], id="read in the other branch"),
        pytest.param("if c:\n    x = 2\nelse:\n    f(x)\n", [], id="branches never both run"),
        pytest.param("x = 1\nwith c:\n    x = 2\ng(x)\n", [], id="a with block always runs"),
        pytest.param("x = 1\nfor i in c:\n    f(x)\n    x = 2\ng(x)\n", [3, 5], id="a loop may not run"),
        pytest.param("x = 1\ndel x\ng(x)\n", [], id="del ends it"),
        pytest.param("def f():\n    x = 1\n    def g():\n        return x\n    return g\n", [4], id="closure"),
        pytest.param("def f():\n    def g():\n        return x\n    x = 1\n    return g\n", [3], id="earlier closure"),
        pytest.param("def f(x):\n    return x\ndef g(x):\n    return x\n", [2], id="another function's variable"),
        pytest.param("def f(k):\n    x = 1\n    return k(x=x).x\n", [3], id="keywords and attributes are no reads"),
        pytest.param("x = 1\ny = [x for _ in range(3)]\n", [2], id="comprehension"),
        pytest.param("def f(x):\n    global y\n    y = x\n", [3], id="parameter"),
        pytest.param("def f(x):\n    x = g(x)\n    return x\n", [2], id="parameter until the next write"),
        pytest.param("def f(x):\n    if c:\n        x = 2\n    return x\n", [4], id="parameter written in a branch"),
        pytest.param(
            "def f(c):\n    if c:\n        x = 2\n        return x\n    return x\n", [4], id="a branch that returns"
        ),
        pytest.param(
            "def f(c):\n    try:\n        if c:\n            x = 2\n            raise c\n    finally:\n        g(x)\n",
            [7],
            id="a branch that raises what is caught",
        ),
    ],
)
def test_reads_are_those_of_what_was_stored(code: str, expected: list[int]) -> None:
    assert reads_of_first(code) == expected


def test_what_an_augmented_write_stored_is_read_later() -> None:
    source = source_of("x = 1\nx += 1\ng(x)\n")
    augmented = [use.node for use in source.uses(names(source, "x")[0]) if use.is_write][1]
    assert lines(source, source.reads(augmented)) == [3]


def test_what_the_end_of_a_loop_stores_is_read_at_its_top() -> None:
    source = source_of("def f(x):\n    for _ in c:\n        g(x)\n        x = h(x)\n        k(x)\n    return x\n")
    stored = source.assigned_name(next(c for c in source.nodes(cst.Call) if source.code(c.func) == "h"))
    assert stored is not None
    assert lines(source, source.reads(stored)) == [5, 6, 3, 4]


def test_a_loop_that_writes_first_does_not_read_the_last_iteration() -> None:
    source = source_of("def f(y):\n    for _ in y:\n        x = g()\n        h(x)\n        x = k()\n        h(x)\n")
    assert [lines(source, source.reads(n)) for n in names(source, "x")[::2]] == [[4], [6]]


def value_of_last(code: str) -> str | None:
    """The right-hand side that the last read of `x` stands for, as written."""
    source = source_of(code)
    read = [n for n in names(source, "x") if any(u.node is n and not u.is_write for u in source.uses(n))][-1]
    value = source.value(read)
    return source.code(value) if value is not None else None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("x = a\nf(x)\n", "a", id="straight line"),
        pytest.param("x = a\nx = b\nf(x)\n", "b", id="the last write"),
        pytest.param("x: int = a\nf(x)\n", "a", id="annotated"),
        pytest.param("x = y = a\nf(x)\n", "a", id="two targets"),
        pytest.param("f(x := a)\ng(x)\n", "a", id="walrus"),
        pytest.param("x = a\nx += b\nf(x)\n", None, id="augmented"),
        pytest.param("x, y = a\nf(x)\n", None, id="unpacked"),
        pytest.param("x = a\nif c:\n    x = b\nf(x)\n", None, id="either of two"),
        pytest.param("x = a\nif c:\n    x = b\nelse:\n    f(x)\n", "a", id="not that of the other branch"),
        pytest.param("x = a\nif c:\n    x = b\n    f(x)\n", "b", id="inside the branch"),
        pytest.param("x = a\nif c:\n    f(x)\n", "a", id="from outside the branch"),
        pytest.param(
            "def f():\n    x = a\n    if c:\n        x = b\n        return x\n    g(x)\n", "a", id="that one returns"
        ),
        pytest.param(
            "def f():\n    x = a\n    if c:\n        x = b\n        d()\n    g(x)\n", None, id="that one goes on"
        ),
        pytest.param(
            "def f():\n    x = a\n    def h():\n        if c:\n            return b\n        x = 3\n    g(x)\n",
            "a",
            id="another function returns",
        ),
        pytest.param(
            "def f():\n    x = a\n    def h():\n        g(x)\n    if c:\n        x = b\n        return h\n",
            None,
            id="closure of a branch that returns",
        ),
        pytest.param("def f(x):\n    g(x)\n", None, id="parameter"),
        pytest.param("def f(x):\n    x = a\n    g(x)\n", "a", id="parameter written over"),
        pytest.param("x = a\nfor i in c:\n    f(x)\n    x = b\n", None, id="carried around a loop"),
        pytest.param("x = a\nfor i in c:\n    x = b\n    f(x)\n", "b", id="written in this iteration"),
        pytest.param("x = a\nx = b\nfor i in c:\n    f(x)\n", "b", id="written before the loop"),
        pytest.param("for x in c:\n    f(x)\n", None, id="loop variable"),
        pytest.param("with c as x:\n    f(x)\n", None, id="with"),
        pytest.param("def f():\n    x = a\n    return lambda: x\n", "a", id="closure, one write"),
        pytest.param("def f():\n    x = a\n    g = lambda: x\n    x = b\n", None, id="closure, two writes"),
        pytest.param("x = a\ndef f():\n    global x\n    x = b\ng(x)\n", None, id="written by a function as global"),
        pytest.param("try:\n    from m import x\nexcept E:\n    x = a\nf(x)\n", None, id="imported or assigned"),
        pytest.param("def x(): ...\nif c:\n    x = a\nx()\n", None, id="defined or assigned"),
        pytest.param("import x\ndef f():\n    global x\n    x = a\n    g(x)\n", "a", id="imported, then global"),
        pytest.param("def f():\n    global x\n    x = a\ndef h():\n    g(x)\n", "a", id="written as global alone"),
        pytest.param("x = a\nmatch c:\n    case [x, *_]:\n        f(x)\n", None, id="captured by match"),
        pytest.param("try: ...\nexcept E as x:\n    f(x)\n", None, id="exception"),
    ],
)
def test_value_is_given_where_only_one_is_possible(code: str, expected: str | None) -> None:
    assert value_of_last(code) == expected


def parsed(source: Source) -> set[tuple[int, int]]:
    """The pieces of a file that were parsed."""
    return set(source._parsed._by_type)


@pytest.mark.parametrize("head", ["import h\n", "def h(): ...\n", ""], ids=["imported", "defined", "nowhere"])
def test_where_a_name_is_imported_or_defined_is_not_parsed_for_its_value(head: str) -> None:
    source = source_of(f"{head}def f():\n    return h\n")
    place = source.pieces.of_scope("f")
    (read,) = [node for node in source.nodes_in({place}, cst.Name) if isinstance(node, cst.Name) and node.value == "h"]
    assert source.value(read) is None
    assert parsed(source) == {place}


def test_uses_between_two_nodes_parse_nothing_else() -> None:
    source = source_of("import m\nm.a()\ndef f():\n    m.b()\n    m.c()\n    m.d()\ndef g():\n    m.e()\n")
    place = source.pieces.of_scope("f")
    first, _, last = source.nodes_in({place}, cst.Call)
    name = next(node for node in source.nodes_in({place}, cst.Name) if isinstance(node, cst.Name) and node.value == "m")
    assert lines(source, [use.node for use in source.uses_between(name, first, last)]) == [5, 6]
    assert parsed(source) == {place}
    whole = list(source.nodes(cst.Call))
    assert lines(source, [use.node for use in source.uses_between(name, whole[0], whole[-1])]) == [4, 5, 6, 8]


# Loops and functions


@pytest.mark.parametrize(
    ("code", "looped"),
    [
        ("for i in c:\n    f()\n", True),
        ("for i in f():\n    pass\n", False),
        ("for i in c: pass\nelse:\n    f()\n", False),
        ("while f():\n    pass\n", True),
        ("while c: pass\nelse:\n    f()\n", False),
        ("for i in c:\n    def g():\n        f()\n", False),
        ("for i in c:\n    @f()\n    def g(): ...\n", True),
        ("for i in c:\n    def g(x=f()): ...\n", True),
        ("for i in c:\n    lambda: f()\n", False),
        ("[f() for i in c]", True),
        ("[i for i in f()]", False),
        ("[i for i in c if f()]", True),
        ("[i for j in c for i in f()]", True),
        ("[i for j in f() for i in c]", False),
        ("{i: f() for i in c}", True),
        ("for j in c:\n    [i for i in f()]", True),
        ("f()", False),
    ],
)
def test_loop_is_what_runs_a_node_again_and_again(code: str, looped: bool) -> None:
    source = source_of(code)
    node = next(call for call in source.nodes(cst.Call) if source.code(call) == "f()")
    assert source.in_loop(node) == looped


def test_function_is_the_one_whose_body_a_node_is_in() -> None:
    source = source_of("@f(1)\ndef g(x=f(2)):\n    class A(f(3)):\n        y = f(4)\n    return lambda z=f(5): f(6)\n")
    calls = {source.code(call): source.function(call) for call in source.nodes(cst.Call)}
    assert calls["f(1)"] is None
    assert calls["f(2)"] is None
    definition = next(source.nodes(cst.FunctionDef))
    assert all(calls[f"f({i})"] is definition for i in (3, 4, 5))
    assert isinstance(calls["f(6)"], cst.Lambda)


def test_code_and_location_count_characters() -> None:
    source = source_of('s = "héé😀"; f(\n\ta,  # ü\n\tb)\n')
    call = next(source.nodes(cst.Call))
    where = source.location(call)
    assert (where.line, where.column, where.end_line, where.end_column) == (1, 13, 3, 4)
    assert source.code(call) == "f(\n\ta,  # ü\n\tb)"


# Scopes: facts.py by `ast` and walk.py by libcst must call them the same


def scopes_of_facts(data: bytes) -> dict[str, int]:
    facts = read_facts(data, "m.py", "m")
    return {f.scope: f.line for f in facts.functions.values()} | dict.fromkeys(facts.classes, 0)


def scopes_of_walk(data: bytes) -> dict[str, int]:
    tree = cst.MetadataWrapper(cst.parse_module(data), unsafe_skip_copy=True)
    positions = tree.resolve(cst.metadata.PositionProvider)
    walk = Walk()
    walk.visit(tree.module)
    return {
        scope: 0 if isinstance(node, cst.ClassDef) else positions[node].start.line
        for node, scope in walk.opened.items()
    }


TRICKY = {
    "lambdas": "f = lambda: (lambda: 1,\n lambda: 2)\ng = [lambda: 3,\n lambda: 4]\n",
    "comprehensions": "x = [(lambda: 1)\n for i in (lambda: [2])()\n if (lambda: 3)() for j in\n (lambda: 4)()]\n",
    "dict comprehension": "x = {(lambda: 1)(): \n(lambda: 2)() for i in\n (lambda: 3)()}\n",
    "decorators": "@d(lambda: 1)\n@e(\nlambda: 2)\ndef f():\n  @d(lambda: 3)\n  def g(): ...\n",
    "defaults": "def f(a=lambda: 1,\n b=lambda: 2, /, c=lambda: 3,\n *d, e=lambda: 4,\n g=lambda: 5, **h):\n"
    " return lambda: 6\n",
    "lambda defaults": "f = lambda a=lambda: 1,\\\n *, b=lambda: 2: lambda: 3\n",
    "classes": "class A(b(lambda: 1),\n metaclass=c(lambda: 2)):\n  class B:\n    def f(self): ...\n"
    "    g = lambda self: 1\n",
    "same names": "def f(): ...\ndef f():\n  def f(): ...\n  def f(): ...\nclass f: ...\n",
    "branches": "if (lambda: 1)():\n  def f(): ...\nelif (\n lambda: 2)():\n  def f(): ...\nelse:\n  def f(): ...\n",
    "conditional": "x = (lambda: 1) if (\nlambda: 2)() else (\nlambda: 3)\n",
    "assignments": "x[(lambda: 1)()] = (\nlambda: 2)()\ny[(lambda: 3)()] += (\nlambda: 4)()\nz: A = lambda: 5\n",
    "with and try": "with a(lambda: 1) as b, c(\nlambda: 2):\n  pass\ntry:\n  lambda: 3\nexcept (\n"
    "lambda: 4)():\n  lambda: 5\nelse:\n  lambda: 6\nfinally:\n  lambda: 7\n",
    "loops": "for i in (lambda: 1)():\n  lambda: 2\nelse:\n  lambda: 3\nwhile (lambda: 4)():\n  lambda: 5\n"
    "else:\n  lambda: 6\n",
    "match": "match (lambda: 1)():\n  case 1 if (lambda: 2)():\n    lambda: 3\n  case _:\n    lambda: 4\n",
    "calls": "f(lambda: 1, *g(\nlambda: 2), k=\nlambda: 3, **h(\nlambda: 4))(\nlambda: 5)\n",
    "strings": "x = f'{(lambda: 1)()}' '{' f'{a:{(lambda: 2)()}}'\ny = lambda: 3\n",
    "async": "async def f():\n  async with a(lambda: 1):\n    async for i in b(lambda: 2):\n"
    "      await (lambda: 3)()\n",
    "rest": "assert (lambda: 1)(), (\nlambda: 2)()\nraise (lambda: 3)() from (\nlambda: 4)()\n",
    "walrus": "if (f := lambda: 1) and (g := lambda: 2):\n  print(f, lambda: 3)\n",
    "slices and operators": "x[(lambda: 1)():(\nlambda: 2)(), (lambda: 3)()]\n"
    "(lambda: 4)() < (\nlambda: 5)() + (lambda: 6)()\n",
}


@pytest.mark.parametrize("code", TRICKY.values(), ids=TRICKY)
def test_scopes_are_called_the_same_on_tricky_code(code: str) -> None:
    ast.parse(code)
    assert scopes_of_walk(code.encode()) == scopes_of_facts(code.encode())


def test_scopes_are_called_the_same_in_files_of_the_package() -> None:
    (package,) = fusionlint.__path__
    for path in sorted(Path(package).rglob("*.py"))[::10]:  # of all it takes half a minute
        data = path.read_bytes()
        assert scopes_of_walk(data) == scopes_of_facts(data), path


@pytest.mark.parametrize("first", [0, -1], ids=["what the def takes by default", "what is around it"])
def test_a_def_that_nobody_asks_for_says_nothing_of_the_code_around_it(first: int) -> None:
    """Whichever is asked about first: a default is code of the function around the def."""
    source = source_of("def f(x):\n    def unused(y=g(1)):\n        return h(2)\n    return k(3)\n")
    default, inner, around = sorted(source.nodes(cst.Call), key=source.location)
    calls = [default, around]
    assert source.is_traced(calls[first])
    assert not source.is_traced(inner)
    assert all(map(source.is_traced, calls))


ASKED = """\
import functools, jax
import jax.numpy as jnp

def step(x):
    def unused(y):
        return jnp.sort(y)
    by = functools.partial(jnp.sort, axis=0)(x)
    return jnp.sort(x), by

def rows(x):
    yield jnp.sort(x)

def test_step():
    return jnp.sort(1)
"""


@pytest.mark.parametrize(("where", "asked"), [("traced", [8]), ("any", [6, 7, 8, 11, 14])])
def test_a_check_of_traced_code_is_asked_about_calls_in_one_that_run_there(where: Where, asked: list[int]) -> None:
    rule, source = Rule(__name__, harm="fusion"), source_of(ASKED)
    rule.source("Call", calls=("jax.numpy.sort",), where=where)(lambda node, source: iter(()))
    (sensor,) = rule.source_sensors
    assert sorted(source.location(node).line for node in sensor.asked_about(source)) == asked

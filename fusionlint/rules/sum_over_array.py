"""Python's `sum` of an array in traced code: a slice and an addition for each element."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import inside
from fusionlint.patterns.code.calls import as_argument, as_operand, brief
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.loops.collected import is_few
from fusionlint.patterns.loops.mapped_rows import is_mappable
from fusionlint.patterns.runs.concrete import is_concrete
from fusionlint.patterns.runs.gated import is_known_early
from fusionlint.patterns.runs.often import runs_often
from fusionlint.patterns.values.how_many import how_many
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.facts import Value, last_name
from fusionlint.source.host_code import only_asks
from fusionlint.source.pictures import is_for_a_picture
from fusionlint.source.places import Place
from fusionlint.source.tree import Source

rule = Rule(__name__, harm="compile-time")

_FEW = 8
# What says the same of an array.
_REDUCTIONS = {"sum": "sum", "max": "max", "min": "min", "any": "any", "all": "all", "sorted": "sort"}
# Which of them ask for the truth of a comparison, or of each element, which nothing traced has.
_ASKS = frozenset(_REDUCTIONS) - {"sum"}
_TRUTHS = frozenset(("any", "all"))
# What the text of a call says of what is handed over: that Python made it, that it is a comprehension, over one thing.
_OF_PYTHON = regex(r"\s*[\"'\[{]")
_FOR = regex(r"\bfor\b")
_OVER_ONE = regex(r"\bfor\s+\w+\s+in\s+([\w.]+|\w*np\..*)\s*[\])]")
# So many more lines of a call are looked at that is not closed on its own.
_LINES = 3
# What methods return that Python goes through.
_LISTS = frozenset(("items", "keys", "values", "split", "splitlines", "glob", "iterdir", "listdir"))
_LONG, _WHOLE = 40, 100


def _may_sum(source: Source) -> Iterator[str]:
    """The scopes that sum one thing up, or what is made of each part of a thing with a name."""
    handed = _handed("sum", 2, source)
    return (place.scope for place, rest in handed if not _FOR.search(rest) or _OVER_ONE.search(rest))


def _may_reduce(source: Source) -> Iterator[str]:
    """The scopes that hand one thing to a builtin of Python: to `any` and `all`, which are everywhere, a call."""
    handed = ((name, *each) for name in _REDUCTIONS for each in _handed(name, 1, source))
    return (place.scope for name, place, rest in handed if not _FOR.search(rest) and _may_have(name, rest))


def _may_have(builtin: str, rest: str) -> bool:
    return builtin not in _TRUTHS or "(" in rest.partition(")")[0]


def _handed(builtin: str, most: int, source: Source) -> Iterator[tuple[Place, str]]:
    """Where a builtin is handed what may be an array, by the facts and by the text of the call, with `most` arguments,
    and that text: most go over what Python makes, `sorted(d.items())`, `any(f(x) for x in xs)`."""
    for place, call in source.called(builtin):
        value = source.whole(call).value
        if not 0 < len(value.arguments) <= most or value.keywords or not _may_be_an_array(value.arguments[0]):
            continue
        line, *more = source.pieces.lines[call[3] - 1 : call[3] + _LINES]
        _, _, rest = line.partition(f"{builtin}(")
        said = rest if ")" in rest else " ".join((rest, *more))
        if not _OF_PYTHON.match(said):
            yield place, said


def _may_be_an_array(given: Value) -> bool:
    """Whether an argument is no tuple, no shape, and what no function of Python returns."""
    if given.callee is not None:
        return "." in given.callee.name and last_name(given.callee.name) not in _LISTS
    return last_name(given.name) != "shape" and (bool(given.name) or not given.arguments)


@rule.source("Call", when=_may_sum, needs=("sum",))
def element_by_element(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`sum(x)` of what is seen to be an array, or `sum(f(row) for row in x)`."""
    if not source.calls(node, "sum") or not node.args:
        return
    array = node.args[0].value
    comprehension = array if isinstance(array, cst.GeneratorExp | cst.ListComp) else None
    if comprehension is not None:
        loop = comprehension.for_in
        if loop.ifs or loop.inner_for_in is not None or not isinstance(loop.target, cst.Name):
            return
        array = loop.iter
    if kind(array, source) != "array" or _is_short(array, source) or is_concrete(node, source):
        return
    text, edits = _reduced(node, array, comprehension, source)
    if comprehension is None:
        write = brief(text or "", _LONG, "x.sum(0)")
    else:
        x = brief(as_argument(array, source), _LONG, "x")
        write = f"{source.alias('jax') or 'jax'}.vmap of what is done with each, over {x}, and `.sum(0)` of that"
        write = brief(text, _WHOLE, write) if text is not None else write
    yield source.finding(
        node,
        "Python's `sum` adds up an array one element at a time, each by operations of its own in the program",
        write=write if len(node.args) == 1 else f"{source.code(node.args[1].value)} + {write}",
        edits=edits,
    )


@rule.source("Call", where="any", when=_may_reduce, needs=tuple(_REDUCTIONS))
def element_by_element_on_the_host(node: cst.Call, source: Source) -> Iterator[Finding]:
    """`max(x)`, `assert all(jnp.equal(x, y))`; `int(sum(x > 0))`, where a number is made of what a device holds."""
    match node:
        case cst.Call(func=cst.Name(builtin), args=[cst.Arg(value=array, keyword=None, star="")]):
            if builtin not in _REDUCTIONS or not source.calls(node, builtin):
                return
            if kind(array, source) != "array" or _is_short(array, source):
                return
        case _:
            return
    project, place = source.project, source.place(node)
    is_of_a_library = source.context(node) == "library" or only_asks(project, place)
    if not is_of_a_library and not source.in_loop(node) and not runs_often(project, place):
        return  # what a script does once is done soon
    if is_known_early(node, source):
        return  # and so is what a trace does, while it is compiled
    if not (builtin in _ASKS or is_concrete(node, source)) or is_for_a_picture(project, place):
        return
    jnp = source.jnp
    text = f"{jnp}.{_REDUCTIONS[builtin]}({as_argument(array, source)})"
    if builtin == "sum" and not _is_made_a_number(node, source):
        text = _summed(array, source)  # of several axes Python's adds up along the first
    is_plain = source.alias_at(node, "jax.numpy") is not None and not source.has_comment(node)
    yield source.finding(
        node,
        f"Python's `{builtin}` takes an array of the device one element at a time, each by a dispatch of its own",
        write=text if brief(text, _WHOLE) == text else f"{jnp}.{_REDUCTIONS[builtin]}(x)",
        edits=(source.replace(node, text),) if is_plain and builtin != "sorted" else (),  # which gives a list
        pair=1,
    )


def _is_made_a_number(node: cst.Call, source: Source) -> bool:
    """`float(sum(x))`, of an array of one axis then."""
    call = source.handed_to(node)
    return source.calls(call, "float", "int", "bool")


def _reduced(
    node: cst.Call, array: cst.BaseExpression, each: cst.GeneratorExp | cst.ListComp | None, source: Source
) -> tuple[str | None, tuple[Edit, ...]]:
    """The one reduction, and the edits that write it: `x.sum(0)`, `jax.vmap(lambda row: f(row))(x).sum(0)`."""
    text, imports = _summed(array, source), tuple[Edit, ...]()
    if each is not None:
        jax = imported("jax", node, source)
        if jax is None or not isinstance(each.for_in.target, cst.Name) or not _is_of_jax(each.elt, source):
            return None, ()
        function = f"lambda {each.for_in.target.value}: {source.code(each.elt)}"
        text = f"{jax.name}.vmap({function})({as_argument(array, source)}).sum(0)"
        imports = jax.edits
    is_plain = len(node.args) == 1 and not source.has_comment(node)
    return text, (*imports, source.replace(node, text)) if is_plain else ()


def _is_of_jax(made: cst.BaseExpression, source: Source) -> bool:
    """Whether all that is called is jax's, or a function that this file defines by a def: what a module of a network
    keeps a map would take for an array of the batch."""
    parts = [*inside(made)]
    if any(isinstance(part, cst.NamedExpr | cst.Await | cst.Yield) for part in parts):
        return False
    return all(is_mappable(part, source) for part in parts if isinstance(part, cst.Call))


def _summed(array: cst.BaseExpression, source: Source) -> str:
    """`x.sum(0)`, `(x > 0).sum(0)`."""
    return f"{as_operand(array, source.code(array))}.sum(0)"


def _is_short(array: cst.BaseExpression, source: Source) -> bool:
    """Whether an array is seen to have a few elements, or a few rows."""
    count = how_many(array, source)
    return (count is not None and count <= _FEW) or is_few(source.meant(array), source)

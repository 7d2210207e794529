"""An inverse that is only multiplied by something: `jnp.linalg.inv(a) @ b`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.calls import as_argument, beside, brief, has_only
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

rule = Rule(__name__, harm="fusion")

_INVERSES = ("jax.numpy.linalg.inv", "jax.scipy.linalg.inv")
_PRODUCTS = frozenset(("jax.numpy.dot", "jax.numpy.matmul"))
_LONG = 40


@rule.source(cst.Call, calls=_INVERSES)
def inverted_to_multiply(node: cst.Call, source: Source) -> Iterator[Finding]:
    """The inverse, read once, is the left side of a product."""
    if not source.calls(node, *_INVERSES) or not source.is_traced(node) or not has_only(node, 1) or not node.args:
        return
    found = _product(node, source)
    name = source.assigned_name(node)
    if found is None and name is not None:
        found = _product(reads[0], source) if len(reads := source.reads(name)) == 1 else None
        if found and (source.function(reads[0]), source.loop(reads[0])) != (source.function(node), source.loop(node)):
            return  # made once, multiplied again and again
    if found is None:
        return
    product, right = found
    matrix = node.args[0].value
    solve = beside(node.func, "solve", source) or "jnp.linalg.solve"
    edits: tuple[Edit, ...] = ()
    if name is None and isinstance(node.func, cst.Attribute) and isinstance(product, cst.Call):
        text = f"{solve}({as_argument(matrix, source)}, {as_argument(right, source)})"
        edits = () if holds_comment(product) else (source.replace(product, text),)
    yield source.finding(
        node,
        "the inverse is made only to be multiplied: more work and memory than solving, and less exact",
        write=f"{solve}({_shown(matrix, source)}, {_shown(right, source)})",
        edits=edits,
    )


def _product(inverse: cst.BaseExpression, source: Source) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The product that `inverse` is the left side of, and its right side."""
    match source.parent(inverse):
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right) as product if left is inverse:
            return product, right
        case cst.Arg(keyword=None, star="") as arg:
            match source.parent(arg):
                case cst.Call(func=func, args=[first, second]) as call if first is arg and second.keyword is None:
                    name = source.qualified_name(func)
                    return (call, second.value) if name in _PRODUCTS and not second.star else None
    return None


def _shown(node: cst.BaseExpression, source: Source) -> str:
    return brief(source.code(node), _LONG)

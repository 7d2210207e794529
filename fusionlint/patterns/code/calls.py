"""Reading a call's arguments, and writing them into another call: shared by many rules."""

from __future__ import annotations

import libcst as cst

from fusionlint.source.tree import Source

# The methods that make an object anew, with other fields: `state.replace(step=1)`.
REPLACES = frozenset(("replace", "_replace"))


def argument(call: cst.Call, position: int, name: str) -> cst.BaseExpression | None:
    """The argument at `position` or called `name`; None where it is not given or hidden in `*args` or `**kwargs`."""
    for place, arg in enumerate(call.args):
        if arg.star:
            return None
        if arg.keyword.value == name if arg.keyword is not None else place == position:
            return arg.value
    return None


def by_position(call: cst.Call) -> list[cst.BaseExpression]:
    """What a call is handed without a name."""
    return [arg.value for arg in call.args if arg.keyword is None]


def keyword(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The argument that `call` hands over under a name."""
    return next((arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def is_handed_to(node: cst.CSTNode, source: Source, *names: str) -> bool:
    """Whether `node` is an argument of a call of one of `names`."""
    call = source.handed_to(node)
    return source.calls(call, *names)


def call_of(node: cst.CSTNode, source: Source) -> cst.Call | None:
    """The call whose function is the expression `node`: of `f` in `f(x)`, of `jax.vmap(f)` in `jax.vmap(f)(x)`."""
    above = source.parent(node)
    return above if isinstance(above, cst.Call) and above.func is node else None


def hides_some(call: cst.Call) -> bool:
    """Whether `*args` or `**kwargs` hides which arguments are given."""
    return any(arg.star for arg in call.args)


def said_dtype(made: cst.Call, source: Source) -> cst.BaseExpression | None:
    """What a call that makes a new array is told of its dtype: `bool`, of `jnp.full(n, 0, bool)`."""
    return argument(made, 2 if source.calls(made, "jax.numpy.full", "jax.numpy.full_like") else 1, "dtype")


def has_only(call: cst.Call, positions: int, *names: str) -> bool:
    """Whether `call` has no more than `positions` positional arguments, and no keywords but `names`."""
    positional = [arg for arg in call.args if arg.keyword is None]
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return len(positional) <= positions and not hides_some(call) and keywords <= {*names}


def as_argument(node: cst.BaseExpression, source: Source) -> str:
    """`node` as it can stand between commas: in the parentheses that it stood in, where those mean something, and a
    tuple that stood in none, `return a, b`, in some."""
    text = source.code(node)
    is_whole = isinstance(node, cst.Tuple) or (isinstance(node, cst.GeneratorExp | cst.Yield) and bool(node.lpar))
    return f"({text})" if is_whole else text


def as_operand(node: cst.BaseExpression, text: str) -> str:
    """`text`, the code of `node`, as it can stand before brackets or beside an operator."""
    is_one = isinstance(node, cst.Name | cst.Attribute | cst.Subscript | cst.Call | cst.Integer)
    return text if is_one else f"({text})"


def beside(function: cst.BaseExpression, name: str, source: Source) -> str | None:
    """`jnp.where` for `jnp.select`: `name` of the module that `function` is written with; None for a bare name."""
    if not isinstance(function, cst.Attribute):
        return None
    return f"{source.code(function.value)}.{name}"


def brief(text: str, longest: int, otherwise: str = "...") -> str:
    """Code as it can stand in a message: `text` itself if it is one line of at most `longest` characters."""
    return text if len(text) <= longest and "\n" not in text else otherwise

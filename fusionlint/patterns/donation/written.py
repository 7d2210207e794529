"""How a compiled step is told, where it is compiled, which of its arguments it may write over.

In: the jit, a call of it or what stands above a def, and the keywords to give it. Out: the edits, none where they are
not seen to be all that it takes.
"""

from __future__ import annotations

import libcst as cst

from fusionlint.finding import Edit
from fusionlint.patterns.code.calls import hides_some
from fusionlint.patterns.code.imports import imported
from fusionlint.patterns.code.layout import added, quoted
from fusionlint.patterns.donation.equinox import FILTER_JIT
from fusionlint.source.names import PARTIAL
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

_PARTIAL = "functools.partial"


def told(node: cst.Call | cst.Name, keywords: str, source: Source) -> tuple[Edit, ...]:
    """The edits that give `keywords`, `donate_argnums=0`, to the jit that `node` is, or that stands above the def whose
    name it is."""
    jit = node if isinstance(node, cst.Call) else _above(node, source)
    if jit is None or holds_comment(jit):
        return ()
    keywords = quoted(keywords, source)
    if not isinstance(jit, cst.Call):
        return _called(jit, keywords, source)
    if not jit.args or hides_some(jit) or not _is_jit(jit, source):
        return ()
    given = [arg for arg in jit.args if arg.keyword is not None and arg.keyword.value.startswith("donate")]
    if not given:
        return (added(jit, keywords, source),)
    name, _, value = keywords.partition("=")
    if len(given) > 1 or given[0].keyword is None or given[0].keyword.value != name or "=" in value:
        return ()
    old = given[0].value
    if isinstance(old, cst.Tuple) and old.lpar:  # whose parentheses stay
        value = value[1:-1] if value.startswith("(") else f"{value},"
    return (source.replace(old, value),)


def _above(name: cst.Name, source: Source) -> cst.BaseExpression | None:
    """The one decorator that compiles the def called `name`."""
    function = source.parent(name)
    above = [each.decorator for each in function.decorators] if isinstance(function, cst.FunctionDef) else []
    found = [each for each in above if not (isinstance(each, cst.Name) and each.value.endswith("method"))]
    return found[0] if len(found) == 1 else None


def _is_jit(call: cst.Call, source: Source) -> bool:
    """Whether `call` hands its keywords to the jit: `jax.jit(f)`, `partial(jax.jit)` and `partial(jax.jit)(f)`."""
    if isinstance(call.func, cst.Call):
        return _is_jit(call.func, source)
    made = call.args[0].value if source.calls(call, *PARTIAL) and call.args else call.func
    return (source.qualified_name(made) or "").startswith(("jax.", FILTER_JIT))


def _called(jit: cst.BaseExpression, keywords: str, source: Source) -> tuple[Edit, ...]:
    """`@partial(jax.jit, donate_argnums=0)` for `@jax.jit`; equinox's takes keywords as it is."""
    name, code = source.qualified_name(jit) or "", source.code(jit)
    if name == FILTER_JIT:
        return (source.replace(jit, f"{code}({keywords})"),)
    if not name.startswith("jax."):
        return ()  # a name that the file has for a jit with keywords of its own
    if (partial := source.alias_at(jit, _PARTIAL)) is not None:
        return (source.replace(jit, f"{partial}({code}, {keywords})"),)
    functools = imported("functools", jit, source)
    if functools is None:
        return ()
    return (*functools.edits, source.replace(jit, f"{functools.name}.partial({code}, {keywords})"))

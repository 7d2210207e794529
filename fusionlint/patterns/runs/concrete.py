"""Code that no trace survives, by what it does itself: it makes Python numbers of what jax computes, or is a driver.

In: nodes of a Source. A function that nobody is seen to trace counts as traced; where it asks for `int(jnp.sum(x))`, or
prints and hands nothing back, a trace would end there, so that it is host code, and runs as rarely as such code does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import TO_ARRAY, inside, names_read
from fusionlint.patterns.code.calls import argument
from fusionlint.patterns.code.functions import function_named, own_parts, returns_of
from fusionlint.patterns.runs.cut import is_cut_at_an_array, is_cut_by_a_mask
from fusionlint.patterns.runs.factories import is_beside_what_is_made
from fusionlint.patterns.runs.gated import is_gated, is_known_early
from fusionlint.patterns.runs.given import is_given_no_array
from fusionlint.patterns.runs.made_once import is_for_hosts, is_made_once, is_precomputed
from fusionlint.patterns.runs.made_within import is_made_within
from fusionlint.patterns.values.array_sizes import FILLED
from fusionlint.patterns.values.kinds import kind
from fusionlint.patterns.values.reads import attributes_of
from fusionlint.patterns.values.returned import returned_by
from fusionlint.source.hosts import AS_LONG_AS_IT_GETS, WHERE
from fusionlint.source.places import Place
from fusionlint.source.transforms import MODULES
from fusionlint.source.tree import Source
from fusionlint.source.walk import children, dotted

# What asks what time it is.
CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "timeit.default_timer")
_NUMBERS = ("int", "float", "bool")
_READERS = (*_NUMBERS, "numpy.asarray", "numpy.array")
_RANDOM = "jax.random."
# A trace has to know how long it is.
_RANGE = "jax.numpy.arange"
_RESULTS = tuple(f"jax.numpy.{name}" for name in ("max", "min", "sum", "argmax", "argmin"))
# What makes the size of an array of sizes: by numpy, under a trace.
_SIZES = ("jax.numpy.prod", *_RESULTS)
_SEARCHES = tuple(f"jax.numpy.{name}" for name in ("searchsorted", "digitize", "argmax", "argmin"))
_TRUTHS = tuple(f"jax.numpy.{name}" for name in ("all", "any", "allclose", "array_equal"))
_TRUTHS_OF_NUMPY = tuple(name.removeprefix("jax.") for name in _TRUTHS)
_MAKES = regex(r"^_?(make|build|create|construct|generate|get)_")
# A file that is called as what runs once.
_SETS_UP = regex(r"(^|[/_])set_?up(_[^/]*)?\.py$|_init(iali[sz](ers?|ation))?\.py$")
# Once in all, and not once for each of many, or while something is compiled.
_ONCE = regex(
    r"\b(runs?|is called|called only|only called) (only )?once\b"
    r"(?![ ,]+(a|an|after|all|as|at trace|during|each|every|for|in|on|per|the|to|we|when|with)\b)",
    re.I,
)
# Of a tracer nobody wants to read.
_LOGS = regex(r"(^|[._])(log|logger|logging)\.(debug|info|warning|warn|error)$")
_OF_NUMPY = tuple(name.removeprefix("jax.") for name in AS_LONG_AS_IT_GETS)
# A helper of a helper is seldom further away than this.
_DEPTH = 2


def is_concrete(node: cst.CSTNode, source: Source) -> bool:
    """Whether the function around `node` is seen to run on the host alone."""
    function = source.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    calls = list(own_parts(function, cst.Call, source))
    no_numbers = (_counts_to_a_result, _makes_a_number)
    if any(is_end(call, function, source, node) for call in calls for is_end in no_numbers):
        return True
    if any(_is_past(node, call, source) for call in calls):
        return True
    if any(
        _asserts_a_truth(part, function, source) or _counts_to_an_element(part, function, source)
        for part in inside(function.body)
    ):
        return True
    is_traced = source.context(node) == "traced"
    if is_given_no_array(function, source, is_traced=is_traced) or is_known_early(node, source):
        return True  # under a trace too, where XLA folds what it is given whole
    if is_traced:
        is_before = is_precomputed(source.project, source.place(node))
        return is_before or is_made_within(node, source) or is_beside_what_is_made(node, source)
    if _SETS_UP.search(source.facts.inside) or _is_factory(function, source) or _is_said_to_run_once(node, source):
        return True
    if is_beside_what_is_made(node, source):
        return True
    about = source.project, source.contexts, source.place(node)
    if is_made_once(*about) or is_for_hosts(*about):
        return True
    ends, cuts = (_takes_from_a_list, _is_kept, _asks_an_array), (is_cut_by_a_mask, is_cut_at_an_array)
    code = list(_code(function.body))
    if any(is_end(part, function, source) for part in code for is_end in ends):
        return True
    if any(is_cut(part, function, source, node) for part in code for is_cut in cuts):
        return True
    return _is_driver(function, calls, source) or any(_ends_a_trace(call, function, source, node) for call in calls)


def _is_said_to_run_once(node: cst.CSTNode, source: Source) -> bool:
    """Whether the comment that a function around `node` begins with says so: "transposed at the end (run once)"."""
    around = source.ancestors(node, cst.FunctionDef)
    return any(_ONCE.search(_opening(function)) for function in around)


def _opening(function: cst.FunctionDef) -> str:
    """The comments above the first statement of a function, which may have a docstring before."""
    first, *others = function.body.body
    statements = [first, *others[:1]] if function.get_docstring() is not None else [first]
    lines = (line for each in statements for line in getattr(each, "leading_lines", ()))
    return " ".join(line.comment.value.lstrip("# ") for line in lines if line.comment is not None)


def asks_for_values(function: cst.FunctionDef, source: Source) -> bool:
    """Whether `function` makes Python numbers or lengths of what is in an array, where no trace is seen."""
    place = source.body_place(function)
    if source.contexts.get(place) == "traced":
        return False
    return any(_ends_a_trace(call, function, source) for call in own_parts(function, cst.Call, source))


def _code(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and everything in it that runs: what is said of types has no values."""
    if not isinstance(node, cst.Annotation):
        yield node
        for child in children(node):
            yield from _code(child)


def _ends_a_trace(call: cst.Call, function: cst.FunctionDef, source: Source, beside: cst.CSTNode | None = None) -> bool:
    """Whether `call` makes a Python number or a length of what is in an array: of random bits anywhere; of another
    array where the function always gets there, or does so where `beside` stands, for it may do so only if no size is
    given."""
    if _reads_a_clock(call, source, _DEPTH):
        return True
    if _LOGS.search(dotted(call.func)) and any(kind(arg.value, source) == "array" for arg in call.args):
        return not is_gated(call, function, source, beside)
    match call:
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("item")), args=[]):
            return kind(value, source) == "array" and not is_gated(call, function, source, beside)
        case cst.Call(args=[cst.Arg(value=value, keyword=None)]) if source.calls(call, *_NUMBERS):
            if isinstance(value, cst.Call) and (source.qualified_name(value.func) or "").startswith(_RANDOM):
                return True
            is_array = kind(value, source) == "array" or _is_of_what_is_written(value, source)
            is_array = is_array or _is_computed_of_new(value, source)
            return is_array and not is_gated(call, function, source, beside)
        case cst.Call(args=[cst.Arg(value=one, star=""), cst.Arg(value=other)]) if source.calls(call, "max", "min"):
            is_array = "array" in (kind(one, source), kind(other, source))
            return is_array and not is_gated(call, function, source, beside)
    if source.calls(call, *_OF_NUMPY) and call.args and not is_gated(call, function, source, beside):
        return kind(call.args[0].value, source) == "array"
    if source.calls(call, _RANGE) and not is_gated(call, function, source, beside):
        return any(kind(arg.value, source) == "array" for arg in call.args if arg.keyword is None)
    is_open = source.calls(call, *AS_LONG_AS_IT_GETS, WHERE) and len(call.args) == 1 and not call.args[0].star
    return is_open and not is_gated(call, function, source, beside)


def _elements(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a tuple or a list holds."""
    if isinstance(value, cst.Tuple | cst.List):
        yield from (part.value for part in value.elements)


def _is_counted_out(shape: cst.BaseExpression | None) -> bool:
    """`(mask.sum(), n)`: whatever the mask is, a trace of it has no such number."""
    sizes = [size.value for size in shape.elements] if isinstance(shape, cst.Tuple) else [shape]
    sums = (size.func for size in sizes if isinstance(size, cst.Call) and not size.args)
    return any(isinstance(func, cst.Attribute) and func.attr.value == "sum" for func in sums)


def _reads_a_clock(call: cst.Call, source: Source, depth: int) -> bool:
    """Whether `call` asks what time it is, itself or by a helper: in a trace that is when it was compiled."""
    if source.calls(call, *CLOCKS):
        return True
    helper = function_named(call.func, source) if depth else None
    if not isinstance(helper, cst.FunctionDef) or source.context(call) == "traced":
        return False
    return any(_reads_a_clock(inner, source, depth - 1) for inner in own_parts(helper, cst.Call, source))


def _is_computed_of_new(value: cst.BaseExpression, source: Source) -> bool:
    """`interpolated(grid, jnp.array(x))`, by a function of the project: where it is handed what jax makes there, jax
    computes what it returns."""
    if not isinstance(value, cst.Call) or function_named(value.func, source) is None:
        return False
    made = (source.qualified_name(arg.value.func) for arg in value.args if isinstance(arg.value, cst.Call))
    return any(name is not None and name.startswith("jax.numpy.") and returned_by(name) == "array" for name in made)


def _is_of_what_is_written(value: cst.BaseExpression, source: Source) -> bool:
    """`x[i]`, of a variable that `x.at[...]` writes: numpy has no `at`."""
    match value:
        case cst.Subscript(value=cst.Name() as whole):
            return any(each.attr.value == "at" for each in attributes_of(whole, source))
    return False


def _counts_to_a_result(call: cst.Call, function: cst.FunctionDef, source: Source, beside: cst.CSTNode) -> bool:
    """`jnp.arange(jnp.max(n))`, `jnp.zeros((mask.sum(), 3))`, `x.reshape((jnp.prod(jnp.array(shape)), -1))`: whoever
    is said to trace the function, no trace gets there."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "reshape":
        sizes = (part for arg in call.args for part in (arg.value, *_elements(arg.value)))
        is_counted = any(source.calls(source.meant(size), *_SIZES) for size in sizes)
        return is_counted and not source.calls(call, "numpy.reshape") and not is_gated(call, function, source, beside)
    if not source.calls(call, _RANGE, *FILLED) or is_gated(call, function, source, beside):
        return False
    if not source.calls(call, _RANGE):
        return _is_counted_out(argument(call, 0, "shape"))
    meant = (source.meant(a.value) for a in call.args)
    return any(source.calls(each, *_RESULTS) for each in meant)


def _makes_a_number(call: cst.Call, function: cst.FunctionDef, source: Source, beside: cst.CSTNode) -> bool:
    """`bool(jnp.any(x < 0))`, `float(v[1] - v[0])` of `v = jnp.asarray(grid.v)`: what jax makes in the function itself
    no compiled program has a number for; but of a constant, `float(jnp.asarray(self.dt))`."""
    match call:
        case cst.Call(args=[cst.Arg(value=value, keyword=None)]) if source.calls(call, *_NUMBERS):
            made = (source.meant(part) for part in inside(value) if isinstance(part, cst.Call | cst.Name))
            names = (source.qualified_name(one.func) for one in made if isinstance(one, cst.Call))
            is_jax = any(name is not None and returned_by(name) == "array" for name in names)
            is_jax = is_jax and not source.calls(source.meant(value), *TO_ARRAY)
            return is_jax and kind(value, source) == "array" and not is_gated(call, function, source, beside)
    return False


def _asserts_a_truth(part: cst.CSTNode, function: cst.FunctionDef, source: Source) -> bool:
    """`assert jnp.all(labels >= 0)`: no trace gets past it, whoever is said to trace the function."""
    match part:
        case cst.Assert(test=test) if source.function(part) is function:
            return source.calls(_asked_first(test), *_TRUTHS) and not is_gated(part, function, source)
    return False


def _counts_to_an_element(part: cst.CSTNode, function: cst.FunctionDef, source: Source) -> bool:
    """`for i in range(lengths[-1])` of an array of jax: nor past this."""
    match part:
        case cst.For(iter=cst.Call(args=bounds) as counted) if source.function(part) is function:
            ends = (arg.value for arg in bounds if isinstance(arg.value, cst.Subscript))
            is_array = source.calls(counted, "range") and any(kind(end, source) == "array" for end in ends)
            return is_array and not is_gated(part, function, source)
    return False


def _is_factory(function: cst.FunctionDef, source: Source) -> bool:
    """Whether `function` is there to make another, `make_potential(atoms)`: what it does itself, it does once."""
    if not _MAKES.match(function.name.value):
        return False
    own = {part.name.value for part in inside(function.body, cst.FunctionDef)}
    values = (part.value for part in returns_of(function, source) if part.value is not None)
    return any(name.value in own for value in values for name in names_read(value))


def _takes_from_a_list(part: cst.CSTNode, function: cst.FunctionDef, source: Source) -> bool:
    """Whether an element of a Python list is taken at a place that is in an array."""
    match part:
        case cst.Subscript(value=cst.Name() as taken, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            made = source.value(taken)
            if isinstance(made, cst.List | cst.ListComp) and source.function(part) is function:
                return kind(index, source) == "array" and not is_gated(part, function, source)
    return False


def _is_kept(part: cst.CSTNode, function: cst.FunctionDef, source: Source) -> bool:
    """Whether an array is stored in a field of `self`, where a trace would leave it behind: not in a module's, whose
    fields are part of what is traced."""
    match part:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self")))], value=cst.Call() as value
        ) if source.function(part) is function:
            owner = source.facts.class_around(source.body_scope(function))
            is_module = bool(owner) and source.project.inherits(Place(source.path, owner), MODULES)
            return not is_module and (source.qualified_name(value.func) or "").startswith("jax.random.")
    return False


def _asks_an_array(part: cst.CSTNode, function: cst.FunctionDef, source: Source) -> bool:
    """Whether Python itself goes by what jax computes: `while not jnp.all(x < 8)`, `ends[i - 1] if i >= 1 else 0`,
    `assert mask.sum() == 1`."""
    match part:
        case cst.Assert(test=test) if source.function(part) is function:
            return _is_computed(_asked_first(test), source) and not is_gated(part, function, source)
        case cst.If(test=test) | cst.While(test=test) if source.function(part) is function:
            asked = _asked_first(test)
            is_asked = source.calls(asked, *_TRUTHS) or _are_compared(asked, source)
            return is_asked and not is_gated(part, function, source)
        case cst.IfExp(test=cst.Comparison(left=cst.Name() as found)) if source.function(part) is function:
            is_searched = source.calls(source.value(found) or found, *_SEARCHES)
            return is_searched and not is_gated(part, function, source)
    return False


def _are_compared(asked: cst.BaseExpression, source: Source) -> bool:
    """`x[i] != -1`, `(jnp.abs(a) < eps) | (jnp.abs(b) < eps)`, of an array of jax."""
    match asked:
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr(), right=right):
            return _are_compared(left, source) and _are_compared(right, source)
    return isinstance(asked, cst.Comparison) and kind(asked, source) == "array"


def _is_computed(asked: cst.BaseExpression, source: Source) -> bool:
    """Whether jax computes what is asked, or what that is compared with: `jnp.all(x)`, `mask.sum() == 1`."""
    match asked:
        case cst.Comparison(left=left) | cst.BinaryOperation(left=left):
            return _is_computed(left, source)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("all" | "any" | "sum" | "max" | "min")), args=[]):
            return kind(owner, source) == "array"
        case cst.Call(args=args) if source.calls(asked, *_TRUTHS_OF_NUMPY):
            return any(kind(arg.value, source) == "array" for arg in args)
    return source.calls(asked, *_TRUTHS, *_RESULTS)


def _asked_first(test: cst.BaseExpression) -> cst.BaseExpression:
    """What of a test Python asks in any case: `jnp.all(x)` of `not jnp.all(x) or n`."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _asked_first(inner)
        case cst.BooleanOperation(left=left):
            return _asked_first(left)
    return test


def _is_past(node: cst.CSTNode, call: cst.Call, source: Source) -> bool:
    """Whether `call` reads an array on the host, in a `try` before `node` whose handlers all leave: `try: x =
    np.asarray(x)`, `except TypeError: return traced(x)`. What comes behind is for arrays that are there."""
    if not source.calls(call, *_READERS):
        return False
    tried = source.nearest(call, cst.Try)
    if tried is None or not tried.handlers or not all(map(_leaves, tried.handlers)):
        return False
    block = source.parent(tried)
    after = block.body[list(block.body).index(tried) + 1 :] if isinstance(block, cst.IndentedBlock) else ()
    return any(above in after for above in (node, *source.ancestors(node)))


def _leaves(handler: cst.ExceptHandler) -> bool:
    match handler.body.body[-1]:
        case cst.SimpleStatementLine(body=[*_, cst.Return(value=cst.BaseExpression())]):
            return True
    return False


def _is_driver(function: cst.FunctionDef, calls: list[cst.Call], source: Source) -> bool:
    """Whether `function` reports on what it does and hands nothing back: of a trace nothing would be left."""
    if not any(source.calls(call, "print") for call in calls):
        return False
    returned = (part for part in inside(function.body) if isinstance(part, cst.Return | cst.Yield))
    return not any(part.value is not None for part in returned if source.function(part) is function)

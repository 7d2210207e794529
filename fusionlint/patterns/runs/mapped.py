"""Which numbers differ from element to element where code is vectorized: what a `vmap` maps, the state of an
environment, a random draw.

In: expressions of a Source. What cannot be seen, such as the counter of a loop, does not differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.patterns.code.at import ABOUT, TO_ARRAY
from fusionlint.patterns.code.calls import argument, call_of, hides_some
from fusionlint.patterns.code.functions import Function, parameters
from fusionlint.patterns.code.unpacked import unpacked
from fusionlint.patterns.runs.loop_bodies import all_loop_bodies
from fusionlint.patterns.runs.under import is_vectorized, under_vmap
from fusionlint.patterns.values.annotations import annotated
from fusionlint.patterns.values.handed_settings import handed_here
from fusionlint.patterns.values.known_values import DEPTH, Reader
from fusionlint.source.environments import in_environment
from fusionlint.source.tree import Source
from fusionlint.source.walk import children

_DEPTH = 6
# So many steps of a loop cost what any other way does.
_FEW = 4
_DRAWS = regex(r"jax\.random\.(?!split|key|PRNGKey|fold_in|wrap_key)\w+$")
# One for all environments.
_SHARED = regex(r"^(self|cls|(env_)?params|config|cfg|settings)$")


def differs(node: cst.CSTNode, source: Source, depth: int = _DEPTH) -> bool:
    """Whether the value of `node` is seen to differ between the elements that a vmap around this code maps over."""
    if depth == 0:
        return False
    if isinstance(node, cst.Call) and _DRAWS.match(source.qualified_name(node.func) or ""):
        return is_vectorized(node, source)
    match node:
        case cst.Name():
            return _name_differs(node, source, depth)
        case cst.Attribute(attr=cst.Name(field)) if field in ABOUT:
            return False
        case cst.Attribute(value=value):
            return differs(value, source, depth) or _is_of_an_array(value, source)
        case cst.Arg(value=value):
            return differs(value, source, depth)
        case cst.Call(func=cst.Name("len" | "range")) | cst.Lambda():
            return False
        case cst.Call(func=cst.Name(), args=args):
            return any(differs(arg, source, depth) for arg in args)
    return any(differs(child, source, depth) for child in children(node))


def is_mapped_by(call: cst.Call, position: int, source: Source) -> bool:
    """Whether this `vmap` maps the parameter at `position`, over more than a few numbers that are written out."""
    handed = _handed(call, position, source)
    return _is_axis(call, position, source) and not (handed and all(_are_few(each, source) for each in handed))


def is_of_constants(call: cst.Call, positions: int, source: Source) -> bool:
    """Whether what this `vmap` makes is handed arrays that XLA knows, at the first `positions`: it knows the result."""
    handed = [each for position in range(positions) for each in _handed(call, position, source)]
    reader = Reader(source, frozenset())
    made = (unpacked(source.written(each), source) if isinstance(each, cst.Name) else None for each in handed)
    return bool(handed) and all(reader.is_array(m or each, DEPTH) for m, each in zip(made, handed, strict=True))


def is_shared(array: cst.BaseExpression, source: Source) -> bool:
    """Whether all elements of the one `vmap` around this code read the same `array`: a variable of the function around
    that, which is not seen to be mapped itself, or an argument that `in_axes` leaves whole."""
    function = source.function(array)
    written = source.written(array) if isinstance(array, cst.Name) else None
    if function is None or written is None:
        return False
    vmaps = [each for each in _vmaps_of(function, source) if isinstance(each, cst.Call)]
    if any(_is_mapped_again(vmap, source) for vmap in vmaps):
        return False
    own = [each.name for each in parameters(function)]
    if written in own:
        return bool(vmaps) and not any(_is_axis(vmap, own.index(written), source) for vmap in vmaps)
    return bool(vmaps) and source.function(written) is not function


def _is_mapped_again(vmap: cst.Call, source: Source) -> bool:
    """Whether what a `vmap` makes is mapped once more, or made where nobody sees what calls it."""
    outer = source.handed_to(vmap)
    is_inner = source.calls(outer, "jax.vmap")
    return source.function(vmap) is None or is_inner or is_vectorized(vmap, source)


def counts_elements(name: cst.Name, source: Source) -> bool:
    """Whether `name` is a parameter for which each vmap of its function is handed whole numbers one by one, as
    `vmap(f)(jnp.arange(n))` does: it stands for one place."""
    parameter = source.parameter(name)
    if parameter is None:
        return False
    function = source.owner(parameter)
    names = [each.name.value for each in parameters(function)]
    if name.value not in names:
        return False
    vmaps = [v.decorator if isinstance(v, cst.Decorator) else v for v in _vmaps_of(function, source)]
    position = names.index(name.value)
    handed = [each for vmap in vmaps for each in _handed(vmap, position, source)]
    mapped = all(_is_axis(vmap, position, source) for vmap in vmaps if isinstance(vmap, cst.Call))
    return bool(handed) and mapped and all(source.calls(source.meant(each), "jax.numpy.arange") for each in handed)


def _is_axis(call: cst.Call, position: int, source: Source) -> bool:
    """Whether `in_axes`, as far as they are written out, name an axis for `position`."""
    axes = argument(call, 1, "in_axes")
    match source.meant(axes) if axes is not None else None:
        case None:
            return not hides_some(call)
        case cst.Integer():
            return True
        case cst.Tuple(elements=each) | cst.List(elements=each) if position < len(each):
            return not isinstance(each[position].value, cst.Name)
    return False


def _handed(vmap: cst.CSTNode, position: int, source: Source) -> list[cst.BaseExpression]:
    """What the function that `vmap` makes is called with at `position`, wherever that is seen in this file: by itself,
    or mapped once more, `vmap(vmap(f))`."""
    decorated = _decorated(vmap, source)
    made = source.readers(vmap) if decorated is None else source.reads(decorated)
    calls = [call for each in made if (call := call_of(each, source)) is not None]
    found = [given for call in calls if (given := argument(call, position, "")) is not None]
    outer = [call for each in made if (call := source.handed_to(each)) is not None and source.calls(call, "jax.vmap")]
    return found + [given for call in outer for given in _handed(call, position, source)]


def _decorated(vmap: cst.CSTNode, source: Source) -> cst.Name | None:
    """The name of the function that `vmap` stands above."""
    decorator = source.parent(vmap)
    function = source.parent(decorator) if isinstance(decorator, cst.Decorator) else None
    return function.name if isinstance(function, cst.FunctionDef) else None


def _are_few(node: cst.BaseExpression, source: Source, depth: int = _DEPTH) -> bool:
    """Whether these are a few numbers that are written out, `jnp.array([-1, 0, 1])`, or how many is not seen, for a
    Python loop writes them."""
    if depth == 0:
        return False
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return len(elements) <= _FEW
        case cst.Name():
            value = source.value(node)
            return value is not None and _are_few(value, source, depth - 1)
        case cst.UnaryOperation(expression=inner):
            return _are_few(inner, source, depth)
        case cst.Call(args=[cst.Arg(value=cst.Integer(count))]):
            return source.calls(node, "jax.numpy.arange", "numpy.arange") and int(count) <= _FEW
        case cst.Call(args=[cst.Arg(value=made), *_]):
            return source.calls(node, *TO_ARRAY) and _are_few(made, source, depth - 1)
    return False


def _name_differs(name: cst.Name, source: Source, depth: int) -> bool:
    parent = source.binder(name)
    if isinstance(parent, cst.Param):
        return _parameter_differs(parent, source, depth)
    while isinstance(parent, cst.Element | cst.Tuple | cst.List):
        parent = source.parent(parent)
    match parent:
        case cst.AssignTarget():
            statement = source.parent(parent)
            return isinstance(statement, cst.Assign) and differs(statement.value, source, depth - 1)
        case cst.AnnAssign(value=cst.BaseExpression() as value):
            return differs(value, source, depth - 1)
    return False


def _is_of_an_array(owner: cst.BaseExpression, source: Source) -> bool:
    """Whether `owner.field` is read of an argument under a `vmap` that is said to be an array: no field of a model."""
    parameter = source.parameter(owner) if isinstance(owner, cst.Name) else None
    function = source.function(owner)
    if parameter is None or function is None or _SHARED.match(parameter.name.value):
        return False
    said = parameter.annotation
    if said is None or annotated(said.annotation, parameter.name.value, parameter, source) != "array":
        return False
    in_body = source.body_place(function) in all_loop_bodies(source.project)
    return under_vmap(owner, source) and not in_body


def _differs_by(vmap: cst.Call, position: int, source: Source, depth: int) -> bool:
    """Whether this `vmap` maps the parameter, or hands on what differs already."""
    if is_mapped_by(vmap, position, source):
        return True
    return any(differs(each, source, depth - 1) for each in _handed(vmap, position, source))


def _parameter_differs(parameter: cst.Param, source: Source, depth: int) -> bool:
    function = source.owner(parameter)
    if _SHARED.match(parameter.name.value):
        return False
    if source.body_place(function) in all_loop_bodies(source.project):
        return False
    names = [p.name.value for p in parameters(function)]
    calls = list(_vmaps_of(function, source))
    if calls and parameter.name.value in names:
        place = names.index(parameter.name.value)
        return any(not isinstance(call, cst.Call) or _differs_by(call, place, source, depth) for call in calls)
    if not in_environment(function.body, source):
        return False
    if not isinstance(function, cst.FunctionDef) or source.nearest(function, cst.ClassDef) is not None:
        return True  # who calls a method is seldom seen
    given = handed_here(function, parameter.name.value, source)
    return not given or any(differs(each, source, depth - 1) for each in given)


def _is_partial_of_vmap(node: cst.BaseExpression, source: Source) -> bool:
    """Whether `node` is `functools.partial(jax.vmap, in_axes=(0, None))`."""
    match node:
        case cst.Call(args=[cst.Arg(keyword=None, value=transform), *_]) if source.calls(node, "functools.partial"):
            return source.qualified_name(transform) == "jax.vmap"
    return False


def _vmaps_of(function: Function, source: Source) -> Iterator[cst.CSTNode]:
    """What maps this function itself: calls of `vmap` in this file, and its decorators."""
    if isinstance(function, cst.FunctionDef):
        for decorator in function.decorators:
            if source.qualified_name(decorator.decorator) == "jax.vmap":
                yield decorator
            elif _is_partial_of_vmap(decorator.decorator, source):
                yield decorator.decorator  # of which the arguments stand where those of a vmap do
    for call in source.calls_of(("jax.vmap",)):
        if not isinstance(call, cst.Call):
            continue
        handed = argument(call, 0, "fun")
        if handed is function or (isinstance(handed, cst.Name) and source.value(handed) is function):
            yield call
        elif isinstance(handed, cst.Name):
            bound = source.facts.lookup(source.scope(handed), handed.value)
            if bound is not None and bound[1].kind == "function" and bound[1].target == source.body_scope(function):
                yield call

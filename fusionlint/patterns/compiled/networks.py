"""The compiled side: networks of one shape that are applied to one input, each in products of its own.

In: a Barrier. Told is a line whose product is in the program several times, none of what another one made, where that
is a second layer: the products before it are of one input, or XLA has made one product of them.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.of_module import OfModule
from fusionlint.patterns.compiled.readers import Place, place_of, readers_of, steps_of, writer_of

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

_FEWEST = 3
# Bytes: a product that makes more fills a device by itself.
_MOST = 1 << 20
_PRODUCTS = frozenset(("dot", "convolution"))
_SAME = frozenset(("bitcast", "copy", "copy-done", "copy-start"))


def networks_beside(barrier: Barrier, module: hlo.Module) -> int:
    """How many networks of one shape there are, of which the value is a part of one."""
    known = _known(OfModule(module))
    if not known:
        return 0
    kernels = (writer_of(barrier, module), *readers_of(barrier, module))
    steps = (step for kernel in kernels for step in steps_of(kernel, module) if step.op_name.endswith("dot_general"))
    return max((known.get(place_of(step), 0) for step in steps), default=0)


@functools.lru_cache(maxsize=1)
def _known(of: OfModule) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for part in of.module.computations.values():
        products = {
            item.name: step for item in part.instructions.values() if (step := _product(item, of.module)) is not None
        }
        if len(products) < _FEWEST:
            continue
        before = {name: _before(name, products, part) for name in products}
        layers = _layers(before)
        alike: defaultdict[tuple[Place, int, hlo.Shape], list[str]] = defaultdict(list)
        for name, step in products.items():
            if "transpose(" not in step.op_name and step.stack and part.instructions[name].shape.nbytes <= _MOST:
                alike[place_of(step), layers[name], step.shape].append(name)
        for (place, layer, _), names in alike.items():
            if layer == 0 or len(names) == 1 or any(_is_cut_by_a_loop(name, part, of.module) for name in names):
                continue
            if _is_second_layer([before[name] for name in names], part):
                found[place] = max(len(names), found.get(place, 0))
    return found


def _layers(before: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Of each product how many are before it, one behind the other."""
    found: dict[str, int] = {}
    for name, given in before.items():  # what an instruction needs is printed before it
        found[name] = 1 + max((found[one] for one in given), default=-1)
    return found


def _product(item: hlo.Instruction, module: hlo.Module) -> hlo.Instruction | None:
    """The product of matrices that a kernel is about."""
    steps = (*module.work_of(item), *_nested(item, module)) if item.opcode in ("fusion", *_PRODUCTS) else ()
    return next(
        (s for s in steps if s.opcode in _PRODUCTS and s.op_name.endswith("dot_general") and not is_of_jax(s)), None
    )


def _nested(item: hlo.Instruction, module: hlo.Module) -> Iterator[hlo.Instruction]:
    """A GPU's kernel of a product has fusions inside."""
    for step in module.work_of(item):
        if step.opcode == "fusion" and step is not item:
            yield from module.work_of(step)


def _is_second_layer(before: Collection[set[str]], part: hlo.Computation) -> bool:
    """Whether those that are each made of one of `before` go on from one product, or each from its own of one input."""
    if any(len(one) != 1 for one in before):
        return False
    firsts = {name for one in before for name in one}
    if len(firsts) == 1:
        return True
    given = [{*_given(name, part)} for name in firsts]
    alike = {part.instructions[name].shape for name in firsts}
    return len(firsts) == len(before) and len(alike) == 1 and bool(set.intersection(*given))


def _is_cut_by_a_loop(name: str, part: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a product takes what a loop cuts out in each of its turns, as the turns of an unrolled scan do."""
    kernels = [part.instructions[name]]
    for one in part.instructions[name].operands:
        while (item := part.instructions[one]).opcode in (*_SAME, "get-tuple-element") and item.operands:
            one = item.operands[0]
        kernels.append(item)
    return any(step.opcode == "dynamic-slice" for kernel in kernels for step in module.work_of(kernel))


def _before(name: str, products: Collection[str], part: hlo.Computation) -> set[str]:
    """The products that the value of a kernel is made of with no other between."""
    found: set[str] = set()
    todo, seen = [name], {name}
    while todo:
        for one in part.instructions[todo.pop()].operands:
            if one in seen:
                continue
            seen.add(one)
            if one in products:
                found.add(one)
            else:
                todo.append(one)
    return found


def _given(name: str, part: hlo.Computation) -> Iterator[str]:
    """What a kernel reads, past layouts and copies."""
    for one in part.instructions[name].operands:
        while (item := part.instructions[one]).opcode in _SAME and item.operands:
            one = item.operands[0]
        yield one

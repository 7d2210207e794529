"""The line of what XLA rewrote without one: a cumulative sum, which becomes several sums over windows, for one.

The program before optimization has the work of that kind at its lines. Where they are several, those are meant that are
made with the same operation (a running sum, a running product), and of them the one that takes what is made at a line
which is known, or an argument of the program.

What is made with an operation of its own, as a scatter is, calls it by a name that XLA keeps.

A TPU's compiler joins small arrays by writing one after the other into a buffer, with no name and no line: where all
joins of that shape stand at one line, it is theirs.

A product whose axes are ordered anew, as jax.vmap has it, becomes a product at the line where they were: the program
before has both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.frames import Stack, folded
from fusionlint.hlo.kernels import target

# Arithmetic and moves are made by every rewrite; these are of the kind that was written.
_KINDS = frozenset(
    {
        *("reduce-window", "sort", "fft", "cholesky", "triangular-solve", "scatter", "select-and-scatter"),
        "convolution",  # whose axes a CPU's compiler orders anew
        *("ragged-dot", "topk"),  # a TPU's compiler calls the one, a GPU's the other
    }
)
_MADE_WITH = frozenset(("scatter", "select-and-scatter", "sort"))
_CLONED = re.compile(r"(\.clone(\.\d+)?)+$")
PRODUCTS = frozenset(("dot", "convolution"))
_MANY = 1000  # ways to call a function: the lines of more are not looked for

_Shape: TypeAlias = tuple[str, tuple[int, ...]]
# What work takes: what was made at that line, or the argument of that number.
Taken: TypeAlias = Stack | int


@dataclass(frozen=True, slots=True)
class _Site:
    """Where work was written, what it takes, and the operation that it is made with; "" where it has none."""

    stack: Stack
    fed: tuple[Taken, ...]
    by: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The sites of work by its opcode, and by the name of the operation that it is made with; those of products by the
    line where the axes of their results are ordered anew; those of joins, each with its op_name, by their shape."""

    sites: Mapping[str, Sequence[_Site]] = field(default_factory=dict)
    named: Mapping[str, Collection[Stack]] = field(default_factory=dict)
    products: Mapping[Stack, Collection[Stack]] = field(default_factory=dict)
    joins: Mapping[_Shape, Mapping[Stack, str]] = field(default_factory=dict)

    def stack(self, opcodes: Iterable[str], by: str, fed: Collection[Taken]) -> Stack:
        """Where the first of `opcodes` that is of a kind was written, which is made with the operation `by` ("" where
        that is not known) and takes one of `fed`; () where nothing says so, or it may have been in several places."""
        sites = next((self.sites[opcode] for opcode in opcodes if opcode in self.sites and opcode in _KINDS), ())
        sites = [site for site in sites if by in ("", site.by)] or sites
        every = {site.stack for site in sites}
        if any(not every.isdisjoint(site.fed) for site in sites):  # an argument reaches one through another
            fed = [one for one in fed if isinstance(one, tuple)]
        fitting = {site.stack for site in sites if not {*fed}.isdisjoint(site.fed)} if len(every) > 1 else every
        return fitting.pop() if len(fitting) == 1 else ()

    def turned(self, arguments: Iterable[int]) -> Stack:
        """Where the axes of one of the program's arguments were ordered anew; () where that is in several places."""
        given = {*arguments}
        every = {site.stack for site in self.sites.get("transpose", ()) if not given.isdisjoint(site.fed)}
        return every.pop() if len(every) == 1 else ()

    def called(self, module: hlo.Module, step: hlo.Instruction) -> Stack:
        """Where the work was written that is made with the operation that `step` of the optimized `module` is made
        with; () where that was in several places, or is: XLA makes one operation of two that do the same."""
        if step.opcode not in _MADE_WITH:
            return ()
        alike = [other for other in module.every(step.opcode) if other.called[:1] == step.called[:1]]
        return _only(self.named.get(_CLONED.sub("", step.called[0]), ())) if len(alike) == 1 else ()

    def product(self, turned: Stack) -> Stack:
        """Where a product was written whose axes were ordered anew at `turned`; () where none was, or several were."""
        return _only(self.products.get(turned, ()))


def with_joins(after: hlo.Module, known: Lost) -> hlo.Module:
    """The optimized module with the name and the line of a join on each write by which it is made."""
    calls = after.every("custom-call")
    buffers = {_shape(item) for item in calls if target(item) == "AllocateBuffer"} & known.joins.keys()
    if not buffers:
        return after

    def named(item: hlo.Instruction) -> hlo.Instruction:
        if item.opcode != "dynamic-update-slice" or item.op_name or _shape(item) not in buffers:
            return item
        sites = known.joins[_shape(item)]
        return replace(item, op_name=next(iter(sites.values())), stack=_only(sites) or item.stack)

    parts = {
        name: replace(part, instructions={key: named(item) for key, item in part.instructions.items()})
        for name, part in after.computations.items()
    }
    return replace(after, computations=parts)


def _shape(item: hlo.Instruction) -> _Shape:
    return item.shape.dtype, item.shape.dims


def _only(every: Collection[Stack]) -> Stack:
    return next(iter(every)) if len(every) == 1 else ()


def made_with(module: hlo.Module, step: hlo.Instruction) -> str:
    """The operation that a sum over windows and the like is made with: `add`, `multiply`; "" of anything else."""
    if step.opcode == "sort" or not step.called or module.body(step):
        return ""
    reducer = module.computations[step.called[0]]
    return reducer.instructions[reducer.root].opcode


def lost(before: hlo.Module) -> Lost:
    """What the program `before` optimization tells."""
    found: defaultdict[str, list[_Site]] = defaultdict(list)
    named: defaultdict[str, set[Stack]] = defaultdict(set)
    products: defaultdict[Stack, set[Stack]] = defaultdict(set)
    joins: defaultdict[_Shape, dict[Stack, str]] = defaultdict(dict)
    for name, part in before.computations.items():
        for step in part.instructions.values():
            if step.opcode in _KINDS or step.opcode == "transpose":
                sites = [*islice(_sites(before, name, step.stack, step.operands, made_with(before, step)), _MANY)]
                found[step.opcode].extend(sites)
                if step.opcode in _MADE_WITH:
                    named[step.called[0]].update(site.stack for site in sites)
            if step.opcode == "concatenate":
                every = islice(_sites(before, name, step.stack, (), ""), _MANY)
                joins[_shape(step)].update((site.stack, step.op_name) for site in every)
            of = part.instructions[step.operands[0]] if step.opcode == "transpose" else None
            if of and of.opcode in PRODUCTS and of.stack != step.stack:
                both = (_sites(before, name, each.stack, (), "") for each in (step, of))
                for turned, written in islice(zip(*both, strict=True), _MANY):
                    products[turned.stack].add(written.stack)
    return Lost(found, named, products, joins)


def _sites(before: hlo.Module, name: str, stack: Stack, operands: Sequence[str], by: str) -> Iterator[_Site]:
    """The sites of a step in the computation `name`, seen from the program's entry: one for each way to come there."""
    steps = before.computations[name].instructions
    taken = [steps[operand] for operand in operands]
    callers = before.callers(name)
    if not callers:
        made = (int(step.literal) if step.opcode == "parameter" else step.stack for step in taken)
        yield _Site(stack, tuple(one for one in made if one != ()), by)
    for caller, item in callers:
        if item.opcode != "call":  # the steps of a loop, or of a branch, have its whole stack
            yield from _sites(before, caller, stack, (), by)
            continue
        outer = folded((*stack, *item.stack))
        given = [item.operands[int(step.literal)] for step in taken if step.opcode == "parameter"]
        yield from _sites(before, caller, outer, given, by)

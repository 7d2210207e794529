"""Where a function of jax's own was called: the stacks of a program, without those of earlier calls.

jax lowers some of its functions once, `jax.random.split` for one, with the stack of whoever called them first on each
step inside, and XLA puts the stack of a call behind those of what it inlines there. So later calls seem to be made by
the line of the first. The program before optimization has the calls apart, and shows which stacks are borrowed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.frames import Stack, folded

_NUMBERED = re.compile(r"(_\d+)?(\.\d+)?$")
_MANY = 20_000  # ways to call functions, in one program: beyond that the stacks stay as they are


def at_their_calls(after: hlo.Module, before: hlo.Module) -> hlo.Module:
    """`after` with the stacks of the calls that were made, as the same program `before` optimization tells."""
    known = _true_stacks(before)
    if not known:
        return after
    return replace(
        after,
        computations={
            name: replace(
                part, instructions={key: _at_its_call(item, known) for key, item in part.instructions.items()}
            )
            for name, part in after.computations.items()
        },
    )


def _at_its_call(item: hlo.Instruction, known: Mapping[Stack, Stack]) -> hlo.Instruction:
    return replace(item, stack=known[item.stack]) if item.stack in known else item


@dataclass(frozen=True, slots=True)
class _Way:
    """How a computation is reached: the stack that XLA puts behind its own, and what of it is true."""

    printed: Stack = ()
    true: Stack = ()


def _true_stacks(before: hlo.Module) -> dict[Stack, Stack]:
    """What will be printed -> what is true, where that is something else, and sure."""
    program = _Program(before)
    found: defaultdict[Stack, set[Stack]] = defaultdict(set)
    for name in before.computations if any(program.borrowed.values()) else ():
        stacks, ways = program.stacks[name], program.ways(name)
        if len(stacks) * len(ways) > _MANY or len(found) > _MANY:
            return {}
        for one in (program.onward(name, stack, way) for stack in stacks for way in ways):
            found[one.printed].add(one.true)
    sure = {printed: next(iter(true)) for printed, true in found.items() if len(true) == 1}
    return {printed: true for printed, true in sure.items() if true and true != printed}


class _Program:
    """The calls of a program, and what each computation borrowed: a stack inside is that of an earlier call if a call
    of the computation is printed to come from there as well. For no call stands inside of what it calls."""

    def __init__(self, before: hlo.Module) -> None:
        self.calls = {name: frozenset(_calls(before, name)) for name in before.computations}
        self.stacks = {
            name: frozenset(item.stack for item in part.instructions.values() if item.stack)
            for name, part in before.computations.items()
        }
        self.borrowed: defaultdict[str, set[Stack]] = defaultdict(set)
        for name in before.computations:
            self.borrowed[name].update((*self._borrowed(name), *self._from_before(name)))
        self._lend_to_other_forms()
        # What calls is printed after what is called.
        for name in before.computations:
            self._lend_to_callers(name)
        for name in [*before.computations][::-1]:
            for caller, call in self.calls[name]:
                self.borrowed[name].update(self.borrowed[caller] if call is None else ())
        # A call of what borrowed a stack may be printed to come from there first, and so may the steps around it.
        self.own: defaultdict[str, dict[Stack, Stack]] = defaultdict(dict)
        for name in before.computations:
            calls = dict.fromkeys((caller, call) for caller, call in _calls(before, name) if call)
            for caller, call in islice(calls, 1, None):  # of the first call they are its own lines
                if own := _without(call, self.borrowed[name]):
                    self.own[caller][call] = own
        self._ways: dict[str, frozenset[_Way]] = {}

    def ways(self, name: str) -> frozenset[_Way]:
        """All ways to reach a computation."""
        if name not in self._ways:
            self._ways[name] = frozenset(
                way if call is None else self.onward(caller, call, way)
                for caller, call in self.calls[name]
                for way in self.ways(caller)
            ) or frozenset((_Way(),))
        return self._ways[name]

    def onward(self, name: str, stack: Stack, way: _Way) -> _Way:
        """A step with that stack in the computation `name`, which is reached by `way`."""
        true = _without(self.own[name].get(stack, stack), self.borrowed[name])
        return _Way(folded((*stack, *way.printed)), folded((*true, *way.true)))

    def _borrowed(self, name: str) -> Iterator[Stack]:
        calls = [call for _, call in self.calls[name] if call]
        return (stack for stack in self.stacks[name] if any(call[: len(stack)] == stack for call in calls))

    def _from_before(self, name: str) -> Iterator[Stack]:
        """What a function of jax's own calls from no line, as `gamma` does `split`, is called by the line that calls
        the former: what stands inside and does not come from there is that of an earlier call."""
        if any(call != () for _, call in self.calls[name]):
            return
        lines = self._lines_that_call(name, {name})
        for stack in self.stacks[name] if lines else ():
            if not _names(stack, name) and not any(stack[-len(line) :] == line for line in lines):
                yield stack

    def _lines_that_call(self, name: str, seen: set[str]) -> set[Stack]:
        """The stacks of the calls that lead to a computation, by whatever is called from no line."""
        found = {call for _, call in self.calls[name] if call}
        for caller in {caller for caller, call in self.calls[name] if not call} - seen:
            seen.add(caller)
            found |= self._lines_that_call(caller, seen)
        return found

    def _lend_to_other_forms(self) -> None:
        """A function that is lowered anew, for a `vmap` around it, was traced once: what one form of it borrowed, no
        call of the other has to come from."""
        called = {name for name, calls in self.calls.items() if any(call for _, call in calls)}
        lent: defaultdict[str, set[Stack]] = defaultdict(set)
        for name in called:
            lent[_traced_as(name)] |= self.borrowed[name]
        for name in called:
            own = _traced_as(name)
            self.borrowed[name] |= {stack for stack in self.stacks[name] & lent[own] if not _names(stack, own)}

    def _lend_to_callers(self, name: str) -> None:
        """A function of jax's own that has no lines but the borrowed ones of another that it calls, as `randint` has
        those of `split`, has them from there too: another call of that one has the line."""
        for stack in self.borrowed[name]:
            from_there = {caller for caller, call in self.calls[name] if call and call[: len(stack)] == stack}
            for caller in from_there if len(from_there) > 1 else ():
                called = any(call is not None for _, call in self.calls[caller])
                has_no_other = all(one[: len(stack)] == stack for one in self.stacks[caller])
                if called and not _names(stack, caller) and has_no_other:
                    self.borrowed[caller].add(stack)


def _calls(before: hlo.Module, name: str) -> Iterator[tuple[str, Stack | None]]:
    """Who runs a computation, and the stack of the call; None of a loop or a branch, whose steps have all of it."""
    return ((caller, item.stack if item.opcode == "call" else None) for caller, item in before.callers(name))


def _traced_as(name: str) -> str:
    """What the function is called that a computation was lowered from: `split` of `split_5.23`; `closed_call` is what
    any loop runs."""
    function = _NUMBERED.sub("", name)
    return name if function == "closed_call" else function


def _names(stack: Stack, name: str) -> bool:
    """Whether a frame is in the function that the computation `name` was made of."""
    function = name.rpartition(".")[0] or name
    return any(frame.function.rpartition(".")[2] == function for frame in stack)


def _without(stack: Stack, borrowed: Collection[Stack]) -> Stack:
    """What is left of a stack behind those that are borrowed."""
    for one in sorted(borrowed, key=len, reverse=True):
        while stack[: len(one)] == one:
            stack = stack[len(one) :]
    return stack

"""What a loop makes anew in every turn, although it is the same in each: kernels that read nothing a turn changes.

In: the kernels, and a Turn of each loop. XLA moves much of that out of a loop, on a GPU little. Of what stands in a
branch nothing is said: it may be taken seldom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fusionlint.hlo.flow import Node
from fusionlint.hlo.kernels import Kernel
from fusionlint.hlo.turns import Turn


@dataclass(frozen=True, slots=True)
class Again:
    """The kernels of a loop that do the same in each of its turns, in program order. Of loops in one another it is the
    outermost that changes nothing of what they read. A kernel that does heavy work of which that is true, and more of
    which it is not, has an `Again` too and is not among them."""

    loop: Node
    kernels: tuple[Kernel, ...]
    kept: frozenset[Node] = field(repr=False, compare=False)  # every value in it that is the same in every turn


def made_again(launched: Sequence[Kernel], each: Mapping[Node, Turn]) -> dict[Node, Again]:
    """By kernel, for those that do the same in every turn of a loop; `each` are the turns, of outer loops first."""
    loops: dict[Node, Node] = {}
    for node, turn in each.items():
        for made in (*turn.same, *turn.partly):
            loops.setdefault(made, node)
    kept = {node: each[node].kept() for node in {*loops.values()}}
    of_loop: defaultdict[Node, list[Kernel]] = defaultdict(list)
    for kernel in launched:
        place = kernel.computation, kernel.name
        if place in loops and place in kept[loops[place]]:
            of_loop[loops[place]].append(kernel)
    every = {loop: Again(loop, tuple(of_loop[loop]), of_it) for loop, of_it in kept.items()}
    return {kernel: every[loop] for kernel, loop in loops.items()}

"""The compiled side: what a matrix is made of, to tell whether two are the same but for how they are written.

In: a value of a computation. Out: a form that two values share where elementwise work makes them of the same values in
the same way. Layout does not count, nor a transpose; nor that a matrix is made symmetric, nor a small number on its
diagonal, for a library's factorization adds both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo

# What only moves a value, or names it anew.
_SAME = frozenset(
    ("bitcast", "broadcast", "convert", "copy", "copy-done", "copy-start", "reshape", "transpose", "slice-done")
)
_ELEMENTWISE = frozenset(
    ("abs", "add", "and", "clamp", "compare", "divide", "maximum", "minimum", "multiply", "negate", "not", "or",
     "rsqrt", "select", "sqrt", "subtract")
)  # fmt: skip
_KNOWN = frozenset(("constant", "iota"))
# A number no larger than this on the diagonal is there for the rounding.
_JITTER = 1e-2
_ROUNDED = 1e-5
# More steps than these are no longer compared.
_MOST = 96

# A leaf is the name of a value; anything else is the name of the work, and the forms of what it is done with. What is
# known is called so, and has its numbers.
Form = str | tuple[str, tuple["Form", ...]]
_NUMBERS = "numbers"


class At(NamedTuple):
    """A value: its name, the fusion that it is inside of, if any, and the computation that this stands in."""

    name: str
    kernel: hlo.Instruction | None
    computation: hlo.Computation

    @property
    def names(self) -> tuple[str, str]:
        """Of the fusion, "" where it is in none, and of the value."""
        return self.kernel.name if self.kernel is not None else "", self.name

    def step(self, module: hlo.Module) -> hlo.Instruction:
        inside = module.body(self.kernel) if self.kernel is not None else None
        return (inside or self.computation).instructions[self.name]

    def operand(self, number: int, module: hlo.Module) -> At:
        return self._replace(name=self.step(module).operands[number])


def made_at(at: At, module: hlo.Module) -> At:
    """Where a value is made, past other names and layouts, and into the kernel that made it."""
    while True:
        step = at.step(module)
        if at.kernel is not None and step.opcode == "parameter":
            at = At(at.kernel.operands[int(step.literal)], None, at.computation)
        elif step.opcode in _SAME:
            at = at.operand(0, module)
        elif at.kernel is None and (inner := _into(step, at.computation, module)) is not None:
            at = inner
        else:
            return at


def _into(item: hlo.Instruction, here: hlo.Computation, module: hlo.Module) -> At | None:
    """The value inside of a fusion that it gives as this result."""
    kernel, index = item, 0
    if item.opcode == "get-tuple-element":
        kernel, index = here.instructions[item.operands[0]], int(item.attributes["index"])
    body = module.body(kernel)
    if body is None:
        return None
    root = body.instructions[body.root]
    return At(root.operands[index] if root.opcode == "tuple" else root.name, kernel, here)


def form_of(name: str, here: hlo.Computation, module: hlo.Module) -> Form | None:
    """The form of a value of a computation; None where it is too long to say, or made of numbers that are known."""
    return form_of_value(At(name, None, here), module)


def form_of_value(at: At, module: hlo.Module) -> Form | None:
    """The same of any value."""
    try:
        return _form(at, module, iter(range(_MOST)))
    except StopIteration:
        return None


def _form(at: At, module: hlo.Module, left: Iterator[int]) -> Form | None:
    next(left)
    at = made_at(at, module)
    step = at.step(module)
    if step.opcode in _KNOWN:
        return None
    if step.opcode not in _ELEMENTWISE:
        return f"{at.kernel.name}/{at.name}" if at.kernel is not None else at.name
    operands = [at.operand(number, module) for number in range(len(step.operands))]
    parts = [_form(one, module, left) for one in operands]
    if all(part is None for part in parts):
        return None
    if (same := _as_before(step.opcode, operands, parts, module)) is not None:
        return same
    told = [
        (_NUMBERS, (_number(one, module),)) if part is None else part for one, part in zip(operands, parts, strict=True)
    ]
    if step.opcode in ("add", "multiply"):
        told.sort(key=str)
    return step.opcode, tuple(told)


def _as_before(opcode: str, operands: list[At], parts: list[Form | None], module: hlo.Module) -> Form | None:
    """The form of what a step leaves as it is: of the mean of a matrix and its transpose, of one with a small number on
    its diagonal."""
    unknown = [part for part in parts if part is not None]
    known = [one for one, part in zip(operands, parts, strict=True) if part is None]
    if len(unknown) != 1 or not known:
        return None
    if opcode == "add" and all(_is_small(one, module) for one in known):
        return unknown[0]
    match unknown[0]:
        case ("add", (one, other)) if opcode == "multiply" and one == other and _number(known[0], module) == "0.5":
            return one
    return None


def _is_small(at: At, module: hlo.Module) -> bool:
    numbers = [*_numbers(at, module, iter(range(_MOST)))]
    return bool(numbers) and all(abs(number) <= _JITTER for number in numbers)


def _number(at: At, module: hlo.Module) -> str:
    return " ".join(f"{number:g}" for number in dict.fromkeys(_numbers(at, module, iter(range(_MOST)))))


def _numbers(at: At, module: hlo.Module, left: Iterator[int]) -> Iterator[float]:
    """The numbers that stand in what is known; of a place, which is compared or counted, none."""
    next(left, None)
    at = made_at(at, module)
    step = at.step(module)
    if step.opcode == "constant":
        try:
            yield float(step.literal)
        except ValueError:
            yield float("inf")  # an array, or no number
        return
    first = 1 if step.opcode == "select" else 0
    for number in range(first, 0 if step.opcode == "compare" else len(step.operands)):
        yield from _numbers(at.operand(number, module), module, left)


def leaves(form: Form | None) -> Iterator[str]:
    """The values that a form is made of."""
    match form:
        case str():
            yield form
        case (work, parts) if work != _NUMBERS:
            for part in parts:
                yield from leaves(part)


def is_gram_and_more(name: str, here: hlo.Computation, module: hlo.Module) -> bool:
    """Whether a matrix is a product with its own transpose, and something on its diagonal that is not seen to be less
    than the rounding."""
    at = made_at(At(name, None, here), module)
    step = at.step(module)
    if step.opcode != "add":
        return False
    one, other = (at.operand(number, module) for number in range(2))
    for gram, more in ((one, other), (other, one)):
        if _is_gram(gram, module) and _is_diagonal(more, module):
            numbers = [*_numbers(more, module, iter(range(_MOST)))]
            is_known = _form(more, module, iter(range(_MOST))) is None
            return not is_known or (max(numbers) >= _ROUNDED and min(numbers) >= 0.0)
    return False


def _is_gram(at: At, module: hlo.Module) -> bool:
    at = made_at(at, module)
    step = at.step(module)
    if step.opcode == "reduce" and step.op_name.endswith("dot_general"):
        return _is_gram(at.operand(0, module), module)  # parts of the sum that a GPU makes side by side
    if step.opcode not in ("dot", "convolution") or not step.op_name.endswith("dot_general"):
        return False
    one, other = (_given(at.operand(number, module), module) for number in range(2))
    return one == other and step.shape.dims[-1] == step.shape.dims[-2]


def _given(at: At, module: hlo.Module) -> tuple[str, str]:
    """A value that a product takes, by what it is called where it is made."""
    at = made_at(at, module)
    while at.kernel is not None and at.step(module).opcode == "fusion" and len(at.step(module).operands) == 1:
        at = made_at(at.operand(0, module), module)  # a layout, within the kernel of a product
    return at.names


def _is_diagonal(at: At, module: hlo.Module) -> bool:
    """Whether all that is not on the diagonal is zero."""
    at = made_at(at, module)
    step = at.step(module)
    operands = [at.operand(number, module) for number in range(len(step.operands))]
    if step.opcode == "multiply":
        return any(_is_diagonal(one, module) for one in operands)
    if step.opcode == "select":
        zeros = [*_numbers(operands[2], module, iter(range(_MOST)))]
        return zeros == [0.0] and _is_diagonal(operands[0], module)
    if step.opcode != "compare" or step.attributes.get("direction") != "EQ":
        return False
    return all(made_at(one, module).step(module).opcode in (*_KNOWN, "add") for one in operands)

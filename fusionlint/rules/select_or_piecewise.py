"""`jnp.select` and `jnp.piecewise`, which stack their conditions and look for the first that holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from fusionlint.finding import Edit, Finding
from fusionlint.patterns.code.at import TO_ARRAY, constant, holds, inside, is_literal
from fusionlint.patterns.code.calls import argument, as_argument, beside, has_only
from fusionlint.patterns.code.layout import Called, Part, in_place_of
from fusionlint.patterns.code.left_unused import whole_line
from fusionlint.patterns.code.same import is_same_at
from fusionlint.patterns.code.unpacked import assignment
from fusionlint.patterns.compiled.of_jax import is_of_jax
from fusionlint.patterns.compiled.round import axes_joined
from fusionlint.patterns.values.kinds import kind
from fusionlint.rule import Rule
from fusionlint.source.tree import Source
from fusionlint.source.walk import holds_comment

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_SELECT, _PIECEWISE = "jax.numpy.select", "jax.numpy.piecewise"
# What XLA has no operation for: a series or a fraction is added up until nothing changes any more.
_BY_LOOPS = (
    *(f"jax.scipy.special.{name}" for name in ("betainc", "gammainc", "gammaincc", "hyp1f1")),
    *(f"jax.lax.{name}" for name in ("betainc", "igamma", "igammac", "regularized_incomplete_beta")),
)
# A nest of more is no longer easy to read.
_MOST = 4
# A suggestion longer than this says less than its outline.
_STACKED = ("/concatenate", "/stack")  # what jax calls to put arrays side by side
_LONG = 100


@rule.source("Call", calls=(_SELECT, _PIECEWISE))
def conditions_stacked(node: cst.Call, source: Source) -> Iterator[Finding]:
    """Any `select` or `piecewise` in traced code."""
    message = "the conditions are stacked and searched by a kernel of their own before anything is chosen"
    if source.calls(node, _PIECEWISE):
        # Of several conditions that hold, piecewise takes the last.
        write = f"jnp.where, one inside the other, the last condition outermost{_of_scalars(node)}"
        yield source.finding(node, message, write=write)
        return
    if _is_of_an_array(node, source) or _are_of_texts(node, source) or _is_found_in_a_loop(node, source):
        return
    choice = _choice(node, source)
    where = beside(node.func, "where", source)
    if choice is None or where is None or len(choice.conditions) > _MOST:
        yield source.finding(node, message, write="jnp.where, one inside the other, the first condition outermost")
        return
    nest = choice.nest(where, source)
    text, edits = str(nest), _fix(node, nest, source)
    yield source.finding(
        node,
        message,
        write=text if len(text) <= _LONG and "\n" not in text else f"{where}, one inside the other",
        edits=edits,
        safe=bool(edits) and choice.promotes_alike(),
    )


@rule.barrier
def stacked_conditions(barrier: Barrier, module: hlo.Module) -> str | None:
    """What finds the first condition that holds: an argmax over stacked truth values."""
    writer = module.computations[barrier.computation].instructions[barrier.writer]
    if is_of_jax(writer, ("_piecewise",)):
        return None
    if "jit(_piecewise)" in writer.op_name or (writer.opcode == "fusion" and _finds_first(module, writer)):
        return "nested jnp.where instead of select or piecewise"
    return None


def _finds_first(module: hlo.Module, fusion: hlo.Instruction) -> bool:
    body = module.body(fusion)
    work = body.instructions if body is not None else {}
    stacks = any(_stacks_conditions(step, work) for step in work.values())
    reduced = (step for step in work.values() if step.opcode == "reduce")
    return stacks and any([part.dtype for part in step.shape.parts] == ["pred", "s32"] for step in reduced)


def _stacks_conditions(step: hlo.Instruction, work: Mapping[str, hlo.Instruction]) -> bool:
    """Whether truth values are put side by side one by one, which a TPU widens for it: an argmax of longer ones,
    joined, is the user's own."""
    if step.shape.dtype != "pred" or step.opcode not in ("concatenate", "pad"):
        return False
    if step.opcode == "pad":
        sizes = zip(work[step.operands[0]].shape.dims, step.shape.dims, strict=True)
        return step.op_name.endswith(_STACKED) and all(part in (1, whole) for part, whole in sizes)
    return all(work[name].shape.dims[axis] == 1 for name in step.operands for axis in axes_joined(step))


class _Choice(NamedTuple):
    """A `select` with its conditions and choices written out; `default` is None where it is left at 0."""

    conditions: tuple[cst.BaseExpression, ...]
    choices: tuple[cst.BaseExpression, ...]
    default: cst.BaseExpression | None

    def nest(self, where: str, source: Source) -> Part:
        nest: Part = as_argument(self.default, source) if self.default is not None else "0"
        for condition, choice in zip(reversed(self.conditions), reversed(self.choices), strict=True):
            nest = Called(where, (as_argument(condition, source), as_argument(choice, source), nest))
        return nest

    def promotes_alike(self) -> bool:
        """Whether there is one pair, or all values but one are small literals, which take that one's dtype anyway.

        Otherwise int32 and bfloat16 may meet float32 on the way to their common dtype, and round twice; and a -1 that
        meets a uint8 before a float wraps around.
        """
        values = [*self.choices, *((self.default,) if self.default is not None else ())]
        literals = [value for value in values if _is_small_literal(value)]
        wraps = any(isinstance(v, cst.UnaryOperation) for v in literals) and any(map(_is_float, literals))
        return len(self.conditions) == 1 or (len(values) - len(literals) <= 1 and not wraps)


def _of_scalars(node: cst.Call) -> str:
    """`piecewise` hands its functions one number at a time, and what loops or branches on that needs one."""
    functions = _written_out(argument(node, 2, "funclist"))
    if functions and all(isinstance(one, cst.Lambda) or is_literal(one) for one in functions):
        return ""
    return "; around functions that loop or branch, which are written for one number, jnp.vectorize"


def _choice(node: cst.Call, source: Source) -> _Choice | None:
    conditions = _listed(argument(node, 0, "condlist"), node, source)
    choices = _listed(argument(node, 1, "choicelist"), node, source)
    if not has_only(node, 3, "condlist", "choicelist", "default") or not conditions or len(conditions) != len(choices):
        return None
    return _Choice(conditions, choices, argument(node, 2, "default"))


def _listed(node: cst.BaseExpression | None, there: cst.Call, source: Source) -> tuple[cst.BaseExpression, ...]:
    """The elements of a list that is written out, there or by lines that are for that alone."""
    if isinstance(node, cst.Name) and _is_for_it_alone(node, source):
        listed = _written_out(source.value(node))
        return listed if all(is_same_at(each, there, source) for each in listed) else ()
    return _written_out(node)


def _is_for_it_alone(read: cst.Name, source: Source) -> bool:
    """Whether a line of its own writes a list that nothing else reads."""
    statement = assignment(source.written(read), source)
    if statement is None or len(source.uses(read)) != 2 or whole_line(statement, source) is None:
        return False
    names_some = holds(statement, cst.NamedExpr)
    is_beside = source.function(statement) is source.function(read) is not None
    return is_beside and not names_some and not source.has_comment(statement)


def _is_of_an_array(node: cst.Call, source: Source) -> bool:
    """Whether the conditions are one array, and not put together of some, `jnp.array([x < 0, x < 1])`, or an argument,
    and the choices are not written out: of nobody knows how many no nest can be written."""
    given, choices = argument(node, 0, "condlist"), argument(node, 1, "choicelist")
    if isinstance(choices, cst.List | cst.Tuple) or given is None:
        return False
    is_argument = isinstance(given, cst.Name) and source.parameter(given) is not None
    is_put_together = source.calls(source.meant(given), *TO_ARRAY, "jax.numpy.stack")
    return is_argument or (kind(given, source) == "array" and not is_put_together)


def _are_of_texts(node: cst.Call, source: Source) -> bool:
    """Whether each condition compares with a text, `kind == "low"`: Python knows them all, and XLA folds the choice."""
    conditions = _written_out(source.meant(argument(node, 0, "condlist")))
    return bool(conditions) and all(_compares_a_text(source.meant(condition)) for condition in conditions)


def _is_found_in_a_loop(node: cst.Call, source: Source) -> bool:
    """Whether something that is chosen takes a loop of many kernels, `betainc(a, b, x)`: one more is nothing there."""
    default = argument(node, 2, "default")
    choices = [
        *_written_out(source.meant(argument(node, 1, "choicelist"))),
        *((default,) if default is not None else ()),
    ]
    parts = (part for choice in choices for part in inside(source.meant(choice)))
    return any(source.calls(part, *_BY_LOOPS) for part in parts)


def _compares_a_text(condition: cst.BaseExpression) -> bool:
    match condition:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            return any(isinstance(side, cst.SimpleString) for side in (left, right))
    return False


def _written_out(node: cst.BaseExpression | None) -> tuple[cst.BaseExpression, ...]:
    """The elements of a list or tuple; of none that is built elsewhere, which the reader would not find in the fix."""
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            plain = all(isinstance(element, cst.Element) for element in elements)
            return tuple(element.value for element in elements) if plain else ()
    return ()


def _fix(node: cst.Call, nest: Part, source: Source) -> tuple[Edit, ...]:
    """The nest, and no longer the lines that list what is in it."""
    named = holds(node, cst.NamedExpr)
    if named or holds_comment(node):
        return ()
    given = (argument(node, 0, "condlist"), argument(node, 1, "choicelist"))
    lists = (assignment(source.written(each), source) for each in given if isinstance(each, cst.Name))
    lines = [whole_line(each, source) for each in lists if each is not None]
    return (*(Edit(line, "") for line in lines if line is not None), in_place_of(node, nest, source))


def _is_float(literal: cst.BaseExpression) -> bool:
    return isinstance(literal, cst.Float) or (
        isinstance(literal, cst.UnaryOperation) and isinstance(literal.expression, cst.Float)
    )


def _is_small_literal(value: cst.BaseExpression) -> bool:
    """A number that is the same in every float dtype, on whatever way it comes there."""
    match value:
        case cst.Name(value="True" | "False"):
            return True
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _is_small_literal(inner)
        case cst.Float():
            return (value.evaluated_value * 16).is_integer() and abs(value.evaluated_value) <= 8
    number = constant(value)
    return number is not None and abs(number) <= 127

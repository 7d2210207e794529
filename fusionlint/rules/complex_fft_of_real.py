"""A complex Fourier transform of real data: `jnp.fft.ifft2(jnp.fft.fft2(x) * h).real`, `jnp.fft.fft(x)[: n // 2]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from fusionlint.finding import Finding
from fusionlint.lazily import regex
from fusionlint.patterns.code.at import constant, elements, inside, is_whole, names_in, names_read
from fusionlint.patterns.code.calls import argument, as_argument
from fusionlint.patterns.code.elementwise import worked_on
from fusionlint.patterns.compiled.spectra import is_of_real_data, is_read_by_half, kernels_of_real_data, transforms
from fusionlint.rule import Rule
from fusionlint.source.tree import Source

if TYPE_CHECKING:
    from fusionlint.hlo import parse as hlo
    from fusionlint.hlo.barriers import Barrier

rule = Rule(__name__, harm="fusion")

_FORWARD = ("jax.numpy.fft.fft", "jax.numpy.fft.fft2", "jax.numpy.fft.fftn")
_INVERSE = ("jax.numpy.fft.ifft", "jax.numpy.fft.ifft2", "jax.numpy.fft.ifftn")
_SHIFTS = ("jax.numpy.fft.fftshift", "jax.numpy.fft.ifftshift")
_SEEDED = ("jax.random.PRNGKey", "jax.random.key")
_DEPTH = 6
# What is asked of data that may be either.
_COMPLEX = regex(r"complex|^isreal")


@rule.source("Call", calls=_INVERSE)
def only_real_part(node: cst.Call, source: Source) -> Iterator[Finding]:
    """An inverse transform of which the real part alone is read, of what transforms of the project's own data made."""
    spectrum = argument(node, 0, "a")
    forward = list(_forward(spectrum, source)) if spectrum is not None else []
    if not forward or any(_is_complex(call, source) for call in forward) or _is_asked_for(node, source):
        return
    if (spectrum is not None and _is_shifted(spectrum, source)) or _is_of_a_seed(node, forward, source):
        return
    reads = _reads(node, source)
    if reads and all(_is_real_part(read, source) for read in reads):
        kind = source.code(node.func).rpartition(".")[2].removeprefix("i")
        # What multiplies a spectrum, and is none of real data itself, may be no mirror image of its own.
        halved = "; a filter has to be that of real weights, and is cut to its half, [..., : n // 2 + 1]"
        yield source.finding(
            node,
            "both halves of a spectrum are computed, and the imaginary part of what comes back is thrown away",
            write=f"r{kind} and ir{kind}(..., {_size(kind, node, forward[0], source)}), if the data is real"
            + (halved if len(forward) == 1 else ""),
        )


@rule.source("Call", calls=_FORWARD[:1])
def only_half(node: cst.Call, source: Source) -> Iterator[Finding]:
    """A transform along the last axis of which no more than the first half is read."""
    if len(node.args) != 1:
        return
    reads = _reads(node, source)
    if (
        _is_complex(node, source)
        or _is_asked_for(node, source)
        or not reads
        or not all(_is_half(read, source) for read in reads)
    ):
        return
    yield source.finding(
        node,
        "both halves of a spectrum are computed, and one is read",
        write=f"{source.code(node.func).removesuffix('fft')}rfft({source.code(node.args[0].value)}), if the data is "
        "real: it returns the first n // 2 + 1",
        pair=1,
    )


@rule.barrier
def there_and_back(barrier: Barrier, module: hlo.Module) -> str | None:
    """What crosses memory between transforms of real data and the real part of the one back."""
    if barrier.writer not in kernels_of_real_data(barrier, module):
        return None
    return "jnp.fft.rfft and irfft (rfft2, rfftn) in place of fft and ifft: the data is real, and half of it is enough"


@rule.barrier(pair=1)
def half_of_a_spectrum(barrier: Barrier, module: hlo.Module) -> str | None:
    """A transform of real data of which half is read, and what it is given."""
    here = module.computations[barrier.computation]
    for one in transforms(here, "FFT"):
        beside = {one.step.name, one.operand(0, module).kernel.name}
        if barrier.writer in beside and is_of_real_data(one, module) and is_read_by_half(one, module):
            return "jnp.fft.rfft in place of half of an fft: the data is real"
    return None


def _is_of_a_seed(node: cst.Call, forward: list[cst.Call], source: Source) -> bool:
    """Whether nobody is seen to compile the function, and what is transformed is drawn with a key that it makes of a
    seed itself: called again it would give the same, so that it is called once, for what a simulation begins with."""
    if source.context(node) == "traced":
        return False
    drawn = [source.meant(call.args[0].value) for call in forward if call.args]
    keys = [argument(draw, 0, "key") for draw in drawn if isinstance(draw, cst.Call)]
    made = [source.meant(key) for key in keys if key is not None]
    return len(made) == len(forward) and all(
        (source.qualified_name(draw.func) or "").startswith("jax.random.") and source.calls(key, *_SEEDED)
        for draw, key in zip(drawn, made, strict=True)
        if isinstance(draw, cst.Call)
    )


def _size(kind: str, inverse: cst.Call, forward: cst.Call, source: Source) -> str:
    """How long the axes are that come back: as one of the transforms says, which pads or cuts them; else those along
    which `forward` transforms, all of them where it does not say which."""
    asked = "n" if kind == "fft" else "s"
    for transform in (inverse, forward):
        size = argument(transform, 1, asked)
        if size is not None and source.code(size) != "None":
            return f"{asked}={source.code(size)}"
    given = forward.args[0].value if forward.args else None
    x = source.code(given) if isinstance(given, cst.Name) else "x"
    axis, axes = argument(forward, 2, "axis"), argument(forward, 2, "axes")
    if kind == "fft":
        return f"n={x}.shape[{-1 if axis is None else source.code(axis)}]"
    if axes is not None:
        return f"s=[{x}.shape[i] for i in {as_argument(axes, source)}]"
    return f"s={x}.shape[-2:]" if kind == "fft2" else f"s={x}.shape"


def _reads(node: cst.Call, source: Source) -> list[cst.CSTNode]:
    """Where the result is read, as it is or after elementwise work, by a name or not."""
    return [worked_on(read, source) for read in source.readers(node)]


def _is_real_part(node: cst.CSTNode, source: Source) -> bool:
    match above := source.parent(node):
        case cst.Attribute(attr=cst.Name("real")):
            return True
        case cst.Arg():
            return source.calls(source.parent(above) or above, "jax.numpy.real")
    return False


def _is_half(node: cst.CSTNode, source: Source) -> bool:
    """`[: n // 2]` or `[..., : n // 2 + 1]` of `node`."""
    match source.parent(node):
        case cst.Subscript(value=value, slice=slices) if value is node:
            *before, last = elements(slices)
            if isinstance(last, cst.Slice) and last.lower is None and last.step is None and last.upper is not None:
                # Of `x[: n // 2]` it is not seen that x has one axis, but rows are seldom cut to half their number.
                return all(is_whole(part) for part in before) and any(map(_halves, inside(last.upper)))
    return False


def _halves(node: cst.CSTNode) -> bool:
    match node:
        case cst.BinaryOperation(operator=cst.FloorDivide(), right=by):
            return constant(by) == 2
    return False


def _forward(node: cst.BaseExpression, source: Source) -> Iterator[cst.Call]:
    """The transforms that an expression is computed from."""
    for value in _behind(node, source):
        for part in inside(value, cst.Call):
            if source.calls(part, *_FORWARD):
                yield part


def _is_shifted(spectrum: cst.BaseExpression, source: Source) -> bool:
    """Whether the spectrum, or a filter on it, is laid out with zero in the middle: of an even number of frequencies
    that is not seen to be even, so half of it may give another result."""
    parts = (part for value in _behind(spectrum, source) for part in inside(value))
    return any(source.calls(part, *_SHIFTS) for part in parts)


def _behind(node: cst.BaseExpression, source: Source) -> Iterator[cst.BaseExpression]:
    """`node`, and what the names in it stand for: what they were last written with, or where branches have written
    them, all of that."""
    todo, seen = [(node, _DEPTH)], set[int]()
    while todo:
        value, depth = todo.pop()
        if depth == 0 or id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        todo += [(found, depth - 1) for name in names_read(value) for found in _values(name, source)]


def _values(name: cst.Name, source: Source) -> list[cst.BaseExpression]:
    if (value := source.value(name)) is not None:
        return [value]
    targets = [source.parent(use.node) for use in source.writes(name)]
    statements = [source.parent(target) for target in targets if isinstance(target, cst.AssignTarget)]
    return [each.value for each in statements if isinstance(each, cst.Assign)]


def _is_asked_for(node: cst.CSTNode, source: Source) -> bool:
    """Whether the code has asked if the data is complex, and does something else where it is not."""
    tests = (above.test for above in source.ancestors(node) if isinstance(above, cst.If | cst.IfExp))
    return any(_COMPLEX.search(name.value) for test in tests for name in names_in(test))


def _is_complex(call: cst.Call, source: Source) -> bool:
    """Whether what is transformed is seen to be complex."""
    given = argument(call, 0, "a")
    return given is None or any(_is_seen_complex(value, source) for value in _behind(given, source))


def _is_seen_complex(node: cst.BaseExpression, source: Source) -> bool:
    for part in inside(node):
        match part:
            case cst.Imaginary():
                return True
            case cst.Attribute(attr=cst.Name("complex64" | "complex128")):
                return True
            case cst.Call():
                name = source.qualified_name(part.func) or ""
                if name in ("jax.lax.complex", *_FORWARD, *_INVERSE) or name.endswith("fftshift"):
                    return True
    return False

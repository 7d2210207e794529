"""StableHLO (text or bytecode) or a jax.export artifact -> something to compile. Runs in a worker."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fusionlint.compiling.entry import EntryError

_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")
_SHARDY = "jax_use_shardy_partitioner"
# By which jax would say a program's own shardings after the compilation: they are the placeholder's.
_NO_MESHES = {"intermediate_shardings": (), "context_mesh": None}

_BYTECODE = b"ML\xefR"
_KINDS = {"i": "int", "ui": "uint", "f": "float", "bf": "bfloat"}


def lower(data: bytes, place: Callable[[int], Any], name: str) -> Any:
    """A jax.stages.Lowered of the program `data`, for as many devices as it is written for: `place` gives a sharding
    over so many. Raises EntryError, which calls it `name`, for what is no program that can be compiled, or needs more
    devices than there are.

    jax has no public way to compile a module that it did not lower itself. So a function of the same signature is
    lowered, and the program put in its place.
    """
    import jax

    try:
        module = _module(data)
        inputs, outputs = _signature(module)
        devices = devices_of(module)
        sharding = place(devices)
    except EntryError as error:
        raise EntryError(f"{name} {error}") from None
    given = [jax.ShapeDtypeStruct(*one) for one in inputs]

    def placeholder(*_: Any) -> Any:
        # Says where the program runs, and nothing of how its own inputs and outputs are placed: jax compares those with
        # what the compiler made of them.
        jax.lax.with_sharding_constraint(jax.numpy.zeros(()), sharding)
        return [jax.numpy.zeros(*one) for one in outputs]

    if devices > 1 and _SHARDY in jax.config.values:
        # By which of its two partitioners jax meant the program: it is written in the words of one.
        jax.config.update(_SHARDY, any(one.operation.name == "sdy.mesh" for one in module.body.operations))
    with _on(sharding):
        lowered = jax.jit(placeholder, keep_unused=True).lower(*given)
    lowering = lowered._lowering  # noqa: SLF001
    lowering._hlo = module  # noqa: SLF001
    lowering.compile_args.update({name: none for name, none in _NO_MESHES.items() if name in lowering.compile_args})
    return lowered


def _on(sharding: Any) -> AbstractContextManager[object]:
    """Inside, no mesh that the user's code has set is in the way of this sharding's."""
    import jax

    is_spread = isinstance(sharding, jax.sharding.NamedSharding) and hasattr(jax, "set_mesh")
    return jax.set_mesh(sharding.mesh) if is_spread else nullcontext()


def devices_of(module: Any) -> int:
    """How many devices a program is written for."""
    attributes = module.operation.attributes
    return math.prod(attributes[name].value for name in _COUNTS if name in attributes)


def devices_needed(data: bytes) -> int:
    """As `devices_of`, of a program's bytes; 1 of what is no program, which `lower` says."""
    try:
        return devices_of(_module(data))
    except EntryError:
        return 1


def name_of(lowered: Any) -> str:
    """The program's own name, without jax's `jit_`."""
    attributes = lowered.compiler_ir("stablehlo").operation.attributes
    name = attributes["sym_name"].value if "sym_name" in attributes else "main"
    return str(name).removeprefix("jit_")


def _module(data: bytes) -> Any:
    from jax._src.interpreters.mlir import make_ir_context
    from jax.extend.mlir import ir

    text = data if data.startswith(_BYTECODE) or b"func.func" in data else _exported(data)
    context = make_ir_context()
    with context:
        try:
            return _parsed(text, context)
        except (ir.MLIRError, ValueError) as error:
            raise EntryError(f"is no StableHLO that jaxlib can read: {_first_line(error)}") from None


def _parsed(text: bytes, context: Any) -> Any:
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo

    if not text.startswith(_BYTECODE):
        return ir.Module.parse(text)
    try:
        return stablehlo.deserialize_portable_artifact(context, text)
    except (ir.MLIRError, ValueError):  # bytecode of StableHLO itself, not of its portable form
        return ir.Module.parse(text)


def _first_line(error: BaseException) -> str:
    """The parser's own first complaint, without the title above it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error:")), "".join(lines[:1]))


def _exported(data: bytes) -> bytes:
    """The StableHLO inside what `jax.export` serialized."""
    from jax import export

    try:
        return bytes(export.deserialize(bytearray(data)).mlir_module_serialized)
    except ImportError:
        raise EntryError(
            "seems to be an exported function, which jax needs flatbuffers to read: pip install flatbuffers"
        ) from None
    # Bytes that are something else make flatbuffers read anywhere: struct.error, IndexError, KeyError, ...
    except Exception:  # noqa: BLE001
        raise EntryError("is neither HLO, nor StableHLO, nor what jax.export serialized") from None


def _signature(module: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """(shape, dtype) of the inputs and of the outputs of the program's main function."""
    from jax.extend.mlir import ir

    with module.context:
        try:
            main = ir.FunctionType(ir.SymbolTable(module.operation)["main"].type)
        except KeyError:
            raise EntryError("has no function @main") from None
        return [_aval(kind) for kind in main.inputs], [_aval(kind) for kind in main.results]


def _aval(kind: Any) -> tuple[tuple[int, ...], str]:
    from jax.extend.mlir import ir

    try:
        tensor = ir.RankedTensorType(kind)
    except (ValueError, TypeError):
        raise EntryError(f"takes or returns a {kind}, and cannot be compiled alone") from None
    if not tensor.has_static_shape:
        raise EntryError(f"takes or returns a {kind}, of no fixed shape: export it with the shapes that are meant")
    return tuple(tensor.shape), _dtype(str(tensor.element_type))


def _dtype(element: str) -> str:
    """numpy's name of an MLIR element type."""
    if element in ("i1", "complex<f32>", "complex<f64>"):
        return {"i1": "bool", "complex<f32>": "complex64", "complex<f64>": "complex128"}[element]
    plain = re.fullmatch(r"(bf|f|ui|i)(\d+)", element)
    if plain:
        return _KINDS[plain[1]] + plain[2]
    return "float8_" + element[2:].lower() if element.startswith("f8") else element

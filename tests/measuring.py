"""Page pairs -> tables: compiles and counts the bad and the good form for every target whose compiler is installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from fusionlint.compiling import counting, jobs, targets
from fusionlint.compiling.artifacts import Artifacts, CompileError
from fusionlint.compiling.entry import parse_spec
from fusionlint.hlo import parse as hlo
from fusionlint.hlo.arithmetic import flops
from fusionlint.hlo.kernels import kernels, launched
from fusionlint.page import Block, Pair
from fusionlint.report.text import nbytes

JAX = importlib.metadata.version("jax")
TARGETS = ("cpu", "h100", "v5e")
# What may stand before the call in a block's spec; what is compiled for every target and counted has none.
_WORDS = ("run", "memory", "lower", "flops", "accelerators", "off-tpu", "off-gpu", "gpus", "tpus")
Cell = tuple[str, int, str]  # a page, the number of a pair, a target


@dataclass(frozen=True)
class Cells:
    """One row: quantity -> (bad, good); and what the two were compiled to, if they were."""

    target: str
    counts: dict[str, tuple[float, float]]
    made: tuple[Artifacts, ...] = field(default=(), compare=False, repr=False)

    def row(self) -> str:
        shown = [f"{_show(q, bad)} -> {_show(q, good)}" for q, (bad, good) in self.counts.items()]
        return f"| {self.target} | {' | '.join(shown)} |"


def _show(quantity: str, count: float) -> str:
    return nbytes(count) if quantity in ("bytes", "memory") else f"{count:g}"


def is_run(pair: Pair) -> bool:
    """Whether the pair is run and counted (dispatches, compilations) instead of compiled."""
    return pair.bad.spec.startswith("run ")


def is_lowered(pair: Pair) -> bool:
    """Whether the page tells how much XLA is given to compile, and how long that takes on a CPU."""
    return pair.bad.spec.startswith("lower ")


def is_of_flops(pair: Pair) -> bool:
    """Whether the page tells how much a CPU computes: there alone arithmetic is dear and launches are cheap."""
    return pair.bad.spec.startswith("flops ")


def is_of_memory(pair: Pair) -> bool:
    """Whether the page tells what memory the program needs, beside what it launches."""
    return pair.bad.spec.startswith("memory ")


def is_of_accelerators(pair: Pair) -> bool:
    """Whether the page claims nothing of a CPU: `benchmarks/cpu_times.py` found the good form to be the slower one."""
    return pair.bad.spec.startswith(("accelerators ", "gpus ", "tpus "))


def is_off_the_tpu(pair: Pair) -> bool:
    """Whether the page claims nothing of a TPU: by XLA's own estimate the good form is the slower one there."""
    return pair.bad.spec.startswith(("off-tpu ", "gpus "))


def is_off_the_gpu(pair: Pair) -> bool:
    """Whether the page claims nothing of a GPU: by the clock of one (docs/gpu.md) the good form is no faster there."""
    return pair.bad.spec.startswith(("off-gpu ", "tpus "))


def targets_of(pair: Pair) -> tuple[str, ...]:
    """The targets that a pair's table has rows of."""
    if is_run(pair) or is_lowered(pair):
        return ("any",)
    if is_of_flops(pair):
        return ("cpu",)
    left = {"cpu": is_of_accelerators(pair), "h100": is_off_the_gpu(pair), "v5e": is_off_the_tpu(pair)}
    return tuple(target for target in TARGETS if not left.get(target))


def call_of(block: Block) -> str:
    """`update(f32[8])` of a block's spec, with or without the word before it that says what is told of it."""
    first, _, rest = block.spec.partition(" ")
    return rest.strip() if first in _WORDS else block.spec.strip()


def write_block(block: Block, folder: Path, name: str) -> Path:
    """The block as a module of its own."""
    path = folder / f"{name}.py"
    path.write_text(block.code, encoding="utf-8")
    return path


def spec_of(block: Block, folder: Path, name: str) -> str:
    return f"{write_block(block, folder, name)}:{call_of(block)}"


def compiled(pairs: Sequence[Pair], target: str, folder: Path) -> list[Cells | str]:
    """A row for each pair on one target, or why there is none; one worker process for all of them."""
    specs = [
        spec_of(block, folder, f"{block.role.replace('-', '_')}_{i}_{target}")
        for i, pair in enumerate(pairs)
        for block in (pair.bad, pair.good)
    ]
    results = jobs.compile_many([parse_spec(s) for s in specs], targets.get(target))
    counted = [str(r) if isinstance(r, CompileError) else _count(r) for r in results]
    rows = [_cells(target, *counted[i : i + 2]) for i in range(0, len(counted), 2)]
    made = [tuple(r for r in results[i : i + 2] if isinstance(r, Artifacts)) for i in range(0, len(results), 2)]
    return [_only(row, _told(pair), both) for pair, row, both in zip(pairs, rows, made, strict=True)]


def _told(pair: Pair) -> tuple[str, ...]:
    """The quantities that a pair's table tells: few pages are about memory, or about arithmetic."""
    if is_of_flops(pair):
        return ("flops", "bytes")
    return ("launches", "bytes", "memory") if is_of_memory(pair) else ("launches", "bytes")


def _only(row: Cells | str, told: Sequence[str], made: tuple[Artifacts, ...]) -> Cells | str:
    return row if isinstance(row, str) else replace(row, counts={q: row.counts[q] for q in told}, made=made)


def _count(made: Artifacts) -> dict[str, float]:
    module = hlo.parse(made.after)
    found = kernels(module)
    moved = sum(k.launches * (k.bytes_read + k.bytes_written) for k in found)
    return {"launches": launched(found), "bytes": moved, "memory": made.memory, "flops": flops(module)}


def lowered(pairs: Sequence[Pair], folder: Path) -> list[Cells | str]:
    """A row for each pair: the operations that XLA is given, and the seconds until a CPU could run them."""
    blocks = [(i, block) for i, pair in enumerate(pairs) for block in (pair.bad, pair.good)]
    specs = [spec_of(block, folder, f"{block.role.replace('-', '_')}_{i}_lower") for i, block in blocks]
    results = jobs.compile_many([parse_spec(s) for s in specs], targets.get("cpu"))
    counted = [str(r) if isinstance(r, CompileError) else _given(r) for r in results]
    return [_cells("any", *counted[i : i + 2]) for i in range(0, len(counted), 2)]


def _given(made: Artifacts) -> dict[str, float]:
    seconds = made.trace_seconds + made.lower_seconds + made.compile_seconds
    return {"operations": counting.operations(made.stablehlo), "seconds": float(f"{seconds:.2g}")}


def ran(pairs: Sequence[Pair], folder: Path) -> list[Cells | str]:
    """A row for each pair that is run: what its call compiles and dispatches, in a process of its own."""
    tasks = []
    for i, pair in enumerate(pairs):
        for block in (pair.bad, pair.good):
            function, _, arguments = call_of(block).partition("(")
            path = write_block(block, folder, f"{block.role}_{i}_run")
            tasks.append(counting.counting_job(path, function, f"({arguments}"))
    results = counting.count_many(tasks)
    counted = [
        str(r) if isinstance(r, CompileError) else {quantity: float(n) for quantity, n in asdict(r).items()}
        for r in results
    ]
    rows = [_cells("any", *counted[i : i + 2]) for i in range(0, len(counted), 2)]
    return [_without_zeros(row) if isinstance(row, Cells) else row for row in rows]


def _without_zeros(row: Cells) -> Cells:
    """Transfers are told only where there are some: few pages are about them."""
    return replace(row, counts={q: pair for q, pair in row.counts.items() if q != "transfers" or any(pair)})


def _cells(target: str, bad: dict[str, float] | str, good: dict[str, float] | str) -> Cells | str:
    if isinstance(bad, str) or isinstance(good, str):
        return bad if isinstance(bad, str) else str(good)
    return Cells(target, {quantity: (bad[quantity], good[quantity]) for quantity in bad})


def measure(wanted: Mapping[Cell, Pair], folder: Path) -> dict[Cell, Cells | str]:
    """The row of each cell, or why there is none; nothing of those whose compiler is not installed."""
    found = _rows("lower", wanted, folder)  # alone: it tells seconds
    others = ("run", *TARGETS)
    with ThreadPoolExecutor(len(others)) as pool:  # each waits for a process of its own
        for rows in pool.map(lambda way: _rows(way, wanted, folder), others):
            found.update(rows)
    return found


def _rows(way: str, wanted: Mapping[Cell, Pair], folder: Path) -> dict[Cell, Cells | str]:
    """What `measure` says of the cells that are found in one way: run, lowered, or compiled for a target."""
    mine = {cell: pair for cell, pair in wanted.items() if _way(cell, pair) == way}
    if not mine or (way in TARGETS and targets.missing(targets.get(way)) is not None):
        return {}
    pairs = list(mine.values())
    if way in TARGETS:
        rows = compiled(pairs, way, folder)
    else:
        rows = ran(pairs, folder) if way == "run" else lowered(pairs, folder)
    return dict(zip(mine, rows, strict=True))


def _way(cell: Cell, pair: Pair) -> str:
    if is_run(pair):
        return "run"
    return "lower" if is_lowered(pair) else cell[2]


def table(rows: Sequence[Cells]) -> str:
    """The Markdown table of a pair, with the version it was measured with."""
    head = ["target", *rows[0].counts]
    lines = [f"Measured with jax {JAX}:", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    ordered = sorted(rows, key=lambda row: ("any", *TARGETS).index(row.target))
    return "\n\n" + "\n".join([*lines, *(row.row() for row in ordered)]) + "\n"

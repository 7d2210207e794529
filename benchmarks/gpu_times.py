"""Times the bad and the good form of the rules' pages on an attached GPU, and benchmarks/unrolled.py.

    python benchmarks/gpu_times.py [--out benchmarks/measured/CARD.jsonl]
    python benchmarks/gpu_times.py --out FILE [RULE]... [--spec SPEC]... [--exported FOLDER]

Each form is a line of JSON: microseconds of a call, the kernels and copies that jax's profiler saw, and the launches
counted in the program that XLA made; the first line says what was measured on. All are compiled first, by several
processes, and timed when none compiles any more: one after the other, the forms of a pair in turns. Pairs about memory
are left out: they donate what they are called with. `benchmarks/gpu_page.py` makes docs/gpu.md of the file. It takes
about five minutes on a machine with 16 cores.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the processes share the device

import cartpole
import exported
import jax
import numpy as np
import timing
import unrolled
from timing import measuring
from turns import locked

from fusionlint.hlo.kernels import kernels, launched
from fusionlint.hlo.parse import parse
from fusionlint.page import pages_folder, read_page

ROOT = Path(__file__).parents[1]
ROUNDS, SECONDS = 30, 0.15  # a form is timed so often at most, and so long
LONG = 2.0  # seconds: a call that takes longer is not traced
TRACED = 3  # calls that the profiler sees
AT_ONCE = 4  # programs that are compared with one that is the same for many
APART_NS = 1.5e6  # between two calls of those: nothing runs


@dataclass
class Form:
    """One function: what it is of, how to call it, and what was found of it."""

    found: dict[str, Any]
    call: Callable[[], Any]
    seconds: Callable[[], float]
    is_run: bool = False
    hlo: str = ""
    times: list[float] = field(default_factory=list)


def of_program(about: dict[str, Any], program: timing.Program) -> Form:
    """The program compiled, with what is counted in it, and run once."""
    begin = time.perf_counter()
    compiled = program.jitted.lower(program.arrays).compile()
    about |= {"compile_s": round(time.perf_counter() - begin, 2)}
    text = compiled.as_text()
    counted = kernels(parse(text))
    moved = sum(k.launches * (k.bytes_read + k.bytes_written) for k in counted)
    about |= {"counted": launched(counted), "bytes": moved}
    arrays = program.arrays

    def call() -> Any:
        return compiled(arrays)

    jax.block_until_ready(call())
    return Form(about, call, functools.partial(timing.seconds, call), hlo=text)


def groups(items: Sequence[str], folder: Path) -> Iterator[tuple[str, Callable[[], list[Form]]]]:
    """What to time, and how to compile it: `page NAME NUMBER` is both forms of a pair, `exported FOLDER NAME FILE...`
    programs that stand there and the first of their name, any other item a SPEC."""
    for item in items:
        first, _, rest = item.partition(" ")
        if first == "page":
            yield item, functools.partial(_forms, *rest.split(), folder)
        elif first == "exported":
            yield item, functools.partial(_exported, *rest.split())
        else:
            yield item, functools.partial(_form, item)


def _form(spec: str) -> list[Form]:
    name = spec.removeprefix(f"{ROOT}/")
    return [of_program({"spec": name}, timing.program_of(spec))]


def _exported(folder: str, name: str, *files: str) -> list[Form]:
    """The first program of a name, and some more, and of each of these whether it returns the same as that; the
    optimized HLO is left beside them."""
    found = []
    first, *others = exported.index(Path(folder))[name]
    for one in [first, *(other for other in others if other.file in files)]:
        form = of_program(asdict(one) | {"beside": files[0]}, exported.load(Path(folder), one))
        with gzip.open(Path(folder, f"{one.file}.hlo.gz"), "wt", encoding="utf-8") as file:
            file.write(form.hlo)
        found.append(form)
    as_it_is, *returned = (jax.device_get(form.call()) for form in found)
    for form, one in zip(found[1:], returned, strict=True):
        form.found["same"] = _is_same(as_it_is, one)
    return found


def _is_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """But for rounding."""
    return len(one) == len(other) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _forms(name: str, number: str, folder: Path) -> list[Form]:
    """Of a pair of a page the bad one and the good one."""
    pair = dict(timing.pairs_of(read_page(name, pages_folder())))[int(number)]
    found = []
    for form, block in (("bad", pair.bad), ("good", pair.good)):
        about = {"page": name, "pair": int(number), "form": form, "code": timing.digest(block)}
        module = f"{name}_{number}_{form}"
        if measuring.is_run(pair):
            seconds = timing.seconds_from_python(block, folder, module)
            found.append(Form(about | {"compile_s": round(seconds(), 2)}, seconds, seconds, is_run=True))
        else:
            found.append(of_program(about, timing.program(block, folder, module)))
    return found


def worker(items: Sequence[str], options: argparse.Namespace) -> None:
    """Compile all, for so many seconds, while others do too; then time each group alone. A program that takes too long
    to compile is left to its thread, which ends with the process."""
    end = time.monotonic() + options.compiling
    pool = ThreadPoolExecutor(1)
    with tempfile.TemporaryDirectory(prefix="gpu-times-") as folder:
        ready = []
        with locked(options.worker, fcntl.LOCK_SH):
            for item, forms in groups(items, Path(folder)):
                with _told(item, options.out):
                    ready.append((item, pool.submit(forms).result(max(0.0, end - time.monotonic()))))
        for item, found in ready:
            with locked(options.worker, fcntl.LOCK_EX), _told(item, options.out):
                for line in measure(found):
                    _write(options.out, line)
    sys.stdout.flush()
    os._exit(0)


@contextmanager
def _told(item: str, out: Path) -> Iterator[None]:
    """One that fails never stops the rest: the file says so."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  whatever a page's code and XLA raise
        _write(out, {"failed": item, "error": f"{type(error).__name__}: {error}"[:500]})
        traceback.print_exc()


def _write(out: Path, line: Mapping[str, Any]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def measure(forms: Sequence[Form]) -> Iterator[dict[str, Any]]:
    """Time the forms in turns, then trace each."""
    for form in forms:
        form.seconds()
    end = time.perf_counter() + SECONDS * len(forms)
    for _ in range(ROUNDS):
        for form in forms:
            form.times.append(form.seconds())
        if time.perf_counter() > end:
            break
    for form in forms:
        median = statistics.median(form.times)
        found = form.found | {"us": round(median * 1e6, 2), "least_us": round(min(form.times) * 1e6, 2)}
        found |= {"rounds": len(form.times)}
        if not form.is_run:
            found |= {"queued_us": round(_queued(form.call, median) * 1e6, 2)}
        yield found | traced(form.call) if median < LONG else found


def _queued(call: Callable[[], Any], alone: float) -> float:
    """Seconds of a call among many that are waited for together."""
    many = max(3, min(200, int(0.05 / alone)))
    begin = time.perf_counter()
    jax.block_until_ready([call() for _ in range(many)][-1])
    return (time.perf_counter() - begin) / many


def traced(call: Callable[[], Any]) -> dict[str, Any]:
    """What jax's profiler sees of a call; {} where it sees nothing, as on a CPU."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(TRACED):
                jax.block_until_ready(call())
                time.sleep(2 * APART_NS / 1e9)
        files = list(Path(folder).rglob("*.xplane.pb"))
        seen = launched_in(jax.profiler.ProfileData.from_file(str(files[0])).planes) if files else []
    return summed(seen) if seen else {}


def launched_in(planes: Iterable[Any]) -> list[tuple[float, float, str]]:
    """Start and duration in nanoseconds, and name, of every kernel and copy of the planes of a
    jax.profiler.ProfileData, in order. The streams have them; other lines of a GPU tell the same again."""
    return sorted(
        (event.start_ns, event.duration_ns, event.name)
        for plane in planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream")
        for event in line.events
    )


def summed(seen: Sequence[tuple[float, float, str]]) -> dict[str, Any]:
    """Of one call of TRACED: how many kernels and copies, by name too, the microseconds that they take, and those from
    the start of the first to the end of the last, where the calls can be told apart."""
    spans, first, last = [], seen[0][0], seen[0][0]
    for start, duration, _ in seen:
        if start - last > APART_NS:
            spans.append(last - first)
            first = start
        last = max(last, start + duration)
    spans.append(last - first)
    names = Counter(name for _, _, name in seen)
    busy = sum(duration for _, duration, _ in seen)
    found = {"kernels": len(seen) / TRACED, "busy_us": round(busy / TRACED / 1e3, 2)}
    if len(spans) == TRACED:
        found |= {"span_us": round(statistics.median(spans) / 1e3, 2)}
    return found | {"names": {name[:60]: round(count / TRACED, 2) for name, count in names.most_common(12)}}


def items_of(pages: Sequence[str], specs: Sequence[str]) -> list[str]:
    """Every pair that a GPU can be asked about."""
    found = [
        f"page {page.name} {number}"
        for page in (read_page(name, pages_folder()) for name in pages)
        for number, pair in timing.pairs_of(page)
        if timing.concerns_a_gpu(pair)
    ]
    return found + list(specs)


def items_in(folder: Path) -> Iterator[str]:
    """The programs of a folder, few at a time: what they are compared with is timed in turns with them."""
    for name, (_, *others) in exported.index(folder).items():
        for i in range(0, len(others), AT_ONCE):
            yield " ".join(("exported", str(folder), name, *(one.file for one in others[i : i + AT_ONCE])))


def examples() -> list[str]:
    """CartPole's rollouts, and Freeway where gymnax is installed."""
    freeway = ROOT / "examples" / "freeway" / "step.py"
    specs = [cartpole.spec(variant, 2048) for variant in cartpole.VARIANTS]
    return specs + ([f"{freeway}:original", f"{freeway}:rewritten"] if find_spec("gymnax") else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", help="the pages to time; everything without any, and without --spec")
    parser.add_argument("--spec", action="append", default=[], help="a function to time")
    parser.add_argument("--exported", type=Path, metavar="FOLDER", help="time what gpu_tried.py put there")
    parser.add_argument("--out", type=Path, help="a new file; benchmarks/measured/CARD.jsonl without it")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--compiling", type=float, default=240.0, help="seconds until what is compiled is timed")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(json.load(sys.stdin), options)
        return 0
    kind = jax.devices()[0].device_kind
    card = re.sub(r"\W+", "-", kind.removeprefix("NVIDIA ")).lower()
    out: Path = options.out or ROOT / "benchmarks" / "measured" / f"{card}.jsonl"
    out.write_text("", encoding="utf-8")
    _write(out, {"device": kind, "jax": jax.__version__, "date": f"{date.today():%Y-%m-%d}"})
    if options.exported:
        items = list(items_in(options.exported))
    elif options.rules or options.spec:
        items = items_of(options.rules, options.spec)
    else:
        items = items_of(sorted(path.stem for path in pages_folder().glob("*.md")), [*unrolled.specs(), *examples()])
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "lock")
        command = [sys.executable, __file__, "--worker", str(lock), "--out", str(out)]
        command += ["--compiling", str(options.compiling)]
        number = min(options.processes, len(items))
        workers = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(number)]
        for i, process in enumerate(workers):
            assert process.stdin is not None
            process.stdin.write(json.dumps(items[i::number]))
            process.stdin.close()
        return max(abs(process.wait()) for process in workers)


if __name__ == "__main__":
    sys.exit(main())

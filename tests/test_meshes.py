"""Functions on several devices, present or not: what each of them launches, and what they send each other."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from compilers import each, needed

from fusionlint.cli import main
from fusionlint.compiling.artifacts import Artifacts, Job
from fusionlint.compiling.devices import _slices
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.executing import compile_all
from fusionlint.compiling.targets import get, missing
from fusionlint.explained import Report, explain

jax = pytest.importorskip("jax")

ROOT = Path(__file__).parents[1]
SPREAD = ROOT / "tests" / "data" / "spread.py"
LAYERS = ROOT / "tests" / "data" / "layers.py"
ATTENTION = ROOT / "examples" / "meshes" / "attention.py"
AXES = {"data": 2, "model": 4}


def reports(target: str, *calls: str, axes: dict[str, int] = AXES, file: Path = LAYERS) -> list[Report]:
    if absent := missing(get(target)):
        pytest.skip(absent)
    jobs = [(Job(parse_spec(f"{file}:{call}"), mesh=axes), get(target)) for call in calls]
    found = list(compile_all(jobs))
    assert all(isinstance(one, Artifacts) for one in found), found
    return [explain(one) for one in found if isinstance(one, Artifacts)]


def sent(report: Report) -> list[tuple[str, int]]:
    """The collectives of a report with the line that each is shown at, in the order of the barriers."""
    found = [one.barrier for one in report.barriers if one.barrier.cause == "collective"]
    return [(barrier.detail, barrier.stack[0].line) for barrier in found]


def line_of(text: str, file: Path = LAYERS) -> int:
    return 1 + next(number for number, line in enumerate(file.read_text().splitlines()) if text in line)


@pytest.mark.parametrize("target", each("cpu", "h100", "v5e"))
def test_arrays_of_a_spec_are_spread_as_it_says_and_what_is_sent_stands_at_its_line(target: str) -> None:
    whole, summed, deep = reports(
        target,
        "layer(f32[64@data,256],f32[256,512@model])",
        "step(f32[64@data,256@model],f32[256@model,512])",
        "deep(f32[64@data,256],f32[3,256,256@model])",
    )
    assert [one.devices for one in (whole, summed, deep)] == [8, 8, 8]
    assert sent(whole) == []
    line = line_of("jnp.mean(jnp.tanh(x @ weights))")
    assert {*sent(summed)} == {
        ("all-reduce over model for dot_general", line),
        ("all-reduce over data for reduce_sum", line),
    }
    gathering, at = sent(deep)[0]  # jax 0.12 no longer says what for
    assert (gathering.removesuffix(" for dot_general"), at) == ("all-gather over model", line_of("jax.lax.scan("))
    (gathered,) = (kernel for kernel in deep.kernels if kernel.kind == "collective")
    assert gathered.launches == 3  # one a step
    assert gathered.bytes_written == 4 * gathered.bytes_read > 0  # the parts of four devices


@pytest.mark.any_jax
def test_each_devices_part_is_counted_and_not_the_whole() -> None:
    (apart,) = reports("cpu", "layer(f32[64@(data,model),256],f32[256,512])")
    (alone,) = reports("cpu", "layer(f32[8,256],f32[256,512])", axes={"only": 1})
    assert (apart.devices, alone.devices) == (8, 1)
    assert (apart.launches, apart.bytes) == (alone.launches, alone.bytes)


@pytest.mark.any_jax
def test_a_function_may_say_itself_how_its_arrays_are_spread() -> None:
    held, jitted, beside = reports("cpu", "held(f32[16,8])", "jitted(f32[16,64])", "beside", file=SPREAD)
    assert [one.devices for one in (held, jitted, beside)] == [8, 8, 8]
    assert sent(held)
    assert sent(held)[0][1] == line_of("with_sharding_constraint", SPREAD)
    assert {name.partition(" ")[0] for name, _ in (*sent(jitted), *sent(beside))} == {"all-reduce"}


@pytest.mark.parametrize("target", each("cpu", "h100", "v5e"))
def test_a_pmap_is_a_function_on_several_devices(target: str) -> None:
    (mapped,) = reports(target, "mapped(f32[8,64])", file=SPREAD)
    assert mapped.devices == 8
    assert {*sent(mapped)} == {("all-reduce over each", line_of("jax.lax.pmean", SPREAD))}


@pytest.mark.parametrize("target", each("cpu", "h100"))
def test_a_mesh_that_the_module_sets_for_all_is_no_hindrance(target: str, tmp_path: Path) -> None:
    """With axes of explicit type, as jax.make_mesh makes them."""
    code = (
        "import jax\nimport jax.numpy as jnp\nfrom jax.sharding import PartitionSpec\n\n"
        "mesh = jax.make_mesh((2, 4), ('data', 'model'))\njax.set_mesh(mesh)\n\n\n"
        "def f(x, w):\n"
        "    return jnp.tanh(jnp.matmul(x, w, out_sharding=PartitionSpec('data', 'model'))).sum(axis=1)\n"
    )
    (tmp_path / "explicit.py").write_text(code)
    (found,) = reports(target, "f(f32[64@data,256],f32[256,512@model])", file=tmp_path / "explicit.py")
    assert found.devices == 8
    assert {name for name, _ in sent(found)} == {"all-reduce over model for reduce_sum"}


@pytest.mark.compilers
@pytest.mark.parametrize(("target", "count"), [("h100", 16), ("h100", 6), ("v5e", 16), ("v5p", 64)])
def test_there_are_as_many_devices_as_the_mesh_has(target: str, count: int) -> None:
    (found,) = reports(target, f"step(f32[{count}@data,8],f32[8,8])", axes={"data": count})
    assert found.devices == count
    assert {name for name, _ in sent(found)} == {"all-reduce over data for reduce_sum"}


def test_slices_grow_by_their_shortest_side() -> None:
    assert [*_slices("v5e:2x2")][:4] == ["v5e:2x2", "v5e:2x4", "v5e:4x4", "v5e:4x8"]
    assert [*_slices("v5p:2x2x1")][:4] == ["v5p:2x2x1", "v5p:2x2x2", "v5p:2x2x4", "v5p:2x4x4"]
    assert [*_slices("v5e:2x2")][-1] == "v5e:16x16"


def test_the_report_says_how_many_devices_and_what_each_of_them_sends() -> None:
    call = f"{LAYERS}:step(f32[64@data,256@model],f32[256@model,512])"
    done = CliRunner().invoke(main, ["explain", call, "--target", "cpu", "--mesh", "data=2,model=4"])
    assert done.exit_code == 0, done.stderr
    first, totals, _, collectives, *_ = done.stdout.splitlines()
    assert first.startswith(f"{call} on 8 x cpu (jax ")
    assert totals.startswith("each of them: ")
    assert collectives.startswith("collectives: 2 all-reduce (")
    assert collectives.endswith(" in all)")
    assert "the links between them are not modelled" in done.stdout


@pytest.mark.parametrize(
    ("call", "mesh", "says"),
    [
        ("layer(f32[8@data,4],f32[4,4])", "", "has an array spread over `data`: say how many devices it has: --mesh"),
        ("layer(f32[8@x,4],f32[4,4])", "data=2", "has an array spread over `x`: the mesh has data"),
        ("layer(f32[8,4],f32[4,4])", "data", "cannot read the mesh `data`: write data=4,model=2"),
        ("layer(f32[8,4],f32[4,4])", "data=0", "cannot read the mesh `data=0`"),
        ("layer(f32[8,4],f32[4,4])", "a=2,a=2", "the mesh has the axis a twice"),
        ("layer(f32[9@data,4],f32[4,4])", "data=2,model=4", "divisible"),
    ],
)
def test_a_mesh_that_does_not_fit_is_a_line_that_says_what_to_write(call: str, mesh: str, says: str) -> None:
    arguments = ["explain", f"{LAYERS}:{call}", "--target", "cpu", *(["--mesh", mesh] if mesh else [])]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert says in line
    assert done.stdout == ""


SCRIPT = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))


@jax.jit
def step(x, w):
    return jnp.tanh(x @ w).sum()


x = jax.device_put(np.ones((64, 32), "float32"), NamedSharding(mesh, PartitionSpec("data")))
w = jax.device_put(np.ones((32, 16), "float32"), NamedSharding(mesh, PartitionSpec(None, "model")))
print(step(x, w))
"""
FOUR = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}


@pytest.mark.parametrize("target", ["cpu", *each("h100", "v5e")])
def test_a_program_that_runs_on_several_devices_is_explained_for_as_many(target: str, tmp_path: Path) -> None:
    if absent := missing(get(target)):
        pytest.skip(absent)
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "fusionlint", "run", "--target", target, "--record", "r.json", "train.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **FOUR}, capture_output=True, text=True, check=False
    )
    assert f"train.py:step(x: f32[64@data,32], w: f32[32,16@model]) on 4 x {target} (" in done.stderr
    assert "collective (all-reduce over " in done.stderr
    # A SPEC has no words for where the arrays of the run were: the recorded program is taken.
    again = [sys.executable, "-m", "fusionlint", "explain", "train.py:step", "--recorded", "r.json", "--target", target]
    told = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"on 4 x {target} (" in told.stdout, told.stderr


PROGRAMS = """\
import sys
import textwrap
import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
spread = NamedSharding(mesh, PartitionSpec("data", "model"))
f = jax.jit(lambda x: jnp.tanh(x).sum(axis=1), in_shardings=spread)
shape = jax.ShapeDtypeStruct((64, 32), "float32")
open("f.mlir", "w").write(f.lower(shape).as_text())
open("f.export", "wb").write(export.export(f)(shape).serialize())
open("f.hlo.txt", "w").write(f.lower(shape).compile().as_text())
"""


def test_programs_and_dumps_for_several_devices_say_themselves_for_how_many(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    subprocess.run([sys.executable, "-c", PROGRAMS], cwd=tmp_path, env={**os.environ, **FOUR}, check=True)
    files = [str(tmp_path / name) for name in ("f.mlir", "f.export", "f.hlo.txt")]
    done = CliRunner().invoke(main, ["explain", *files, "--target", "cpu"])
    assert done.stdout.count(" on 4 x cpu") == 3, done.stderr
    assert done.stdout.count("collective (all-reduce over model") == 2
    # What is optimized already has lost the names of the axes.
    assert done.stdout.count("collective (all-reduce among 2 of 4 for reduce_sum)") == 1


@pytest.mark.parametrize("target", ["cpu", *(pytest.param("h100", marks=needed("h100")),)])
def test_a_mesh_that_nobody_names_is_asked_for(target: str, tmp_path: Path) -> None:
    if absent := missing(get(target)):
        pytest.skip(absent)
    (found,) = compile_all([(Job(parse_spec(f"{SPREAD}:held(f32[8,4])")), get(target))])
    assert "it runs on several devices at once: say the axes of its mesh" in str(found)
    (tmp_path / "made.py").write_text("import jax\nmesh = jax.make_mesh((4,), ('d',))\ndef f(x): return x\n")
    (asked,) = compile_all([(Job(parse_spec(f"{tmp_path / 'made.py'}:f(f32[8])")), get(target))])
    assert "it runs on several devices at once: say the axes of its mesh, as in --mesh data=4" in str(asked)


def test_what_is_given_spread_is_said_to_be_in_the_heading(tmp_path: Path) -> None:
    path = tmp_path / "given.py"
    path.write_text(
        textwrap.dedent(
            """\
            import fusionlint, jax, numpy
            from jax.sharding import NamedSharding, PartitionSpec

            mesh = jax.sharding.Mesh(numpy.array(jax.devices()).reshape(2, 2), ("data", "model"))

            def placed(shape, *axes):
                return jax.device_put(jax.numpy.ones(shape), NamedSharding(mesh, PartitionSpec(*axes)))

            def product(x, layer, n):
                return x @ layer["w"] * n

            if __name__ == "__main__":
                x, w = placed((8, 16), "data"), placed((16, 4), None, "model")
                print(fusionlint.explain(product, x, {"w": w}, 2, target="cpu").entry)
            """
        )
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{path}:product(x: f32[8@data,16], layer: f32[16,4@model], n=2)\n", done.stderr


@pytest.mark.compilers
@pytest.mark.parametrize(("target", "launches", "without"), [("h100", 14, 2), ("v5e", 27, 3)])
def test_columns_cut_across_what_a_device_has_are_sent_around(target: str, launches: int, without: int) -> None:
    """As docs/devices.md says of examples/meshes."""
    joined, apart = reports(
        target,
        "joined(f32[1024@data,512], f32[512,1536@model])",
        "apart(f32[1024@data,512], f32[512,3,512@model])",
        file=ATTENTION,
    )
    assert {name for name, _ in sent(joined)} <= {
        "collective-permute for split",
        "collective-permute over model for split",
    }
    assert "     instead: give parts of one size an axis of their own, [..., k, n] for [..., k * n]" in str(joined)
    assert {line for _, line in sent(joined)} == {line_of("jnp.split", ATTENTION)}
    assert sent(apart) == []
    assert apart.launches < joined.launches
    if joined.versions["jax"] == "0.10.2":
        assert (joined.launches, apart.launches) == (launches, without)


def test_both_ways_of_the_example_compute_the_same() -> None:
    import jax
    import numpy as np

    namespace: dict[str, Any] = {}
    exec(ATTENTION.read_text(), namespace)
    x, weights = (jax.random.normal(jax.random.key(n), shape) for n, shape in enumerate([(8, 6), (6, 12)]))
    joined, apart = namespace["joined"](x, weights), namespace["apart"](x, weights.reshape(6, 3, 4))
    np.testing.assert_allclose(joined, apart, rtol=1e-5)


def explained(folder: Path, name: str, call: str, mesh: str) -> Path:
    """The JSON of one report."""
    arguments = ["explain", f"{LAYERS}:{call}", "--target", "cpu", "--mesh", mesh, "--output-format", "json"]
    done = CliRunner().invoke(main, arguments)
    (folder / name).write_text(done.stdout)
    return folder / name


def test_what_one_of_four_devices_does_is_no_change_of_what_one_of_two_did(tmp_path: Path) -> None:
    call = "step(f32[64@data,32],f32[32,16])"
    two, four = (explained(tmp_path, f"{n}.json", call, f"data={n}") for n in (2, 4))
    again = explained(tmp_path, "again.json", call, "data=4")
    same = CliRunner().invoke(main, ["diff", str(four), str(again), "--all"])
    assert (same.exit_code, "step on 4 x cpu" in same.stdout) == (0, True), same.output
    other = CliRunner().invoke(main, ["diff", str(two), str(four), "--all"])
    assert other.exit_code == 2
    assert "better" not in other.stdout
    assert "worse" not in other.stdout


@pytest.mark.any_jax
def test_a_mesh_around_is_that_of_the_command_and_one_that_is_not_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "around.py").write_text(
        "import jax\nfrom jax.sharding import PartitionSpec\n\n"
        "def held(x):\n    return jax.lax.with_sharding_constraint(x * 2, PartitionSpec('data')).sum()\n\n"
        "def whole(x):\n    return (x * 2).sum()\n"
    )
    calls = [f"{tmp_path / 'around.py'}:{name}" for name in ("held(f32[64@data,8])", "whole(f32[64,8])")]
    done = CliRunner().invoke(main, ["explain", *calls, "--target", "cpu", "--mesh", "data=4", "--mesh", "model=2"])
    assert done.exit_code == 0, done.stderr
    held, whole = done.stdout.split("\n\n" + calls[1][:20])
    assert " on 8 x cpu" in held
    assert "one device: nothing is spread over the mesh, as f32[64@data,8] is" in whole


def test_of_a_conditionals_branches_one_sends(tmp_path: Path) -> None:
    (tmp_path / "either.py").write_text(
        "import jax\nimport jax.numpy as jnp\n\n"
        "def either(x, flag):\n"
        "    return jax.lax.cond(flag > 0, lambda x: jnp.sort(x, 0), lambda x: jnp.sort(-x, 0), x)\n"
    )
    call = f"{tmp_path / 'either.py'}:either(f32[64@data,8],i32[])"
    (report,) = reports("cpu", "either(f32[64@data,8],i32[])", axes={"data": 4}, file=tmp_path / "either.py")
    kernels = [kernel for kernel in report.kernels if kernel.kind == "collective"]
    assert len(kernels) > 1, call
    (sends,) = (line for line in str(report).splitlines() if line.startswith("collectives: "))
    told = sum(int(part.split()[0]) for part in sends.removeprefix("collectives: ").split(", "))
    assert told == len(kernels) / 2


ASKS = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def silent(x):
    if jax.sharding.get_abstract_mesh().empty:
        return jnp.sin(x)
    return jnp.sin(x).sum()


def meant(x):
    return jax.lax.with_sharding_constraint(jnp.sin(x), P("data"))


def mapped(x):
    return jax.shard_map(lambda y: jax.lax.psum(y, "data"), in_specs=P("data"), out_specs=P())(x)


each = jax.pmap(lambda x: jax.lax.pmean(x, "i"), axis_name="i")
"""


@pytest.fixture(scope="module")
def asks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not hasattr(jax.sharding, "get_abstract_mesh") or not hasattr(jax, "shard_map"):
        pytest.skip("this jax has no mesh around")
    path = tmp_path_factory.mktemp("asks") / "asks.py"
    path.write_text(ASKS)
    return path


def test_code_that_looks_whether_a_mesh_is_around_finds_it(asks: Path) -> None:
    """Code that goes another way without a mesh raises nothing, and was explained as if there were none."""
    silent, mapped = reports("cpu", "silent(f32[64@data,8])", "mapped(f32[64@data,8])", axes={"data": 4}, file=asks)
    assert [[kernel.opcodes for kernel in one.kernels if kernel.kind == "collective"] for one in (silent, mapped)] == [
        [("all-reduce",)],
        [("all-reduce",)],
    ]


def test_code_that_cannot_do_without_a_mesh_is_told_how_to_say_one(asks: Path) -> None:
    calls = ("meant(f32[8,4])", "mapped(f32[8,4])", "each(f32[4,8])")
    for failed in compile_all([(Job(parse_spec(f"{asks}:{call}")), get("cpu")) for call in calls]):
        assert "it runs on several devices at once: say the axes of its mesh, as in --mesh data=4" in str(failed)


def test_of_a_shape_that_does_not_divide_the_sizes_are_said(asks: Path) -> None:
    """The line ended with a colon."""
    (failed,) = compile_all([(Job(parse_spec(f"{asks}:mapped(f32[63,4])"), mesh={"data": 4}), get("cpu"))])
    assert "4 does not evenly divide 63" in str(failed)

"""What was recorded is explained: by its SPEC, with the code as it is now, else by its program, as it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run

from fusionlint.compiling.artifacts import Job
from fusionlint.compiling.entry import EntryError
from fusionlint.compiling.targets import get
from fusionlint.recorded import entry_text, tasks_recorded
from fusionlint.recording import (
    Argument,
    Compilation,
    EagerLine,
    Place,
    RecordedFunction,
    Recording,
    RecordingError,
    read_recording,
    recording_json,
)
from fusionlint.tasks import Failure, check_used

CODE = "def step(state, x, n=2):\n    return state\n"
CPU, H100 = get("cpu"), get("h100")


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedFunction:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(CODE)
    small = Compilation(0, None, (Argument("x", "float32", (4,)),), spec="(f32[4])")
    large = replace(small, number=1, arguments=(Argument("x", "float32", (8,)),), spec="(f32[8], n=3)")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return RecordedFunction("step", "__main__", Place(str(path), 1, "step"), "user", True, (large, small), digest)


def without_spec(step: RecordedFunction) -> RecordedFunction:
    one = replace(step.largest, spec=None, programs={"cpu": b"ML\xefR"})
    return replace(step, compilations=(one,))


def todo(step: RecordedFunction, *specs: str) -> list[object]:
    return [*tasks_recorded(specs or ["train.py:step"], [CPU, H100], Recording(functions=(step,)))]


@pytest.mark.parametrize("spec", ["train.py:step", "train:step", "./train.py:step"])
def test_a_spec_without_arguments_takes_the_largest_of_the_recording(step: RecordedFunction, spec: str) -> None:
    first, second = todo(step, spec)
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert (first[0].entry.text, first[1], second[1]) == (f"{spec}(f32[8], n=3)", CPU, H100)
    assert first[0].kind == "compile"


def test_a_spec_with_arguments_or_of_another_function_is_as_without_a_recording(step: RecordedFunction) -> None:
    for spec in ("train.py:step(f32[2])", "train.py:other", "elsewhere.py:step"):
        (task, _) = todo(step, spec)
        assert isinstance(task, tuple)
        assert task[0].entry.text == spec


def test_the_arguments_of_a_recording_come_before_dims_which_are_for_what_it_does_not_have(
    step: RecordedFunction,
) -> None:
    dims = {"n": (3,)}
    recorded, other = tasks_recorded(["train.py:step", "train.py:other"], [CPU], Recording(functions=(step,)), dims)
    assert isinstance(recorded, tuple)
    assert isinstance(other, tuple)
    assert (recorded[0].entry.args is None, recorded[0].dims) == (False, {})
    assert (other[0].entry.args is None, other[0].dims) == (True, dims)
    check_used(dims, [recorded, other])
    with pytest.raises(EntryError, match="--dim is for the annotations of a SPEC without arguments"):
        check_used(dims, [recorded])


def test_arguments_that_no_spec_can_say_are_compiled_from_the_program_that_was_recorded(step: RecordedFunction) -> None:
    on_cpu, on_h100 = todo(without_spec(step))
    assert isinstance(on_cpu, tuple)
    assert isinstance(on_cpu[0], Job)
    assert (on_cpu[0].kind, on_cpu[0].program) == ("program", b"ML\xefR")
    assert on_cpu[0].entry.text == "train.py:step(x: f32[8])"
    assert isinstance(on_h100, Failure)
    assert "recorded without a program for h100" in on_h100.message


def test_a_program_of_code_that_was_changed_since_is_not_explained(step: RecordedFunction) -> None:
    Path("train.py").write_text(CODE + "\n")
    (failure,) = todo(without_spec(step))
    assert isinstance(failure, Failure)
    assert failure.message.startswith("train.py was changed after train.py:step was recorded: ")


def test_nor_is_one_of_which_another_file_was_changed_since(step: RecordedFunction, tmp_path: Path) -> None:
    """What the function calls in other modules is part of its program."""
    model, gone = tmp_path / "model.py", str(tmp_path / "gone.py")
    model.write_text(CODE)
    program = b"ML\xefR" + b"\x00".join([b"", str(model).encode(), gone.encode(), b""])
    one = replace(step, compilations=(replace(step.largest, spec=None, programs={"cpu": program}),))
    recording = Recording(functions=(one,), sources={str(model): CODE, gone: CODE})
    (unchanged,) = tasks_recorded(["train.py:step"], [CPU], recording)
    assert isinstance(unchanged, tuple)
    model.write_text(CODE + "\n")
    (failure,) = tasks_recorded(["train.py:step"], [CPU], recording)
    assert isinstance(failure, Failure)
    assert failure.message.startswith("model.py was changed after train.py:step was recorded: ")


def test_the_text_of_an_entry_counts_the_arrays_of_a_pytree_and_the_arguments_that_are_too_many() -> None:
    tree = [Argument(f"params[{i!r}]", "float32", (i,), donated=True) for i in "ab" if i]
    many = [Argument(f"x{i}", "bfloat16", (i,)) for i in range(6)]
    function = RecordedFunction("main.<locals>.f", "", None, "user", False, ())
    one = Compilation(0, None, (*tree, Argument("key", "key<fry>", ())), {"n": "3"})
    assert entry_text(function, one) == "main.f(params: 2 arrays donated, key: key, n=3)"
    crowd = Compilation(0, None, (*tree, *many))
    assert entry_text(function, crowd).endswith("x2: bf16[2], x3: bf16[3], and 2 more)")


def test_a_recording_survives_json_with_its_programs(step: RecordedFunction, tmp_path: Path) -> None:
    eager = EagerLine(Place("train.py", 3), {"add": 2}, 0.5)
    recording = Recording(("train.py",), {"jax": "1"}, "cpu", (without_spec(step), step), (eager,), ("a note",))
    (tmp_path / "r.json").write_text(recording_json(recording))
    assert read_recording(tmp_path / "r.json") == recording


def test_a_recording_of_an_earlier_version_is_read(step: RecordedFunction, tmp_path: Path) -> None:
    recording = Recording(("train.py",), {"jax": "1"}, "cpu", (step,))
    document = json.loads(recording_json(recording))
    for one in document["recording"]["functions"][0]["compilations"]:
        del one["operations"], one["x64"]
    (tmp_path / "r.json").write_text(json.dumps({**document, "version": 1}))
    assert read_recording(tmp_path / "r.json") == recording


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "is no recording: it has to be what `fusionlint run --record FILE SCRIPT` wrote"),
        ('{"version": 1, "reports": []}', "is no recording"),
        ('{"version": 99}', "a newer fusionlint wrote it"),
    ],
)
def test_what_is_no_recording_is_said_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(RecordingError, match=says):
        read_recording(tmp_path / "r.json")
    done = run("explain", "train.py:step", "--recorded", str(tmp_path / "r.json"))
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.compilers
def test_a_file_that_is_not_there_is_said_in_one_line() -> None:
    done = run("explain", "train.py:step", "--recorded", "no-such.json")
    assert (done.exit_code, done.stderr) == (2, "fusionlint: no-such.json cannot be read: No such file or directory\n")


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        ("", "f32[8,4]"),
        ("P('data', None) over data=2", "f32[8@data,4]"),
        ("PartitionSpec('data',) over data=2", "f32[8@data,4]"),
        ("PartitionSpec(None, ('a', 'b')) over a=2, b=2", "f32[8,4@(a,b)]"),
        ("P() over data=2", "f32[8,4]"),
        ("P(UNCONSTRAINED, 'a') over a=2", "f32[8,4]"),
        ("on TFRT_CPU_0", "f32[8,4]"),
    ],
)
def test_the_text_of_an_argument_says_how_it_was_spread(step: RecordedFunction, sharding: str, text: str) -> None:
    one = replace(step.largest, arguments=(Argument("x", "float32", (8, 4), sharding=sharding),), static={})
    assert entry_text(step, one).endswith(f":step(x: {text})")


def test_of_a_signature_that_was_spread_and_whole_the_spread_one_stands_for_the_function(
    step: RecordedFunction,
) -> None:
    whole = replace(step.largest, number=9)
    spread = replace(whole, number=8, arguments=(replace(whole.arguments[0], sharding="P('data') over data=2"),))
    assert replace(step, compilations=(spread, whole)).largest is spread

"""What several processes compiled is told as of one."""

from __future__ import annotations

from dataclasses import replace

from fusionlint.merging import ANEW, merged
from fusionlint.recording import Argument, Compilation, EagerLine, Place, RecordedFunction, Recording

STEP, CALL = Place("env.py", 3, "step"), Place("train.py", 9)


def compilation(number: int, size: int, *why: str) -> Compilation:
    return Compilation(number, CALL, (Argument("x", "float32", (size,)),), why=why, seconds=1.0)


def lowered(number: int, size: int, *why: str) -> Compilation:
    return replace(compilation(number, size, *why), programs={"cpu": b"%d" % size})


def function(*compilations: Compilation, name: str = "step") -> RecordedFunction:
    return RecordedFunction(name, "env", STEP, "user", True, compilations)


def recording(*functions: RecordedFunction, eager: tuple[EagerLine, ...] = (), note: str = "") -> Recording:
    versions = {"jax": "0.10.2"} if functions else {}
    return Recording(("pytest",), versions, "cpu" if functions else "", functions, eager, (note,) if note else ())


def test_a_function_of_two_processes_is_one_and_what_the_second_compiled_first_has_its_reason() -> None:
    first = recording(function(compilation(0, 8), lowered(1, 16, "x: f32[8] -> f32[16]")))
    second = recording(function(lowered(0, 8)), function(lowered(1, 4), name="other"))
    step, other = merged([first, second]).functions
    assert [one.why for one in step.compilations] == [(), ("x: f32[8] -> f32[16]",), (ANEW,)]
    assert [one.why for one in other.compilations] == [()]
    assert [one.number for one in (*step.compilations, *other.compilations)] == [0, 1, 2, 3]


def test_what_no_other_process_compiled_is_told_by_what_is_otherwise() -> None:
    both = [recording(function(compilation(0, 8), compilation(1, 32))), recording(function(compilation(0, 16)))]
    third = recording(function(compilation(0, 32)))
    (step,) = merged([*both, third]).functions
    assert [one.why for one in step.compilations] == [(), (), ("x: f32[32] -> f32[16]",), (ANEW,)]


def test_the_program_of_the_largest_signature_is_the_one_to_report_on() -> None:
    both = [
        recording(function(lowered(0, 8))),
        recording(function(lowered(0, 64))),
        recording(function(lowered(0, 16))),
    ]
    (step,) = merged(both).functions
    assert [dict(one.programs) for one in step.compilations] == [{}, {"cpu": b"64"}, {}]


def test_eager_operations_are_added_by_line_and_notes_said_once() -> None:
    one = recording(eager=(EagerLine(CALL, {"add": 1, "iota": 1}, 0.5),), note="no verdict")
    two = recording(eager=(EagerLine(CALL, {"add": 2}, 0.25), EagerLine(None, {"sin": 1}, 1.0)), note="no verdict")
    found = merged([one, two])
    assert found.eager == (EagerLine(CALL, {"add": 3, "iota": 1}, 0.75), EagerLine(None, {"sin": 1}, 1.0))
    assert found.notes == ("no verdict",)


def test_versions_and_backend_are_those_of_who_compiled_something() -> None:
    found = merged([recording(), recording(function(compilation(0, 8)))])
    assert (found.versions, found.backend, found.command) == ({"jax": "0.10.2"}, "cpu", ("pytest",))
    assert merged([]) == Recording()

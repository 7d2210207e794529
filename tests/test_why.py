"""Why a function was compiled again, told from what was captured of both times. No jax here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusionlint.compiling.why import Circumstances, why
from fusionlint.recording import Argument, Compilation

X = Argument("x", "float32", (8, 4))
FIRST = Compilation(0, None, (X,), {"n": "2"})
SAME = Circumstances()


def again(**changed: object) -> Compilation:
    return replace(FIRST, number=1, arguments=(replace(X, **changed),))  # type: ignore[arg-type]


def test_the_first_compilation_needs_no_reason() -> None:
    assert why(FIRST, []) == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"shape": (9, 4)}, "x: f32[8,4] -> f32[9,4]"),
        ({"dtype": "bfloat16"}, "x: f32[8,4] -> bf16[8,4]"),
        ({"weak": True}, "x: f32[8,4], an array -> a Python number (weakly typed)"),
        ({"sharding": "on TPU_0"}, "x: f32[8,4], not committed -> on TPU_0"),
        ({"donated": True}, "x: f32[8,4], donated"),
    ],
)
def test_an_argument_that_changed_is_named_with_what_it_was_and_is(changed: dict[str, object], said: str) -> None:
    assert why(again(**changed), [(FIRST, SAME)]) == (said,)


def test_arguments_that_came_and_went_are_named() -> None:
    new = replace(FIRST, arguments=(replace(X, name="y"),))
    assert why(new, [(FIRST, SAME)]) == ("y: new, f32[8,4]", "x: gone, was f32[8,4]")


def test_static_values_are_told_and_a_missing_one_is_said_to_be_missing() -> None:
    assert why(replace(FIRST, static={"n": "3"}), [(FIRST, SAME)]) == ("n (static): 2 -> 3",)
    assert why(replace(FIRST, static={}), [(FIRST, SAME)]) == ("n (static): 2 -> not given",)


def test_what_is_told_by_the_same_text_and_is_another_object_is_said_to_be() -> None:
    (said,) = why(FIRST, [(FIRST, Circumstances(others=("n",)))])
    assert said.startswith("n (static): another object")


def test_a_function_that_is_made_anew_is_named_with_what_makes_it_and_comes_before_other_objects() -> None:
    anew = Circumstances(others=("static",), anew=("swings.<locals>.field",))
    (said,) = why(FIRST, [(FIRST, anew)])
    assert said.startswith("field is made anew by each call of swings")


def test_another_object_is_not_blamed_where_an_argument_changed_for_it_may_be_equal() -> None:
    found = why(again(shape=(9, 4)), [(FIRST, Circumstances(others=("n",)))])
    assert found == ("x: f32[8,4] -> f32[9,4]",)


def test_the_earlier_compilation_that_is_most_alike_is_the_one_to_compare_with() -> None:
    far = replace(FIRST, arguments=(replace(X, shape=(1,), dtype="int32"),), static={"n": "9"})
    assert why(again(shape=(7, 4)), [(FIRST, SAME), (far, SAME)]) == ("x: f32[8,4] -> f32[7,4]",)


def test_of_many_changes_three_are_told_and_the_rest_counted() -> None:
    many = [Argument(f"p[{i}]", "float32", (i,)) for i in range(5)]
    new = replace(FIRST, arguments=tuple(replace(one, dtype="bfloat16") for one in many))
    said = why(new, [(replace(FIRST, arguments=tuple(many)), SAME)])
    assert len(said) == 4
    assert said[-1] == "and 2 more"


def test_arguments_without_names_go_by_their_place() -> None:
    old, new = (replace(FIRST, arguments=(replace(X, name="", shape=shape),)) for shape in [(1,), (2,)])
    assert why(new, [(old, SAME)]) == ("input 0: f32[1] -> f32[2]",)


def test_where_no_argument_changed_the_cause_is_looked_for_around_it() -> None:
    assert "a new function" in why(FIRST, [(FIRST, Circumstances(same_function=False))])[0]
    assert "other settings: x64: 0 -> 1" in why(FIRST, [(FIRST, Circumstances(settings=("x64: 0 -> 1",)))])[0]
    assert "cache" in why(FIRST, [(FIRST, SAME)])[0]


def test_how_arguments_were_given_is_told_where_they_are_the_same_and_before_anything_around_them() -> None:
    passed = Circumstances(same_function=False, passed=("b: given by position -> given by name",))
    assert why(FIRST, [(FIRST, passed)]) == passed.passed
    assert why(again(shape=(9, 4)), [(FIRST, passed)]) == ("x: f32[8,4] -> f32[9,4]",)
    assert "new function" in why(FIRST, [(FIRST, Circumstances(same_function=False)), (FIRST, passed)])[0]

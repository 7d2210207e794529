"""Code that is laid out in several lines is the same code."""

from __future__ import annotations

import ast

import pytest

from fusionlint.patterns.code.broken import Lines, in_one_line

A, B, C = "a" * 26, "b" * 26, "断" * 26
LINES = Lines("    ", "\n", 50)


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (f"f({A}, {B}, c)", f"f(\n    {A},\n    {B},\n    c,\n)"),
        (f"f({A}, k={B})", f"f(\n    {A},\n    k={B},\n)"),
        (f"f({A}, k=g({B}, {C}))", f"f(\n    {A},\n    k=g(\n        {B},\n        {C},\n    ),\n)"),
        (f"f(*{A}, **{B})", f"f(\n    *{A},\n    **{B},\n)"),
        (f"x[{A}, {B}]", f"x[\n    {A},\n    {B},\n]"),
        (f"x[({A}, {B})]", f"x[\n    ({A}, {B})\n]"),
        (f"x[f({A}), g({B})]", f"x[\n    f({A}),\n    g({B}),\n]"),
        (f"x[{A}{B},]", f"x[\n    {A}{B},\n]"),
        (f"[({A},), {B}]", f"[\n    ({A},),\n    {B},\n]"),
        (f"{A} + {B}", f"(\n    {A}\n    + {B}\n)"),
        (f"{C} - ({A} - b)", f"(\n    {C}\n    - ({A} - b)\n)"),
        (f"{C} - ({A} - {B})", f"(\n    {C}\n    - (\n        {A}\n        - {B}\n    )\n)"),
        (f"({C} - a) - {B}", f"(\n    ({C} - a)\n    - {B}\n)"),
        (f"{A} * b & {C}", f"(\n    {A} * b\n    & {C}\n)"),
        (f"{A} and not {B}", f"(\n    {A}\n    and not {B}\n)"),
        (f"x.at[{A}, {B}].set({A}, {B})", f"x.at[\n    {A},\n    {B},\n].set(\n    {A},\n    {B},\n)"),
        (f"max({A} for {A} in {B})", f"max({A} for {A} in {B})"),
    ],
)
def test_it_is_broken_at_its_brackets_and_before_its_operators(code: str, after: str) -> None:
    assert LINES.of(code, "", 0) == after
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(code))


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("f(\n    a,\n    b,\n)", "f(a, b)"),
        ("f(\n    (a,\n    ),\n    b\n)", "f((a,), b)"),
        ("(a,\n    b,)", "(a, b)"),
        ('f(a,\n  ",)",)', 'f(a, ",)",)'),
        ("x.at[\n    i\n].set(\n    a\n    + b\n)", "x.at[i].set(a + b)"),
        ("(x\n    .at[i]\n    .set(a))", "(x.at[i].set(a))"),
        ("f(\n    a,  # why\n    b,\n)", "f(\n    a,  # why\n    b,\n)"),
        ('f("""a\n    b""")', 'f("""a\n    b""")'),
        ("f(a, \\\n    b)", "f(a, \\\n    b)"),
    ],
)
def test_it_is_brought_into_one_line(code: str, after: str) -> None:
    assert in_one_line(code) == after

"""No rule stumbles over odd code: what every page shows, with an empty index, without arguments, with hidden ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from fusionlint.rule import Rule, all_rules
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

EVERYTHING = Scope(tuple(rule.name for rule in all_rules()))


def hidden() -> ast.Starred:
    return ast.Starred(ast.Name("hidden", ast.Load()), ast.Load())


def with_empty_index(node: ast.AST) -> None:
    assert isinstance(node, ast.Subscript)
    node.slice = ast.Tuple([], ast.Load())


def without_arguments(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    node.args, node.keywords = [], []


def with_hidden_arguments(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    node.args, node.keywords = [hidden()], [ast.keyword(None, ast.Name("named", ast.Load()))]


def without_parameters(node: ast.AST) -> None:
    assert isinstance(node, ast.Lambda | ast.FunctionDef)
    node.args = ast.arguments([], [], None, [], [], None, [])


ODD: tuple[tuple[type | tuple[type, ...], Callable[[ast.AST], None]], ...] = (
    (ast.Subscript, with_empty_index),
    (ast.Call, without_arguments),
    (ast.Call, with_hidden_arguments),
    ((ast.Lambda, ast.FunctionDef), without_parameters),
)


def variants(code: str) -> Iterator[str]:
    """The code with one node of it made odd, for each node and each way to."""
    tree = ast.parse(code)
    for number, node in enumerate(ast.walk(tree)):
        for kinds, change in ODD:
            if not isinstance(node, kinds) or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            changed = deepcopy(tree)
            change([*ast.walk(changed)][number])
            yield ast.unparse(ast.fix_missing_locations(changed))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_odd_code_is_looked_into(rule: Rule) -> None:
    for pair in rule.page.pairs:
        for text in variants(pair.bad.code):
            check_text(text.encode(), "odd.py", EVERYTHING)

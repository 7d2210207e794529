"""The markers `max_launches` and `max_compiles`: a test's own compilations, counted while it runs.

jax's caches are cleared before such a test is set up: what it compiles shall not depend on the tests before it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from inspect import signature

import pytest

from fusionlint.budgets import Budget, compile_budget, compiled_too_often, launch_budget, launched_too_often, own
from fusionlint.compiling.attached import chosen
from fusionlint.compiling.capture import Recorder, forget_compiled, recording
from fusionlint.compiling.targets import TargetError, missing
from fusionlint.pytesting.targets import names
from fusionlint.recorded import explain_recorded
from fusionlint.rule import all_rules

_READERS = {"max_launches": launch_budget, "max_compiles": compile_budget}


class BudgetWarning(pytest.PytestWarning):
    """A budget that was exceeded under another jaxlib than its own, or could not be checked."""


@dataclass(frozen=True, slots=True)
class _Excess:
    """What is wrong with one budget: it was counted (`is_count`) and exceeded, or cannot be. `is_doubtful` says
    that it may be otherwise with another jaxlib, or on another machine."""

    text: str
    is_count: bool = False
    is_doubtful: bool = False


class Budgets:
    """The hooks of a run in which a test has a budget."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if _budgets(item):
            forget_compiled()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        budgets = _budgets(item)
        if not budgets:
            return (yield)
        recorder = Recorder(everything=True)
        with recording(recorder):
            result = yield  # a test that fails by itself says so itself
        found = [excess for budget in budgets for excess in _excesses(budget, recorder)]
        strict = item.config.getoption("--fusionlint-strict")
        failed = [excess.text for excess in found if strict or not excess.is_doubtful]
        for excess in found:
            if excess.is_doubtful and not strict:
                item.warn(BudgetWarning(f"{excess.text}\n(--fusionlint-strict makes it fail)"))
        if failed:
            pytest.fail("\n\n".join(failed), pytrace=False)
        return result


def _budgets(item: pytest.Item) -> list[Budget]:
    """Those of a test; of several for one target, the one nearest to it."""
    default = next(iter(names(item.config)), "")
    found: dict[tuple[str, str], Budget] = {}
    for name in _READERS:
        for mark in item.iter_markers(name):
            budget = _read(mark)
            target = budget.target or default
            found.setdefault((name, target), replace(budget, target=target))
    return [*found.values()]


def _read(mark: pytest.Mark) -> Budget:
    reader = _READERS[mark.name]
    try:
        signature(reader).bind(*mark.args, **mark.kwargs)  # what Python says of a call names the function
        return reader(*mark.args, **mark.kwargs)
    except TypeError as error:
        wrong = f"@pytest.mark.{mark.name}: {error}"
    pytest.fail(wrong, pytrace=False)


def _excesses(budget: Budget, recorder: Recorder) -> Iterator[_Excess]:
    jaxlib = recorder.recording().versions["jaxlib"]
    is_of = budget.is_of(jaxlib)
    other = "" if is_of else f"\n(the budget was counted with jaxlib {budget.jaxlib}, this is {jaxlib})"
    found = _compiles(budget, recorder) if budget.of == "compiles" else _launches(budget, recorder)
    for one in found:
        of_another = one.is_count and not is_of
        said = f"{budget.name}: {one.text}{other if of_another else ''}"
        yield replace(one, text=said, is_doubtful=one.is_doubtful or of_another)


def _compiles(budget: Budget, recorder: Recorder) -> Iterator[_Excess]:
    return (_Excess(text, is_count=True) for text in compiled_too_often(budget, recorder.recording()))


def _launches(budget: Budget, recorder: Recorder) -> Iterator[_Excess]:
    try:
        (target,) = chosen([budget.target] if budget.target else [])
    except TargetError as error:
        yield _Excess(str(error))
        return
    if absent := missing(target):
        yield _Excess(f"cannot be checked: {absent}", is_doubtful=True)
        return
    seen = recorder.recording((target.platform,))
    told = explain_recorded(replace(seen, functions=(*own(seen),)), [target], all_rules())
    if told:
        yield from (_Excess(text, is_count=True) for text in launched_too_often(budget, told))
    elif seen.notes:
        yield _Excess(f"cannot be checked: {'; '.join(seen.notes)}", is_doubtful=True)
    else:
        yield _Excess("the test compiled no function of yours: there is nothing to count")

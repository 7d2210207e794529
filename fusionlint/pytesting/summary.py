"""`pytest --fusionlint`: at the end, what all tests compiled, as `fusionlint run` says it of a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fusionlint.compiling.attached import chosen
from fusionlint.compiling.site.sitecustomize import AfterJax
from fusionlint.compiling.targets import Target, TargetError
from fusionlint.merging import merged
from fusionlint.pytesting.targets import names
from fusionlint.recording import Recording, from_fields, recording_json

_HANDED = "fusionlint"  # the place in what a worker of pytest-xdist gives to its controller


class Summary:
    """Captures from the moment on that jax is imported: conftest files may have settings to make before."""

    def __init__(self, config: pytest.Config) -> None:
        from fusionlint.compiling.capture import Recorder

        self.targets = _targets(config)
        self.command = ("pytest", *map(str, config.invocation_params.args))
        self.recorder = Recorder()
        self.finder = AfterJax(self.begin)
        self.is_listening = False
        self.handed: dict[str, str | None] = {}  # by worker; "" of one that had no jax, None of one that died
        if "jax" in sys.modules:
            self.begin()
        else:
            sys.meta_path.insert(0, self.finder)

    def begin(self) -> None:
        """Listen to what jax compiles."""
        from fusionlint.compiling import hooks

        hooks.follow(self.recorder)
        self.is_listening = True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker of pytest-xdist: hand what was captured to the controller, which has the terminal."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_HANDED] = recording_json(self.recording()) if self.is_listening else ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """In the controller of pytest-xdist: take what a worker handed over, if it came so far."""
        self.handed[node.gateway.id] = getattr(node, "workeroutput", {}).get(_HANDED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("fusionlint")
        if not self.is_listening:
            sys.meta_path.remove(self.finder)
        for worker in sorted(worker for worker, text in self.handed.items() if text is None):
            terminalreporter.line(f"worker {worker} died: what it compiled is not known")
        by_worker = [from_fields(json.loads(text)["recording"]) for _, text in sorted(self.handed.items()) if text]
        if by_worker or (self.is_listening and not self.handed):
            terminalreporter.write(self.text(merged(by_worker) if by_worker else self.recording()))
        elif None not in self.handed.values():
            terminalreporter.line("no test imported jax")

    def recording(self) -> Recording:
        """What this process has compiled, with the programs for the targets."""
        from fusionlint.compiling import hooks

        hooks.unfollow(self.recorder)  # what lowering compiles is no test's
        platforms = tuple(dict.fromkeys(target.platform for target in self.targets))
        return self.recorder.recording(platforms)

    def text(self, recording: Recording) -> str:
        """What `fusionlint run` would say."""
        from fusionlint.recorded import explain_recorded
        from fusionlint.report.explain_head import IN_PYTEST
        from fusionlint.report.run_text import run_text
        from fusionlint.rule import all_rules

        told = explain_recorded(recording, self.targets, all_rules())
        return run_text(replace(recording, command=self.command), told, option=IN_PYTEST)


def _targets(config: pytest.Config) -> Sequence[Target]:
    try:
        return chosen(names(config))
    except TargetError as error:
        raise pytest.UsageError(f"fusionlint: {error}") from None

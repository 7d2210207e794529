"""`pytest --fusionlint`: at the end, what all tests compiled, as `fusionlint run` says it of a script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fusionlint.compiling.attached import chosen
from fusionlint.compiling.site.sitecustomize import AfterJax
from fusionlint.compiling.targets import Target, TargetError
from fusionlint.pytesting.targets import names


class Summary:
    """Captures from the moment on that jax is imported: conftest files may have settings to make before."""

    def __init__(self, config: pytest.Config) -> None:
        from fusionlint.compiling.capture import Recorder

        self.targets = _targets(config)
        self.command = ("pytest", *map(str, config.invocation_params.args))
        self.recorder = Recorder()
        self.finder = AfterJax(self.begin)
        self.is_listening = False
        if "jax" in sys.modules:
            self.begin()
        else:
            sys.meta_path.insert(0, self.finder)

    def begin(self) -> None:
        """Listen to what jax compiles."""
        from fusionlint.compiling import hooks

        hooks.follow(self.recorder)
        self.is_listening = True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        terminalreporter.section("fusionlint")
        if config.getoption("numprocesses", None):
            terminalreporter.line("the tests ran in other processes: run them without -n to see what they compile")
        elif not self.is_listening:
            sys.meta_path.remove(self.finder)
            terminalreporter.line("no test imported jax")
        else:
            terminalreporter.write(self.text())

    def text(self) -> str:
        """What `fusionlint run` would say."""
        from fusionlint.compiling import hooks
        from fusionlint.recorded import explain_recorded
        from fusionlint.report.run_text import run_text
        from fusionlint.rule import all_rules

        hooks.unfollow(self.recorder)  # what lowering compiles is no test's
        platforms = tuple(dict.fromkeys(target.platform for target in self.targets))
        recording = replace(self.recorder.recording(platforms), command=self.command)
        return run_text(recording, explain_recorded(recording, self.targets, all_rules()))


def _targets(config: pytest.Config) -> Sequence[Target]:
    try:
        return chosen(names(config))
    except TargetError as error:
        raise pytest.UsageError(f"fusionlint: {error}") from None

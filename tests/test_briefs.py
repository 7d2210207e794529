"""briefs: what a cache keeps of the rules says what their pages and checks say, and spares loading the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint import rule as rule_module
from fusionlint.rule import all_rules, definition, outside, pages
from fusionlint.source import briefs
from fusionlint.source.cache import Cache
from fusionlint.source.reading import read_facts
from fusionlint.source.tree import Source
from fusionlint.source.world import join

CODE = """
import jax.numpy as jnp


def policy(x):
    return jnp.select([x > 2, x > 1, x > 0], [x, x * x, x / 2], 0.0)
"""
LOADED = """
import json, sys
from fusionlint.cli import main
try:
    main(["check", "policy.py", "--output-format", "json"])
finally:
    print(json.dumps(sorted(name for name in sys.modules if name.startswith("fusionlint.rules."))))
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache that another run has left, and this process has not been asked about."""
    monkeypatch.setattr(briefs, "_KEPT", {})
    cache = Cache(tmp_path / "cache")
    briefs.keep(cache)
    return cache


def test_a_cache_keeps_what_all_pages_and_checks_say(kept: Cache) -> None:
    briefs.recall(kept)
    assert [*briefs.briefs()] == [rule.name for rule in all_rules()]
    for rule in all_rules():
        brief = briefs.briefs()[rule.name]
        assert (brief.targets, brief.is_of_arithmetic) == (rule.page.targets, rule.page.is_of_arithmetic)
        calls = [sensor.names for sensor in rule.source_sensors]
        assert (brief.calls is None) == any(not names for names in calls)
        assert brief.calls is None or {*brief.calls} == {*frozenset().union(*calls)}


def test_the_rules_about_some_calls_are_all_that_could_speak(kept: Cache) -> None:
    briefs.recall(kept)
    briefs._index.cache_clear()
    names = {"jax.numpy.select", "jax.lax.scan"}
    could = [
        rule
        for rule in all_rules()
        if any(not sensor.names or not sensor.names.isdisjoint(names) for sensor in rule.source_sensors)
        or not rule.source_sensors
    ]
    about = [*briefs.rules_about(names)]
    briefs._index.cache_clear()
    assert {rule.name for rule in could if rule.source_sensors} <= {rule.name for rule in about}
    assert len(about) < len(all_rules())


def test_where_a_check_finds_what_it_looks_for_the_file_calls_what_it_needs() -> None:
    met = set[str]()
    for page in pages().values():
        for block in page.blocks:
            world = join({"m.py": read_facts(block.code, "m.py", "m")})
            source = Source("m.py", block.code.encode(), world.project, world.contexts)
            for rule in all_rules():
                for sensor in rule.source_sensors:
                    if sensor.needs and sensor.when and any(True for _ in sensor.when(source)):
                        assert not sensor.needs.isdisjoint(source.names), (rule.name, page.name, block.line)
                        met.add(rule.name)
    assert met == {rule.name for rule in all_rules() if any(sensor.needs for sensor in rule.source_sensors)}


def test_what_looks_the_same_from_outside_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(briefs, "_KEPT", {})
    monkeypatch.setattr(rule_module, "_KNOWN", {})
    cache = Cache(tmp_path)
    briefs.keep(cache)
    assert cache.definition(outside()) == definition()
    assert cache.definition(b"otherwise") is None
    cache.keep_definition(outside(), b"what is kept")
    definition.cache_clear()
    briefs.recall(cache)
    assert definition() == b"what is kept"
    definition.cache_clear()


def test_a_file_that_is_written_anew_looks_otherwise_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "a.md"
    page.write_text("one")
    monkeypatch.setattr(rule_module, "_folders", lambda: [str(tmp_path)])
    seen = outside.__wrapped__()
    assert outside.__wrapped__() == seen
    os.utime(page, ns=(0, page.stat().st_mtime_ns + 1))
    assert outside.__wrapped__() != seen


def test_rules_that_changed_are_not_known_by_what_is_kept(kept: Cache) -> None:
    assert kept.briefs(definition())
    assert kept.briefs(b"other code") is None


def test_a_second_run_loads_only_rules_that_could_speak_and_finds_the_same(tmp_path: Path) -> None:
    (tmp_path / "policy.py").write_text(CODE)
    ran = []
    for change in ("", "\n# a comment\n"):
        (tmp_path / "policy.py").write_text(CODE + change)
        done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, check=False)
        *said, loaded = done.stdout.splitlines()
        ran.append((json.loads("\n".join(said))["findings"], json.loads(loaded)))
    (first, every), (second, few) = ran
    assert [finding["rule"] for finding in second] == ["select-or-piecewise"]
    assert second == first
    assert "fusionlint.rules.select_or_piecewise" in few
    assert "fusionlint.rules.sort_for_top_p" in {*every} - {*few}

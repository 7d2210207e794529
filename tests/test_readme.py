"""What the README and docs/ show is what fusionlint prints."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import package_index
import projects
import pytest
from click import Context
from click.testing import CliRunner
from documents import PAGES, README, ROOT, SHOWN

from fusionlint.cli import main
from fusionlint.compiling import targets
from fusionlint.config import _READ
from fusionlint.finding import MAY_CHANGE
from fusionlint.rule import all_rules

BLOCKS = [block for page in PAGES.values() for block in re.findall(r"^```\w*\n(.*?)^```$", page, re.M | re.S)]


def shown(command: str) -> tuple[list[str], list[str]]:
    """The arguments of the command that begins so, and the lines that are shown below it, up to `...`: in each of the
    places that show it the same."""
    (block,) = {one for one in BLOCKS if one.startswith(f"$ {command}")}
    first, *lines = block.splitlines()
    words = shlex.split(first)
    return words[words.index("fusionlint") + 1 :], lines[: lines.index("...")] if "..." in lines else lines


def printed(arguments: list[str], folder: Path, status: int = 1) -> list[str]:
    done = subprocess.run([sys.executable, "-m", "fusionlint", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines()


def without_seconds(lines: list[str]) -> list[str]:
    return [re.sub(r"[\d.]+ m?s(?=\)|$| \(jax)", "a moment", line) for line in lines]


def test_the_finding_at_the_top_is_what_check_prints() -> None:
    project = projects.PROJECTS["gymnax"]
    if not projects.cached(project).exists():
        package_index.require()
    arguments, lines = shown("fusionlint check gymnax/environments/bsuite/catch.py")
    assert printed(arguments, projects.fetch(project)) == lines


def test_the_finding_in_freeway_is_what_check_prints() -> None:
    project = projects.PROJECTS["gymnax"]
    if not projects.cached(project).exists():
        package_index.require()
    arguments, lines = shown("fusionlint check gymnax/environments/minatar/freeway.py")
    assert printed(arguments, projects.fetch(project))[: len(lines)] == lines


def test_the_rewrite_that_is_shown_is_that_of_the_example() -> None:
    (code,) = re.findall(r"^```python\n(def get_obs.*?)^```$", SHOWN, re.M | re.S)
    example = (ROOT / "examples" / "freeway" / "freeway.py").read_text(encoding="utf-8")
    assert textwrap.indent(code, "    ") in example


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ("examples/cartpole/c_no_rng.py:rollout", 1),
        ("examples/freeway/step.py:rewritten", 0),
        ("'examples/meshes/attention.py:joined", 0),
    ],
)
def test_a_report_that_is_shown_is_what_explain_prints_for_an_h100(spec: str, status: int) -> None:
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    if "freeway" in spec:
        pytest.importorskip("gymnax", reason="gymnax is not installed: pip install 'fusionlint[examples]'")
    arguments, lines = shown(f"fusionlint explain {spec}")
    if "jax 0.10.2," not in lines[0] or targets.versions(targets.get("h100"))["jax"] != "0.10.2":
        pytest.skip("what is shown is what jax 0.10.2 makes")
    assert without_seconds(printed(arguments, ROOT, status))[: len(lines)] == without_seconds(lines)


@pytest.mark.compilers
def test_the_trials_that_are_shown_are_what_explain_prints_for_an_h100() -> None:
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    command = "fusionlint explain examples/fixes/nearest.py:assign"
    arguments, first = shown(command)
    if targets.versions(targets.get("h100"))["jax"] != "0.10.2":
        pytest.skip("what is shown is what jax 0.10.2 makes")
    last = SHOWN.partition(f"$ {command}")[2].partition("\n...\n")[2].partition("\n```")[0].splitlines()
    said = printed(arguments, ROOT)
    assert without_seconds(said[: len(first)]) == without_seconds(first)
    assert said[-len(last) :] == last


@pytest.mark.compilers
def test_the_run_that_is_shown_is_what_run_prints_for_an_h100(monkeypatch: pytest.MonkeyPatch) -> None:
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    pytest.importorskip("optax")
    arguments, lines = shown("JAX_PLATFORMS=cpu fusionlint run")
    if targets.versions(targets.get("h100"))["jax"] != "0.10.2":
        pytest.skip("what is shown is what jax 0.10.2 makes")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    command = [sys.executable, "-m", "fusionlint", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    said, expected = without_seconds(done.stderr.splitlines()), without_seconds(lines)
    assert said[: len(expected)] == expected


@pytest.mark.compilers
def test_the_comparison_that_is_shown_is_what_diff_prints_for_an_h100(tmp_path: Path) -> None:
    """Of a repository whose main keeps the state apart, and whose HEAD stacks it."""
    if absent := targets.missing(targets.get("h100")):
        pytest.skip(absent)
    arguments, lines = shown("fusionlint diff main HEAD")
    if targets.versions(targets.get("h100"))["jax"] != "0.10.2":
        pytest.skip("what is shown is what jax 0.10.2 makes")
    cartpole = ROOT / "examples" / "cartpole"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for variant, then in (("d_tuple_carry", ["branch", "-f", "main"]), ("c_no_rng", ["status"])):
        shutil.copy(cartpole / f"{variant}.py", tmp_path / "cartpole.py")
        shutil.copy(cartpole / "dynamics.py", tmp_path)
        for words in (["init", "-q", "-b", "stacked"], ["add", "."], ["commit", "-q", "-m", variant], then):
            subprocess.run([*git, *words], cwd=tmp_path, check=True, capture_output=True)
    assert printed(arguments, tmp_path)[: len(lines)] == lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_that_a_page_uses_is_there(page: Path) -> None:
    text = PAGES[page]
    headings = {f"#{title.lower().replace(' ', '-')}" for title in re.findall(r"^#+ (.*)$", text, re.M)}
    for name in re.findall(r"\]\((?!http)([^)]+)\)", text):
        assert name in headings or (page.parent / name).exists(), name
    rules = {rule.name for rule in all_rules()}
    assert set(re.findall(r"fusionlint rule ([a-z][a-z-]+)", text)) <= rules
    assert set(re.findall(r'ignore = \["([a-z-]+)"\]', text)) <= rules


def test_the_readme_leads_to_every_page() -> None:
    assert {page.name for page in PAGES} - {"README.md"} <= set(re.findall(r"\]\(docs/([^)]+)\)", README))


@pytest.mark.parametrize("name", ["check", "explain", "run", "diff"])
def test_the_synopsis_of_a_command_has_its_options(name: str) -> None:
    synopsis = next(block for block in BLOCKS if block.startswith(f"fusionlint {name} ") and "[--" in block)
    options = {one.opts[0] for one in main.get_command(Context(main), name).params if one.param_type_name == "option"}
    assert options == set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", synopsis))


def test_all_keys_of_the_configuration_are_listed() -> None:
    (listed,) = re.findall(r"^All keys: (.*?)\.", SHOWN, re.M)
    assert sorted(re.findall(r"`([a-z-]+)`", listed)) == sorted(_READ)


def test_it_says_of_unsafe_fixes_what_the_command_says() -> None:
    told = CliRunner().invoke(main, ["check", "--help"]).stdout
    assert all(MAY_CHANGE in page.read_text(encoding="utf-8") for page in (ROOT / "README.md", ROOT / "docs/check.md"))
    assert MAY_CHANGE in " ".join(told.split())

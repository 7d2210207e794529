"""`fusionlint diff` as a user runs it: on git revisions, reports and recordings, with real compilations."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import compilers
import pytest
from commands import run
from diffs import barrier, document, ran, report, run_document

from fusionlint.compiling.targets import get, missing
from fusionlint.diffing import Given, specs_of
from fusionlint.recorded import to_save
from fusionlint.recording import Compilation, Place, RecordedFunction, Recording, recording_json

pytest.importorskip("jax")

FUSED = """\
import jax.numpy as jnp


def step(x, v):
    return jnp.sin(x) + v * 2.0
"""
STACKED = """\
import jax.numpy as jnp


# The sum runs over both.
def step(x, v):
    both = jnp.stack([jnp.sin(x) + v, v * 2.0], axis=1)
    return jnp.cumsum(both, axis=0) + both
"""
LINE = "both = jnp.stack([jnp.sin(x) + v, v * 2.0], axis=1)"
ARGUMENTS = "(f32[512], f32[512])"
SPEC = f"env.py:step{ARGUMENTS}"
ON_CPU = ("--target", "cpu")


def git(*arguments: str, folder: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git("add", ".", folder=folder)
    git("commit", "-qm", "a change", folder=folder)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits: `fused` and, checked out, `stacked`."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    git("init", "-qb", "main", folder=folder)
    commit(folder, env=FUSED)
    git("tag", "fused", folder=folder)
    commit(folder, env=STACKED)
    git("tag", "stacked", folder=folder)
    return folder


# Revisions


@pytest.mark.parametrize("target", compilers.each("cpu", "h100"))
def test_a_revision_that_is_worse_says_at_which_line_and_leaves_the_checkout_as_it_is(
    repository: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Also what is changed or staged there, what a hook would do, and what git tells its own hooks."""
    if absent := missing(get(target)):
        pytest.skip(absent)
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    (repository / "env.py").write_text("not Python at all")
    (repository / "staged.py").write_text("")
    git("add", "staged.py", folder=repository)

    def state() -> list[object]:
        index = hashlib.sha256((repository / ".git" / "index").read_bytes()).hexdigest()
        said = [git(*words, folder=repository) for words in (("worktree", "list"), ("branch", "-a"), ("stash", "list"))]
        return [index, *said, sorted(path.name for path in repository.iterdir()), (repository / "env.py").read_text()]

    before = state()
    with monkeypatch.context() as inside_a_hook:
        inside_a_hook.setenv("GIT_DIR", str(repository / ".git"))
        inside_a_hook.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
        done = run("diff", "fused", "HEAD", "--", SPEC, "--target", target)
    assert state() == before
    assert (done.exit_code, done.stderr) == (1, "")
    first, second, *_ = done.stdout.splitlines()
    assert first == "fused -> HEAD: 1 function worse"
    assert second.startswith("both compiled by jax ")
    assert f"worse  env.py:step on {target}  1 -> " in done.stdout
    assert "\n+ concatenate  env.py:6 in step  " in done.stdout
    assert f"\n     6 | {LINE}\n" in done.stdout


def test_code_that_only_moved_is_no_change_even_where_it_is_not_committed(repository: Path) -> None:
    (repository / "env.py").write_text("# A line more.\n" + STACKED)
    done = run("diff", "stacked", ".", SPEC, *ON_CPU)
    assert done.stdout.startswith("stacked -> .: 1 function unchanged\n")
    assert (done.exit_code, "env.py:" in done.stdout) == (0, False)


def test_a_file_that_moved_between_the_revisions_is_found_in_each(repository: Path) -> None:
    (repository / "lib").mkdir()
    git("mv", "env.py", "lib/env.py", folder=repository)
    commit(repository)
    done = run("diff", "stacked", "HEAD", SPEC, *ON_CPU, "--all")
    assert (done.exit_code, done.stdout.startswith("stacked -> HEAD: 1 function unchanged\n")) == (0, True), done.stderr
    assert "\nlib/env.py:step on cpu\nit was env.py:step\n" in done.stdout
    done = run("diff", "fused", ".", f"lib/{SPEC}", *ON_CPU)
    assert done.stdout.startswith("fused -> .: 1 function worse\n")
    # Of two files of that name nobody knows which it was.
    (repository / "far").mkdir()
    git("mv", "lib/env.py", "far/env.py", folder=repository)
    (repository / "lib" / "env.py").parent.mkdir(exist_ok=True)
    (repository / "lib" / "env.py").write_text("")
    commit(repository)
    done = run("diff", "stacked", "HEAD", SPEC, *ON_CPU)
    assert (done.exit_code, "HEAD: there is no file env.py" in done.stdout) == (2, True)


def test_dims_are_the_sizes_of_annotations_on_both_sides(repository: Path) -> None:
    pytest.importorskip("jaxtyping")
    annotated = (
        "from jaxtyping import Array, Float\n{}\nstep.__annotations__ = dict.fromkeys('xv', Float[Array, 'n'])\n"
    )
    commit(repository, env=annotated.format(FUSED))
    git("tag", "-f", "fused", folder=repository)
    commit(repository, env=annotated.format(STACKED))
    done = run("diff", "fused", "HEAD", "--", "env.py:step", "--dim", "n=512", *ON_CPU, "--output-format", "json")
    assert done.exit_code == 1, done.stderr
    assert "(f32[512], f32[512])" in done.stdout


def test_a_function_that_is_new_is_said_to_be_and_one_that_fails_now_is_exit_2(repository: Path) -> None:
    commit(repository, fails="def double(x):\n    return x * 2\n")
    commit(repository, fails="def double(x):\n    return x.no_such()\n", new="def half(x):\n    return x / 2\n")
    done = run("diff", "HEAD~1", "HEAD", "fails.py:double(f32[8])", "new.py:half(f32[8])", *ON_CPU)
    assert done.exit_code == 2
    assert "new              new.py:half on cpu      1 " in done.stdout
    assert "no report after  fails.py:double on cpu  1 " in done.stdout
    assert "\nHEAD~1: there is no file new.py" in done.stdout
    assert "\nHEAD: " in done.stdout
    assert "no_such" in done.stdout


def test_from_a_folder_below_and_by_full_path_it_is_the_revisions_code(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "examples").mkdir()
    commit(repository, **{"examples/use": "from env import step\n"})
    git("tag", "used", folder=repository)
    commit(repository, env=FUSED)
    monkeypatch.chdir(repository / "examples")
    done = run("diff", "used", "HEAD", f"{repository}/env.py:step{ARGUMENTS}", *ON_CPU)
    assert done.stdout.startswith("used -> HEAD: 1 function better\n")
    assert "better  env.py:step on cpu" in done.stdout
    assert done.exit_code == 0
    done = run("diff", "stacked", "HEAD", f"use.py:step{ARGUMENTS}", *ON_CPU)
    assert (done.exit_code, done.stderr) == (2, "fusionlint: stacked: stacked has no folder examples\n")


def test_what_is_installed_from_the_checkout_is_taken_from_the_revision(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `pip install -e .`: a path into the checkout, and `src/`, are those of the worktree."""
    (repository / "lib").mkdir()
    (repository / "src" / "agents").mkdir(parents=True)
    commit(repository, **{"lib/agent": FUSED, "src/agents/__init__": "", "src/agents/env": FUSED})
    git("tag", "older", folder=repository)
    commit(repository, **{"lib/agent": STACKED, "src/agents/env": STACKED})
    with monkeypatch.context() as installed:
        installed.syspath_prepend(str(repository / "lib"))
        done = run("diff", "older", "HEAD", f"agent:step{ARGUMENTS}", f"agents.env:step{ARGUMENTS}", *ON_CPU)
    assert done.stdout.startswith("older -> HEAD: 2 functions worse\n")
    # Where that cannot be told, it is said: both sides would be the same code.
    monkeypatch.setenv("PYTHONPATH", str(repository / "lib"))
    done = run("diff", "older", "HEAD", f"agent:step{ARGUMENTS}", *ON_CPU)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"fusionlint: older: agent:step{ARGUMENTS} took lib/agent.py from your checkout, not from older: name the "
        "function by its path, as in `lib/agent.py:function(...)`\n"
    )


# Recordings and reports

SCRIPT = """\
import jax
import jax.numpy as jnp
import env

step = jax.jit(env.step)
step(jnp.ones(512), jnp.ones(512))
"""
AGAIN = "step(jnp.ones(256), jnp.ones(256))\n"


def test_runs_and_their_recordings_say_the_same_with_the_lines_of_then(repository: Path) -> None:
    """The runs of two revisions in one checkout: its files are those of the second."""
    again = "both = both * jnp.cumsum(jnp.cos(both), axis=0)"
    summed_again = "# Moved.\n" + STACKED.replace("return ", f"{again}\n    return ")
    for name, env, script in (("a", STACKED, SCRIPT), ("b", summed_again, SCRIPT + AGAIN)):
        (repository / "env.py").write_text(env)
        (repository / "train.py").write_text(script)
        said = ("--output-format", "json", "--output", f"{name}.json", "--record", f"{name}-recorded.json")
        command = [sys.executable, "-m", "fusionlint", "run", *ON_CPU, *said, "train.py"]
        subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}, check=True)
    reports = run("diff", "a.json", "b.json")
    recordings = run("diff", "a-recorded.json", "b-recorded.json", *ON_CPU)
    for done in (reports, recordings):
        assert (done.exit_code, done.stderr) == (1, "")
        assert "worse  env.py:step on cpu  " in done.stdout
        assert "1 -> 2 (+100 %)\n" in done.stdout
        assert "\nenv.py:step: compiled again: x: f32[512] -> f32[256]; v: f32[512] -> f32[256]\n" in done.stdout
        assert f"\n     8 | {again}\n" in done.stdout
        assert "| return jnp.cumsum(both, axis=0) + both\n" not in done.stdout  # it only moved
    assert reports.stdout.splitlines()[1:] == recordings.stdout.splitlines()[1:]
    done = run("diff", "fused", "stacked", "--recorded", "b-recorded.json", *ON_CPU)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "worse  env.py:step on cpu  " in done.stdout


def test_the_recording_has_the_text_of_files_that_are_others_now(tmp_path: Path) -> None:
    """A program names the files that its lines come from; those of packages are not kept."""
    own, package = tmp_path / "env.py", tmp_path / "site-packages" / "p.py"
    package.parent.mkdir()
    for path in (own, package):
        path.write_text(FUSED)
    program = b"ML\xefR\x00x\x00" + b"".join(f"{path}\x00".encode() for path in (own, package, tmp_path / "gone.py"))
    function = RecordedFunction("f", "", None, "user", True, (Compilation(0, None, programs={"cpu": program}),))
    assert to_save(Recording(functions=(function,))).sources == {str(own): FUSED}


def test_specs_without_arguments_take_those_of_the_recording_and_what_no_spec_can_say_is_named(tmp_path: Path) -> None:
    def function(name: str, spec: str | None, plain: bool = True) -> RecordedFunction:
        place = Place(str(tmp_path / "env.py"), 1)
        return RecordedFunction(name, "env", place, "user", plain, (Compilation(0, None, spec=spec),))

    functions = (function("step", "(f32[8])"), function("state", None), function("mapped", "(f32[8])", plain=False))
    path = tmp_path / "r.json"
    path.write_text(recording_json(Recording(functions=functions)))
    code = [Given("main"), Given("HEAD")]
    env = tmp_path / "env.py"
    assert specs_of(code, ["env:step", "env:step(f32[2])", "env:state"], path)[0] == (
        *("env:step(f32[8])", "env:step(f32[2])", "env:state"),
    )
    assert specs_of(code, [], path) == (
        (f"{env}:step(f32[8])",),
        [
            f"{env}:{name} is left out: no SPEC can say its arguments, or how it is jitted"
            for name in ("state", "mapped")
        ],
    )


# What cannot be done


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fused", "HEAD"), "say what to explain of a revision: "),
        (("fused", "no-such-branch", SPEC), "no-such-branch is neither a file nor a revision of the git repository "),
        (("fused", "no-such.json", SPEC), "there is no file no-such.json"),
        (("a.json", "env.py"), "env.py is neither a report "),
        (("a.json", "a.json", SPEC), "reports and recordings are compared as they are: "),
        (("a.json", "a.json", "--target", "v5e"), "a.json has no report for v5e: it has h100"),
        (("fused", "HEAD", SPEC, "--target", "h1000"), "h1000"),
        (("fused", "HEAD", "--recorded", "a.json"), "a.json is no recording: "),
        (("fused", "HEAD", "--recorded", "no-such.json"), "no-such.json cannot be read: "),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_2(repository: Path, arguments: tuple[str, ...], says: str) -> None:
    (repository / "a.json").write_text(json.dumps(document(report())))
    done = run("diff", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("fusionlint: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_outside_of_a_repository_a_revision_is_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    done = run("diff", "main", "HEAD", SPEC)
    said = f"fusionlint: main is no file, and no git revision either: {tmp_path} is in no repository\n"
    assert (done.exit_code, done.stderr) == (2, said)


def test_two_reports_that_share_nothing_are_exit_2(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(json.dumps(document(report(f"m:{name}(f32[8])"))))
    done = run("diff", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert done.exit_code == 2
    names = [str(tmp_path / f"{name}.json") for name in "ab"]
    assert done.stderr == f"fusionlint: nothing was compared: {names[0]} has m:a, {names[1]} has m:b\n"


def test_a_function_that_the_earlier_revision_lacks_is_new_and_no_reason_to_fail(repository: Path) -> None:
    commit(repository, new="def half(x):\n    return x / 2\n")
    done = run("diff", "HEAD~1", "HEAD", "new.py:half(f32[8])", *ON_CPU)
    assert (done.exit_code, done.stderr) == (
        0,
        "fusionlint: nothing to compare with: HEAD~1 has no report, and what HEAD has is new\n",
    )
    assert "new  new.py:half on cpu" in done.stdout
    assert "\nHEAD~1: there is no file new.py" in done.stdout
    # The other way round it is gone.
    done = run("diff", "HEAD", "HEAD~1", "new.py:half(f32[8])", *ON_CPU)
    assert (done.exit_code, done.stderr) == (
        0,
        "fusionlint: nothing to compare with: what HEAD has is gone, and HEAD~1 has no report\n",
    )
    assert "gone  new.py:half on cpu" in done.stdout
    # What neither has is a mistake of whoever named it.
    done = run("diff", "HEAD", "HEAD~1", "new.py:third(f32[8])", *ON_CPU)
    assert (done.exit_code, done.stderr) == (2, "fusionlint: nothing was compared: HEAD and HEAD~1 have no report\n")


def test_a_function_a_file_and_a_module_that_are_no_more_are_gone_beside_one_that_fails(repository: Path) -> None:
    """What fails has no report, and alone is exit 2."""
    double = "def double(x):\n    return x * 2\n"
    commit(repository, more=double + double.replace("double", "again"), old=double, ours=double)
    git("rm", "-q", "old.py", "ours.py", folder=repository)
    commit(repository, more=double)
    specs = [SPEC, "more.py:double(f32[8])", "more.py:again(f32[8])", "old.py:double(f32[8])", "ours:double(f32[8])"]
    done = run("diff", "HEAD~1", "HEAD", *specs, *ON_CPU)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("HEAD~1 -> HEAD: 2 functions unchanged, 3 gone\n")
    for name in ("more.py:again", "old.py:double", "ours:double"):
        assert f"\ngone  {name} on cpu " in done.stdout
    commit(repository, more="raise RuntimeError('no')\n")
    done = run("diff", "HEAD~1", "HEAD", *specs[:2], *ON_CPU)
    assert (done.exit_code, "no report after  more.py:double on cpu" in done.stdout) == (2, True)


def test_a_revision_is_compiled_for_what_the_report_is_on_and_a_module_is_its_file(repository: Path) -> None:
    """Whatever the settings or the machine would have it compiled for."""
    (repository / "pyproject.toml").write_text('[tool.fusionlint]\ntarget = ["v5e"]\n')
    told = run("explain", f"env:step{ARGUMENTS}", *ON_CPU, "--output-format", "json")
    now = json.loads(told.stdout)
    now["reports"].append(report("env.py:other(f32[8])", target="cpu"))
    (repository / "now.json").write_text(json.dumps(now))
    done = run("diff", "fused", "now.json", SPEC)
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.startswith("fused -> now.json: 1 function worse, 1 left out\n")
    assert "worse  env:step on cpu  1 -> " in done.stdout


def test_the_tolerance_decides_about_the_exit_code_in_every_format(tmp_path: Path) -> None:
    for name, launches in (("a", 100), ("b", 105)):
        told = run_document(ran(), reports=(report("env.py:rollout(x: f32[8])", barrier(), launches=launches),))
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    files = (str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    for form in ("text", "json", "markdown"):
        assert run("diff", *files, "--output-format", form).exit_code == 1
        assert run("diff", *files, "--output-format", form, "--tolerance", "5").exit_code == 0

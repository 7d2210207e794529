"""diff_text(), diff_markdown() and diff_json(): a small comparison, character by character, and the odd cases."""

from __future__ import annotations

import json

from diffs import LINE, barrier, ran, report, run_document, side

from fusionlint.diff.compare import Diff, compare
from fusionlint.diff.side import side_from
from fusionlint.report.diff_json import diff_json
from fusionlint.report.diff_markdown import diff_markdown
from fusionlint.report.diff_text import diff_text


def example() -> Diff:
    """A jaxlib upgrade: one function is worse, one is new, one the same."""
    versions = {"jax": "0.9.2", "jaxlib": "0.9.2"}
    was = barrier("return x * 2", 20, "cost model", "fused it would be slower", launches=1, crossings=1)
    advised = barrier(rule="columns-of-a-stack", advice="keep them apart")
    before = [report("env.py:rollout(f32[8])", was, launches=2003, microseconds=2500, versions=versions)]
    before.append(report("env.py:reset(key)", versions=versions))
    after = [report("env.py:rollout(f32[8])", advised, barrier("return x * 2", 21, "scatter", None, launches=1))]
    after[0] |= {"launches": 4003, "microseconds": 5600}
    after += [report("env.py:reset(key)"), report("env.py:render(f32[8])")]
    return compare(side(*before, name="old.json"), side(*after, name="new.json"))


TEXT = """\
old.json -> new.json: 1 function worse, 1 unchanged, 1 new
compiled by different versions: jax 0.9.2 -> 0.10.2, jaxlib 0.9.2 -> 0.10.2; a change may be theirs

                               launches               bytes   time
worse  env.py:rollout on h100  2003 -> 4003 (+100 %)  1.0 kB  2.5 ms -> 5.6 ms (+124 %)
new    env.py:render on h100   4                      1.0 kB  5 us

env.py:rollout on h100
+ concatenate  env.py:15 in rollout.step                                        1000 launches, 32.0 kB
    15 | state = jnp.stack([x, v], axis=1)
  XLA now: the consumer is not fusible
  columns-of-a-stack: keep them apart
~ cost model -> scatter  env.py:21 in rollout.step (was line 20)                1 launch, 32 B -> 1 launch, 32.0 kB
    21 | return x * 2
  XLA then: fused it would be slower
  XLA now: gives no reason
"""

MARKDOWN = """\
### fusionlint: 1 function worse, 1 unchanged, 1 new

`old.json` → `new.json`. Compiled by different versions: jax 0.9.2 → 0.10.2, jaxlib 0.9.2 → 0.10.2; a change may be theirs.

| | function | target | launches | bytes | time |
|---|---|---|---:|---:|---:|
| **worse** | `env.py:rollout` | h100 | 2003 → 4003 (+100 %) | 1.0 kB | 2.5 ms → 5.6 ms (+124 %) |
| new | `env.py:render` | h100 | 4 | 1.0 kB | 5 us |

<details open><summary><code>env.py:rollout</code> on h100, barriers: 1 appeared, 1 changed</summary>

- **appeared**: concatenate at `env.py:15 in rollout.step`: 1000 launches, 32.0 kB
  ```python
  state = jnp.stack([x, v], axis=1)
  ```
  - XLA now: the consumer is not fusible
  - columns-of-a-stack: keep them apart

- **changed**: cost model → scatter at `env.py:21 in rollout.step` (was line 20): 1 launch, 32 B → 1 launch, 32.0 kB
  ```python
  return x * 2
  ```
  - XLA then: fused it would be slower
  - XLA now: gives no reason

</details>
"""  # noqa: E501


def test_text() -> None:
    assert diff_text(example()) == TEXT


def test_markdown() -> None:
    assert diff_markdown(example()) == MARKDOWN


def test_json_holds_every_function_with_both_sides() -> None:
    told = json.loads(diff_json(example()))
    assert told["worse"] is True
    assert told["versions_differ"] == {"jax": ["0.9.2", "0.10.2"], "jaxlib": ["0.9.2", "0.10.2"]}
    assert [(one["name"], one["word"]) for one in told["functions"]] == [
        ("env.py:rollout", "worse"),
        ("env.py:reset", "same"),
        ("env.py:render", "new"),
    ]
    (program,) = told["functions"][0]["programs"]
    assert program["quantities"]["launches"]["before"] == 2003
    assert program["quantities"]["launches"]["worse"] is True
    assert [one["word"] for one in program["barriers"]] == ["appeared", "changed"]
    assert program["barriers"][0]["after"]["text"] == LINE
    assert program["barriers"][1]["before"]["reasons"] == ["fused it would be slower"]


def test_what_did_not_change_is_counted_and_listed_where_all_is_asked_for() -> None:
    same = compare(side(report()), side(report()))
    assert diff_text(same) == ("a.json -> a.json: 1 function unchanged\nboth compiled by jax 0.10.2, jaxlib 0.10.2\n")
    assert "same  env.py:rollout on h100  4         1.0 kB  5 us" in diff_text(same, everything=True)


def test_of_many_barriers_the_dearest_are_shown_unless_all_are_asked_for() -> None:
    many = [barrier(f"x = {number}", number + 1, launches=number, writer=f"w{number}") for number in range(12)]
    diff = compare(side(report()), side(report("env.py:rollout(f32[8])", *many)))
    for said in (diff_text, diff_markdown):
        assert "x = 11" in said(diff)
        assert "x = 1\n" not in said(diff)
        assert "… and 2 more; " in said(diff)
        assert "x = 1\n" in said(diff, everything=True)


def test_compilations_and_eager_operations_have_a_column_and_reasons() -> None:
    before = side_from("a", run_document(ran(), reports=(report("env.py:rollout(x: f32[8])"),)))
    after = side_from("b", run_document(ran(times=3), reports=(report("env.py:rollout(x: f32[8])"),), eager=2))
    diff = compare(before, after)
    text = diff_text(diff)
    assert text.splitlines()[0] == "a -> b: 1 function worse, eager operations worse"
    assert "worse  env.py:rollout on h100  4         1.0 kB  5 us  1 -> 3 (+200 %)\n" in text
    assert "worse  eager operations                                0 -> 2\n" in text
    assert "\nenv.py:rollout: compiled again 2 times: x: f32[8] -> f32[4]\n" in text
    assert "- `env.py:rollout` compiled again 2 times: x: f32\\[8\\] → f32\\[4\\]\n" in diff_markdown(diff)


def test_loops_of_unknown_length_have_numbers_of_their_own() -> None:
    before = side(report(launches=3, launches_per_iteration=2))
    after = side(report(launches=3, launches_per_iteration=4))
    assert "3 and 2 -> 4 (+100 %) per iteration" in diff_text(compare(before, after))


def test_errors_are_said_once_with_the_side_that_has_them() -> None:
    before, after = side(name="a", errors=["both fail"]), side(name="b", errors=["both fail", "f fails", "f fails"])
    assert diff_text(compare(before, after)) == "a -> b: no functions\nb: f fails (2 times)\nboth: both fail\n"


def test_what_is_left_out_is_counted_and_listed_where_all_is_asked_for() -> None:
    run = side_from("a", run_document(ran(), reports=(report(), report("env.py:other()")), eager=2))
    diff = compare(run, side(report(), name="b"))
    assert diff_text(diff).splitlines()[0] == "a -> b: 1 function unchanged, 1 left out"
    assert "other" not in diff_text(diff)
    assert "\nleft out  env.py:other on h100" in diff_text(diff, everything=True)


def test_a_run_that_ended_early_is_said_first() -> None:
    before = side_from("a", run_document(ran(), reports=(report(),), eager=2, status=0))
    diff = compare(before, side_from("b", run_document(errors=["it fails"], status=137)))
    early = "b is of a run that ended with exit status 137: what it did not come to is not compared, and "
    assert f"\n{early}compilations and eager operations are not counted\nb: it fails\n" in diff_text(diff)
    assert f"\n- {early}" in diff_markdown(diff)
    assert json.loads(diff_json(diff))["after"]["status"] == 137


def test_what_one_side_alone_was_compiled_by_is_not_said_of_both() -> None:
    diff = compare(side(name="a", errors=["it fails"]), side(report(), name="b"))
    assert diff_text(diff).splitlines()[1:3] == ["b compiled by jax 0.10.2, jaxlib 0.10.2", "a: it fails"]
    older = side(report(versions={"jaxlib": "0.9.2"}), name="a")
    said = "compiled by different versions: jaxlib 0.9.2 -> 0.10.2"
    assert diff_text(compare(older, side(report()))).splitlines()[1:] == [said]


def test_a_recording_from_another_jaxlib_is_said_to_be_one() -> None:
    document = run_document(ran(), reports=(report("env.py:rollout(x: f32[8])"),))
    document["versions"]["jaxlib"] = "0.9.2"
    diff = compare(side_from("a", document), side_from("b", run_document(ran())))
    assert "a was recorded with jaxlib 0.9.2\n" in diff_text(diff, everything=True)


def test_several_signatures_of_a_function_are_told_apart_by_their_arguments() -> None:
    before = side(report("m:f(f32[8])"), report("m:f(f32[4])"), report("m:g()"))
    after = side(report("m:f(f32[8])", barrier(), launches=9), report("m:f(f32[4])"), report("m:g()", launches=9))
    diff = compare(before, after)
    text = diff_text(diff)
    assert "\nworse  m:f(f32[8]) on h100  4 -> 9" in text
    assert "\nsame   m:f(f32[4]) on h100  4 " in text
    assert "\nworse  m:g on h100          4 -> 9" in text
    assert "\n\nm:f(f32[8]) on h100\n+ concatenate" in text
    assert "| **worse** | `m:f(f32[8])` | h100 |" in diff_markdown(diff)
    assert "<code>m:f(f32[8])</code> on h100" in diff_markdown(diff)


def test_markup_in_names_and_code_is_no_markup() -> None:
    text = "f(x | y)  # ``` `a`"
    before = side(report("m:main.<lambda>(f32[8])"))
    after = side(report("m:main.<lambda>(f32[8])", barrier(text, reason="a <b> of *c*"), launches=9), name="a|b`c")
    said = diff_markdown(compare(before, after))
    assert "`` a\\|b`c ``" in said
    assert "<code>m:main.&lt;lambda&gt;</code>" in said
    assert f"  ````python\n  {text}\n  ````\n" in said
    assert "XLA now: a \\<b\\> of \\*c\\*" in said

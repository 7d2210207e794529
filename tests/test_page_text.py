"""`fusionlint rule NAME` reads well on a terminal, and is Markdown in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import style, unstyle

from fusionlint.report.page_text import page_text
from fusionlint.rule import Rule, all_rules

PAGE = """# some-rule

Words that are to be wrapped, `with some code` in them.
**Bold** words.
- an item that is longer than the width of the page
- another
## Below
| target | launches |
|---|---|
| cpu | 8 -> 1 |
| h100 | 11 -> 10 |

```python bad f(f32[8], f32[8])
x = 1

y = 2  # error
```
"""
SHOWN = """some-rule

Words that are to be wrapped,
`with some code` in them.
Bold words.

- an item that is longer than
  the width of the page

- another

Below

  target  launches
  cpu     8 -> 1
  h100    11 -> 10

  bad  f(f32[8], f32[8])
    x = 1

    y = 2  # error
"""


def test_paragraphs_are_wrapped_tables_aligned_and_code_is_indented() -> None:
    assert unstyle(page_text(PAGE, 30)) == SHOWN


def test_headings_and_faulty_lines_stand_out() -> None:
    shown = page_text(PAGE, 30)
    assert style("some-rule", bold=True, underline=True) in shown
    assert style("    y = 2  # error", fg="red", bold=True) in shown
    assert style("Bold", bold=True) in shown


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_no_word_of_a_page_is_lost(rule: Rule) -> None:
    shown = re.sub(
        r"  \((other random numbers|, |not for \w+|for [GT]PU alone)+\)$",
        "",
        unstyle(page_text(rule.page.text, 80)),
        flags=re.M,
    )
    written = re.sub(r"^(```python good)-in-distribution", r"\1", rule.page.text, flags=re.M)
    written = re.sub(r"^(```python \w+) (accelerators|off-[tg]pu|[gt]pus) ", r"\1 ", written, flags=re.M)
    assert words(re.sub(r"\(see\s+", "(", shown)) == words(re.sub(r"\[([\w-]+)\]\(\1\.md\)", r"\1", written))


def words(text: str) -> list[str]:
    """Without the marks of Markdown."""
    return re.sub(r"^#+ |^```(?:python)?|^\|[-|]+$|[|]", " ", text.replace("**", ""), flags=re.M).split()


def test_a_link_to_another_page_is_its_name_and_what_is_left_out_is_said() -> None:
    text = "One ([map-of](map-of.md)), which [map-of](map-of.md) tells.\n"
    assert page_text(text, 80) == "One (see map-of), which map-of tells.\n"
    block = "```python good-in-distribution off-tpu f(f32[8])\nx = 1\n```\n"
    assert unstyle(page_text(block, 80)) == "  good  f(f32[8])  (other random numbers, not for TPU)\n    x = 1\n"


def test_powers_are_not_bold() -> None:
    assert page_text("`x**2 + y**2`, `(a)**2` or `b**2`\n", 80) == "`x**2 + y**2`, `(a)**2` or `b**2`\n"


def test_a_pipe_is_given_the_page_as_it_is_written() -> None:
    rule = all_rules()[0]
    done = subprocess.run([sys.executable, "-m", "fusionlint", "rule", rule.name], capture_output=True, check=True)
    assert done.stdout.decode() == rule.page.text


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_terminal_is_given_the_shown_one(tmp_path: Path) -> None:
    outer, inner = os.openpty()
    command = [sys.executable, "-m", "fusionlint", "rule", all_rules()[0].name]
    with subprocess.Popen(command, stdout=inner, env={**os.environ, "COLUMNS": "60"}) as process:
        os.close(inner)
        shown = b""
        try:
            while more := os.read(outer, 65536):
                shown += more
        except OSError:  # Linux says so at the end
            pass
        os.close(outer)
    assert process.returncode == 0
    text = shown.decode().replace("\r\n", "\n")
    assert text.startswith(style(all_rules()[0].name, bold=True, underline=True))
    assert "```" not in text

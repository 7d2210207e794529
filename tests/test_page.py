"""What is read off a page."""

from fusionlint.finding import Measurement
from fusionlint.page import Page

TEXT = """# some-rule

One thing costs another: so it is. When it does not matter: never.

```python bad f(f32[8])
x = 1  # error
y = 2
```
```python good f(f32[8])
x = 2
```

Measured with jax 0.10.2:

| target | launches | bytes |
|---|---|---|
| cpu | 2 -> 2 | 81.9 kB -> 80 kB |
| h100 | 3 -> 1 | 1 MB -> 1 MB |
| v5e | 2 -> 2 | 2 MB -> 1 MB |

Prose with a | bar.

```python quiet
z = 1
```
```python bad
w = 1  # error
```
```python good
w = 2
```
"""
PAGE = Page("some-rule", TEXT)


def test_blocks_know_their_role_their_spec_and_their_lines() -> None:
    assert [b.role for b in PAGE.blocks] == ["bad", "good", "quiet", "bad", "good"]
    first = PAGE.blocks[0]
    assert (first.spec, first.errors) == ("f(f32[8])", (1,))
    assert TEXT.splitlines()[first.line - 1] == "x = 1  # error"


def test_a_table_belongs_to_the_pair_before_it() -> None:
    first, second = PAGE.pairs
    assert "| h100 |" in TEXT[slice(*first.table)]
    assert TEXT[slice(*second.table)] == ""
    assert Measurement("h100", "launches", 3, 1) in PAGE.measured(first)


def test_a_rule_speaks_for_the_targets_whose_counts_or_bytes_show_harm() -> None:
    assert PAGE.targets == ("h100", "v5e")


def test_more_launches_for_fewer_is_no_harm_even_with_bytes_saved() -> None:
    reversed_ = TEXT.replace("| h100 | 3 -> 1 | 1 MB -> 1 MB |", "| h100 | 1 -> 3 | 9 MB -> 1 MB |")
    assert Page("x", reversed_).targets == ("v5e",)


def test_launches_saved_by_moving_many_times_the_bytes_are_no_harm() -> None:
    bought = TEXT.replace("| h100 | 3 -> 1 | 1 MB -> 1 MB |", "| h100 | 3 -> 1 | 1 MB -> 5 MB |")
    assert Page("x", bought).targets == ("v5e",)


def test_a_page_is_of_arithmetic_if_every_table_counts_what_a_cpu_computes() -> None:
    told = Page("x", TEXT.replace("| target | launches |", "| target | flops |"))
    assert told.is_of_arithmetic
    assert not PAGE.is_of_arithmetic
    assert not Page("x", "# x\n\nNothing is measured yet.\n").is_of_arithmetic


def test_the_summary_is_the_first_sentence() -> None:
    assert PAGE.summary == "One thing costs another: so it is."


def test_the_page_says_what_it_was_measured_with() -> None:
    assert PAGE.jax_version == "0.10.2"

"""What `explain` says of the pages' own pairs: the page's advice of the bad form, and none of it of the good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import compilers
import measuring
import pytest

from fusionlint.rule import all_rules, page

pytestmark = pytest.mark.compilers

# Of each rule the pairs of its page that its sensor knows, by their number, and where: g a GPU, t a TPU, c a CPU.
KNOWN = {
    "argmax-then-pick": {0: "gc", 1: "gc"},
    "argsort-then-gather": {0: "c", 2: "c"},
    "arithmetic-by-at": {0: "gtc", 1: "gt", 2: "t", 3: "gc"},
    "at-set-by-mask": {0: "gc", 1: "gc"},
    "blocks-by-at-set": {0: "gtc", 1: "gtc"},
    "boundary-writes": {0: "gtc", 2: "t"},
    "chained-at-set": {0: "gtc", 1: "gtc", 2: "g", 3: "gc"},
    "choice-without-replacement": {0: "gc", 1: "gc"},
    "chosen-at-set": {0: "gc"},
    "columns-by-at-set": {0: "gtc"},
    "complex-fft-of-real": {0: "gc", 1: "gc"},
    "cond-around-a-write": {0: "gt"},
    "cond-for-where": {0: "tc", 1: "tc", 3: "gt", 4: "tc"},
    "cumsum-of-one-hot": {0: "gc"},
    "diag-then-matmul": {0: "gc", 1: "gc"},
    "draws-one-by-one": {0: "gtc", 1: "gtc"},
    "dynamic-program-without-unroll": {0: "g", 1: "g", 2: "g"},
    "factored-in-two-ways": {0: "gtc", 1: "gtc"},
    "factored-twice": {0: "gc", 1: "gc", 2: "gc", 3: "gtc", 4: "gtc"},
    "ffts-one-by-one": {0: "gc"},
    "flip-around-scan": {0: "gc"},
    "fori-loop-without-unroll": {3: "gt"},
    "grid-per-element": {0: "gc", 1: "g"},
    "independent-permutation": {0: "gtc"},
    "insert-by-scatter": {0: "gc", 1: "gc", 2: "gc"},
    "inverse-then-matmul": {1: "gc", 2: "gtc"},
    "lax-map-for-vmap": {0: "gt", 1: "gt", 2: "gt"},
    "log-softmax-then-pick": {0: "gc"},
    "logsumexp-of-two": {0: "gtc", 1: "gtc"},
    "networks-one-by-one": {0: "gt"},
    "nonzero-as-mask": {0: "gc", 3: "gc"},
    "one-hot-by-at-set": {0: "gc", 3: "gc"},
    "one-hot-in-carry": {0: "gc"},
    "one-hot-matmul": {0: "gc", 2: "gc"},
    "pairwise-loop": {0: "gtc"},
    "roll-then-set": {0: "gtc", 1: "tc", 2: "t"},
    "rope-by-copies": {0: "tc"},
    "rows-one-by-one": {0: "tc", 2: "gtc"},
    "scalar-loop": {0: "gtc"},
    "scan-without-unroll": {1: "gt", 2: "gt", 3: "gt"},
    "segments-one-by-one": {0: "gtc", 1: "tc"},
    "select-or-piecewise": {0: "gtc", 1: "gtc"},
    "small-linear-algebra": {0: "gtc", 3: "gtc"},
    "small-matmul": {0: "gc"},
    "solve-for-cholesky": {0: "gtc", 1: "gtc"},
    "triangle-indices-in-trace": {0: "gtc", 1: "gtc"},
    "vmapped-dynamic-slice": {0: "t", 1: "t", 2: "t", 3: "t"},
    "vmapped-roll": {0: "t", 2: "t"},
    "write-before-reduction": {0: "gc"},
    "write-in-fori-loop": {0: "gtc", 3: "gc"},
    "write-on-diagonal": {0: "gc", 2: "gc"},
}
LETTERS = {"h100": "g", "v5e": "t", "cpu": "c"}


def pairs_on(target: str) -> Iterator[tuple[str, int]]:
    for name, pairs in KNOWN.items():
        yield from ((name, number) for number, where in pairs.items() if LETTERS[target] in where)


@pytest.mark.parametrize("target", LETTERS)
def test_the_bad_form_has_the_advice_of_its_page_and_the_good_form_has_not(target: str, tmp_path: Path) -> None:
    forms = {
        (name, number, block.role.partition("-")[0]): measuring.spec_of(
            block, tmp_path, f"{name.replace('-', '_')}_{number}_{block.role.partition('-')[0]}"
        )
        for name, number in pairs_on(target)
        for block in page(name).pairs[number][:2]
    }
    specs = {":".join(map(str, form)): spec for form, spec in forms.items()}
    reports = compilers.explained(specs, target, all_rules())
    told = {form: form[0] in compilers.told(report) for form, report in zip(forms, reports.values(), strict=True)}
    assert {form for form, is_told in told.items() if not is_told and form[2] == "bad"} == set()
    assert {form for form, is_told in told.items() if is_told and form[2] == "good"} == set()

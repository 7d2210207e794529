"""The catalogue of XLA's reasons: closed, plain, and silent about what it does not know."""

from __future__ import annotations

import pytest

from fusionlint.hlo.reasons import CONSUMERS, REASONS, catalogue, known, plain_words, rewrite

# As XLA:GPU printed them, jax 0.10.2 and before.
SEEN = [
    "the consumer is not fusible",
    "the producer is not fusible",
    "both the producer and the consumer contain a reduce",
    "fusion into output of a reduce fusion would create a loop fusion",
    "the fusion would result in an overly large code duplication",
    "do not fuse into the output of scatter",
    "do not fuse into the in-place operand of scatter",
    "Producer uses the in-place operand of a scatter",
    "can't fuse multiple DUSs",
    "Too many reductions inside single fusion",
    "not fusing because there are only bitcast users",
    "Not fusing power with multiple users because it may result in expensive op duplication",
    "DUS and DS index mismatch",
    "Unsupported opcode scatter",
    "Unsupported opcode dynamic-update-slice",
    "Unsupported opcode reduce-window",
    "Unsupported instruction opcode reverse",
    "Unsupported input data type: Not allowed",
    "Fusion can not be tiled with SymbolicTileAnalysis: No valid tilings found.",
    "No users to fuse",
    "unrecognized inplace update non-elementwise output pair",
    "Producer fusion has multiple non-elementwise ops, bailing.",
    "Fusing slice into DUS will also fuse another non-elementwise op with shared operand as DUS.",
    "Non-elementwise ops in consumer lead to inplace conflict after fusion",
    "expensive producer would be duplicated",
    "Number of operands and output buffers is larger than allowed budget per fusion",
]


@pytest.mark.parametrize("reason", SEEN)
def test_every_reason_that_was_seen_is_known(reason: str) -> None:
    assert known(reason)
    assert plain_words(reason)


def test_an_unknown_reason_is_left_to_speak_for_itself() -> None:
    assert known("wholly new words") is None
    assert plain_words("wholly new words", ("tuple",)) == ""


def test_each_reason_is_matched_by_its_own_entry() -> None:
    for entry in REASONS:
        assert known(entry.part.upper()) == entry
        assert entry.part == entry.part.lower()


def test_a_consumer_that_is_not_fusible_is_named() -> None:
    assert plain_words("the consumer is not fusible", ("sort",)) == CONSUMERS["sort"]
    assert plain_words("the consumer is not fusible", ("tuple", "sort")) == f"{CONSUMERS['tuple']}; {CONSUMERS['sort']}"


def test_an_unheard_of_consumer_leaves_the_general_words() -> None:
    assert plain_words("the consumer is not fusible", ("new-opcode",)) == "the reader takes whole arrays"


def test_the_consumers_do_not_matter_to_other_reasons() -> None:
    assert (
        plain_words("do not fuse into the output of scatter", ("sort",))
        == "a scatter is finished before anything reads it"
    )


def test_the_catalogue_lists_every_reason_with_its_rewrite() -> None:
    text = catalogue()
    for entry in REASONS:
        assert f'"{entry.part}"\n    {entry.words}\n' in text
        assert not entry.rewrite or f"    instead: {entry.rewrite}\n" in text


def test_nobody_is_told_to_scatter_into_zeros() -> None:
    """Measured on an H100, sin(x).at[i].add(v) * 2 of f32[4096,64]: 3 launches and 4.2 MB, combined afterwards the
    same; with the factor on both before, 2 launches and 2.1 MB."""
    assert rewrite("do not fuse into the in-place operand of scatter") == ""
    assert "after .add a factor" in rewrite("do not fuse into the output of scatter")


def test_a_maximum_is_not_called_a_sum() -> None:
    """What XLA says of a reduction it says of any."""
    for entry in REASONS:
        assert "sum" not in f"{entry.words} {entry.rewrite}".replace("(a sum, a maximum)", "").split()

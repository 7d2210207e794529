"""XLA's own log of fusion decisions -> {instruction: Verdict}."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """XLA's own words about why `producer` was not fused into `consumer`; microseconds where XLA gives them."""

    producer: str
    consumer: str | None
    reason: str
    us_fused: float | None = None
    us_unfused: float | None = None

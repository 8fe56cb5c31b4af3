"""The orders of ops that Megatron's schedules run on one rank, as ("F" or "B", microbatch, chunk)."""

from __future__ import annotations

Order = list[tuple[str, int, int]]


def one_f_one_b(ranks: int, rank: int, microbatches: int) -> Order:
    warmup = min(ranks - rank - 1, microbatches)
    forwards = [("F", m, 0) for m in range(microbatches)]
    backwards = [("B", m, 0) for m in range(microbatches)]
    return _interleave(forwards, backwards, warmup)


def interleaved(ranks: int, rank: int, microbatches: int, chunks: int) -> Order:
    """Groups of as many microbatches as there are ranks."""
    table = [
        (first + m, chunk)
        for first in range(0, microbatches, ranks)
        for chunk in range(chunks)
        for m in range(min(ranks, microbatches - first))
    ]
    forwards = [("F", m, chunk) for m, chunk in table]
    backwards = [("B", m, chunks - 1 - chunk) for m, chunk in table]
    warmup = min((ranks - rank - 1) * 2 + (chunks - 1) * ranks, len(table))
    return _interleave(forwards, backwards, warmup)


def _interleave(forwards: Order, backwards: Order, warmup: int) -> Order:
    order = forwards[:warmup]
    for forward, backward in zip(forwards[warmup:], backwards):
        order += [forward, backward]
    return order + backwards[len(forwards) - warmup :]

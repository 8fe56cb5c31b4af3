"""What stands in for a tensor: an object with an identity."""

from __future__ import annotations


class Tensor:
    def __init__(self, data: object) -> None:
        self.data = data

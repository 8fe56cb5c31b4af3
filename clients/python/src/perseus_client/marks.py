"""When an op begins and ends: on the host, or on the GPU's stream.

Frameworks queue kernels and return: the host is ahead of the GPU. A mark on the host says when work was queued, a
mark on the stream when the GPU got there. Marks on the stream are CUDA events; a thread waits for them, so that the
training thread never does and the device is never synchronised.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from typing import Any, Callable, Protocol

Post = Callable[[int, int, int, int], None]
"""Sends an event (kind, instruction, chunk, microbatch) that happens now."""

_MAX_WAITING = 8192


class StreamEvent(Protocol):
    """What is used of a torch.cuda.Event."""

    def record(self) -> None:
        """Marks this point of the current stream."""

    def synchronize(self) -> None:
        """Waits until the stream has come to that point."""


class StreamMarks:
    """Posts each event when the current stream gets to where it was marked, in the order of the marks.

    Recorded by any thread; posted by one thread of its own. An event whose stream can't be waited for is posted at
    once. While a CUDA graph is captured nothing is marked: what is captured runs later, and without Python.
    """

    def __init__(
        self,
        post: Post,
        new_event: Callable[[], StreamEvent],
        capturing: Callable[[], bool],
        logger: logging.Logger,
    ) -> None:
        self._post = post
        self._new_event = new_event
        self._capturing = capturing
        self._logger = logger
        self._spare: list[StreamEvent] = []
        self._waiting: queue.SimpleQueue[tuple[StreamEvent, tuple[int, int, int, int]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, name="perseus-marks", daemon=True)
        self._thread.start()

    def mark(self, kind: int, instruction: int, chunk: int, microbatch: int) -> None:
        """Queues the event behind what the current stream has to do. Never waits and never raises."""
        try:
            if self._capturing() or self._waiting.qsize() >= _MAX_WAITING:
                return
            event = self._spare.pop() if self._spare else self._new_event()
            event.record()
        except Exception:
            self._logger.debug("Perseus can't mark the GPU's stream", exc_info=True)
            return
        self._waiting.put((event, (kind, instruction, chunk, microbatch)))

    def close(self, timeout_s: float) -> None:
        """Waits for the marks made so far, but no longer than timeout_s."""
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _wait(self) -> None:
        while True:
            item = self._waiting.get()
            if item is None:
                return
            event, fields = item
            try:
                event.synchronize()
            except Exception:
                self._logger.debug("Perseus can't wait for the GPU's stream", exc_info=True)
            self._post(*fields)
            self._spare.append(event)


def cuda_marks(post: Post, logger: logging.Logger) -> StreamMarks | None:
    """Marks on PyTorch's current CUDA stream; None unless the program uses CUDA through PyTorch already.

    Imports nothing and initialises nothing.
    """
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        cuda = torch.cuda

        def new_event() -> StreamEvent:
            event: StreamEvent = cuda.Event(enable_timing=False, blocking=True)
            return event

        return StreamMarks(post, new_event, cuda.is_current_stream_capturing, logger)
    except Exception:
        logger.debug("Perseus can't mark a CUDA stream", exc_info=True)
        return None

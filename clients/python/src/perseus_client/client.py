"""The client: tells the node's agent what a training process does, and never gets into its way.

Nothing here blocks, and nothing raises once training runs: without an agent, events are counted and dropped.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from . import devices, environment, wire
from .connection import Connection
from .marks import StreamMarks, cuda_marks
from .scopes import OpScope, StepScope
from .spec import check_job, check_rank, complete

VERSION = "0.1.0"

FORWARD = "forward"
BACKWARD = "backward"
INPUT_GRADIENT = "input-gradient"
WEIGHT_GRADIENT = "weight-gradient"
OVERLAP = "overlap"

_INSTRUCTION = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_TIMINGS = ("auto", "host", "stream")


class PerseusClient:
    """One rank of a training job, as the agent of its node sees it.

    Says when steps and ops begin and end; the agent sets the clocks. Use one client for each rank's process, from
    any thread and any asyncio task: a rank runs one op at a time, so an op or step that begins while another is
    open is part of that one, and only the outermost is told.

    - The agent is looked for at step begins: not there, it is tried again after 1 s, then later and later up to
      once a minute. It may come, go and come back at any time.
    - An event that can't be sent at once is dropped and counted (`dropped`); sequence numbers let the agent see it.
    - After a fork the connection stays the parent's. A child connects for itself if it begins steps.
    - Without a job id (argument or PERSEUS_JOB) the client is disabled: it opens nothing and costs next to nothing.
    """

    def __init__(
        self,
        rank: int | None = None,
        dp_rank: int | None = None,
        pp_rank: int | None = None,
        tp_rank: int | None = None,
        device: int | str | None = None,
        *,
        cp_rank: int | None = None,
        ep_rank: int | None = None,
        job: str | None = None,
        spec: Mapping[str, Any] | None = None,
        generation: int = 0,
        instructions: Sequence[str] = (FORWARD, BACKWARD),
        socket_path: str | None = None,
        timing: str = "auto",
        enabled: bool = True,
        logger: logging.Logger | None = None,
    ) -> None:
        """Opens nothing yet.

        rank is the global one, from RANK if left out. The ranks in each kind of parallelism may be left out where
        there is one place only. device is a CUDA ordinal, from LOCAL_RANK if left out, or a UUID ("GPU-…"). job is
        PERSEUS_JOB if left out. spec describes the job (see JobSpec) and is the same on all ranks. generation 0
        joins the newest one. instructions names the ops there are; at most 256. timing says when an op begins:
        "host": when Python gets there; "stream": when the GPU's current stream does; "auto": the latter if PyTorch
        runs on CUDA.

        Raises ValueError, naming argument and value, for what can't be right. Disabled, it checks no argument but
        timing and instructions, so that a script runs unchanged without Perseus.
        """
        self._logger = logger or logging.getLogger("perseus_client")
        if timing not in _TIMINGS:
            raise ValueError(f"timing {timing!r}: one of {', '.join(_TIMINGS)}")
        if not 1 <= len(instructions) <= 256 or len(set(instructions)) != len(instructions):
            raise ValueError(f"instructions {list(instructions)!r}: 1 to 256 different names")
        for name in instructions:
            if not _INSTRUCTION.fullmatch(name):
                raise ValueError(f"instructions: {name!r}: a name is of a-z, 0-9, '-' and '_' and begins with a letter")
        self._instructions = {name: index for index, name in enumerate(instructions)}
        self._timing = timing
        self._lock = threading.Lock()
        self._clock: Callable[[], float] = time.monotonic

        self._connection: Connection | None = None
        self._fresh = False  # connected, but not yet told a step begin
        self._generation = generation
        self._iterations = 0  # steps begun, evaluations left out
        self._sequence = 0
        self._dropped = 0
        self._retry_s = _FIRST_RETRY_S
        self._retry_at = 0.0
        self._said_missing = False
        self._welcomed = False
        self._closed = False

        self._marks: StreamMarks | None = None
        self._marks_known = timing == "host"
        self._open_steps = 0
        self._open_ops = 0
        self._step_flag = 0
        self._op = (0, 0, wire.NO_MICROBATCH)

        job = job if job is not None else environment.job()
        self._enabled = enabled and job is not None
        if not self._enabled or job is None:
            self._logger.info("Perseus is off: %s", "no job id; set PERSEUS_JOB" if enabled else "not enabled")
            return

        world_size = environment.integer("WORLD_SIZE")
        if rank is None:
            rank = environment.integer("RANK")
            if rank is None:
                raise ValueError("rank is missing, and so is the environment variable RANK")
        if spec is None:
            raise ValueError('spec is missing: at least {"pp": …, "microbatches": …}')
        full = complete(spec, world_size)
        self._path = socket_path or environment.socket_path()
        self._device = device
        self._local_rank = environment.integer("LOCAL_RANK")
        devices.name_of(device, self._local_rank)  # only to refuse a wrong one now
        self._hello: dict[str, Any] = {
            "hello": 1,
            "job": check_job(job),
            "spec": full,
            "generation": generation,
            "rank": check_rank("rank", rank, full["world_size"]),
            "pp_rank": check_rank("pp_rank", pp_rank, full.get("pp", 1)),
            "dp_rank": check_rank("dp_rank", dp_rank, full.get("dp", 1)),
            "tp_rank": check_rank("tp_rank", tp_rank, full.get("tp", 1)),
            "cp_rank": check_rank("cp_rank", cp_rank, full.get("cp", 1)),
            "ep_rank": check_rank("ep_rank", ep_rank, full.get("ep", 1)),
            "device": "",
            "instructions": list(instructions),
            "client": f"python/{VERSION}",
            "iteration": 0,
            "session": uuid.uuid4().hex,
        }
        wire.pack_control(self._hello)  # refuses one that is too long now, not in training
        _forget_after_fork(self)

    @property
    def enabled(self) -> bool:
        """Whether the client is to talk to an agent at all."""
        return self._enabled

    @property
    def instructions(self) -> tuple[str, ...]:
        """The names of ops that the client was told of."""
        return tuple(self._instructions)

    @property
    def connected(self) -> bool:
        """Whether there is an agent that listens now."""
        return self._connection is not None

    @property
    def generation(self) -> int:
        """The generation of the job's ranks that the agent said this one belongs to; before that, the one asked for."""
        return self._generation

    @property
    def sequence(self) -> int:
        """How many events there were so far."""
        return self._sequence

    @property
    def dropped(self) -> int:
        """How many of them could not be sent."""
        return self._dropped

    def step(self, *, evaluation: bool = False) -> StepScope:
        """One training step: `with client.step():`, `async with`, or `@client.step()` on a function.

        evaluation says that it only evaluates: it is not counted, and its ops run unplanned.
        """
        return StepScope(self, evaluation)

    def op(self, instruction: str, *, microbatch: int | None = None, chunk: int = 0) -> OpScope:
        """One op of a step: `with client.op("forward"):`, `async with`, or `@client.op("forward")` on a function.

        microbatch and chunk help the agent to check its place in the plan; the order of ops is enough. Raises
        ValueError for an instruction that the client was not told of when it was made.
        """
        index = self._instructions.get(instruction)
        if index is None:
            known = ", ".join(self._instructions)
            raise ValueError(
                f"op {instruction!r}: not among the client's instructions {known}; add it to instructions="
            )
        return OpScope(self, index, chunk, wire.NO_MICROBATCH if microbatch is None else microbatch)

    def begin_step(self, evaluation: bool = False) -> None:
        """What `with step()` does at its begin. Each call needs an end_step."""
        if not self._enabled:
            return
        with self._lock:
            self._open_steps += 1
            if self._open_steps > 1:
                return
            self._step_flag = 1 if evaluation else 0
            if not self._marks_known:
                self._find_marks()
            if self._connection is None and not self._closed and self._clock() >= self._retry_at:
                self._connect()
            if not evaluation:
                self._iterations += 1
        self._mark(wire.STEP_BEGIN, 0, 0, self._step_flag)

    def end_step(self) -> None:
        """What `with step()` does at its end."""
        if not self._enabled:
            return
        with self._lock:
            self._open_steps -= 1
            if self._open_steps:
                return
        self._mark(wire.STEP_END, 0, 0, self._step_flag)

    def begin_op(self, instruction: int, chunk: int = 0, microbatch: int = wire.NO_MICROBATCH) -> None:
        """What `with op()` does at its begin; instruction is an index into instructions. Each needs an end_op."""
        if not self._enabled:
            return
        with self._lock:
            self._open_ops += 1
            if self._open_ops > 1:
                return
            # Out of range means unknown: an event must fit its bytes, whatever a framework passes.
            if not 0 <= microbatch < wire.NO_MICROBATCH:
                microbatch = wire.NO_MICROBATCH
            if not 0 <= chunk <= wire.MAX_CHUNK:
                chunk = wire.MAX_CHUNK
            self._op = (instruction, chunk, microbatch)
            if self._marks is None:
                self._emit(wire.OP_BEGIN, instruction, chunk, microbatch)
                return
        self._marks.mark(wire.OP_BEGIN, instruction, chunk, microbatch)

    def end_op(self) -> None:
        """What `with op()` does at its end."""
        if not self._enabled:
            return
        with self._lock:
            self._open_ops -= 1
            if self._open_ops:
                return
            instruction, chunk, microbatch = self._op
            if self._marks is None:
                self._emit(wire.OP_END, instruction, chunk, microbatch)
                return
        self._marks.mark(wire.OP_END, instruction, chunk, microbatch)

    def instruction(self, name: str) -> int:
        """The index of an instruction, for begin_op. Raises ValueError if there is none of that name."""
        index = self._instructions.get(name)
        if index is None:
            raise ValueError(f"instruction {name!r}: the client knows {', '.join(self._instructions)}")
        return index

    def close(self) -> None:
        """Says goodbye and lets go of the GPU. The client does nothing after that; a second call neither."""
        if not self._enabled:
            return
        if self._marks is not None:
            self._marks.close(timeout_s=1.0)
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.send(wire.pack_control({"bye": 1}))
                connection.shut()

    def __enter__(self) -> PerseusClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mark(self, kind: int, instruction: int, chunk: int, microbatch: int) -> None:
        if self._marks is None:
            self._post(kind, instruction, chunk, microbatch)
        else:
            self._marks.mark(kind, instruction, chunk, microbatch)

    def _post(self, kind: int, instruction: int, chunk: int, microbatch: int) -> None:
        with self._lock:
            self._emit(kind, instruction, chunk, microbatch)

    def _emit(self, kind: int, instruction: int, chunk: int, microbatch: int) -> None:
        """Sends one event that happens now, or drops it. Called with the lock held."""
        self._sequence += 1
        connection = self._connection
        if connection is not None:
            if self._fresh:
                # The first an agent hears of is a step from its begin: half a step would look like another one.
                if kind != wire.STEP_BEGIN:
                    self._dropped += 1
                    return
                self._fresh = False
            if connection.send(
                wire.pack_event(kind, instruction, chunk, microbatch, self._sequence, time.monotonic_ns())
            ):
                return
        self._dropped += 1

    def _find_marks(self) -> None:
        self._marks = cuda_marks(self._post, self._logger)
        self._marks_known = self._marks is not None or self._timing == "auto"
        if self._marks is None and self._timing == "stream":
            self._marks_known = True
            self._logger.warning('Perseus: timing="stream" needs PyTorch on CUDA; ops are timed on the host')

    def _connect(self) -> None:
        """Tries to connect. Called with the lock held."""
        try:
            self._hello["device"] = devices.name_of(self._device, self._local_rank)
            self._hello["generation"] = self._generation
            self._hello["iteration"] = self._iterations
            self._connection = Connection(
                self._path,
                wire.pack_control(self._hello),
                self._lock,
                self._on_message,
                self._on_heartbeat,
                self._on_closed,
            )
            self._fresh = True
            self._welcomed = False
        except Exception as error:
            level = logging.DEBUG if self._said_missing else logging.INFO
            self._said_missing = True
            self._logger.log(level, "Perseus: no agent at %s (%s); training goes on without", self._path, error)
            self._put_off(self._retry_s * 2)

    def _put_off(self, next_retry_s: float) -> None:
        self._retry_at = self._clock() + self._retry_s
        self._retry_s = min(next_retry_s, _LAST_RETRY_S)

    def _on_message(self, connection: Connection, message: dict[str, Any]) -> None:
        if "welcome" in message:
            with self._lock:
                generation, heartbeat = message.get("generation"), message.get("heartbeat_s")
                if isinstance(generation, int):
                    self._generation = generation
                if isinstance(heartbeat, (int, float)):
                    connection.set_heartbeat(float(heartbeat))
                self._welcomed = True
                self._said_missing = False
                self._retry_s = _FIRST_RETRY_S
            how = "steers" if message.get("steering") else "only measures"
            note = message.get("note") or ""
            self._logger.info("Perseus: the agent %s this GPU%s", how, f": {note}" if note else "")
        elif "error" in message:
            code = message.get("code")
            with self._lock:
                if code in ("denied", "invalid"):  # nothing that the next seconds will change
                    self._retry_s = _LAST_RETRY_S
            self._logger.warning(
                "Perseus: the agent refused this rank (%s): %s; training goes on without",
                code,
                message["error"],
            )
        elif "notice" in message:
            self._logger.info("Perseus: %s", message["notice"])

    def _on_heartbeat(self, connection: Connection) -> None:
        with self._lock:
            if self._connection is connection and not self._fresh:
                self._emit(wire.HEARTBEAT, 0, 0, wire.NO_MICROBATCH)

    def _on_closed(self, connection: Connection) -> None:
        with self._lock:
            if self._connection is not connection:
                return
            self._connection = None
            self._put_off(self._retry_s * 2)
        if self._welcomed:
            self._logger.info("Perseus: the agent closed the connection; training goes on without")

    def _forget_connection(self) -> None:
        """After a fork, in the child: the connection, its thread and perhaps the lock are the parent's."""
        self._lock = threading.Lock()
        if self._enabled:
            self._hello["session"] = uuid.uuid4().hex
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        self._marks = None
        self._marks_known = self._timing == "host"
        self._open_steps = self._open_ops = 0
        self._retry_at = 0.0


def _forget_after_fork(client: PerseusClient) -> None:
    reference = weakref.ref(client)

    def forget() -> None:
        alive = reference()
        if alive is not None:
            alive._forget_connection()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)

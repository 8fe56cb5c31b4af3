"""Perseus in a training process: tells the node's agent which pipeline op runs, so that it runs at its planned clock.

Hooks do it in one call: `perseus_client.megatron.hook()`, `perseus_client.deepspeed.hook(engine)`,
`perseus_client.pipelining.hook(schedule)`. Other training loops say it themselves:

    client = perseus_client.init(rank, dp_rank, pp_rank, tp_rank, device, job="gpt", spec={"pp": 4, "microbatches": 8})
    with client.step():
        with client.op("forward", microbatch=0):
            ...

Standard library only. Without an agent nothing happens, and training never waits for one.
"""

from .client import BACKWARD, FORWARD, INPUT_GRADIENT, OVERLAP, VERSION, WEIGHT_GRADIENT, PerseusClient
from .current import current, init, op, step, use
from .spec import JobSpec

__version__ = VERSION

__all__ = [
    "BACKWARD",
    "FORWARD",
    "INPUT_GRADIENT",
    "OVERLAP",
    "WEIGHT_GRADIENT",
    "JobSpec",
    "PerseusClient",
    "__version__",
    "current",
    "init",
    "op",
    "step",
    "use",
]

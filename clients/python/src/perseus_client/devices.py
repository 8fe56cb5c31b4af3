"""Which GPU a process drives, named so that the node's agent, which sees all of them, finds it.

CUDA numbers the devices that a process sees; the agent knows them by UUID or by the driver's index.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def name_of(device: int | str | None, local_rank: int | None) -> str:
    """The device as the agent is told it: a UUID where that can be had, else the driver's index.

    device is a CUDA ordinal (3, "cuda:3", or a torch.device), or a name that is passed on as it is: a UUID
    ("GPU-…"), or the driver's index as a string ("3"). None stands for the CUDA ordinal local_rank, or 0; on a
    process that sees a single device, for that one. An ordinal is looked up with PyTorch if the program has
    imported it and uses CUDA already, else in CUDA_VISIBLE_DEVICES. Without both it is taken for the driver's
    index, which is right if CUDA_DEVICE_ORDER is PCI_BUS_ID or all GPUs are alike. Raises ValueError for a
    negative number and for an ordinal that CUDA_VISIBLE_DEVICES does not have.
    """
    visible = _visible()
    if device is None:
        ordinal = local_rank or 0
        if visible is not None and len(visible) == 1:
            ordinal = 0
    elif isinstance(device, int):
        ordinal = device
    else:
        text = str(device)
        if text in ("cuda", "cpu"):  # cpu: training without a GPU, beside emulated ones
            ordinal = local_rank or 0
        elif text.startswith("cuda:") and text[5:].isdecimal():
            ordinal = int(text[5:])
        elif text:
            return text
        else:
            raise ValueError("device '': name a CUDA ordinal or a UUID")
    if ordinal < 0:
        raise ValueError(f"device {ordinal}: a CUDA ordinal counts from 0")
    uuid = _uuid_from_torch(ordinal)
    if uuid is not None:
        return uuid
    if visible is None:
        return str(ordinal)
    if ordinal >= len(visible):
        raise ValueError(
            f"device {ordinal}: CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']} has {len(visible)} devices"
        )
    return visible[ordinal]


def _visible() -> list[str] | None:
    """CUDA_VISIBLE_DEVICES as a list; None if it is not set, or hides all devices: then the GPU is emulated."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None or text.strip() in ("", "-1", "NoDevFiles"):
        return None
    return [part.strip() for part in text.split(",")]


def _uuid_from_torch(ordinal: int) -> str | None:
    """What PyTorch says, if that starts nothing: it must have been imported and have initialised CUDA."""
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        uuid = str(torch.cuda.get_device_properties(ordinal).uuid)
    except Exception:  # an old PyTorch without uuid, another kind of accelerator
        return None
    return uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid

"""What a device brings, by its maker's data sheet: memory, and peak operations a second.

A peak is never reached; a plan multiplies it by an assumed utilisation and says so. A part of the memory is left for what is
not ours: the CUDA context, communication buffers, fragmentation.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from perse.errors import BadInput

RESERVED = 0.05
"""Share of a device's memory that a plan leaves free."""

CPU = "cpu"


@dataclass(frozen=True)
class Device:
    """`memory` in bytes; `bfloat16`, `float32`: dense peak in operations a second, None where no data sheet says."""

    name: str
    memory: int
    bfloat16: float | None
    float32: float | None

    @property
    def usable(self) -> int:
        """Bytes that a plan may fill."""
        return int(self.memory * (1 - RESERVED))


# NVIDIA's data sheets: "A100 Tensor Core GPU" (2022); "H100 Tensor Core GPU", SXM, and "H200 Tensor Core GPU", SXM (both give
# 1,979 for bfloat16 with sparsity, half of it without); "L40S" (733 with sparsity, 362 without); "A10" (2021); "L4" (2023; 242
# with sparsity, half of it without). A GB is counted as 10^9 bytes.
GPUS = {
    "a100-40gb": Device("NVIDIA A100 40 GB", 40 * 10**9, 312e12, 19.5e12),
    "a100-80gb": Device("NVIDIA A100 80 GB", 80 * 10**9, 312e12, 19.5e12),
    "h100-80gb": Device("NVIDIA H100 SXM 80 GB", 80 * 10**9, 989e12, 67e12),
    "h200": Device("NVIDIA H200 SXM 141 GB", 141 * 10**9, 989e12, 67e12),
    "l40s": Device("NVIDIA L40S 48 GB", 48 * 10**9, 362e12, 91.6e12),
    "a10": Device("NVIDIA A10 24 GB", 24 * 10**9, 125e12, 31.2e12),
    "l4": Device("NVIDIA L4 24 GB", 24 * 10**9, 121e12, 30.3e12),
}

# As the driver reports them, less the maker's name. The PCIe and NVL boards of the H100 and H200, the GH200 and slices of a
# GPU (MIG) have other peaks and stand under names of their own, which are not here.
_REPORTED = {
    "A100-SXM4-40GB": "a100-40gb",
    "A100-PCIE-40GB": "a100-40gb",
    "A100-SXM4-80GB": "a100-80gb",
    "A100 80GB PCIe": "a100-80gb",
    "H100 80GB HBM3": "h100-80gb",
    "H200": "h200",
    "L40S": "l40s",
    "A10": "a10",
    "L4": "l4",
}


def device(name: str) -> Device:
    """The GPU of that name, or `cpu`: this machine, whose peak no data sheet says.

    Raises:
        BadInput: no such device.
    """
    if name == CPU:
        return Device("this machine", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), None, None)
    if name not in GPUS:
        raise BadInput(f"--gpu is '{name}'; choose from {', '.join((*GPUS, CPU))}")
    return GPUS[name]


def reported(name: str) -> Device | None:
    """The GPU that a driver calls `name`; None where we have no data sheet of exactly that one."""
    known = _REPORTED.get(name.removeprefix("NVIDIA "))
    return GPUS[known] if known else None

"""train.py where CPU processes count as devices, so that the Trainer shards over them as it would over GPUs.

accelerate takes every CPU process for one that cannot shard (MULTI_CPU) and leaves FSDP and DeepSpeed out in silence. Here, and only
here, its question for the backend is answered as on a machine with GPUs, with gloo for nccl; all that follows is what really runs:
the Trainer, FSDP2 and DeepSpeed, our loss, rows, checkpoints and saving. Between CPUs DeepSpeed would sum by an operation of its own,
which GPUs do not have, and which it compiles for a minute where it finds none of its version.
"""

import os

os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed.ops
import transformers.training_args
from accelerate.state import PartialState
from accelerate.utils import DistributedType


def as_devices(
    self: PartialState, cpu: bool = False, sagemaker_dp: bool = False, backend: str | None = None
) -> tuple[str, str]:
    return "gloo", DistributedType.MULTI_GPU


PartialState._prepare_backend = as_devices  # type: ignore[method-assign, assignment]
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
transformers.training_args.is_torch_bf16_gpu_available = lambda: True  # CPUs compute in bfloat16

if __name__ == "__main__":
    from perse.commands.train import main

    main()

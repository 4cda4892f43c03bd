"""train.py where CPU processes count as devices, so that the Trainer shards over them as it would over GPUs.

accelerate takes every CPU process for one that cannot shard (MULTI_CPU) and leaves FSDP and DeepSpeed out in silence. Here, and only
here, its question for the backend is answered as on a machine with GPUs, with gloo for nccl; all that follows is what really runs:
the Trainer, FSDP2 and DeepSpeed, our loss, rows, checkpoints and saving.
"""

import os

os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
os.environ["DS_ACCELERATOR"] = "cpu"

import transformers.training_args
from accelerate.state import PartialState
from accelerate.utils import DistributedType


def as_devices(
    self: PartialState, cpu: bool = False, sagemaker_dp: bool = False, backend: str | None = None
) -> tuple[str, str]:
    return "gloo", DistributedType.MULTI_GPU


PartialState._prepare_backend = as_devices  # type: ignore[method-assign, assignment]
transformers.training_args.is_torch_bf16_gpu_available = lambda: True  # CPUs compute in bfloat16

if __name__ == "__main__":
    from perse.commands.train import main

    main()

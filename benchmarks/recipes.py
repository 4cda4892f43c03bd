"""What every recipe needs, as a table: recipe -> GPUs -> memory -> hours, by the planner, on data of your choice.

  python benchmarks/recipes.py --data work/released

Nothing is measured here: memory is predicted and hours are assumed, as docs/training.md says of `perse plan`.
"""

from __future__ import annotations

import argparse

from perse.settings.training import load_config
from perse.training.planning.hardware import device
from perse.training.planning.plan import MEASURED, Plan, plan

GB = 1e9
WHERE: dict[str, tuple[tuple[str, int], ...]] = {
    "llama2_7b_full": (("a100-80gb", 8), ("a100-80gb", 4), ("h100-80gb", 8)),
    "llama2_13b_full": (("a100-80gb", 8), ("h100-80gb", 8)),
    "llama2_7b_lora": (("a100-80gb", 8), ("a100-80gb", 1), ("l40s", 1)),
    "llama2_13b_lora": (("a100-80gb", 8), ("a100-80gb", 1)),
    "llama2_7b_dora": (("a100-80gb", 8), ("a100-80gb", 1)),
    "llama2_7b_qlora": (("a100-40gb", 1), ("a10", 1)),
    "qwen3_4b_lora": (("a100-80gb", 1), ("a10", 1)),
    "olmo3_7b_lora": (("a100-80gb", 8), ("a100-80gb", 1)),
}
"""On which GPUs, and how many."""


def line(recipe: str, found: Plan, steps: int) -> str:
    """A row of the table."""
    where = f"{found.devices} x {found.device.name.removeprefix('NVIDIA ')}"
    disk = f"{found.disk.checkpoint / GB:,.1f}, {found.disk.most / GB:,.0f} GB"
    if found.way is None:
        least = min(way.total for way in found.ways) / GB
        return f"| `{recipe}` | {where} | does not fit: {least:.0f} GB at least | | | {disk} |"
    launch = "fsdp2" if found.way.sharded else "ddp" if found.devices > 1 else "one process"
    again = "on" if found.way.checkpointing else "off"
    hours = "" if found.hours is None else f"{found.hours:.1f}; {_at(found, 1)} to {_at(found, 0)} for {steps:,} steps"
    return f"| `{recipe}` | {where} | {found.way.total / GB:.0f} of {found.device.usable / GB:.0f} GB | {launch}, {again} | {hours} | {disk} |"


def _at(found: Plan, which: int) -> str:
    """The hours at the least (0) or the largest (1) share of the peak that was measured of such recipes."""
    return f"{(found.hours or 0) * found.mfu / MEASURED[found.trains][which]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a data set folder or a file of examples")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    given = parser.parse_args()
    print(
        "| recipe | GPUs | memory on each | held, checkpointing | hours at 40% of the peak; at what was measured | a checkpoint, all on disk |\n|---|---|---|---|---|---|"
    )
    for recipe, places in list(WHERE.items())[: 1 if given.small else None]:
        config = load_config(recipe, [f"data.path={given.data}"])
        if config.train.steps is None:  # an epoch of the user's own data; here as many as LLaMA-2 7B's
            config = load_config(recipe, [f"data.path={given.data}", "train.steps=2000"])
        for name, count in places[: 1 if given.small else None]:
            found = plan(config, device=device(name), devices=count)
            print(line(recipe, found, found.steps), flush=True)


if __name__ == "__main__":
    main()

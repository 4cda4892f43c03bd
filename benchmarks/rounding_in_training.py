"""What bfloat16 promises of a training step on this CPU, and that it is rounding, not packing, which sets it.

    OMP_NUM_THREADS=1 python benchmarks/rounding_in_training.py

One reader's pairs of texts, several aspects each, are computed as separate rows, once with each of two kernels of attention (sdpa,
eager) and once in the reverse order, and as one packed row. The referee is float32 on separate rows. In float32 all must be the same
number, up to its last digits. In bfloat16 they are not, on a CPU whose bfloat16 is emulated least of all; what packing adds is then
to be held against what another kernel of the same separate rows adds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from perse.data.build import PairwiseOptions, build_pairwise
from perse.data.load import load_examples
from perse.models import finding as models
from perse.models import opening
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer
from perse.settings.training import Lora
from perse.training.model.adapting import adapted
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import IGNORED, answer_loss, collate
from perse.training.rows.branches import Branch, training_branches
from perse.training.rows.trie import packed

SAMPLES = Path(__file__).resolve().parent.parent / "perse" / "samples"
WAYS = ("sdpa", "sdpa, reverse order", "eager", "packed")
Found = tuple[float, torch.Tensor]  # loss, all gradients as one vector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--examples", type=int, default=4)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    path = models.find(options.model)
    renderer = Renderer(opening.tokenizer(path), 2048)
    branches = of_one_reader(renderer, 2 if options.small else options.examples)
    row = packed(branches)
    print(f"{options.model}: {len(branches)} examples, {row.unshared} tokens in separate rows, {len(row.ids)} packed")
    print(f"{torch.backends.cpu.get_cpu_capability()}, bfloat16 by AMX: {torch.cpu._is_amx_tile_supported()}")
    table = Table()
    for column in ("computed in", *WAYS, "eager off sdpa", "packed off sdpa", "losses at most"):
        table.add_column(column, justify="left" if column == "computed in" else "right")
    for name in ("float32", "bfloat16 weights, LoRA", "bfloat16 by autocast"):
        table.add_row(name, *compared(path, branches, name))
    Console(width=150).print(table)


def of_one_reader(renderer: Renderer, count: int) -> list[Branch]:
    """The examples of the reader with most of them that share most."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        given: dict[str, Any] = {"k": 1, "profiles": "per_reviewer_epoch", "max_queries": 8}
        build_pairwise(PairwiseOptions(pairs=SAMPLES / "pairs.jsonl", items=SAMPLES / "items.jsonl", out=out, **given))
        examples = load_examples(str(out), split="train").examples
    most = Counter(one.reviewer_id for one in examples).most_common(1)[0][0]
    asked = [one for one in examples if one.reviewer_id == most]
    fitting = training_branches(renderer, QUESTIONS["pairwise"], asked, answer_tokens=64).fitting
    return sorted(fitting, key=lambda branch: branch.segments)[:count]


def compared(path: Path, branches: Sequence[Branch], name: str) -> list[str]:
    """Relative distances of gradients: of each way to the referee, of two ways to each other; and the largest of losses."""
    torch.manual_seed(0)
    model = models.load(path, dtype="bfloat16" if "weights" in name else "float32")
    if "LoRA" in name:
        model = adapted(model, Lora(), checkpointing=False)
        for part, each in model.named_parameters():
            if "lora_B" in part:  # 0 in a fresh adapter, and so would be the gradient of A
                torch.nn.init.normal_(each, std=0.01)
    model.train()
    referee = separate(deepcopy(model).float(), branches)
    with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in name):
        found = {"sdpa": separate(model, branches), "sdpa, reverse order": separate(model, branches[::-1])}
        set_attention(model, "tree")
        found["packed"] = gradients(model, [collate([packed(branches)], attention="tree")])
        model.set_attn_implementation("eager")
        found["eager"] = separate(model, branches)
    cells = [apart(found[way], referee) for way in WAYS]
    cells += [apart(found[way], found["sdpa"]) for way in ("eager", "packed")]
    return [f"{cell:.2g}" for cell in (*cells, max(abs(loss / referee[0] - 1) for loss, _ in found.values()))]


def separate(model: Any, branches: Sequence[Branch]) -> Found:
    """Rows of one example each, one after the other, without a mask, as Hugging Face computes them."""
    rows = []
    for branch in branches:
        places = range(len(branch.prompt) - 1, branch.tokens - 1)  # the answer's tokens are predicted here
        ids, labels = torch.tensor([branch.prompt + branch.answer]), torch.tensor([(IGNORED, *branch.answer)])
        rows.append({"input_ids": ids, "labels": labels, "logits_to_keep": torch.tensor(places), "use_cache": False})
    return gradients(model, rows)


def gradients(model: Any, rows: Sequence[dict[str, Any]]) -> Found:
    model.zero_grad()
    learned = sum(int((row["labels"] != IGNORED).sum()) for row in rows)
    total = 0.0
    for row in rows:
        loss = answer_loss(model(**{part: given for part, given in row.items() if part != "labels"}), row["labels"], learned)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total, torch.cat([each.grad.float().flatten() for each in model.parameters() if each.grad is not None])


def apart(one: Found, other: Found) -> float:
    return float((one[1] - other[1]).norm(dtype=torch.float64) / other[1].norm(dtype=torch.float64))


if __name__ == "__main__":
    main()

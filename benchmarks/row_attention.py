"""Attention of one packed row, forward and back, by ours and by what else a GPU offers, with LLaMA-2 7B's heads in bfloat16.

    python benchmarks/row_attention.py --markdown

Rows hold examples that share most of their prompt. `tree` goes piece by piece, `flex` is torch's FlexAttention, told the same, `mask`
their dense twin by torch's SDPA; these three compute the shared tokens once. `separate` are the examples side by
side, not shared, by torch's kernel for sequences of many lengths (varlen), where torch has it. All take turns; medians of single
calls by CUDA's own clock. How far each is off is told against the dense mask in float32: the output, and the queries' gradient,
relative to their length. `separate` computes other rows and has no such number.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from perse.training.rows.attention import dense_mask, tree_attention_forward
from perse.training.rows.branches import Branch
from perse.training.rows.flex import flex_attention
from perse.training.rows.trie import Tree, packed

HEADS, WIDTH = 32, 128
DISCARDED = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, nargs="+", default=[2, 4, 8, 16], help="in a row")
    parser.add_argument("--tokens", type=int, default=1440, help="of an example")
    parser.add_argument("--shared", type=float, default=0.8, help="the share that all have in common")
    parser.add_argument("--calls", type=int, default=20, help="of each way that count")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--small", action="store_true", help="only see that it runs; on a CPU tree and mask alone, in float32")
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    if not on_gpu and not options.small:
        parser.error("there is no GPU here; --small only sees that the benchmark runs")
    if options.small:
        options.examples, options.tokens, options.calls = [2], 120, 2
    device, dtype = ("cuda", torch.bfloat16) if on_gpu else ("cpu", torch.float32)
    lines = [line for count in options.examples for line in measured(options, count, device, dtype)]
    name = torch.cuda.get_device_name() if on_gpu else "CPU"
    title = (
        f"{options.tokens} tokens an example, {options.shared:.0%} of them shared; {HEADS} heads of {WIDTH}, "
        f"{str(dtype).removeprefix('torch.')}; median of {options.calls} calls; {name}; torch {torch.__version__}"
    )
    show(title, lines, markdown=options.markdown)


def row(count: int, tokens: int, shared: float) -> tuple[Tree, list[int]]:
    """A row of `count` examples, and their lengths."""
    prompt = tuple(range(round(shared * tokens)))
    rest = tokens - len(prompt)
    branches = [
        Branch(str(n), (prompt, tuple(10**6 * (n + 1) + i for i in range(rest - 8))), (7,) * 8, 1, 1, 1) for n in range(count)
    ]
    return packed(branches).tree, [branch.tokens for branch in branches]


def measured(options: argparse.Namespace, count: int, device: str, dtype: torch.dtype) -> list[list[str]]:
    """A line of the table for each way."""
    tree, lengths = row(count, options.tokens, options.shared)
    torch.manual_seed(0)
    query, key, value, grad = (torch.randn(1, HEADS, tree.length, WIDTH, device=device, dtype=dtype) for _ in range(4))
    ways = {"tree": by_tree(tree), "mask": by_mask(dense_mask(tree).to(device))}
    if device == "cuda":
        ways["flex"] = by_flex(tree)
    exact = called(ways["mask"], *(part.float() for part in (query, key, value, grad)))
    errors = {name: off(called(way, query, key, value, grad), exact) for name, way in ways.items()}
    calls: dict[str, Callable[[], object]] = {
        name: (lambda way=way: called(way, query, key, value, grad)) for name, way in ways.items()
    }
    if device == "cuda" and (alone := by_varlen(lengths, device)) is not None:
        total = sum(lengths)
        parts = [torch.randn(total, HEADS, WIDTH, device=device, dtype=dtype) for _ in range(4)]
        calls["separate"] = lambda: called(alone, *parts)
    seconds = take_turns(calls, options.calls + DISCARDED)
    middle = {name: statistics.median(own[DISCARDED:]) for name, own in seconds.items()}
    return [
        [
            str(count) if name == "tree" else "",
            name,
            f"{1e3 * middle[name]:.2f}",
            f"{1e3 * min(own[DISCARDED:]):.2f} to {1e3 * max(own[DISCARDED:]):.2f}",
            f"{middle[name] / middle['tree']:.2f}",
            *(f"{error:.1e}" for error in errors.get(name, ())),
        ]
        for name, own in seconds.items()
    ]


Way = Callable[[Tensor, Tensor, Tensor], Tensor]


def by_tree(tree: Tree) -> Way:
    module = torch.nn.Module()

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return tree_attention_forward(module, query, key, value, None, tree=tree)[0].transpose(1, 2)

    return attend


def by_mask(mask: Tensor) -> Way:
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return attend


def by_flex(tree: Tree) -> Way:
    return lambda query, key, value: flex_attention(query, key, value, tree, WIDTH**-0.5)


def by_varlen(lengths: Sequence[int], device: str) -> Way | None:
    """Sequences one behind the other, (all their tokens, H, D), each causal; None where this torch has no such kernel."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    ends = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device=device)
    longest = max(lengths)
    return lambda query, key, value: varlen_attn(query, key, value, ends, ends, longest, longest, **causal(varlen_attn))


def causal(function: Any) -> dict[str, Any]:
    """How this torch is told so: it was `is_causal`, and became a window."""
    import inspect

    names = inspect.signature(function).parameters
    return {"is_causal": True} if "is_causal" in names else {"window_size": (-1, 0)}


def called(way: Way, query: Tensor, key: Tensor, value: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The output, and the gradient of the queries."""
    own = [part.detach().requires_grad_() for part in (query, key, value)]
    out = way(*own)
    out.backward(grad)
    assert own[0].grad is not None
    return out.detach(), own[0].grad


def off(found: tuple[Tensor, Tensor], exact: tuple[Tensor, Tensor]) -> tuple[float, float]:
    return tuple(
        float((one.double() - two.double()).norm() / two.double().norm()) for one, two in zip(found, exact, strict=True)
    )  # type: ignore[return-value]


def take_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every call; each round is begun by the next one."""
    names = list(calls)
    found: dict[str, list[float]] = {name: [] for name in names}
    for at in range(rounds):
        first = at % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(seconds_of(calls[name]))
    return found


def seconds_of(call: Callable[[], object]) -> float:
    if not torch.cuda.is_available():
        import time

        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def show(title: str, lines: Sequence[Sequence[str]], *, markdown: bool) -> None:
    columns = ("examples", "way", "ms (median)", "fastest to slowest", "this / tree", "output off", "gradient off")
    lines = [[*line, *[""] * (len(columns) - len(line))] for line in lines]
    if markdown:
        print(f"\n{title}\n")
        for line in (columns, ["---"] * len(columns), *lines):
            print(f"| {' | '.join(line)} |")
        return
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

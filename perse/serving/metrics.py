"""What the server counts, for Prometheus: requests, judgements, queueing, shared work, how sure the judge's labels are.

On vLLM these stand beside vLLM's own numbers at /metrics, in the registry that it shows; elsewhere in one of the server's own.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from perse.judgement import Judgement

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 150, 600)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.01)


class Metrics:
    """The counters of one server, in `registry`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._requests = Counter(
            "perse_requests", "Requests, by route and HTTP status.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "perse_request_seconds", "Seconds a request took.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self._refused = Counter(
            "perse_refused", "Requests that were refused or given up, by reason.", ["reason"], registry=self.registry
        )
        self._judgements = Counter(
            "perse_judgements", "Judgements, by question and status.", ["question", "status"], registry=self.registry
        )
        self._queued = Histogram(
            "perse_queue_seconds", "Seconds until the engine took items.", buckets=SECONDS, registry=self.registry
        )
        self._prompt = Counter("perse_prompt_tokens", "Tokens of prompts.", registry=self.registry)
        self._cached = Counter(
            "perse_shared_tokens", "Tokens of prompts that were known already: a shared profile's.", registry=self.registry
        )
        self._written = Counter("perse_written_tokens", "Tokens written.", registry=self.registry)
        self._mass = Histogram(
            "perse_label_mass", "Probability on all labels together.", ["question"], buckets=SHARES, registry=self.registry
        )
        self._gauges = {
            name: Gauge(f"perse_{name}", about, registry=self.registry)
            for name, about in {
                "inside": "Requests being worked on or waiting.",
                "waiting_items": "Items that wait for the engine.",
                "readers": "Readers kept here.",
                "draining": "1 once the server is stopping.",
            }.items()
        }

    def request(self, route: str, status: int, seconds: float, reason: str) -> None:
        """Count an answered request; `reason` is why it was refused, if it was."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if reason:
            self._refused.labels(reason).inc()

    def judged(self, judgement: Judgement) -> None:
        """Count a judgement."""
        self._judgements.labels(judgement.question, judgement.status.value).inc()
        self._prompt.inc(judgement.tokens.prompt)
        self._cached.inc(judgement.tokens.cached)
        self._written.inc(judgement.tokens.generated)
        if judgement.mass is not None:
            self._mass.labels(judgement.question).observe(judgement.mass)

    def queued(self, seconds: float) -> None:
        """Note how long items waited for the engine."""
        self._queued.observe(seconds)

    def ask(self, name: str, of: Callable[[], float]) -> None:
        """Have a gauge ask for its value whenever it is read: inside, waiting_items, readers or draining."""
        self._gauges[name].set_function(of)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)


def vllm_registry() -> CollectorRegistry:
    """The registry that vLLM shows at /metrics (one API process)."""
    return REGISTRY

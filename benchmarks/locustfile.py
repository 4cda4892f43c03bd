"""Poisson load on a judge server, for Locust (https://locust.io), which counts and draws: a tool of its own environment.

    pip install locust
    locust -f benchmarks/locustfile.py --headless --host http://127.0.0.1:8000 --users 40 --spawn-rate 40 --run-time 60s --only-summary

Locust, because requests are Python: readers' profiles are made once and asked about again, as a judge is used. Each user waits an
exponential time between requests, RATE of all together a second (by default 4), so that arrivals are Poisson as long as answers come
faster than a user's next request. PERSE_API_KEY goes with each request. QUESTION is pointwise_score by default.
"""

from __future__ import annotations

import os
import random
import time

from locust import HttpUser, task

RATE = float(os.environ.get("RATE", "4"))
QUESTION = os.environ.get("QUESTION", "pointwise_score")
READERS, ENTRIES = 20, 6
WORDS = [
    "a",
    "quiet",
    "town",
    "where",
    "the",
    "ferry",
    "no",
    "longer",
    "stops",
    "and",
    "a",
    "keeper",
    "writes",
    "letters",
    "to",
    "people",
    "who",
    "have",
    "left",
    "it",
    "long",
    "ago",
]

_chance = random.Random(1)


def _text(words: int) -> str:
    return " ".join(_chance.choice(WORDS) for _ in range(words))


PROFILES = [
    [{"text": _text(60), "review": _text(20), "score": _chance.randint(1, 10)} for _ in range(ENTRIES)] for _ in range(READERS)
]


class Reader(HttpUser):
    """Asks about a new text for one of the readers, each time."""

    def wait_time(self) -> float:
        return _chance.expovariate(RATE / self.environment.runner.target_user_count)

    def on_start(self) -> None:
        """Users come one after the other: all at once they would be a queue that no rate makes."""
        time.sleep(self.wait_time())

    @task
    def judge(self) -> None:
        item = {"profile": _chance.choice(PROFILES), "query": _text(60)}
        key = os.environ.get("PERSE_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        route = "/v1/judge/pairwise" if QUESTION.startswith("pairwise") else "/v1/judge/pointwise"
        self.client.post(route, json={"input": item, "question": QUESTION}, headers=headers)

"""The judge's client against servers that are none: a `ServerError` in a sentence, no endless asking, no judgement that cannot be."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest
from hostile_server import DRIPS, dripping, hostile

import perse.models.incoming
from perse.errors import BadInput
from perse.judgement import Judgement
from perse.serving.client import AsyncJudgeClient, JudgeClient, Problem, ServerError

KEY = "planted/Key+of-24-letters"
ITEM = {"id": "a", "profile": [], "query": "a plot"}
OTHER = {**ITEM, "id": "b"}

JUDGEMENT: dict[str, Any] = {
    "id": "a",
    "question": "pointwise",
    "status": "ok",
    "label": "7",
    "expected": 5.5,
    "distribution": {str(n): 0.1 for n in range(1, 11)},
    "mass": 0.9,
    "k_effective": 0,
    "tokens": {"prompt": 1, "cached": 0, "generated": 1},
    "model": "m",
}


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSE_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("time.sleep", lambda _: None)


def ask(url: str, **settings: Any) -> Judgement:
    with JudgeClient(url, key=KEY, tries=2) as client:
        return client.pointwise(ITEM, **settings)


def ask_many(url: str) -> list[Judgement | Problem]:
    with JudgeClient(url, key=KEY, tries=2) as client:
        return client.pointwise_many([ITEM, OTHER])


def ask_later(url: str) -> list[Judgement | Problem]:
    async def asked() -> list[Judgement | Problem]:
        async with AsyncJudgeClient(url, key=KEY, tries=2) as client:
            return await client.pointwise_many([ITEM, OTHER])

    return asyncio.run(asked())


def refused(said: Any, call: Callable[[str], Any] = ask, *, asked: int = 1) -> ServerError:
    """The error of a client that is answered so, and asks no more than `asked` times."""
    with hostile(lambda *_: said) as server:
        with pytest.raises(ServerError) as raised:
            call(server.url)
        assert len(server.asked) == asked
    assert KEY not in str(raised.value)
    return raised.value


def test_the_honest_judgement_of_these_tests_is_taken() -> None:
    with hostile(lambda *_: JUDGEMENT) as server:
        assert ask(server.url).label == "7"
    with hostile(lambda *_: {"results": [JUDGEMENT, {**JUDGEMENT, "id": "b"}]}) as server:
        for call in (ask_many, ask_later):
            assert [one.id for one in call(server.url) if isinstance(one, Judgement)] == ["a", "b"]


@pytest.mark.parametrize("call", [ask_many, ask_later])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_or_more_results_than_items_are_refused_and_nothing_is_asked_again(call: Any, count: int) -> None:
    error = refused({"results": [JUDGEMENT] * count}, call)
    assert f"{count} results for 2 items" in str(error) and error.code == 200


@pytest.mark.parametrize("call", [ask, ask_many, ask_later])
@pytest.mark.parametrize(
    "said",
    [b"<html>", b"", b"\xff\xfe\xff", b"[1]", b"7", b'{"x": 1}', b"[" * 100_000, b'{"results": {}}', b'{"results": [1, 2]}'],
)
def test_what_is_no_answer_of_a_judge_is_one_sentence(call: Any, said: bytes) -> None:
    assert "answered what no judge does: " in str(refused(said, call))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "z"}, "a judgement of 'z', asked was 'a'"),
        ({"question": "pointwise_score"}, "of question 'pointwise_score', asked was 'pointwise'"),
        ({"label": "99"}, "label '99', expected one of 1 to 10"),
        ({"label": None}, "label 'None', expected one of 1 to 10"),
        ({"distribution": {"1": 5.0, "x": -3.0}}, "field 'distribution.1'"),
        ({"distribution": {str(n): 0.5 for n in range(1, 11)}}, "the distribution sums to 5, expected 1"),
        ({"distribution": {**{str(n): 0.2 for n in range(1, 10)}, "10": -0.8}}, "field 'distribution."),
        ({"mass": 1.2}, "field 'mass'"),
        ({"order_gap": -1}, "field 'order_gap'"),
        ({"mean_logprob": 3}, "field 'mean_logprob': found 3, expected a log-probability, which is at most 0"),
        ({"expected": 11, "distribution": None}, "expected 11.0, which is outside the scale"),
        ({"expected": 9}, "expected 9.0, which is not that of its distribution"),
        ({"expected": None}, "a distribution without its expected score"),
        ({"distribution": None}, "or the score without the distribution"),
        ({"distribution": {str(n): "0.1" for n in range(1, 11)}}, "field 'distribution.1'"),
        (
            {"label": "1", "expected": 10, "distribution": {str(n): float(n == 10) for n in range(1, 11)}},
            "label '1', to which its own",
        ),
        ({"mass": None}, "a distribution without its mass"),
        ({"k_effective": 99}, "k_effective 99 of a profile of 0"),
        ({"expected": math.nan}, "field 'expected': found nan, expected a finite number"),
        ({"x" * 3_000_000: 1}, "a judgement with field 'xxx"),
    ],
)
def test_a_judgement_that_cannot_be_is_refused_alone_and_in_a_list(change: dict[str, Any], says: str) -> None:
    said = {**JUDGEMENT, **change}
    for answer, call in ((said, ask), ({"results": [said, {**JUDGEMENT, "id": "b"}]}, ask_many)):
        error = str(refused(answer, call))
        assert says in error and len(error) < 500


@pytest.mark.parametrize("details", [[1, 2], 5, "x", {"tokens": "many"}, {"deep": {}}, None])
def test_odd_details_of_an_error_are_left_out(details: Any) -> None:
    error = refused((400, {}, json.dumps({"error": {"message": "too long", "details": details}}).encode()))
    assert (str(error), error.code, error.details) == ("too long", 400, {})


def test_the_numbers_of_an_error_are_kept() -> None:
    assert refused((422, {}, b'{"error": {"message": "x", "details": {"tokens": 9}}}')).details == {"tokens": 9}


def test_no_error_of_a_server_repeats_the_key_or_moves_the_cursor() -> None:
    """Not in an answer, not in a list's item, not in a judgement; though the key is in no variable that could be looked at."""
    words = f"you sent {KEY} \x1b[2J"
    assert str(refused((400, {}, json.dumps({"error": {"message": words}}).encode()))) == "you sent *** \\x1b[2J"
    assert "answered 500: you sent *** \\x1b[2J" in str(refused((500, {}, words.encode())))
    bad = {"error": {"message": words, "code": 400}}
    with hostile(
        lambda *_: {
            "results": [
                bad,
                {**JUDGEMENT, "id": "b", "text": f"likes {KEY}", "status": "engine_error", "label": None, "error": KEY},
            ]
        }
    ) as server:
        problem, judgement = ask_many(server.url)
    assert problem == Problem("you sent *** \\x1b[2J", 400, {})
    assert isinstance(judgement, Judgement) and (judgement.text, judgement.error) == ("likes ***", "***")


@pytest.mark.parametrize("error", ["x", {}, {"message": "x"}, {"message": "x", "code": "400"}, {"message": "x", "code": True}])
def test_an_item_of_a_list_that_is_neither_judgement_nor_error_is_refused(error: Any) -> None:
    assert "neither a judgement nor an error" in str(refused({"results": [{"error": error}] * 2}, ask_many))


@pytest.mark.parametrize("wait", ["\xb2", "-1", "nan", "1.1.1", "x"])
def test_a_wait_that_is_none_is_the_clients_own(wait: str) -> None:
    said = (503, {"Retry-After": wait}, b'{"error": {"message": "later"}}')
    assert str(refused(said, asked=2)) == "later"


@pytest.mark.parametrize("call", [ask, ask_many, ask_later])
def test_the_client_follows_no_redirect_and_says_where_it_points(call: Any) -> None:
    with hostile(lambda *_: JUDGEMENT) as other:
        error = refused((307, {"Location": f"{other.url}/v1/judge/pointwise?token=SECRET99"}, b""), call)
        assert f"points to {other.url}, and no redirect is followed; give that address itself" in str(error)
        assert error.code == 307 and "SECRET99" not in str(error) and other.asked == []


@pytest.mark.parametrize("client", [JudgeClient, AsyncJudgeClient])
def test_a_key_that_a_server_repeats_in_a_host_or_as_a_name_is_taken_out(client: Any) -> None:
    key = "PlantedKeyOf24Letters_x1"

    async def asked(url: str) -> None:
        said = client(url, key=key, tries=1).pointwise(ITEM)
        await said if client is AsyncJudgeClient else None

    def call(url: str) -> None:
        asyncio.run(asked(url))

    pointed = str(refused((307, {"Location": f"http://{key}.evil/"}, b""), call))
    assert "points to http://***.evil, and no redirect is followed" in pointed
    error = refused((401, {}, json.dumps({"error": {"message": "no", "details": {key: 1, "tokens": 9}}}).encode()), call)
    assert error.details == {"***": 1, "tokens": 9}


@pytest.mark.parametrize("call", [ask, ask_later])
def test_the_client_reads_no_answer_larger_than_one_can_be(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.models.incoming, "LARGEST", 1 << 20)
    assert "larger than 1 MiB" in str(refused(b" " * (1 << 21), call))
    assert "packed as 'gzip, gzip'" in str(refused((200, {"Content-Encoding": "gzip, gzip"}, b""), call))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "client"), [("body", JudgeClient), *((kind, AsyncJudgeClient) for kind in DRIPS)])
def test_the_client_waits_for_no_answer_without_end(kind: str, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        perse.models.incoming, "PATIENCE", 0.75 - 60
    )  # a silence is longer on a busy machine than the drip has it

    async def ask(url: str) -> None:
        said = client(url, timeout=60).version()
        await said if client is AsyncJudgeClient else None

    with dripping(*DRIPS[kind]) as url, pytest.raises(ServerError, match="the answer was not whole after 0.75 s"):
        asyncio.run(ask(url))


def test_questions_that_are_no_list_are_one_sentence() -> None:
    for said in (b"{}", b'{"questions": {}}'):
        assert "no list of questions" in str(refused(said, lambda url: JudgeClient(url).questions()))
    assert "no JSON" in str(refused(b"<html>", lambda url: JudgeClient(url).version()))


def test_a_question_that_the_client_asks_by_name_is_the_one_that_is_expected() -> None:
    score = {**JUDGEMENT, "question": "pointwise_score"}
    with hostile(lambda *_: score) as server:
        assert ask(server.url, question="pointwise_score").question == "pointwise_score"


@pytest.mark.parametrize("client", [JudgeClient, AsyncJudgeClient])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((5,), "the server's address is of type int"),
        ((None,), "the server's address is of type NoneType"),
        ((b"http://h",), "bytes"),
    ],
)
def test_an_address_that_is_no_text_is_one_sentence(client: Any, given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        client(*given)
    with pytest.raises(BadInput, match="the key in key= is of type int, expected text"):
        client("http://127.0.0.1:9", key=5)


@pytest.mark.slow
def test_an_item_nested_too_deeply_is_one_sentence() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    item = {"profile": deep, "query": "q"}

    async def later() -> None:
        async with AsyncJudgeClient("http://127.0.0.1:9") as client:
            await client.pointwise(item)

    with JudgeClient("http://127.0.0.1:9") as judge, pytest.raises(BadInput, match="nested too deeply"):
        judge.pointwise(item)
    with JudgeClient("http://127.0.0.1:9") as judge, pytest.raises(BadInput, match="nested too deeply"):
        judge.pairwise_many([item])
    with pytest.raises(BadInput, match="nested too deeply"):
        asyncio.run(later())


BODY = b'{"version": "1", "perse": "1", "engine": {}, "models": {}}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@contextmanager
def cutting(times: int, after: int) -> Iterator[tuple[str, list[int]]]:
    """A server that takes a request and closes after so many bytes of its answer, so many times, before it answers whole; and how often it was
    asked."""
    asked: list[int] = []

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    asked.append(1)
                    connection.sendall(ANSWER if len(asked) > times else ANSWER[:after])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("after", [0, 20, len(ANSWER) - len(BODY), len(ANSWER) - 5])
def test_a_connection_that_is_lost_before_or_in_an_answer_is_tried_again_so_often_and_no_more(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perse.serving.client._Call._pause", lambda *_: 0.0)

    async def told(url: str, tries: int) -> Any:
        async with AsyncJudgeClient(url, tries=tries) as judge:
            return await judge.version()

    for ask in (lambda url, tries: asyncio.run(told(url, tries)), lambda url, tries: JudgeClient(url, tries=tries).version()):
        with cutting(2, after) as (url, asked):
            assert ask(url, 3)["perse"] == "1" and len(asked) == 3
        with cutting(9, after) as (url, asked):
            with pytest.raises(ServerError, match="no answer from"):
                ask(url, 3)
            assert len(asked) == 3


def test_a_servers_words_stay_on_one_line() -> None:
    said = (400, {}, json.dumps({"error": {"message": "no\nperse: all is well\r\n", "code": 400}}).encode())
    assert str(refused(said)) == "no perse: all is well"


@pytest.mark.parametrize("items", [{"profile": [], "query": "x"}, "x", None, 3, {1, 2}, [None], ["x"], [[]]])
def test_what_is_no_list_of_items_is_one_sentence(items: Any) -> None:
    async def later() -> None:
        async with AsyncJudgeClient("http://127.0.0.1:1") as client:
            await client.pointwise_many(items)

    with JudgeClient("http://127.0.0.1:1") as client:
        for call in (client.pointwise_many, lambda some: client.submit("pointwise", some)):
            with pytest.raises(BadInput, match="a list of items was expected, (a .* was given|and one of them is a)"):
                call(items)
    with pytest.raises(BadInput, match="a list of items was expected"):
        asyncio.run(later())


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, 10**30, "5", True])
@pytest.mark.parametrize("client", [JudgeClient, AsyncJudgeClient])
def test_a_timeout_that_is_none_is_one_sentence(client: Any, timeout: Any) -> None:
    with pytest.raises(BadInput, match="is no number of seconds above 0; give one, such as 600"):
        client("http://127.0.0.1:1", timeout=timeout)


@pytest.mark.parametrize("client", [JudgeClient, AsyncJudgeClient])
@pytest.mark.parametrize("tries", [0, -1, math.nan, 1.5, None, "3", True])
def test_a_number_of_tries_that_is_none_is_one_sentence_and_not_asking_without_end(client: Any, tries: Any) -> None:
    with pytest.raises(BadInput, match="tries=.* is no whole number above 0"):
        client("http://127.0.0.1:1", tries=tries)


@pytest.mark.parametrize("at_once", [0, -1, None, "x"])
def test_no_requests_at_once_are_one_sentence_and_not_a_wait_without_end(at_once: Any) -> None:
    with pytest.raises(BadInput, match="at_once=.* is no whole number above 0"):
        AsyncJudgeClient("http://127.0.0.1:1", at_once=at_once)


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([[f"r{n}" for n in range(1000)]] * 2, "a reader twice"),
        ([[f"r{n}" for n in range(1000)], ["a"] * 1000], "a reader twice"),
        ([["a", "a"]], "a reader twice"),
        ([["x" * 100_000]], "no list of readers"),
        ([["\ud800"]], "no list of readers"),
        ([[""]], "no list of readers"),
    ],
)
def test_readers_that_a_server_lists_without_end_or_that_cannot_be_are_one_sentence(pages: Any, said: str) -> None:
    left = iter(pages)

    async def later(url: str) -> None:
        async with AsyncJudgeClient(url, key=KEY) as client:
            await client.readers()

    with hostile(lambda route, body: {"readers": next(left, pages[-1])}) as server:
        with JudgeClient(server.url, key=KEY) as client, pytest.raises(ServerError, match=said):
            client.readers()
        left = iter(pages)
        with pytest.raises(ServerError, match=said):
            asyncio.run(later(server.url))
        assert len(server.asked) <= 2 * len(pages)


def test_a_server_that_names_new_readers_for_ever_is_asked_no_further_than_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.serving.client.MOST_READERS", 3000)
    number = count()

    async def later(url: str) -> None:
        async with AsyncJudgeClient(url, key=KEY) as client:
            await client.readers()

    with hostile(lambda route, body: {"readers": [f"r{next(number)}" for _ in range(1000)]}) as server:
        with JudgeClient(server.url, key=KEY) as client, pytest.raises(ServerError, match="more than 3,000 readers"):
            client.readers()
        with pytest.raises(ServerError, match="more than 3,000 readers"):
            asyncio.run(later(server.url))
        assert len(server.asked) == 8


@pytest.mark.parametrize(("results", "items"), [(5, 5), (None, 1), ("ab", 2), ([], True), ([{}], "1"), ([{}], 10**12)])
def test_results_of_a_batch_that_are_none_are_one_sentence(results: Any, items: Any) -> None:
    def say(route: str, body: Any) -> Any:
        return {"results": results} if route.endswith("/results") else {"items": items, "question": "pointwise"}

    with (
        hostile(say) as server,
        JudgeClient(server.url, key=KEY) as client,
        pytest.raises(ServerError, match="answered what no judge does"),
    ):
        client.batch_results("batch_1")


def test_a_reader_whose_name_fits_no_address_is_one_sentence() -> None:
    with JudgeClient("http://127.0.0.1:1") as client, pytest.raises(BadInput, match="a reader's name is a text of 1 to"):
        client.reader("x" * 100_000)


@pytest.mark.parametrize("entries", [1, "abc", [1], {"text": "x"}, None])
def test_entries_of_a_reader_that_are_no_list_of_them_are_one_sentence(entries: Any) -> None:
    with JudgeClient("http://127.0.0.1:1") as client, pytest.raises(BadInput, match="are lists of dictionaries"):
        client.put_reader("ann", reviews=entries)

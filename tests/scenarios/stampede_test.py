#!/usr/bin/python3
"""A thousand clients of four gateways ask for one page at once: the origin renders it once. And clients that ask for
more pages than the origin can render in time: whoever comes after them does not wait for what they have abandoned.

    [STAMPEDE_SCALE=full] stampede_test.py --facetheory build/release/facetheory [WORD...]

On a shared LMDB folder, and on DynamoDB Local with s3rver for bodies. STAMPEDE_SCALE=full abandons 2,000 pages that
take 10 s each, which takes minutes.
"""
import asyncio
import collections
import os
import time

import harness
from harness import HOST, LOOP, Answer, Crowd, below, check, raise_descriptor_limit, same, tally, until

CLIENTS = 1000
STORES = {"LMDB": "lmdb", "DynamoDB": "aws"}


class Scale:
    """Of pages that are abandoned: how many, how long one takes, how long its visitors wait, how many are rendered at
    once (all in seconds)."""

    def __init__(self, pages, render, patience, renders):
        self.pages, self.render, self.patience, self.renders = pages, render, patience, renders

    def gateway(self, s):
        s.origin.delay = self.render
        return s.gateway(limits=f"renders = {self.renders}", defaults=f'wait_limit = "{self.patience}s"')


SCALE = Scale(2000, 10.0, 30, 64) if os.environ.get("STAMPEDE_SCALE") == "full" else Scale(300, 1.0, 3, 16)


def pages_of(answers, renders):
    """Everybody got a page, and one of these renders."""
    counted = tally(answers)
    wrong = {kind: count for kind, count in counted.items() if kind[0] != 200 or kind[2] not in renders}
    check(
        not wrong and sum(counted.values()) == len(answers),
        f"not everybody got one of the renders {renders}: {counted}",
    )
    return counted


def by_state(counted):
    return {state: sum(n for kind, n in counted.items() if kind[1] == state) for state in {kind[1] for kind in counted}}


def wait_for_waiters(gateways, clients=CLIENTS):
    until(
        lambda: sum(gateway.counts("facetheory_waiters") for gateway in gateways) == clients,
        "the whole crowd waits for the render",
    )


def total(gateways, name, **labels):
    return sum(gateway.counts(name, **labels) for gateway in gateways)


def a_missing_page_is_rendered_once(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", CLIENTS)
    rendering = s.origin.waits_for("/page", 1).gateway
    wait_for_waiters(gateways)
    s.origin.release("/page")
    counted = pages_of(crowd.answers(), {1})
    same(s.origin.count("/page"), 1, "renders")
    same(by_state(counted), {"miss": CLIENTS // 4, "wait-hit": CLIENTS - CLIENTS // 4}, "states")
    told = collections.Counter(answer.fields["cache-status"].partition("; ttl=")[0] for answer in crowd.answers())
    first, joined = "facetheory; fwd=uri-miss; fwd-status=200; stored", "facetheory; fwd=uri-miss; collapsed"
    same(told, {first: 1, joined: CLIENTS - 1}, "what they are told of the cache")
    theirs = pages_of(crowd.answers_of([g for g in gateways if g.name == rendering]), {1})
    same(by_state(theirs), {"miss": CLIENTS // 4}, "states of those whose gateway rendered")
    same(total(gateways, "facetheory_regenerations_total", outcome="published"), 1, "published")
    same(total(gateways, "facetheory_requests_total", state="wait-hit"), CLIENTS - CLIENTS // 4, "counted requests")
    for gateway in gateways:
        gateway.get("/page").is_(200, "hit", 1)
    same(s.origin.count("/page"), 1, "renders in the end")


def an_expired_page_is_served_to_all_while_it_is_rendered_once(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [1, 3600]
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    crowd = Crowd(gateways, "/page", CLIENTS)
    # The origin does not answer until everybody was served: nobody waits for it.
    counted = pages_of(crowd.answers(), {1})
    same(by_state(counted), {"stale": CLIENTS}, "states")
    s.origin.waits_for("/page", 2)
    s.origin.release("/page")
    for gateway in gateways:
        gateway.becomes("/page", "hit", 2)
    same(s.origin.count("/page"), 2, "renders, with the first one")


def expired(origin):
    """The page's window has ended, and the origin holds every further render of it."""
    origin.hold("/page")
    time.sleep(2.1)  # A window of 1 s, in whole seconds; pointers of DynamoDB are believed for 1 s.
    same(origin.count("/page"), 1, "renders before the page has expired")


def an_expired_page_that_must_be_fresh_is_waited_for_and_rendered_once(s, store):
    is_waited_for_once_it_has_expired(s, s.on(store).gateways(4, defaults='mode = "blocking"'))


def an_expired_page_is_waited_for_in_mode_swr_if_the_origin_does_not_let_it_be_stale(s, store):
    is_waited_for_once_it_has_expired(s, s.on(store).gateways(4))


def is_waited_for_once_it_has_expired(s, gateways):
    s.origin.windows["/page"] = [1, 3600]
    s.origin.allows_stale = False
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    crowd = Crowd(gateways, "/page", CLIENTS)
    s.origin.waits_for("/page", 2)
    wait_for_waiters(gateways)
    s.origin.release("/page")
    pages_of(crowd.answers(), {2})
    same(s.origin.count("/page"), 2, "renders, with the first one")


def a_page_that_is_to_be_validated_for_each_request_is_rendered_for_each(s, store):
    gateways, clients = s.on(store).gateways(2), 20
    s.origin.fields["/page"] = {"Cache-Control": "max-age=0"}
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", clients)
    s.origin.waits_for("/page", 1)
    wait_for_waiters(gateways, clients)
    s.origin.release("/page")
    counted = pages_of(crowd.answers(), set(range(1, clients + 1)))
    same(len(counted), clients, "different pages")
    same(s.origin.count("/page"), clients, "renders")


def another_gateway_takes_over_when_the_rendering_one_is_killed(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", CLIENTS)
    name = s.origin.waits_for("/page", 1).gateway
    killed = next(gateway for gateway in gateways if gateway.name == name)
    wait_for_waiters(gateways)
    killed.kill()
    taker = s.origin.waits_for("/page", 2).gateway
    check(taker != name, f"{taker} rendered twice")
    s.origin.release("/page")
    others = [gateway for gateway in gateways if gateway is not killed]
    pages_of(crowd.answers_of(others), {2})
    lost = [answer for answer in crowd.answers_of([killed]) if isinstance(answer, Answer)]
    same(lost, [], "answers of the gateway that was killed")
    same(total(others, "facetheory_leases_total", event="taken_over"), 1, "leases taken over")
    same(s.origin.count("/page"), 2, "renders, with the one that was lost")
    for gateway in others:
        gateway.becomes("/page", "hit", 2)
    same(s.origin.count("/page"), 2, "renders in the end")


def an_expired_page_stays_served_when_the_rendering_gateway_is_killed(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [1, 3600]
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    counted = pages_of(Crowd(gateways, "/page", CLIENTS).answers(), {1})
    same(by_state(counted), {"stale": CLIENTS}, "states")
    name = s.origin.waits_for("/page", 2).gateway
    killed = next(gateway for gateway in gateways if gateway.name == name)
    killed.kill()
    others = [gateway for gateway in gateways if gateway is not killed]

    def taken_over():
        for gateway in others:
            gateway.get("/page").is_(200, "stale", 1)
        return s.origin.count("/page") >= 3

    until(taken_over, "somebody takes over")
    s.origin.release("/page")
    for gateway in others:
        gateway.becomes("/page", "hit", 3)
    same(s.origin.count("/page"), 3, "renders, with the first one and the one that was lost")


def served_within_one_render(gateway):
    began = time.monotonic()
    visitor = gateway.get("/visitor").is_(200, "miss", 1)
    below(visitor.seconds, SCALE.render + 1, f"seconds for a visitor at {began:.1f}")
    print(
        f"# after {SCALE.pages} abandoned pages of {SCALE.render} s a visitor was served "
        f"within {visitor.seconds:.2f} s",
        flush=True,
    )


def after_many_visitors_lost_patience_the_next_one_is_served_within_one_render_and_a_second(s):
    gateway = SCALE.gateway(s)
    began = time.monotonic()
    answers = Crowd([gateway], "/abandoned/{i}", SCALE.pages, limit=SCALE.patience + 20).answers()
    below(time.monotonic() - began, SCALE.patience + 10, "seconds until everybody had an answer")
    refused = [answer for answer in answers if answer.status == 503]
    same({answer.status for answer in answers}, {200, 503}, "statuses")
    check(len(refused) > SCALE.pages / 2, f"{len(refused)} were refused")
    check(
        all(int(answer.fields.get("retry-after", 0)) > 0 for answer in refused),
        "a refusal does not say when to come again",
    )
    early = sum(answer.seconds < SCALE.patience - 0.5 for answer in refused)
    print(f"# {len(refused)} of {SCALE.pages} were refused, {early} of them early", flush=True)
    check(early > len(refused) / 2, f"only {early} of {len(refused)} refusals came early")
    served_within_one_render(gateway)
    same(gateway.counts("facetheory_renders_queued"), 0, "renders in the queue")
    check(gateway.counts("facetheory_renders_not_begun_total", reason="refused") > 0, "refusals were not counted")


async def ask_and_leave(port, pages, leave):
    writers = []
    for i in range(pages):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /abandoned/{i} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        writers.append(writer)
    await asyncio.get_running_loop().run_in_executor(None, leave)
    for i, writer in enumerate(writers):
        if i % 2:  # Half of them say good-bye, the others break off.
            writer.transport.abort()
        else:
            writer.close()


def after_many_visitors_left_the_next_one_is_served_within_one_render_and_a_second(s):
    raise_descriptor_limit(4096)
    gateway = SCALE.gateway(s)

    def queued():
        return gateway.counts("facetheory_renders_queued")

    LOOP.run(ask_and_leave(gateway.port, SCALE.pages, lambda: until(queued, "renders are queued")))
    until(lambda: queued() == 0, "nothing is queued for those who left", limit=3)
    check(
        gateway.counts("facetheory_renders_not_begun_total", reason="dropped") > 0, "what was dropped was not counted"
    )
    served_within_one_render(gateway)


CASES = [
    a_missing_page_is_rendered_once,
    an_expired_page_is_served_to_all_while_it_is_rendered_once,
    an_expired_page_that_must_be_fresh_is_waited_for_and_rendered_once,
    an_expired_page_is_waited_for_in_mode_swr_if_the_origin_does_not_let_it_be_stale,
    a_page_that_is_to_be_validated_for_each_request_is_rendered_for_each,
    another_gateway_takes_over_when_the_rendering_one_is_killed,
    an_expired_page_stays_served_when_the_rendering_gateway_is_killed,
]

if __name__ == "__main__":
    harness.main(__name__, more=harness.on_each(STORES, CASES))

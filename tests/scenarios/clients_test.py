#!/usr/bin/python3
"""Clients that go away, read slowly, send slowly or just stay: they delay nobody else, stop no regeneration and cost
little.

    clients_test.py --facetheory build/release/facetheory [WORD...]
"""
import asyncio
import socket
import statistics
import struct
import time

import harness
from harness import HOST, LOOP, Crowd, below, check, raise_descriptor_limit, same, tally, until

REQUEST = f"GET %s HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
IDLE = 10_000
BYTES_EACH = 20 * 1024
# Seconds for a page from memory while others misbehave. Alone it takes less than a millisecond; the machine has more to
# do.
MEDIAN, WORST = 0.1, 2.0


def connect(gateway, receive_buffer=None):
    """A bare connection."""
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(harness.DEADLINE)
    client.connect(("127.0.0.1", gateway.port))
    return client


def others_are_not_delayed(gateway, path="/page", count=200):
    client = gateway.client()
    seconds = [client(path).is_(200, "hit").seconds for _ in range(count)]
    client.close()
    below(statistics.median(seconds), MEDIAN, "seconds of a hit, in the middle")
    below(max(seconds), WORST, "seconds of a hit, at worst")


def a_client_that_leaves_does_not_stop_the_render_it_began(s):
    gateway = s.gateway()
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    client = connect(gateway)
    client.sendall((REQUEST % "/page").encode())
    s.origin.waits_for("/page", 1)
    client.close()
    time.sleep(0.2)  # Whatever the gateway does about that, it does now.
    s.origin.release("/page")
    gateway.becomes("/page", "hit", 1)
    same(s.origin.count("/page"), 1, "renders")
    same(gateway.counts("facetheory_regenerations_total", outcome="published"), 1, "published")


def a_client_that_leaves_takes_nothing_from_those_who_wait_beside_it(s):
    gateway = s.gateway()
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    leaving = [connect(gateway) for _ in range(100)]
    for client in leaving:
        client.sendall((REQUEST % "/page").encode())
    s.origin.waits_for("/page", 1)
    crowd = Crowd([gateway], "/page", 100)
    until(lambda: gateway.counts("facetheory_waiters") == 200, "all of them wait")
    for i, client in enumerate(leaving):
        if i % 2:  # Half of them say good-bye, the others break off.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    time.sleep(0.2)
    s.origin.release("/page")
    same(tally(crowd.answers()), {(200, "miss", 1): 100}, "answers of those who stayed")
    same(s.origin.count("/page"), 1, "renders")


def a_client_that_leaves_a_request_that_is_passed_on_ends_it_at_the_origin(s):
    # One that only says that it sends no more may still read, and is waited for as long as the origin may be silent.
    gateway = s.gateway(routes='[[routes]]\npattern = "/{rest*}"\ncache = false\n', origin='read_timeout = "3s"\n')
    s.origin.hold("/page")
    client = connect(gateway)
    client.sendall((REQUEST % "/page").encode())
    s.origin.waits_for("/page", 1)
    client.close()
    until(lambda: not s.origin.writers, "the origin's connection is closed")
    s.origin.release("/page")
    gateway.get("/page").is_(200, "pass", 2)


def clients_that_read_slowly_delay_nobody_and_are_cut_off(s):
    gateway = s.gateway(limits='write_timeout = "3s"')
    s.origin.windows.update({"/page": [3600], "/large": [3600]})
    s.origin.sizes["/large"] = 8 << 20
    gateway.get("/page").is_(200, "miss", 1)
    # The first of them has the page rendered.
    slow = [connect(gateway, receive_buffer=4096) for _ in range(50)]
    for client in slow:
        client.sendall((REQUEST % "/large").encode())
    s.origin.waits_for("/large", 1)
    began = time.monotonic()
    others_are_not_delayed(gateway)
    large = gateway.get("/large")
    same((large.status, len(large.body), large.render), (200, 8 << 20, 1), "the large page for somebody quick")
    until(lambda: gateway.counts("facetheory_connections") == 0, "the slow ones are cut off", limit=3 + 5)
    check(time.monotonic() - began > 2, "they were cut off too early")
    same(s.origin.count("/large"), 1, "renders")
    for client in slow:
        client.close()


def a_client_that_reads_slowly_but_steadily_gets_everything(s):
    gateway = s.gateway(limits='write_timeout = "1s"')
    s.origin.sizes["/large"] = 1 << 20
    client = connect(gateway, receive_buffer=4096)
    client.sendall((REQUEST % "/large").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode())
    received, began = 0, time.monotonic()
    while piece := client.recv(8192):
        received += len(piece)
        time.sleep(0.02)
    check(received > 1 << 20, f"{received} bytes came")
    check(time.monotonic() - began > 1, "it was not slow")
    client.close()


def clients_that_send_slowly_delay_nobody_and_are_cut_off(s):
    gateway = s.gateway(limits='header_timeout = "2s"\nbody_timeout = "2s"')
    s.origin.windows["/page"] = [3600]
    gateway.get("/page").is_(200, "miss", 1)
    heads = [connect(gateway) for _ in range(200)]
    bodies = [connect(gateway) for _ in range(50)]
    for client in bodies:
        client.sendall(f"POST /form HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000\r\n\r\nx".encode())
    text = (REQUEST % "/page").encode()
    began = time.monotonic()
    for i in range(10):  # A byte now and then: the header never comes to its end in time.
        for client in heads:
            client.sendall(text[i : i + 1])
        others_are_not_delayed(gateway, count=20)
        time.sleep(0.05)
    for client in heads[:20]:
        check(client.recv(100).startswith(b"HTTP/1.1 408 "), "a header that does not come is answered 408")
    for client in bodies[:5]:
        answer = client.recv(100)
        check(answer == b"" or answer.startswith(b"HTTP/1.1 408 "), f"a body that does not come: {answer}")
    below(time.monotonic() - began, 2 + 5, "seconds until the slow ones are cut off")
    until(lambda: gateway.counts("facetheory_connections") == 0, "all of them are cut off", limit=10)
    others_are_not_delayed(gateway)
    for client in heads + bodies:
        client.close()


def slow_clients_do_not_delay_a_render(s):
    gateway = s.gateway(limits="connections = 500")
    s.origin.windows["/page"] = [1, 3600]
    gateway.get("/page").is_(200, "miss", 1)
    slow = [connect(gateway) for _ in range(300)]
    for client in slow:
        client.sendall(b"GET /page HT")
    time.sleep(1.1)
    began = time.monotonic()
    gateway.becomes("/page", "hit", 2)
    below(time.monotonic() - began, 3, "seconds until the expired page was rendered again")
    for client in slow:
        client.close()


def connections_beyond_the_limit_are_closed_at_once_and_accepted_again_later(s):
    gateway = s.gateway(limits="connections = 10")
    clients = [gateway.client() for _ in range(10)]
    for client in clients:
        client("/page").is_(200)
    beyond = connect(gateway)
    same(beyond.recv(1), b"", "what the eleventh gets")
    same(gateway.counts("facetheory_connections_refused_total"), 1, "refused connections")
    for client in clients:
        client("/page").is_(200, "hit")
        client.close()
    until(lambda: gateway.counts("facetheory_connections") == 0, "they are gone")
    gateway.get("/page").is_(200, "hit")


async def keep_alive_connection(port, path):
    """One that has had an answer, and stays."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
    writer.write((REQUEST % path).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    await reader.readexactly(length)
    return writer


async def keep_alive_connections(port, path, count):
    writers = []
    while len(writers) < count:
        batch = min(200, count - len(writers))
        writers += await asyncio.gather(*[keep_alive_connection(port, path) for _ in range(batch)])
    return writers


def ten_thousand_idle_connections_cost_less_than_20_KiB_each(s):
    raise_descriptor_limit(IDLE + 1000)
    gateway = s.gateway(limits=f'connections = {IDLE + 100}\nidle_timeout = "5m"')
    s.origin.windows["/page"] = [3600]
    gateway.get("/page").is_(200, "miss", 1)
    LOOP.run(warm_up(gateway.port))
    before = gateway.memory()
    writers = LOOP.run(keep_alive_connections(gateway.port, "/page", IDLE))
    same(gateway.counts("facetheory_connections"), IDLE, "connections")
    each = (gateway.memory() - before) / IDLE
    print(f"# an idle connection costs {each:.0f} bytes of memory", flush=True)
    check(each < BYTES_EACH, f"an idle connection costs {each:.0f} bytes")
    others_are_not_delayed(gateway)
    LOOP.run(close_all(writers))
    until(lambda: gateway.counts("facetheory_connections") == 0, "they are gone")


async def warm_up(port):
    await close_all(await keep_alive_connections(port, "/page", 50))


async def close_all(writers):
    for writer in writers:
        writer.close()


if __name__ == "__main__":
    harness.main(__name__)

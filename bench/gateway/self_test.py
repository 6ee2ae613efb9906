#!/usr/bin/python3
"""gateway_bench notices what would make its figures worthless, and bench_client asks for what it is told to.

    bench/gateway/self_test.py FOLDER     FOLDER: where bench_client and bench_origin were built
"""
import collections
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import socketserver
import sys
import threading
import time
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

from gateway import load, peers, report, workloads  # noqa: E402
from gateway.bed import Bed, Failed, free_port  # noqa: E402

TOOLS = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


class Recorder(socketserver.ThreadingTCPServer):
    """A server that writes down which paths it was asked for, and answers as bench_origin does."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answered=lambda path: path, cuts=()):
        super().__init__(("127.0.0.1", free_port()), self.Connection)
        self.paths, self.heads = [], []
        self.answered = answered  # The path in the body that a path is answered with.
        self.cuts = cuts  # Where an answer is cut into pieces, which come one by one.
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Connection(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self):
            lines = []
            with contextlib.suppress(ConnectionError):
                for line in self.rfile:
                    lines.append(line.decode().strip())
                    if lines[-1]:
                        continue
                    path = lines[0].split()[1]
                    self.server.paths.append(path)
                    self.server.heads.append(lines[1:-1])
                    body = f"<!doctype html>{self.server.answered(path)}\nsome text\n".encode()
                    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                    for begin, end in zip((0, *self.server.cuts), (*self.server.cuts, len(answer))):
                        self.wfile.write(answer[begin:end])
                        time.sleep(0.005 if self.server.cuts else 0)
                    lines = []

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Keepless(peers.Peer):
    """The origin itself: a server that stores nothing."""

    name, title = "keepless", "a server that keeps nothing"

    def __init__(self, bed):
        super().__init__(bed, None)
        self.port, self.process = bed.origin_port, bed.origin

    def start(self):
        return 0

    def stop(self):
        pass


class WithBed(unittest.TestCase):
    def setUp(self):
        self.bed = self.enterContext(Bed(TOOLS, one_core_will_do=True))
        self.a_run = types.SimpleNamespace(bed=self.bed)


class BenchClient(WithBed):
    def ask(self, server, order, pages, seed=1):
        """(what bench_client says, the numbers of the pages that it asked for)."""
        before = len(server.paths)
        done = load.ask(self.bed, server.port, "/4k/page#", pages, 1, 1, order, seed)
        return done, [int(path.removeprefix("/4k/page")) for path in server.paths[before:]]

    def test_asks_for_each_page_once_in_the_order_of_the_seed(self):
        with Recorder() as server:
            done, turn = self.ask(server, "turn", 50)
            _, shuffled = self.ask(server, "shuffled", 50)
            _, again = self.ask(server, "shuffled", 50)
            _, otherwise = self.ask(server, "shuffled", 50, seed=2)
        self.assertEqual((done["answered"], done["failed"]), (50, 0))
        self.assertEqual(turn, list(range(50)))
        self.assertEqual(sorted(shuffled), turn)
        self.assertEqual(sorted(otherwise), turn)
        self.assertEqual(shuffled, again)
        self.assertEqual(len({tuple(order) for order in (turn, shuffled, otherwise)}), 3)

    def test_asks_for_all_pages_equally_often_until_the_time_is_over(self):
        with Recorder() as server:
            done, asked = self.ask(server, "uniform", 4)
        self.assertGreater(done["answered"], 100)
        self.assertGreaterEqual(done["seconds"], 1)
        for page in range(4):
            self.assertAlmostEqual(asked.count(page) / len(asked), 1 / 4, delta=0.15)

    def test_asks_for_popular_pages_more_often_and_these_are_always_the_same(self):
        with Recorder() as server:
            popular = [collections.Counter(self.ask(server, "zipf", 4, seed)[1]).most_common() for seed in (1, 2)]
        for counts in popular:
            share = [count / sum(count for _, count in counts) for _, count in counts]
            for rank, found in enumerate(share, 1):
                self.assertAlmostEqual(found, 1 / rank / (1 + 1 / 2 + 1 / 3 + 1 / 4), delta=0.1)
        self.assertEqual(popular[0][0][0], popular[1][0][0])

    def test_asks_as_a_browser_does(self):
        with Recorder() as server:
            self.ask(server, "turn", 1)
        self.assertEqual(server.heads[0], ["Host: bench.test"] + [f"{k}: {v}" for k, v in load.BROWSER.items()])

    def test_an_answer_may_come_in_pieces(self):
        with Recorder(cuts=(10, 40, 45, 60)) as server:  # In the first line of the head, and of the body.
            done, asked = self.ask(server, "turn", 5)
        self.assertEqual((done["answered"], done["failed"]), (5, 0))
        self.assertEqual(asked, list(range(5)))
        self.assertEqual(done["bytes"], 5 * len("HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n") + 5 * 35)

    def test_an_answer_that_is_another_page_has_failed(self):
        with Recorder(lambda path: path.replace("page3", "page4")) as server:
            done, _ = self.ask(server, "turn", 5)
        self.assertEqual((done["answered"], done["failed"]), (4, 1))


class Workloads(WithBed):
    def test_a_window_with_misses_ends_the_workload(self):
        asking = load.Spread(self.bed, "/4k/page", 100, "uniform")
        measure = workloads.hits_only(self.a_run, Keepless(self.bed), asking, None)
        with self.assertRaisesRegex(Failed, r"keeps nothing: [\d,]+ of [\d,]+ requests were no hits"):
            measure(1)

    def test_every_window_has_its_own_seed(self):
        asking = load.Spread(self.bed, "/4k/page", 20, "shuffled")
        asking.connections = 1  # So that requests are recorded in their order.
        with Recorder() as server:
            windows = [asking.run(server.port, 5) for _ in range(2)]
        self.assertEqual([window["requests"] for window in windows], [20, 20])
        first, second = server.paths[:20], server.paths[20:]
        self.assertEqual(sorted(first), sorted(second))
        self.assertNotEqual(first, second)

    def test_a_page_that_is_not_kept_is_no_fill(self):
        with self.assertRaisesRegex(Failed, "does not keep what it is filled with: a sample asked again misses 50"):
            workloads.fill_once(self.a_run, Keepless(self.bed), 50, 10)

    def test_a_page_that_was_there_already_is_no_fill(self):
        with Recorder() as recorder:
            server = Keepless(self.bed)
            server.port = recorder.port
            with self.assertRaisesRegex(Failed, "cannot be filled: only 0 of 50 pages were rendered"):
                workloads.fill_once(self.a_run, server, 50, 10)


def row(workload, peer, cpu_us, p99_us):
    figures = {"rps": 1000, "p50_us": 100, "server_use": 0.9, "load_use": 0.5, "origin_use": 0.2, "hit_share": 1}
    counts = {"own_mib": 64, "files_mib": 8, "clean": 3, "windows": 3, "void": [], "pages": 100}
    return figures | counts | {"workload": workload, "peer": peer, "cpu_us": cpu_us, "p99_us": p99_us}


class Report(unittest.TestCase):
    rows = [
        row("spread, a, uniform", "ours", 10, 300),
        row("spread, a, uniform", "nginx", 20, 200),
        row("spread, a, zipf", "ours", 30, 100),
        row("spread, a, zipf", "nginx", 20, 200),
    ]

    def test_bars_name_the_worst_of_a_workload(self):
        lines = [bar.line() for bar in report.bars({"workloads": {"spread": self.rows}})]
        self.assertIn("MISSED        spread: CPU of a hit, ours / nginx, the worst case: 1.50 (at most 1)", lines)
        self.assertIn("MISSED        spread: p99, ours / nginx, the worst case: 1.50 (at most 1)", lines)
        self.assertIn("not measured  spread-small: CPU of a hit, ours / nginx, the worst case", lines)
        self.assertIn("not measured  fill: CPU of a page, ours / nginx", lines)

    def test_tables_compare_with_each_server(self):
        fill = [row("fill, 100 pages", "ours", 300, 5), row("fill, 100 pages", "nginx", 100, 5)]
        results = {"workloads": {"spread": self.rows, "fill": fill}}
        spread = "| spread, a, zipf | nginx | 20.0 | 1.50 | 1,000 | 100 | 200 | 100.00% | 64 | 8 | 3 of 3 |"
        self.assertIn(spread, report.spread_table(results))
        self.assertIn("| nginx | 100.0 | 3.00 | 1,000 | 100 | 5 | 90% | 70% | 3 of 3 |", report.fill_table(results))


class Options(unittest.TestCase):
    def parse(self, *words):
        loader = importlib.machinery.SourceFileLoader("gateway_bench", str(HERE.parent / "gateway_bench"))
        program = importlib.util.module_from_spec(importlib.util.spec_from_loader("gateway_bench", loader))
        loader.exec_module(program)
        return program.parse(list(words))

    def test_quick_is_fewer_pages_unless_they_are_said(self):
        usual, quick, said = self.parse(), self.parse("--quick"), self.parse("--quick", "--fill-pages", "7")
        self.assertEqual((usual.spread_pages, usual.fill_pages), ([10_000, 100_000], 100_000))
        self.assertEqual((quick.spread_pages, quick.fill_pages), ([1000, 10_000], 10_000))
        self.assertEqual((said.spread_pages, said.fill_pages), ([1000, 10_000], 7))

    def test_wrong_words_are_refused(self):
        for words in (("--spread-pages", "10"), ("--only", "spreads"), ("--peers", "apache")):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit, msg=words):
                self.parse(*words)


if __name__ == "__main__":
    unittest.main()

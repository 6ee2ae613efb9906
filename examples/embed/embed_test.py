#!/usr/bin/python3
"""Starts the example twice on one folder and asks both for one page: rendered once, then a hit for both."""
import concurrent.futures
import signal
import subprocess
import sys
import tempfile
import urllib.request


def ask(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.headers["x-facetheory-isr"], answer.read()


def arguments_are_checked(program):
    for words, code in (
        (["--help"], 0),
        (["-h"], 0),
        (["x"], 2),
        (["80x"], 2),
        (["-1"], 2),
        (["65536"], 2),
        (["0", "lmdb:x"], 2),
        (["0", "a", "b", "c"], 2),
    ):
        ended = subprocess.run([program, *words], capture_output=True, text=True, timeout=20, check=False)
        said, silent = (ended.stdout, ended.stderr) if code == 0 else (ended.stderr, ended.stdout)
        assert ended.returncode == code and said.startswith("usage: embed [PORT") and not silent, (words, ended)
    print("ok arguments are checked")


def strangers_are_refused(program, folder):
    """The bodies are the first table's: one that is not theirs writes nothing, and none may keep them for itself."""
    for table, bodies, reason in (
        (f"lmdb:{folder}/another", f"file:{folder}/bodies", "belongs to the table lmdb:"),
        ("dynamodb:pages", f"lmdb:{folder}/own", "the table dynamodb:pages is shared"),
    ):
        ended = subprocess.run([program, "0", table, bodies], capture_output=True, text=True, timeout=20, check=False)
        assert ended.returncode == 1 and reason in ended.stderr and not ended.stdout, ended
    print("ok strangers are refused")


def main():
    arguments_are_checked(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        stores = [f"lmdb:{folder}/table", f"file:{folder}/bodies"]
        servers = [subprocess.Popen([sys.argv[1], "0", *stores], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            urls = [server.stdout.readline().strip() for server in servers]
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                answers = list(pool.map(ask, urls * 10))
            assert len({body for _, body in answers}) == 1, answers
            assert {how for how, _ in answers} <= {"miss", "wait-hit", "hit"}, answers
            assert [ask(url)[0] for url in urls] == ["hit", "hit"]
        finally:
            for server in servers:
                server.send_signal(signal.SIGTERM)
            codes = [server.wait(20) for server in servers]
        assert codes == [0, 0], codes
        strangers_are_refused(sys.argv[1], folder)
    print("ok one page, two programs, one render")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""How many required cases of the public caching suite HAProxy's cache passes, of which the suite has stored no result.

    tests/http_caching/haproxy_score.py      # half a minute; after ./test, which installs the suite

HAProxy is the installed one, or else Debian's package, unpacked into build/bench-peers; bench/gateway_bench gets and
configures it in the same way.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import suite

sys.path.insert(0, str(suite.ROOT / "bench"))
from gateway import packages, peers  # noqa: E402


def main():
    options = types.SimpleNamespace(packages=suite.ROOT / "build/bench-peers")
    with suite.origin() as origin, tempfile.TemporaryDirectory() as folder:
        haproxy = peers.Haproxy(types.SimpleNamespace(folder=pathlib.Path(folder), origin_port=origin), options)
        started = subprocess.Popen(haproxy.command(), env=os.environ | haproxy.variables(), stdout=subprocess.DEVNULL)
        with suite.ended(started):
            suite.wait_for_port(haproxy.port, started)
            found = suite.run(f"http://127.0.0.1:{haproxy.port}")
    required = sum(case["kind"] == "required" for case in found["cases"])
    passed, supported = suite.score(found)
    print(f"HAProxy passes {passed} of {required} required cases, {supported} with all that they build on")


if __name__ == "__main__":
    try:
        main()
    except packages.Missing as problem:
        sys.exit(str(problem))

#!/usr/bin/python3
"""How many required cases of the public caching suite HAProxy's cache passes, of which the suite has stored no result.

    tests/http_caching/haproxy_score.py      # half a minute; after ./test, which installs the suite

HAProxy is the installed one, or else Debian's package, unpacked into build/bench-peers as for bench/gateway_bench.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import suite

sys.path.insert(0, str(suite.ROOT / "bench"))
from gateway import packages  # noqa: E402

CONFIGURATION = """
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
cache pages
  total-max-size 256
  max-object-size 1048576
  max-age 2592000
  process-vary on
frontend clients
  bind 127.0.0.1:{port}
  http-request cache-use pages
  http-response cache-store pages
  default_backend origin
backend origin
  server origin 127.0.0.1:{origin}
"""


def main():
    program, variables = packages.obtain("haproxy", suite.ROOT / "build/bench-peers")
    port = suite.free_port()
    with suite.origin() as origin, tempfile.TemporaryDirectory() as folder:
        configuration = pathlib.Path(folder) / "haproxy.cfg"
        configuration.write_text(CONFIGURATION.format(port=port, origin=origin))
        command = [program, "-db", "-f", str(configuration)]
        with suite.ended(subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.DEVNULL)) as haproxy:
            suite.wait_for_port(port, haproxy)
            found = suite.run(f"http://127.0.0.1:{port}")
    required = sum(case["kind"] == "required" for case in found["cases"])
    print(f"HAProxy passes {suite.score(found)} of {required} required cases")


if __name__ == "__main__":
    try:
        main()
    except packages.Missing as problem:
        sys.exit(str(problem))

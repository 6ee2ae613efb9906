#!/usr/bin/python3
"""A first start on a disk that has hardly any room ends with a word about it, and the next one, with room, works.

    full_disk_start_test.py --facetheory build/release/facetheory
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import trials

DISK = 16 << 20


def fill(disk, leave):
    """All but so many bytes of it."""
    with open(disk / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            filler.truncate(max(filler.tell() - leave, 0))


def try_with(program, free):
    with tempfile.TemporaryDirectory() as folder:
        disk = pathlib.Path(folder)
        trials.mount("-t", "tmpfs", "-o", f"size={DISK},mode=700", "full", disk)
        try:
            fill(disk, free)
            words = [program, "lease", "acquire", "/page", "--data", disk / "data"]
            full = subprocess.run(words, capture_output=True, text=True, timeout=30)
            trials.check(full.returncode == 1, f"exit code {full.returncode}: {full.stderr}")
            trials.check("free space on that disk" in full.stderr, f"it says: {full.stderr}")
            (disk / "filler").unlink()
            roomy = subprocess.run(words, capture_output=True, text=True, timeout=30)
            trials.check(roomy.returncode == 0, f"with room, exit code {roomy.returncode}: {roomy.stderr}")
        finally:
            trials.mount("--lazy", disk, command="umount")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facetheory", type=pathlib.Path, default="build/release/facetheory")
    program = parser.parse_args().facetheory.resolve()
    trials.in_own_namespace()
    failed = False
    for free in (0, 4096, 8192, 16384, 65536, 131072, 262144):
        try:
            try_with(program, free)
            print(f"ok {free} bytes are free")
        except trials.Failed as failure:
            failed = True
            print(f"  {failure}\nnot ok {free} bytes are free")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""The hook commit-msg refuses what CONTRIBUTING.md asks not to write, and nothing else; Git runs it where it is set
up."""
import pathlib
import subprocess
import sys
import tempfile

HOOKS = pathlib.Path(__file__).resolve().parent / "hooks"
LONG = "Refuse " + "x" * 66
ACCEPTED = {
    "a subject": "Refuse transactions that name an item twice\n",
    "72 characters": "x" * 72 + "\n",
    "72 characters of more bytes": "ä" * 72 + "\n",
    "a body of any width": "Refuse it\n\n" + "because " * 40 + "\n",
    "comments and empty lines before": "\n# a comment\n\nRefuse it\n# " + "x" * 100 + "\n\nBody\n",
    "what Git shows of the change": "Refuse it\n# ------------------------ >8 ------------------------\n+not a body\n",
    "a merge": "Merge branch '" + "x" * 80 + "'\n",
    "a revert": 'Revert "' + "x" * 80 + '"\n',
    "a fixup": "fixup! " + "x" * 80 + "\n",
    "what Git refuses by itself": "\n# nothing\n",
}
REFUSED = {
    "73 characters": (LONG + "\n", "the subject has 73 characters"),
    "a long subject after comments": ("# a comment\n" + LONG + "\n", "the subject has 73 characters"),
    "a full stop": ("Refuse it.\n", "full stop"),
    "a body without an empty line": ("Refuse it\nbecause\n", "an empty line belongs"),
}


def git(folder, *arguments):
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", f"core.hooksPath={HOOKS}"]
    return subprocess.run(
        ["git", "-C", folder, *settings, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main():
    good = True

    def say(ok, name, detail=""):
        nonlocal good
        good = good and ok
        print(f"{'ok' if ok else 'not ok'} {name}" + ("" if ok else f"\n  {detail}"))

    with tempfile.TemporaryDirectory() as folder:
        message = pathlib.Path(folder) / "message"
        for name, text, wanted in [(name, text, "") for name, text in ACCEPTED.items()] + [
            (name, *pair) for name, pair in REFUSED.items()
        ]:
            message.write_text(text)
            done = subprocess.run(
                [HOOKS / "commit-msg", message],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            ok = done.returncode == (1 if wanted else 0) and wanted in done.stdout and (wanted != "" or not done.stdout)
            say(ok, f"{'refuses' if wanted else 'accepts'} {name}", f"{done.returncode}: {done.stdout}")
        git(folder, "init", "-q")
        refused = git(folder, "commit", "-q", "--allow-empty", "-m", LONG)
        say(refused.returncode != 0 and "73 characters" in refused.stdout, "Git refuses the commit", refused.stdout)
        made = git(folder, "commit", "-q", "--allow-empty", "-m", "Refuse it")
        say(made.returncode == 0, "Git makes the commit", made.stdout)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

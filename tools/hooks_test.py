#!/usr/bin/python3
"""The hook commit-msg refuses what CONTRIBUTING.md asks not to write, and nothing else; tools/install has Git run
it, and leaves other hooks alone."""
import os
import pathlib
import shutil
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


def run(command, folder, path=""):
    """Without the settings of whoever runs this."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    environment["PATH"] = path + environment["PATH"]
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


# tools/install leaves these as they are.


def a_clone_told_of_other_hooks(clone):
    run(["git", "config", "core.hooksPath", "others"], clone)


def a_clone_with_a_hook_of_its_own(clone):
    (clone / ".git/hooks").mkdir(exist_ok=True)
    (clone / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")


def a_clone_that_cannot_be_written(clone):
    # Git finds this lock while somebody else writes. To take away the right to write would not stop root.
    (clone / ".git/config.lock").write_text("")


def a_clone_that_git_cannot_read(clone):
    (clone / ".git/config").write_text("[core\n")


def a_folder_that_is_no_clone(clone):
    shutil.rmtree(clone / ".git")


def a_folder_inside_another_clone(clone):
    shutil.rmtree(clone / ".git")
    run(["git", "init", "-q"], clone.parent)


LEFT_ALONE = (
    a_clone_told_of_other_hooks,
    a_clone_with_a_hook_of_its_own,
    a_clone_that_cannot_be_written,
    a_clone_that_git_cannot_read,
    a_folder_that_is_no_clone,
    a_folder_inside_another_clone,
)


def clone_in(folder):
    """A clone with no more than tools/install and the hook, and a dpkg-query that says that all is installed."""
    clone = pathlib.Path(folder) / "clone"
    shutil.copytree(HOOKS, clone / "tools/hooks")
    shutil.copy(HOOKS.parent / "install", clone / "tools/install")
    run(["git", "init", "-q"], clone)
    (clone / "stubs").mkdir()
    stub = clone / "stubs/dpkg-query"
    stub.write_text(f"#!/bin/sh\nsed -nE 's/^([a-z0-9.+-]+) .*/installed \\1/p' '{clone}/tools/install'\n")
    stub.chmod(0o755)
    return clone


def install(clone, what):
    return run([clone / "tools/install", what], clone, f"{clone}/stubs:")


def check_install(say):
    for what in ("hooks", "build"):
        with tempfile.TemporaryDirectory() as folder:
            clone = clone_in(folder)
            first, again = install(clone, what), install(clone, what)
            ok = first.returncode == again.returncode == 0 and first.stdout and not again.stdout
            say(ok, f"tools/install {what} says once that it sets the hook up", first.stdout + again.stdout)
            as_somebody = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com"]
            refused = run([*as_somebody, "commit", "-q", "--allow-empty", "-m", LONG], clone)
            ok = refused.returncode != 0 and "73 characters" in refused.stdout
            say(ok, f"Git refuses the commit after tools/install {what}", refused.stdout)
    for change in LEFT_ALONE:
        with tempfile.TemporaryDirectory() as folder:
            clone = clone_in(folder)
            change(clone)
            done = install(clone, "build")
            told = [path for path in clone.parent.glob("**/config") if "tools/hooks" in path.read_text()]
            ok = done.returncode == 0 and not done.stdout and not told
            say(ok, f"tools/install leaves alone {change.__name__.replace('_', ' ')}", f"{done}, {told}")


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
    check_install(say)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

"""Where the peers come from: the PATH, or else Debian's packages, unpacked into a folder of the build and not
installed."""
import os
import pathlib
import shutil
import subprocess

# The program, and the packages that hold it and the libraries that few machines have.
PROGRAMS = {
    "nginx": ("nginx", ["nginx"]),
    "haproxy": ("haproxy", ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libpcre2-8-0"]),
    "varnish": ("varnishd", ["varnish", "libvarnishapi3", "libjemalloc2", "libedit2", "libncursesw6", "libpcre2-8-0"]),
}


class Missing(Exception):
    pass


def installed(package):
    answer = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True)
    return answer.stdout == "installed"


def run(command, folder, remedy):
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise Missing(f"{' '.join(command)} failed: {done.stdout.strip()}\n{remedy}")


def obtain(peer, cache):
    """(program, variables) of a peer: what to run, and what its environment needs."""
    name, packages = PROGRAMS[peer]
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if found := shutil.which(name, path=search):
        return found, {}
    folder = pathlib.Path(cache) / peer
    remedy = (
        f"gateway_bench: no {name}. Install the package {packages[0]}, or run apt-get update as root and try again, "
        f"or leave it out: --peers"
    )
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        wanted = [package for package in packages if not installed(package)]
        run(["apt-get", "-qq", "-o", "Acquire::Retries=3", "download", *wanted], folder, remedy)
        for archive in sorted(folder.glob("*.deb")):
            run(["dpkg", "-x", str(archive), str(folder)], folder, remedy)
        (folder / "complete").touch()
    program = folder / "usr/sbin" / name
    libraries = sorted({str(path.parent) for path in folder.glob("usr/lib/**/*.so*") if "vmods" not in path.parts})
    variables = {"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}
    linked = subprocess.run(["ldd", str(program)], env=os.environ | variables, capture_output=True, text=True).stdout
    lacking = [line.split()[0] for line in linked.splitlines() if "not found" in line]
    if lacking:
        raise Missing(f"{program} lacks {', '.join(lacking)}.\n{remedy}")
    return str(program), variables

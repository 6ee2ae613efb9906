"""What /proc tells: processor time and memory of processes, what the host took away, and the machine itself."""
import datetime
import os
import pathlib
import platform
import re

TICK = os.sysconf("SC_CLK_TCK")


def stat_fields(pid):
    """The fields of /proc/PID/stat after the name, or None when there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def tree(root):
    """A process and all that descend from it: nginx's worker, Varnish's child."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := stat_fields(entry)):
            parents[int(entry)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def seconds_by_process(root):
    """utime + stime of a process and its descendants, all threads."""
    times = {}
    for pid in tree(root):
        if fields := stat_fields(pid):
            times[pid] = (int(fields[11]) + int(fields[12])) / TICK
    return times


def seconds_between(before, after):
    return sum(seconds - before.get(pid, 0) for pid, seconds in after.items())


def cores():
    """(user to softirq, steal) of each core, in seconds since the machine started."""
    lines = re.findall(r"^cpu\d+ (.*)$", pathlib.Path("/proc/stat").read_text(), re.MULTILINE)
    figures = [[int(word) / TICK for word in line.split()] for line in lines]
    return [(sum(f[:3]) + sum(f[5:7]), f[7]) for f in figures]


def resident(root):
    """MiB that a process holds: its own (anonymous), and pages of files, which the kernel may take back when it needs
    them."""
    own, files = 0, 0
    for pid in tree(root):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        kib = dict(re.findall(r"^(Rss\w+):\s+(\d+) kB$", status, re.MULTILINE))
        own += int(kib.get("RssAnon", 0))
        files += int(kib.get("RssFile", 0)) + int(kib.get("RssShmem", 0))
    return {"own_mib": own / 1024, "files_mib": files / 1024}


def describe_machine(folder):
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) / 1024 / 1024
    model = re.search(r"model name\s*:\s*(.*)", cpuinfo)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "processor": model[1] if model else platform.machine(),
        "memory_gib": round(memory),
        "kernel": platform.release(),
        "file_system": file_system(folder),
    }


def file_system(folder):
    folder = os.path.realpath(folder)
    best = ("", "unknown")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, where, kind = line.split()[:3]
        if (folder + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best[0]):
            best = (where, kind)
    return best[1]

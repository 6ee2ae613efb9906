"""The servers, one class each: writes its configuration, starts it, knows its processes. All get the same origin, one
core and one worker; none writes an access log, and none closes a client's connection by itself."""
import pathlib
import re
import subprocess

from gateway import cpu, packages
from gateway.bed import free_port, most_files, until_it_answers

FIRST_PAGE = "/1k/first"  # What every server is asked until it answers.


class Peer:
    name = ""
    title = ""
    setup = ""  # For the report: what was configured, and why that is fair.

    def __init__(self, bed, options):
        self.bed = bed
        self.options = options
        self.port = free_port()
        self.folder = bed.folder / f"{self.name}-{self.port}"
        self.folder.mkdir()
        self.process = None
        self.conditional = False  # All that it will be asked are conditional requests.

    def start(self):
        """Returns the seconds until the first answer."""
        self.process = self.bed.run(self.name, self.command(), variables=self.variables(), folder=self.folder)
        return until_it_answers(self.process, self.port, FIRST_PAGE, self.title)

    def stop(self):
        if self.process:
            self.bed.stop(self.process)
            self.process = None

    def command(self):
        raise NotImplementedError

    def variables(self):
        return {}

    def version(self):
        return ""

    def seconds(self):
        return cpu.seconds_by_process(self.process.pid)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def first_line(self, command):
        done = subprocess.run(command, env=None, capture_output=True, text=True, timeout=30)
        return (done.stdout + done.stderr).splitlines()[0]


class Ours(Peer):
    name = "ours"
    title = "facetheory"
    setup = (
        "`threads = 1`, `admin = \"off\"`, `access_log = \"off\"`, table and bodies as they are by default; `memory` "
        "too, but for Zipf (2 GiB, as much as HAProxy), spread-small and growth"
    )

    def __init__(self, bed, options, memory=None, data=None):
        super().__init__(bed, options)
        self.memory = memory
        self.data = pathlib.Path(data or self.folder / "data")

    def command(self):
        lines = [
            f'origin = "http://127.0.0.1:{self.bed.origin_port}"',
            f'listen = "127.0.0.1:{self.port}"',
            'admin = "off"',
            "threads = 1",
            'access_log = "off"',
            f'data = "{self.data}"',
        ]
        if self.memory:
            lines.append(f'memory = "{self.memory}"')
        return [
            str(self.options.facetheory),
            "serve",
            "--config",
            self.write("facetheory.toml", "\n".join(lines) + "\n"),
        ]

    def version(self):
        return self.first_line([str(self.options.facetheory), "--version"])


class Packaged(Peer):
    """A peer from Debian."""

    def __init__(self, bed, options):
        super().__init__(bed, options)
        self.program, self.environment = packages.obtain(self.name, options.packages)

    def variables(self):
        return self.environment

    def first_line(self, command):
        done = subprocess.run(
            ["env", *(f"{k}={v}" for k, v in self.environment.items()), *command],
            capture_output=True,
            text=True,
            timeout=30,
        )
        return (done.stdout + done.stderr).splitlines()[0]


class Nginx(Packaged):
    name = "nginx"
    title = "nginx"
    setup = (
        "`proxy_cache` on the same disk, one worker, `sendfile`, `tcp_nopush`, `open_file_cache` for half as many "
        "files as it may open, `keepalive_requests` without limit, `proxy_cache_lock`, stale pages while they are "
        "updated in the background"
    )

    def command(self):
        (self.folder / "logs").mkdir(exist_ok=True)
        configuration = self.write(
            "nginx.conf",
            f"""
user root;
daemon off;
worker_processes 1;
worker_rlimit_nofile {most_files()};
pid {self.folder}/pid;
error_log {self.folder}/error.log error;
events {{ worker_connections 8192; multi_accept on; }}
http {{
  access_log off;
  default_type text/html;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  open_file_cache max={min(150_000, most_files() // 2)} inactive=1h;
  open_file_cache_valid 1h;
  client_body_temp_path {self.folder}/client;
  proxy_temp_path {self.folder}/temporary;
  fastcgi_temp_path {self.folder}/fastcgi;
  uwsgi_temp_path {self.folder}/uwsgi;
  scgi_temp_path {self.folder}/scgi;
  proxy_cache_path {self.folder}/pages levels=1:2 keys_zone=pages:200m max_size=20g inactive=1d use_temp_path=off;
  upstream origin {{ server 127.0.0.1:{self.bed.origin_port}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{self.port} backlog=4096;
    location / {{
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_buffers 16 32k;
      proxy_cache pages;
      proxy_cache_key $host$uri$is_args$args;
      proxy_cache_lock on;
      proxy_cache_background_update on;
      proxy_cache_use_stale updating error timeout;
    }}
  }}
}}
""",
        )
        return [self.program, "-c", configuration, "-p", str(self.folder), "-e", f"{self.folder}/error.log"]

    def version(self):
        return self.first_line([self.program, "-v"]).rpartition(": ")[2].replace("/", " ")


class Haproxy(Packaged):
    name = "haproxy"
    title = "HAProxy"
    setup = (
        "`nbthread 1`, a cache of 2 GiB that takes objects up to 1 MiB, `process-vary on`; it neither serves stale "
        "pages nor lets requests wait for one another"
    )

    def command(self):
        configuration = self.write(
            "haproxy.cfg",
            f"""
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1m
  timeout http-keep-alive 1h
cache pages
  total-max-size 2048
  max-object-size 1048576
  max-age 2592000
  process-vary on
frontend clients
  bind 127.0.0.1:{self.port} backlog 4096
  http-request cache-use pages
  http-response cache-store pages
{self.for_conditional()}
  default_backend origin
backend origin
  http-reuse always
  server origin 127.0.0.1:{self.bed.origin_port}
""",
        )
        return [self.program, "-db", "-f", configuration]

    def for_conditional(self):
        """It puts the page's Content-Length into a 304, which is allowed, and for which wrk then waits in vain."""
        return "  http-after-response del-header content-length if { status 304 }" if self.conditional else ""

    def version(self):
        return "HAProxy " + re.search(r"version (\S+?)-", self.first_line([self.program, "-v"]))[1]


class Varnish(Packaged):
    name = "varnish"
    title = "Varnish"
    setup = (
        "`malloc` storage of 4 GiB, one thread pool, nothing of a request in the log that it keeps in memory "
        "(`vsl_mask`), grace from the origin's `stale-while-revalidate`"
    )
    unlogged = (
        "Begin End Link Timestamp SessOpen SessClose ReqStart ReqMethod ReqURL ReqProtocol ReqHeader ReqUnset ReqAcct "
        "RespProtocol RespStatus RespReason RespHeader RespUnset VCL_call VCL_return VCL_use Hit Length"
    ).split()

    def command(self):
        program = self.write(
            "default.vcl",
            f"""vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{self.bed.origin_port}"; }}
""",
        )
        return [
            self.program,
            "-F",
            "-j",
            "none",
            "-n",
            str(self.folder / "work"),
            "-a",
            f"127.0.0.1:{self.port}",
            "-f",
            program,
            "-s",
            "malloc,4g",
            "-p",
            "thread_pools=1",
            "-p",
            "listen_depth=4096",
            "-p",
            "timeout_idle=3600",
            "-p",
            "vsl_mask=" + ",".join("-" + tag for tag in self.unlogged),
        ]

    def version(self):
        return "Varnish " + re.search(r"varnish-([\d.]+)", self.first_line([self.program, "-V"]))[1]


class Floor(Peer):
    """Sends what another server was seen to send, byte by byte."""

    name = "floor"
    title = "epoll floor"
    setup = "`bench/epoll_floor.cc`: the system calls and nothing else; sends the very bytes that ours sends"

    def __init__(self, bed, options):
        super().__init__(bed, options)
        self.pages = {}

    def learn(self, path, raw):
        self.pages[path] = self.folder / f"answer{len(self.pages)}"
        self.pages[path].write_bytes(raw)

    def command(self):
        return [
            str(self.bed.tools / "epoll_floor"),
            str(self.port),
            *(f"{path}={file}" for path, file in self.pages.items()),
        ]

    def version(self):
        return "epoll floor"


ALL = {peer.name: peer for peer in (Ours, Nginx, Haproxy, Varnish, Floor)}

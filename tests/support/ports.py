"""Ports of this machine for servers that are told where to listen."""
import random
import socket

# The system gives those from 32,768 on to whoever asks for any: a server that is started again might find its port
# taken, even by a client that keeps trying to reach it.
FIRST, LAST = 20_000, 31_000


def free_port(*further):
    """One that is free, as are those so much further."""
    for _ in range(100):
        port = random.randrange(FIRST, LAST)
        try:
            for distance in (0, *further):
                socket.create_server(("127.0.0.1", port + distance)).close()
            return port
        except OSError:
            continue
    raise SystemExit("no free port")

"""A process that asks a server for its health, one request after the other, until its standard input ends.

Usage: health_poller.py PORT. It prints the latencies in milliseconds as JSON; a failed request counts as 10 s.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time

_PAUSE = 0.005  # seconds
_CLIENTS = 10  # addresses, so that none makes more requests than one client may in a minute


def main() -> None:
    """Poll until the end of standard input."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    taken = []
    port = int(sys.argv[1])
    sources = [(f"127.0.0.{number}", 0) for number in range(2, 2 + _CLIENTS)]
    connections = [
        http.client.HTTPConnection("127.0.0.1", port, timeout=300, source_address=source) for source in sources
    ]
    while not ended.wait(_PAUSE):
        connection = connections[len(taken) % _CLIENTS]
        begun = time.perf_counter()
        try:
            connection.request("GET", "/api/v1/health")
            answer = connection.getresponse()
            answer.read()
            failed = answer.status != 200
        except OSError:
            connection.close()
            failed = True
        taken.append(10_000.0 if failed else (time.perf_counter() - begun) * 1000)
    json.dump(taken, sys.stdout)


if __name__ == "__main__":
    main()

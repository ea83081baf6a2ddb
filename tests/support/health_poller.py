"""A process that asks a server for its health, one request after the other, until its standard input ends.

Usage: health_poller.py PORT. It prints the latencies in milliseconds as JSON; a failed request counts as 10 s.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time

_PAUSE = 0.055  # seconds: within the requests that one client may make in a minute


def main() -> None:
    """Poll until the end of standard input."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    taken = []
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    while not ended.wait(_PAUSE):
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

// Follows the events of a job. The browser comes back by itself after a broken connection and misses nothing.

/**
 * Follow a stream until `close()`.
 *
 * @param address the stream
 * @param events functions by the kind of event, called with its data; `reset` when what was shown is void
 * @param on `connected`, `lost` while the connection is broken, `ended` when the server has no more to say
 */
export function follow(address, events, on = {}) {
  let source = null;

  const open = () => {
    source = new EventSource(address);
    for (const [kind, handle] of Object.entries(events)) {
      if (kind !== "error") source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
    }
    source.addEventListener("open", () => on.connected?.());
    source.addEventListener("error", (event) => {
      if (event instanceof MessageEvent) events.error?.(JSON.parse(event.data));
      else if (source.readyState === EventSource.CLOSED) on.ended?.();
      else on.lost?.();
    });
  };

  // Browsers allow only a few connections to one server: a tab in the background gives its own back.
  const change = () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED) {
      events.reset?.({});
      open();
    }
  };

  open();
  document.addEventListener("visibilitychange", change);
  return {
    close() {
      document.removeEventListener("visibilitychange", change);
      source.close();
    },
  };
}

-- The servers of the library. One that is fenced was taken for dead: it is refused from then on.
CREATE TABLE servers (
    id text PRIMARY KEY,
    renewed_at timestamptz NOT NULL DEFAULT now(),
    present_since timestamptz NOT NULL DEFAULT now(),
    fenced_at timestamptz
);
-- What they work on; `epoch` tells the events of one attempt from those of the next, `moves` counts servers that died.
CREATE TABLE server_jobs (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL,
    request text NOT NULL,
    server text NOT NULL,
    epoch text NOT NULL,
    state text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    stop_requested boolean NOT NULL DEFAULT false,
    moves integer NOT NULL DEFAULT 0
);
CREATE INDEX server_jobs_unfinished ON server_jobs (server) WHERE ended_at IS NULL;
-- Their events in batches: a JSON array of names and data, the first of which has the number `first`.
CREATE TABLE server_events (
    job text COLLATE "C" NOT NULL REFERENCES server_jobs ON DELETE CASCADE,
    epoch text NOT NULL,
    first integer NOT NULL,
    size integer NOT NULL,
    events text NOT NULL,
    PRIMARY KEY (job, epoch, first)
);
CREATE TABLE request_keys (
    key text PRIMARY KEY,
    request text NOT NULL,
    server text NOT NULL,
    job text,
    claimed_at timestamptz NOT NULL DEFAULT now()
);
-- Files that were added through a server, in parts of a mebibyte.
CREATE TABLE uploads (
    upload text NOT NULL,
    name text NOT NULL,
    part integer NOT NULL,
    content bytea NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (upload, name, part)
);

-- What services said of papers; the code is that of the file in a folder, where the tables have no prefix.
CREATE TABLE metadata_answers (
    service text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    answered_at double precision NOT NULL,
    PRIMARY KEY (service, request)
);
CREATE TABLE metadata_identities (
    title text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    year integer NOT NULL,
    doi text COLLATE "C" NOT NULL,
    similarity double precision NOT NULL,
    service text COLLATE "C" NOT NULL,
    decided_at double precision NOT NULL,
    PRIMARY KEY (title, key)
);
CREATE TABLE metadata_statements (
    doi text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    said_at double precision NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (doi, field, service, said_at)
);
CREATE TABLE metadata_notices (
    doi text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    notice text COLLATE "C" NOT NULL,
    date text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (doi, kind, source, notice, date)
);
CREATE TABLE metadata_versions (
    doi text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    other text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    PRIMARY KEY (doi, kind, other, source)
);
CREATE TABLE metadata_files (name text COLLATE "C" PRIMARY KEY, stamp text NOT NULL);

-- The sentences that a user rewrote in finished runs.
CREATE TABLE edits (
    thread_id text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    text text NOT NULL,
    checked text NOT NULL,
    updated_at double precision NOT NULL,
    PRIMARY KEY (thread_id, position)
);

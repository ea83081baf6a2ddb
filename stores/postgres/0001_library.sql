CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);
-- Counts the changes of the library, so that readers know when to read its catalog again.
CREATE TABLE revision (number bigint NOT NULL);
INSERT INTO revision VALUES (1);

-- Keys and ids sort by their bytes on every server: order must not depend on its locale.
-- Vectors stay in their rows (STORAGE MAIN), where a scan of thousands reads them five times as fast.
CREATE TABLE papers (
    key text COLLATE "C" PRIMARY KEY,
    record text NOT NULL,
    content_hash text NOT NULL,
    metadata_hash text NOT NULL,
    chunking text NOT NULL,
    summary text NOT NULL,
    summary_kind text NOT NULL,
    chunk_count integer NOT NULL,
    note text,
    summary_vector vector
);
ALTER TABLE papers ALTER COLUMN summary_vector SET STORAGE MAIN;
CREATE TABLE sections (
    key text COLLATE "C" NOT NULL REFERENCES papers ON DELETE CASCADE,
    idx integer NOT NULL,
    title text NOT NULL,
    parent text NOT NULL,
    level integer NOT NULL,
    category smallint NOT NULL,
    start integer NOT NULL,
    stop integer NOT NULL,
    searchable boolean NOT NULL,
    PRIMARY KEY (key, idx)
);
CREATE TABLE chunks (
    key text COLLATE "C" NOT NULL REFERENCES papers ON DELETE CASCADE,
    idx integer NOT NULL,
    text text NOT NULL,
    section text NOT NULL,
    parent text NOT NULL,
    category smallint NOT NULL,
    level integer NOT NULL,
    page integer,
    start integer NOT NULL,
    stop integer NOT NULL,
    tokens integer NOT NULL,
    page_breaks integer[] NOT NULL,
    text_hash text NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (key, idx)
);
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX chunks_by_text ON chunks (text_hash);
CREATE TABLE passages (
    key text COLLATE "C" NOT NULL REFERENCES papers ON DELETE CASCADE,
    idx integer NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (key, idx)
);
ALTER TABLE passages ALTER COLUMN embedding SET STORAGE MAIN;
-- BM25: per term, field (0: text, 1: section titles) and paper the chunks that hold the term, how often, and the length
-- of the field there. `word_totals` has the number of chunks and of terms of each paper.
CREATE TABLE postings (
    term text COLLATE "C" NOT NULL,
    field smallint NOT NULL,
    key text COLLATE "C" NOT NULL REFERENCES papers ON DELETE CASCADE,
    places integer[] NOT NULL,
    counts integer[] NOT NULL,
    lengths integer[] NOT NULL,
    PRIMARY KEY (term, field, key)
);
CREATE INDEX postings_by_paper ON postings (key);
CREATE TABLE word_totals (
    key text COLLATE "C" PRIMARY KEY REFERENCES papers ON DELETE CASCADE,
    hashes text[] NOT NULL,
    text_terms bigint NOT NULL,
    section_terms bigint NOT NULL
);

CREATE TABLE answers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    kind text NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    made_at double precision NOT NULL,
    rejected integer NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    payload text NOT NULL
);
CREATE INDEX answers_by_key ON answers (key, id);
CREATE TABLE uses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text NOT NULL,
    key text NOT NULL,
    answer bigint NOT NULL REFERENCES answers (id),
    paid integer NOT NULL,
    used_at double precision NOT NULL
);
CREATE INDEX uses_by_run ON uses (run, key, id);
CREATE INDEX uses_by_answer ON uses (answer);
CREATE TABLE spending (
    run text NOT NULL,
    kind text NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    paid bigint NOT NULL DEFAULT 0,
    reused bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    reserved_calls bigint NOT NULL DEFAULT 0,
    reserved_input bigint NOT NULL DEFAULT 0,
    reserved_output bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (run, kind, endpoint, model)
);
CREATE TABLE beginnings (run text PRIMARY KEY, after bigint NOT NULL);
CREATE TABLE contexts (
    run text NOT NULL,
    endpoint text NOT NULL,
    model text NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (run, endpoint, model)
);

CREATE TABLE runs (
    number bigint GENERATED ALWAYS AS IDENTITY,
    thread_id text COLLATE "C" PRIMARY KEY,
    fingerprint text NOT NULL,
    section text NOT NULL,
    title text NOT NULL,
    request text NOT NULL,
    library_version text NOT NULL,
    fresh boolean NOT NULL,
    status text NOT NULL,
    detail text NOT NULL,
    started_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    result text
);
CREATE INDEX runs_by_fingerprint ON runs (fingerprint, number);
CREATE TABLE conversations (
    thread_id text COLLATE "C" PRIMARY KEY,
    begun_at double precision NOT NULL,
    updated_at double precision NOT NULL
);
CREATE TABLE turns (
    thread_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    asked text NOT NULL,
    question text NOT NULL,
    answered boolean NOT NULL,
    answered_at double precision NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (thread_id, number)
);
CREATE TABLE written (hash text PRIMARY KEY, noted_at double precision NOT NULL);

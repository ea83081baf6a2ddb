-- The tables of a library in PostgreSQL, and of what servers share in their own way. Those of registers and of the journal
-- are created before, from their declarations in Python, which SQLite uses too.
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
    summary_vector vector,
    figures_version text NOT NULL
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
-- BM25: per term, field (0: text, 1: section titles) and paper the chunks that hold the term, packed: for each its place
-- (4 bytes), how often it holds the term (2) and the length of the field there (2), little-endian. `word_totals` has the
-- number by which postings name a paper, the categories of its chunks (a byte each), and how many terms it has.
CREATE TABLE word_totals (
    key text COLLATE "C" PRIMARY KEY REFERENCES papers ON DELETE CASCADE,
    paper integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    hashes text[] NOT NULL,
    categories bytea NOT NULL,
    text_terms bigint NOT NULL,
    section_terms bigint NOT NULL
);
CREATE TABLE postings (
    term text COLLATE "C" NOT NULL,
    field smallint NOT NULL,
    paper integer NOT NULL REFERENCES word_totals (paper) ON DELETE CASCADE,
    entries bytea NOT NULL,
    PRIMARY KEY (term, field, paper)
);
CREATE INDEX postings_by_paper ON postings (paper);
CREATE TABLE images (hash text COLLATE "C" PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE figures (
    key text COLLATE "C" NOT NULL REFERENCES papers ON DELETE CASCADE,
    idx integer NOT NULL,
    kind text NOT NULL,
    record text NOT NULL,
    image text COLLATE "C" REFERENCES images,
    PRIMARY KEY (key, idx)
);
CREATE INDEX figures_by_image ON figures (image);
-- A library whose vectors and words are searched in Milvus. Its rows there belong to a version of a paper, a number that is
-- used once: readers ignore the rows of any version but the one listed in `searched`.
CREATE SEQUENCE paper_versions;
CREATE TABLE searched (
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL UNIQUE
);
-- Changes that are written to Milvus before they are committed here.
CREATE TABLE staged (
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL UNIQUE,
    change text NOT NULL,
    vectors bytea NOT NULL
);
-- Versions that no reader uses any more, whose rows are to be deleted in Milvus.
CREATE TABLE outdated (version bigint PRIMARY KEY);
-- For BM25, per field (0: text, 1: section titles): the chunks and their terms, and how many chunks have each term.
CREATE TABLE word_sums (field smallint PRIMARY KEY, chunks bigint NOT NULL, terms bigint NOT NULL);
CREATE TABLE word_counts (
    term text COLLATE "C" NOT NULL,
    field smallint NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (term, field)
);
-- The journal is declared in Python too; here is what SQLite does without.
ALTER TABLE uses ADD FOREIGN KEY (answer) REFERENCES answers (id);
CREATE INDEX uses_by_answer ON uses (answer);

-- The servers of the library. One that is fenced was taken for dead: it is refused from then on.
CREATE TABLE servers (
    id text PRIMARY KEY,
    renewed_at timestamptz NOT NULL DEFAULT now(),
    present_since timestamptz NOT NULL DEFAULT now(),
    fenced_at timestamptz
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

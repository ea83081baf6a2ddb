-- BM25: per term, field (0: text, 1: section titles) and paper the chunks that hold the term, packed: for each its place
-- (4 bytes), how often it holds the term (2) and the length of the field there (2), little-endian. `word_totals` has the
-- number by which postings name a paper, the categories of its chunks (a byte each), and how many terms it has.
-- The words are built again from the stored texts when the library is opened next.
DROP TABLE postings;
DROP TABLE word_totals;
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
DELETE FROM facts WHERE name = 'fulltext';

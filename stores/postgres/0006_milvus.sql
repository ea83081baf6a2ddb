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

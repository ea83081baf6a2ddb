ALTER TABLE papers ADD COLUMN figures_version text NOT NULL DEFAULT '';
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

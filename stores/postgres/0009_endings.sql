-- What was deleted or withdrawn a moment ago, for requests that were under way; the code is that of the file in a folder.
CREATE TABLE endings (
    name text COLLATE "C" PRIMARY KEY,
    connection text NOT NULL,
    ended_at double precision NOT NULL
);

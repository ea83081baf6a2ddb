-- Browsers that are signed in, by the hash of what their cookie holds; the code is that of the file in a folder.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    token text COLLATE "C" NOT NULL,
    expires_at double precision NOT NULL
);

-- one row per token with which a client outside is known; the token itself is nowhere, only its hash
CREATE TABLE door_tokens (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL
);

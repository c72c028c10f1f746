-- The lines of the audit, those of one commit together, and where its retention has cut it.
CREATE TABLE audit_blocks (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    -- The bytes of all lines before these, so that a reader finds its place.
    start INTEGER NOT NULL,
    lines TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_blocks_by_start ON audit_blocks (start);
CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    code BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE audit_seam (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    signature BLOB NOT NULL
) STRICT, WITHOUT ROWID;

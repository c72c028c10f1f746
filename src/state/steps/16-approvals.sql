-- What the operator is asked before it is done, and answers that hold for longer than one deed.
CREATE TABLE approvals (
    id            TEXT PRIMARY KEY,
    agent         TEXT NOT NULL,
    state         TEXT NOT NULL,
    request       TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    decided_at_ms INTEGER,
    decided_by    TEXT,
    answer        TEXT,
    -- The job that has done it: one approval is one deed.
    used_by       TEXT
) STRICT;
CREATE INDEX approvals_by_age ON approvals (created_at_ms);
CREATE TABLE approval_exceptions (
    id        TEXT PRIMARY KEY,
    agent     TEXT NOT NULL,
    exception TEXT NOT NULL
) STRICT;
ALTER TABLE jobs ADD COLUMN approval TEXT;
DROP INDEX jobs_unsettled;
CREATE INDEX jobs_unsettled ON jobs (state, id) WHERE state IN ('queued', 'running', 'waiting_for_approval');
-- The key that signs the links that are sent out with requests.
CREATE TABLE approval_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    key BLOB NOT NULL
) STRICT, WITHOUT ROWID;

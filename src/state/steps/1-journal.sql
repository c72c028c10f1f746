-- What was asked for, what happened, who was refused.

CREATE TABLE jobs (
    id             TEXT PRIMARY KEY,
    agent          TEXT NOT NULL,
    service        TEXT NOT NULL,
    operation      TEXT NOT NULL,
    effect         TEXT NOT NULL,
    idempotent     INTEGER NOT NULL,
    state          TEXT NOT NULL,
    correlation_id TEXT,
    principal      TEXT NOT NULL,
    request        TEXT NOT NULL,
    result         TEXT,
    error          TEXT,
    created_at_ms  INTEGER NOT NULL,
    started_at_ms  INTEGER,
    updated_at_ms  INTEGER NOT NULL,
    attempt        INTEGER NOT NULL
);
CREATE INDEX jobs_by_agent ON jobs (agent, id);
CREATE INDEX jobs_by_correlation ON jobs (agent, correlation_id, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX jobs_unsettled ON jobs (state, id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_age ON jobs (updated_at_ms, id);

CREATE TABLE events (
    agent   TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    path    TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (agent, seq)
) WITHOUT ROWID;
CREATE INDEX events_by_age ON events (at_ms);

-- One row an agent: the last number given, which outlives the events themselves, and what the agent waits for.
CREATE TABLE event_logs (
    agent       TEXT PRIMARY KEY,
    last_seq    INTEGER NOT NULL DEFAULT 0,
    cursor      INTEGER NOT NULL DEFAULT 0,
    wait        TEXT,
    armed_at_ms INTEGER
) WITHOUT ROWID;

CREATE TABLE audit (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms     INTEGER NOT NULL,
    principal TEXT NOT NULL,
    pid       INTEGER NOT NULL,
    action    TEXT NOT NULL,
    path      TEXT NOT NULL,
    allowed   INTEGER NOT NULL,
    reason    TEXT NOT NULL
);
CREATE INDEX audit_by_age ON audit (at_ms);

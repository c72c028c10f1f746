-- Events stand in the order in which they came, and not by agent: those that many agents commit together share pages.
-- The list of an agent's jobs is in memory; its index cost a page for each agent of a commit.
CREATE TABLE events_in_order (
    id      INTEGER PRIMARY KEY,
    agent   TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    path    TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    payload TEXT NOT NULL
);
INSERT INTO events_in_order (agent, seq, kind, path, at_ms, payload)
    SELECT agent, seq, kind, path, at_ms, payload FROM events ORDER BY at_ms, agent, seq;
DROP TABLE events;
ALTER TABLE events_in_order RENAME TO events;
CREATE UNIQUE INDEX events_by_agent ON events (agent, seq);
CREATE INDEX events_by_age ON events (at_ms);
DROP INDEX jobs_by_agent;

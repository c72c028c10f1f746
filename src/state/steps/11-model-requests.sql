-- the tokens of the answer that had come when the host stopped
ALTER TABLE reservations ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
-- one row per request of a program to a model; a row that has not ended belongs to a request under way, or to a host that stopped
CREATE TABLE model_requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    line TEXT NOT NULL,
    bodies TEXT
);
CREATE INDEX model_requests_of_agent ON model_requests (agent, number);
CREATE INDEX model_requests_under_way ON model_requests (ended) WHERE ended = 0;

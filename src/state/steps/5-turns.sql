-- the turns of agents, and their records in order: where the agent loop is
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    job TEXT NOT NULL,
    UNIQUE (agent, job)
);
CREATE TABLE turn_records (
    turn INTEGER NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (turn, seq)
);

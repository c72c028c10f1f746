-- what each payer (an agent, or whoever else pays for a model) has used up, and what is held for requests under way
CREATE TABLE spending (
    payer TEXT PRIMARY KEY,
    rounds INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write INTEGER NOT NULL DEFAULT 0,
    ms INTEGER NOT NULL,
    money REAL NOT NULL
) WITHOUT ROWID;
-- one row per payer of a request; a row that outlives its host is a request of which nobody knows how it ended
CREATE TABLE reservations (
    id INTEGER NOT NULL,
    payer TEXT NOT NULL,
    input INTEGER NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (id, payer)
) WITHOUT ROWID;

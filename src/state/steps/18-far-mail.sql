-- letters to other hosts that the fabric has not acknowledged, in their order
CREATE TABLE mail_out (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL,
    agent TEXT NOT NULL,
    letter TEXT NOT NULL,
    -- the message that it is, if it is one: its sender and its size
    message TEXT,
    sender TEXT,
    bytes INTEGER NOT NULL
);
-- letters that came from other hosts: the same one again is not taken
CREATE TABLE mail_in (
    node TEXT NOT NULL,
    key TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (node, key)
) WITHOUT ROWID;
CREATE INDEX mail_in_at ON mail_in (at_ms);

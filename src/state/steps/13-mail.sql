-- one row per message that is not acknowledged
CREATE TABLE mail (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    sender TEXT NOT NULL,
    subject TEXT NOT NULL,
    thread TEXT NOT NULL,
    reply_to TEXT,
    at_ms INTEGER NOT NULL,
    seen_at_ms INTEGER,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX mail_by_id ON mail (recipient, id, at_ms);
CREATE INDEX mail_in_order ON mail (recipient, number);
CREATE INDEX mail_unseen ON mail (recipient, number) WHERE seen_at_ms IS NULL;
-- one row per message that was sent: the sender's own id for it, or its id
CREATE TABLE mail_sent (
    sender TEXT NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    thread TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    acked_at_ms INTEGER,
    PRIMARY KEY (sender, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX mail_sent_by_id ON mail_sent (id);
CREATE INDEX mail_sent_acked ON mail_sent (acked_at_ms) WHERE acked_at_ms IS NOT NULL;
-- what an inbox has of each sender, and with an empty sender of all
CREATE TABLE mail_boxes (
    recipient TEXT NOT NULL,
    sender TEXT NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (recipient, sender)
) WITHOUT ROWID;

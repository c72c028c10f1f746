-- one row per item that is not done; `due_ms` is the end of its delay or lease, or the time of its death
CREATE TABLE queue_items (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    lease TEXT,
    put_by TEXT NOT NULL,
    put_at_ms INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    error TEXT,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX queue_items_by_id ON queue_items (queue, id);
CREATE INDEX queue_items_ready ON queue_items (queue, priority DESC, number) WHERE state = 'ready';
CREATE INDEX queue_items_due ON queue_items (queue, due_ms) WHERE state IN ('delayed', 'leased');
CREATE INDEX queue_items_dead ON queue_items (queue, id) WHERE state = 'dead';
CREATE UNIQUE INDEX queue_items_lease ON queue_items (lease) WHERE lease IS NOT NULL;
-- items that are done: the same id is the same item
CREATE TABLE queue_done (
    queue TEXT NOT NULL,
    id TEXT NOT NULL,
    lease TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX queue_done_lease ON queue_done (lease);
CREATE INDEX queue_done_at ON queue_done (at_ms);
CREATE TABLE queues (
    queue TEXT PRIMARY KEY,
    items INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    changed_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

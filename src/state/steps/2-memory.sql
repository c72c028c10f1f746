-- Memory: named things with versions.
--
-- The row ids of one agent are one range (number of the agent * 2^40 upwards), so that a full-text search bounded by
-- row id never looks at another agent's words.

CREATE TABLE memory_agents (
    number INTEGER PRIMARY KEY,
    agent  TEXT NOT NULL UNIQUE
);

CREATE TABLE memories (
    id              INTEGER PRIMARY KEY,
    agent           INTEGER NOT NULL REFERENCES memory_agents (number),
    name            TEXT NOT NULL,
    -- the latest one, and its tokens
    version         INTEGER NOT NULL,
    tokens          INTEGER NOT NULL DEFAULT 0,
    deleted         INTEGER NOT NULL DEFAULT 0,
    write_protected INTEGER NOT NULL,
    unevictable     INTEGER NOT NULL,
    pinned          INTEGER NOT NULL DEFAULT 0,
    -- NULL: not active; else when it was last used, as a count of uses
    used            INTEGER,
    tombstone       TEXT,
    left_at_ms      INTEGER,
    UNIQUE (agent, name)
);
-- everything that the rule of eviction asks for
CREATE INDEX memories_active ON memories (agent, used, tokens, pinned, unevictable) WHERE used IS NOT NULL;
CREATE INDEX memories_left ON memories (agent, left_at_ms) WHERE tombstone IS NOT NULL;

CREATE TABLE memory_versions (
    id            INTEGER PRIMARY KEY,
    memory        INTEGER NOT NULL REFERENCES memories (id),
    version       INTEGER NOT NULL,
    deleted       INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    tags          TEXT NOT NULL,
    sources       TEXT NOT NULL,
    form          TEXT NOT NULL,
    content       TEXT NOT NULL,
    tokens        INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    UNIQUE (memory, version)
);

-- The words of the latest version of each memory (row id: the memory), and of every version (row id: the version).
CREATE VIRTUAL TABLE memory_now USING fts5 (
    name, content, tokenize = 'unicode61 remove_diacritics 2', content = '', contentless_delete = 1
);
CREATE VIRTUAL TABLE memory_ever USING fts5 (
    name, content, tokenize = 'unicode61 remove_diacritics 2', content = '', contentless_delete = 1
);

-- A word in the name says more than one in the text.
INSERT INTO memory_now (memory_now, rank) VALUES ('rank', 'bm25(4.0, 1.0)');
INSERT INTO memory_ever (memory_ever, rank) VALUES ('rank', 'bm25(4.0, 1.0)');

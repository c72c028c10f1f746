-- symbols, kits and agents as they stand
CREATE TABLE documents (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    domain TEXT NOT NULL,
    tag TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX documents_by_domain ON documents (kind, domain, id);
CREATE INDEX documents_by_tag ON documents (kind, tag, id);

-- every change that was made to one, for good; seq has no gaps, so that it also counts
CREATE TABLE document_changes (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    change TEXT NOT NULL
);
CREATE INDEX document_changes_by_id ON document_changes (kind, id, seq);

-- how many lines a sealed history has, and the tag of its last: what is cut off is missed
CREATE TABLE sealed_histories (
    session TEXT PRIMARY KEY,
    lines INTEGER NOT NULL,
    last TEXT NOT NULL
) WITHOUT ROWID;

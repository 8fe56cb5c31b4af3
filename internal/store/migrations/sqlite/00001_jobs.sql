-- +goose Up
CREATE TABLE jobs (
    id         TEXT PRIMARY KEY NOT NULL,
    state      TEXT NOT NULL,
    doc        BLOB NOT NULL,
    events     INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_state ON jobs (state, id);

CREATE TABLE parts (
    job  TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID;

CREATE TABLE ranks (
    job        TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    session    TEXT NOT NULL,
    doc        BLOB NOT NULL,
    PRIMARY KEY (job, generation, rank)
) WITHOUT ROWID;

CREATE TABLE reports (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    body       BLOB NOT NULL
);
CREATE INDEX reports_job ON reports (job, id);

CREATE TABLE schedules (
    job                 TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    version             INTEGER NOT NULL,
    generation          INTEGER NOT NULL,
    effective_iteration INTEGER NOT NULL,
    reason              TEXT NOT NULL,
    body                TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    PRIMARY KEY (job, version)
) WITHOUT ROWID;
CREATE INDEX schedules_body ON schedules (body);

CREATE TABLE blobs (
    hash       TEXT PRIMARY KEY NOT NULL,
    data       BLOB NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX blobs_age ON blobs (created_at);

CREATE TABLE refs (
    kind  TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX refs_value ON refs (value);

CREATE TABLE events (
    job  TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    id   INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL UNIQUE,
    scope      TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

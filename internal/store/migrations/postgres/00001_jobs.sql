-- +goose Up
CREATE TABLE jobs (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    doc        BYTEA NOT NULL,
    events     BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX jobs_state ON jobs (state, id);

CREATE TABLE parts (
    job  TEXT COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (job, name)
);

CREATE TABLE ranks (
    job        TEXT COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL,
    rank       BIGINT NOT NULL,
    session    TEXT COLLATE "C" NOT NULL,
    doc        BYTEA NOT NULL,
    PRIMARY KEY (job, generation, rank)
);

CREATE TABLE reports (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job        TEXT COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL,
    body       BYTEA NOT NULL
);
CREATE INDEX reports_job ON reports (job, id);

CREATE TABLE schedules (
    job                 TEXT COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    version             BIGINT NOT NULL,
    generation          BIGINT NOT NULL,
    effective_iteration BIGINT NOT NULL,
    reason              TEXT COLLATE "C" NOT NULL,
    body                TEXT COLLATE "C" NOT NULL,
    created_at          BIGINT NOT NULL,
    PRIMARY KEY (job, version)
);
CREATE INDEX schedules_body ON schedules (body);

CREATE TABLE blobs (
    hash       TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    data       BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX blobs_age ON blobs (created_at);

CREATE TABLE refs (
    kind  TEXT COLLATE "C" NOT NULL,
    key   TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX refs_value ON refs (value);

CREATE TABLE events (
    job  TEXT COLLATE "C" NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    id   BIGINT NOT NULL,
    at   BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (job, id)
);

CREATE TABLE tokens (
    id         TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    scope      TEXT COLLATE "C" NOT NULL,
    hash       BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

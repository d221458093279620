-- The first shape of the store: records, their journal, the names they hold, and who works here.
-- min_writer: 1

-- One row for each record, without its payload: `made` and `last` are the journal positions of its
-- first and latest event, which hold it.
CREATE TABLE record (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    worker TEXT NOT NULL,
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    made INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX record_open ON record (worker, tenant, session, made) WHERE open = 1;
CREATE INDEX record_session ON record (tenant, session, made);

-- Every event, in order. `before` is the position of the same record's previous event. The link
-- covers the digest of the body, so that a body can be erased and nothing else can be changed.
CREATE TABLE journal (
    seq INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    before INTEGER NOT NULL,
    event TEXT NOT NULL,
    state TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB,
    body_digest TEXT NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

-- What may exist once now.
CREATE TABLE name (
    name TEXT NOT NULL PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who executes here, until when that stands unrenewed, and the file that its process keeps locked.
CREATE TABLE worker (
    id TEXT NOT NULL PRIMARY KEY,
    until REAL NOT NULL,
    file TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last epoch that was drawn: one counter for the whole store.
CREATE TABLE epoch (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    drawn INTEGER NOT NULL
) STRICT;

INSERT INTO epoch (one, drawn) VALUES (1, 0);

-- A record with its first and its latest journal entry. The joins are outer joins, so that a
-- record whose entries are gone is found and refused, instead of being taken for absent.
CREATE VIEW loaded AS
SELECT
    record.id, record.kind, record.tenant, record.session, record.state, record.version,
    record.epoch, record.worker, record.open, record.made, record.last,
    first.seq AS first_seq, first.id AS first_id, first.version AS first_version,
    first.before AS first_before, first.event AS first_event, first.state AS first_state,
    first.at AS first_at, first.body AS first_body, first.body_digest AS first_body_digest,
    first.prev AS first_prev, first.hash AS first_hash,
    latest.seq AS latest_seq, latest.id AS latest_id, latest.version AS latest_version,
    latest.before AS latest_before, latest.event AS latest_event, latest.state AS latest_state,
    latest.at AS latest_at, latest.body AS latest_body, latest.body_digest AS latest_body_digest,
    latest.prev AS latest_prev, latest.hash AS latest_hash
FROM record
LEFT JOIN journal AS first ON first.seq = record.made
LEFT JOIN journal AS latest ON latest.seq = record.last;

CREATE TRIGGER record_identity BEFORE UPDATE OF id, kind, tenant, session, made ON record
BEGIN SELECT RAISE(ABORT, 'what a record is never changes'); END;

CREATE TRIGGER record_stays BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;

CREATE TRIGGER journal_entry BEFORE UPDATE OF
    seq, id, version, before, event, state, at, body_digest, prev, hash ON journal
BEGIN SELECT RAISE(ABORT, 'a journal entry never changes'); END;

CREATE TRIGGER journal_body BEFORE UPDATE OF body ON journal WHEN NEW.body IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the body of a journal entry can only be erased'); END;

CREATE TRIGGER journal_stays BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'a journal entry is never deleted'); END;

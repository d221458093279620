-- The first shape of the store: records, their journal, the names they hold, and who works here.
-- The tables are SQLite's, column by column; what differs is said where it differs.
-- min_writer: 1

-- One row for each record, without its payload: `made` and `last` are the journal positions of its
-- first and latest event, which hold it.
CREATE TABLE landed.record (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    epoch BIGINT NOT NULL CHECK (epoch >= 0),
    worker TEXT NOT NULL,
    open BIGINT NOT NULL CHECK (open IN (0, 1)),
    made BIGINT NOT NULL,
    last BIGINT NOT NULL
);

CREATE INDEX record_open ON landed.record (worker, tenant, session, made) WHERE open = 1;
CREATE INDEX record_session ON landed.record (tenant, session, made);

-- Every event. `before` is the position of the same record's previous event. The link covers the
-- digest of the body, so that a body can be erased and nothing else can be changed. Positions are
-- drawn from a sequence: they rise within a record and within a writer, but a unit that was refused
-- leaves a gap, and of two writers the later position may be there first.
CREATE TABLE landed.journal (
    seq BIGINT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    version BIGINT NOT NULL,
    before BIGINT NOT NULL,
    event TEXT NOT NULL,
    state TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    body BYTEA,
    body_digest TEXT NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL
);

CREATE SEQUENCE landed.journal_seq AS BIGINT;

-- What may exist once now.
CREATE TABLE landed.name (
    name TEXT NOT NULL PRIMARY KEY,
    record TEXT NOT NULL
);

-- Who executes here, until when that stands unrenewed, and the registration's own mark (SQLite: the
-- file that the worker's process keeps locked).
CREATE TABLE landed.worker (
    id TEXT NOT NULL PRIMARY KEY,
    until DOUBLE PRECISION NOT NULL,
    file TEXT NOT NULL
);

-- One counter of claims for the whole store. SQLite keeps it in a row; here that row would be
-- locked until its writer's disk has answered, and writers would queue for it.
CREATE SEQUENCE landed.epoch_drawn AS BIGINT;

-- A record with its first and its latest journal entry. The joins are outer joins, so that a
-- record whose entries are gone is found and refused, instead of being taken for absent.
CREATE VIEW landed.loaded AS
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
FROM landed.record AS record
LEFT JOIN landed.journal AS first ON first.seq = record.made
LEFT JOIN landed.journal AS latest ON latest.seq = record.last;

CREATE FUNCTION landed.refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;

CREATE TRIGGER record_identity BEFORE UPDATE OF id, kind, tenant, session, made ON landed.record
FOR EACH ROW EXECUTE FUNCTION landed.refuse('what a record is never changes');

CREATE TRIGGER record_stays BEFORE DELETE ON landed.record
FOR EACH ROW EXECUTE FUNCTION landed.refuse('a record is never deleted');

CREATE TRIGGER journal_entry BEFORE UPDATE OF
    seq, id, version, before, event, state, at, body_digest, prev, hash ON landed.journal
FOR EACH ROW EXECUTE FUNCTION landed.refuse('a journal entry never changes');

CREATE TRIGGER journal_body BEFORE UPDATE OF body ON landed.journal
FOR EACH ROW WHEN (NEW.body IS NOT NULL)
EXECUTE FUNCTION landed.refuse('the body of a journal entry can only be erased');

CREATE TRIGGER journal_stays BEFORE DELETE ON landed.journal
FOR EACH ROW EXECUTE FUNCTION landed.refuse('a journal entry is never deleted');

-- SQLite knows no TRUNCATE.
CREATE TRIGGER record_whole BEFORE TRUNCATE ON landed.record
FOR EACH STATEMENT EXECUTE FUNCTION landed.refuse('a record is never deleted');

CREATE TRIGGER journal_whole BEFORE TRUNCATE ON landed.journal
FOR EACH STATEMENT EXECUTE FUNCTION landed.refuse('a journal entry is never deleted');

-- The queries of the stores: compare-and-set and look-ups, no rules. Each opens with its name and a
-- sentence. A parameter after IN is a list; after EACH it is one that is read as a table of that
-- name, with one column, `value`. Parameters are handed over in the order in which they first
-- appear.

-- head: The last epoch drawn, the oldest schema that may write, and the end of the journal.
SELECT epoch.drawn, (SELECT max(min_writer) FROM migration), journal.seq, journal.hash
FROM epoch LEFT JOIN journal ON journal.seq = (SELECT max(seq) FROM journal);

-- draw_epoch: Set the one counter; only inside a write transaction that read it.
UPDATE epoch SET drawn = :drawn;

-- insert_record: Insert a record that must not exist yet.
INSERT INTO record
    (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
VALUES
    (:id, :kind, :tenant, :session, :state, :version, :epoch, :worker, :open, :made, :last);

-- update_record: Move a record on, only if it still is what was read.
UPDATE record
SET state = :state, version = :version, epoch = :epoch, worker = :worker, open = :open, last = :last
WHERE id = :id AND version = :read_version AND epoch = :read_epoch
    AND made = :read_made AND last = :read_last;

-- insert_entry: Append one event to the journal.
INSERT INTO journal
    (seq, id, version, before, event, state, at, body, body_digest, prev, hash)
VALUES
    (:seq, :id, :version, :before, :event, :state, :at, :body, :body_digest, :prev, :hash);

-- take_name: Let a record hold a name that nobody holds.
INSERT INTO name (name, record) VALUES (:name, :record);

-- free_name: Let a name go, if that record holds it.
DELETE FROM name WHERE name = :name AND record = :record;

-- versions: At which version records are; absent ones are left out.
SELECT id, version FROM record WHERE id IN :ids;

-- load: Records by id, each with its first and latest journal entry.
SELECT * FROM loaded WHERE id IN :ids;

-- open_records: What one worker holds open in one session, oldest first.
SELECT * FROM loaded
WHERE open = 1 AND worker = :worker AND tenant = :tenant AND session = :session
ORDER BY made LIMIT :limit;

-- session_records: The records of one session made after a journal position, oldest first.
SELECT * FROM loaded
WHERE tenant = :tenant AND session = :session AND made > :after
ORDER BY made LIMIT :limit;

-- waiting: What waits for a person in a tenant, made after a journal position, oldest first.
SELECT made, id FROM record
WHERE state IN ('undecided', 'proposed', 'open') AND tenant = :tenant AND made > :after
ORDER BY made LIMIT :limit;

-- open_workers: Who holds open records, each looked for behind the one before; '' is nobody.
WITH RECURSIVE owner (id) AS (
    SELECT (SELECT worker FROM record WHERE open = 1 ORDER BY worker LIMIT 1)
    UNION ALL
    SELECT (SELECT worker FROM record WHERE open = 1 AND worker > owner.id ORDER BY worker LIMIT 1)
    FROM owner WHERE owner.id IS NOT NULL
)
SELECT id FROM owner WHERE id IS NOT NULL;

-- open_of: What one worker holds open in a tenant, made after a journal position, oldest first.
SELECT made, id FROM record
WHERE open = 1 AND worker = :worker AND tenant = :tenant AND made > :after
ORDER BY made LIMIT :limit;

-- recent: So many journal entries before a position, the newest first, each with the record of a
-- tenant that it is the latest event of, if it is.
SELECT entry.seq, record.id
FROM (SELECT seq, id FROM journal WHERE seq < :before ORDER BY seq DESC LIMIT :entries) AS entry
LEFT JOIN record
    ON record.id = entry.id AND record.last = entry.seq AND record.tenant = :tenant
ORDER BY entry.seq DESC;

-- open_counts: How many open records are in each state, of at most so many.
SELECT kind, state, count(*) FROM (
    SELECT kind, state FROM record WHERE open = 1 LIMIT :limit
) AS counted GROUP BY kind, state;

-- waiting_counts: How many records in each state wait for a person, of at most so many.
SELECT kind, state, count(*) FROM (
    SELECT kind, state FROM record WHERE state IN ('undecided', 'proposed', 'open') LIMIT :limit
) AS counted GROUP BY kind, state;

-- oldest_open: Which of so many open records of a kind and in these states was made first.
SELECT id FROM (
    SELECT id, kind, state, made FROM record WHERE open = 1 LIMIT :limit
) AS counted WHERE kind = :kind AND state IN :states ORDER BY made LIMIT 1;

-- journal_page: Journal entries after a position, in order.
SELECT seq, id, version, before, event, state, at, body, body_digest, prev, hash
FROM journal WHERE seq > :after ORDER BY seq LIMIT :limit;

-- journal_of: The entries of one record after a position, in order, found by going back from its
-- latest; positions only fall, so that an edited one cannot lead in a circle. (CROSS: SQLite would
-- read the whole journal instead, to have it in order.)
WITH RECURSIVE chain (seq, before) AS (
    SELECT journal.seq, journal.before
    FROM record JOIN journal ON journal.seq = record.last WHERE record.id = :id
    UNION ALL
    SELECT journal.seq, journal.before
    FROM chain JOIN journal ON journal.seq = chain.before
    WHERE journal.seq < chain.seq AND journal.seq > :after
)
SELECT journal.seq, journal.id, journal.version, journal.before, journal.event, journal.state,
    journal.at, journal.body, journal.body_digest, journal.prev, journal.hash
FROM chain CROSS JOIN journal
WHERE journal.seq = chain.seq AND chain.seq > :after ORDER BY chain.seq LIMIT :limit;

-- holders: Which record holds each of these names; free ones are left out.
SELECT name, record FROM name WHERE name IN :names;

-- owners: Who holds open records, each looked for behind the one before, with the registration
-- where there is one; the asker is left out.
WITH RECURSIVE owner (id) AS (
    SELECT (SELECT worker FROM record WHERE open = 1 ORDER BY worker LIMIT 1)
    UNION ALL
    SELECT (SELECT worker FROM record WHERE open = 1 AND worker > owner.id ORDER BY worker LIMIT 1)
    FROM owner WHERE owner.id IS NOT NULL
)
SELECT owner.id, worker.until, worker.file
FROM owner LEFT JOIN worker ON worker.id = owner.id
WHERE owner.id IS NOT NULL AND owner.id <> :worker;

-- tenants_left: The tenants, from one on, of what these workers hold open; each is looked for
-- behind the one before.
WITH RECURSIVE held (worker, tenant, number) AS (
    SELECT workers.value, (
        SELECT tenant FROM record WHERE open = 1 AND worker = workers.value AND tenant >= :since
        ORDER BY tenant LIMIT 1
    ), 1
    FROM EACH :workers
    UNION ALL
    SELECT held.worker, (
        SELECT tenant FROM record
        WHERE open = 1 AND worker = held.worker AND record.tenant > held.tenant
        ORDER BY tenant LIMIT 1
    ), held.number + 1
    FROM held WHERE held.tenant IS NOT NULL AND held.number < :limit
)
SELECT DISTINCT tenant FROM held WHERE tenant IS NOT NULL ORDER BY tenant LIMIT :limit;

-- claimable: The open records that one worker holds of one tenant, oldest first.
SELECT id, tenant, made FROM record
WHERE open = 1 AND worker = :worker AND tenant = :tenant ORDER BY made LIMIT :share;

-- claim_records: Hand records to a worker under a new epoch.
UPDATE record SET worker = :worker, epoch = :epoch WHERE id IN :ids;

-- idle_workers: Registrations of workers that hold nothing open; the asker is left out.
SELECT id, until, file FROM worker
WHERE id <> :worker
    AND NOT EXISTS (SELECT 1 FROM record WHERE record.open = 1 AND record.worker = worker.id);

-- register_worker: Enter a worker, in place of one of the same name.
INSERT INTO worker (id, until, file) VALUES (:id, :until, :file)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, file = excluded.file;

-- disown: Leave to nobody what a worker of this name holds open.
UPDATE record SET worker = '' WHERE open = 1 AND worker = :worker;

-- renew_worker: Extend a registration that still is this one.
UPDATE worker SET until = :until WHERE id = :id AND file = :file;

-- remove_worker: End a registration, if it still is this one.
DELETE FROM worker WHERE id = :id AND file = :file;

-- remove_workers: End registrations.
DELETE FROM worker WHERE id IN :ids;

-- sessions: The conversations that have records, after one of them, in their order.
SELECT tenant, session FROM record WHERE (tenant, session) > (:tenant, :session)
GROUP BY tenant, session ORDER BY tenant, session LIMIT :limit;

-- begin_with_erasure: Take its latest event, an erasure, for the beginning of each record.
UPDATE record SET erased = last
WHERE id IN :ids AND EXISTS (
    SELECT 1 FROM journal WHERE journal.seq = record.last AND journal.event = :event
);

-- let_bodies_go: Erase what was written of these records before the erasure that they begin with;
-- an earlier erasure stays, for it says who and why.
WITH RECURSIVE chain (seq, before) AS (
    SELECT journal.seq, journal.before
    FROM record JOIN journal ON journal.seq = record.erased WHERE record.id IN :ids
    UNION ALL
    SELECT journal.seq, journal.before
    FROM chain JOIN journal ON journal.seq = chain.before WHERE journal.seq < chain.seq
)
UPDATE journal SET body = NULL
WHERE body IS NOT NULL AND event <> :event AND seq IN (SELECT before FROM chain);

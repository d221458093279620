-- The queries that only Postgres has: sets in place of rows, sequences, and locks on rows. As in
-- `queries.sql`: compare-and-set and look-ups, no rules; a parameter after IN is a list.

-- write: Move records on that still are what was read, insert what must not exist yet, append to
-- the journal and take names; say how much of each went in, so that the writer rolls a short one
-- back.
WITH moved AS (
    UPDATE record
    SET state = new.state, version = new.version, epoch = new.epoch, worker = new.worker,
        open = new.open::int, last = new.last
    FROM unnest(
        :u_state::text[], :u_version::bigint[], :u_epoch::bigint[], :u_worker::text[],
        :u_open::boolean[], :u_last::bigint[], :u_id::text[], :u_read_version::bigint[],
        :u_read_epoch::bigint[], :u_read_made::bigint[], :u_read_last::bigint[]
    ) AS new (
        state, version, epoch, worker, open, last, id, read_version, read_epoch, read_made,
        read_last
    )
    WHERE record.id = new.id AND record.version = new.read_version
        AND record.epoch = new.read_epoch AND record.made = new.read_made
        AND record.last = new.read_last
    RETURNING record.id
), inserted AS (
    INSERT INTO record
        (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
    SELECT new.id, new.kind, new.tenant, new.session, new.state, new.version, new.epoch,
        new.worker, new.open::int, new.made, new.last
    FROM unnest(
        :i_id::text[], :i_kind::text[], :i_tenant::text[], :i_session::text[], :i_state::text[],
        :i_version::bigint[], :i_epoch::bigint[], :i_worker::text[], :i_open::boolean[],
        :i_made::bigint[], :i_last::bigint[]
    ) AS new (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
    ON CONFLICT (id) DO NOTHING
    RETURNING id
), taken AS (
    INSERT INTO name (name, record)
    SELECT new.name, new.record
    FROM unnest(:t_name::text[], :t_record::text[]) AS new (name, record)
    ON CONFLICT (name) DO NOTHING
    RETURNING name
), appended AS (
    INSERT INTO journal
        (seq, id, version, before, event, state, at, body, body_digest, prev, hash)
    SELECT * FROM unnest(
        :e_seq::bigint[], :e_id::text[], :e_version::bigint[], :e_before::bigint[],
        :e_event::text[], :e_state::text[], :e_at::double precision[], :e_body::bytea[],
        :e_body_digest::text[], :e_prev::text[], :e_hash::text[]
    )
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM inserted), (SELECT count(*) FROM taken);

-- lock: Keep these records as they are until the transaction ends; return their versions. In the
-- order of their ids, so that two who lock the same ones do not wait for each other.
SELECT id, version FROM record WHERE id IN :ids ORDER BY id FOR NO KEY UPDATE;

-- free_names: Let names go, each if that record holds it.
DELETE FROM name USING unnest(:names::text[], :records::text[]) AS old (name, record)
WHERE name.name = old.name AND name.record = old.record;

-- draw: Positions in the journal and epochs, as many as are asked for.
SELECT ARRAY(SELECT nextval('landed.journal_seq') FROM generate_series(1, :entries::int)),
    ARRAY(SELECT nextval('landed.epoch_drawn') FROM generate_series(1, :epochs::int));

-- newest: The journal entry with the last position.
SELECT seq, id, version, before, event, state, at, body, body_digest, prev, hash
FROM journal ORDER BY seq DESC LIMIT 1;

-- lock_gone: Of these workers the registered ones whose lease is over, locked, so that they cannot
-- renew it meanwhile; what another claim has locked is that one's.
SELECT id FROM worker WHERE id IN :ids AND until <= :now ORDER BY id FOR UPDATE SKIP LOCKED;

-- lock_claimable: The open records of these workers, oldest first, as far as nobody works on them.
SELECT id FROM record WHERE open = 1 AND worker IN :workers
ORDER BY made LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED;

-- remove_idle: End the registrations, over at this time, of workers that hold nothing open.
DELETE FROM worker WHERE id IN (
    SELECT id FROM worker
    WHERE id <> :worker AND until <= :now
        AND NOT EXISTS (SELECT 1 FROM record WHERE record.open = 1 AND record.worker = worker.id)
    FOR UPDATE SKIP LOCKED
);

-- renew: Extend a registration that still is this one.
UPDATE worker SET until = :until WHERE id = :id AND file = :file;

-- retire: End registrations, as far as they still are this one's.
DELETE FROM worker WHERE id IN :ids AND file = :file;

-- outcome: What became of a transaction.
SELECT pg_xact_status(:xid::text::xid8);

-- is_written: Whether a journal entry is there.
SELECT count(*) FROM journal WHERE seq = :seq AND hash = :hash;

-- end_transaction: End the connection on which a transaction is still open, if there is one.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_xid = :xid::text::xid8::xid AND pid <> pg_backend_pid();

-- facts: The server's version and what its durability rests on.
SELECT current_setting('server_version'), current_setting('synchronous_commit'),
    current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(),
    (SELECT max(version) FROM migration);

-- The queries that only Postgres has: sets in place of rows, sequences, and locks on rows. As in
-- `queries.sql`: compare-and-set and look-ups, no rules; parameters after IN and EACH are lists.

-- lock: Keep these records as they are until the transaction ends; return their versions. In the
-- order of their ids, so that two who lock the same ones do not wait for each other.
SELECT id, version FROM record WHERE id IN :ids ORDER BY id FOR NO KEY UPDATE;

-- draw: Positions in the journal and epochs, as many as are asked for.
SELECT ARRAY(SELECT nextval('landed.journal_seq') FROM generate_series(1, :entries::int)),
    ARRAY(SELECT nextval('landed.epoch_drawn') FROM generate_series(1, :epochs::int));

-- newest: The journal entry with the last position.
SELECT seq, id, version, before, event, state, at, body, body_digest, prev, hash
FROM journal ORDER BY seq DESC LIMIT 1;

-- lock_gone: Of these workers the registered ones whose lease is over, locked, so that they cannot
-- renew it meanwhile; several claims may share what they left.
SELECT id FROM worker WHERE id IN :ids AND until <= :now ORDER BY id FOR SHARE SKIP LOCKED;

-- lock_claimable: The open records that each of these workers holds of each of these tenants, the
-- oldest first, as far as nobody works on them.
SELECT oldest.id, oldest.tenant, oldest.made
FROM EACH :workers CROSS JOIN EACH :tenants CROSS JOIN LATERAL (
    SELECT id, tenant, made FROM record
    WHERE open = 1 AND worker = workers.value AND tenant = tenants.value
    ORDER BY made LIMIT :share FOR NO KEY UPDATE SKIP LOCKED
) AS oldest;

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

-- time: What the server's clock shows, UTC, in seconds since the epoch.
SELECT extract(epoch FROM clock_timestamp())::double precision;

-- facts: The server's version and what its durability rests on. Who may not see what a follower
-- does still sees that there is one.
SELECT current_setting('server_version'), current_setting('synchronous_commit'),
    current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(),
    current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication WHERE coalesce(state, 'streaming') = 'streaming'),
    (SELECT max(version) FROM migration);

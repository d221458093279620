-- The parts of the one statement that writes a batch to Postgres, which `postgres_queries` joins.
-- Each says which rows it wrote, and is left out where there is nothing for it to write.

-- moved: Move records on that still are what was read.
UPDATE record
SET state = new.state, version = new.version, epoch = new.epoch, worker = new.worker,
    open = new.open::int, last = new.last
FROM unnest(
    :u_state::text[], :u_version::bigint[], :u_epoch::bigint[], :u_worker::text[],
    :u_open::boolean[], :u_last::bigint[], :u_id::text[], :u_read_version::bigint[],
    :u_read_epoch::bigint[], :u_read_made::bigint[], :u_read_last::bigint[]
) AS new (
    state, version, epoch, worker, open, last, id, read_version, read_epoch, read_made, read_last
)
WHERE record.id = new.id AND record.version = new.read_version AND record.epoch = new.read_epoch
    AND record.made = new.read_made AND record.last = new.read_last
RETURNING record.id

-- inserted: Insert records that must not exist yet.
INSERT INTO record (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
SELECT new.id, new.kind, new.tenant, new.session, new.state, new.version, new.epoch, new.worker,
    new.open::int, new.made, new.last
FROM unnest(
    :i_id::text[], :i_kind::text[], :i_tenant::text[], :i_session::text[], :i_state::text[],
    :i_version::bigint[], :i_epoch::bigint[], :i_worker::text[], :i_open::boolean[],
    :i_made::bigint[], :i_last::bigint[]
) AS new (id, kind, tenant, session, state, version, epoch, worker, open, made, last)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- appended: Append to the journal.
INSERT INTO journal (seq, id, version, before, event, state, at, body, body_digest, prev, hash)
SELECT * FROM unnest(
    :e_seq::bigint[], :e_id::text[], :e_version::bigint[], :e_before::bigint[], :e_event::text[],
    :e_state::text[], :e_at::double precision[], :e_body::bytea[], :e_body_digest::text[],
    :e_prev::text[], :e_hash::text[]
) AS new (seq, id, version, before, event, state, at, body, body_digest, prev, hash)
RETURNING seq

-- freed: Let names go, each if that record holds it; none of them is taken by the same statement.
DELETE FROM name USING unnest(:f_name::text[], :f_record::text[]) AS old (name, record)
WHERE name.name = old.name AND name.record = old.record
RETURNING name.name

-- taken: Let records hold names that nobody holds.
INSERT INTO name (name, record)
SELECT new.name, new.record
FROM unnest(:t_name::text[], :t_record::text[]) AS new (name, record)
ON CONFLICT (name) DO NOTHING
RETURNING name

-- The details of what is over may be erased: what is left begins with the erasure.
-- min_writer: 1

-- The journal position of the erasure that stands for the first event, where there was one.
ALTER TABLE landed.record ADD COLUMN erased BIGINT;

-- A record with its first and its latest journal entry, as before; an erasure stands for the first.
-- The joins are outer joins, so that a record whose entries are gone is found and refused, instead
-- of being taken for absent.
CREATE OR REPLACE VIEW landed.loaded AS
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
LEFT JOIN landed.journal AS first ON first.seq = coalesce(record.erased, record.made)
LEFT JOIN landed.journal AS latest ON latest.seq = record.last;

-- What waits for a person is found without reading what does not.
-- min_writer: 1

CREATE INDEX record_waiting ON landed.record (tenant, made)
WHERE state IN ('undecided', 'proposed', 'open');

-- What a dead worker left is taken over tenant by tenant, the oldest first.
-- min_writer: 1

CREATE INDEX record_left ON landed.record (worker, tenant, made) WHERE open = 1;

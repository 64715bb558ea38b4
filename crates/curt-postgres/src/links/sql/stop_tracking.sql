BEGIN;
SET LOCAL lock_timeout = '1s';
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgname = 'curt_track' AND tgrelid = 'links'::regclass) THEN
        ALTER TABLE links DISABLE TRIGGER curt_track;
        ALTER TABLE key_generations DISABLE TRIGGER curt_track;
        ALTER TABLE link_clicks DISABLE TRIGGER curt_track;
        ALTER TABLE idempotency DISABLE TRIGGER curt_track;
    END IF;
END $$;
DELETE FROM shard_changes;
COMMIT

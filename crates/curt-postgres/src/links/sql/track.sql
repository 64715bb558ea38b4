-- Has changes remembered. The triggers stay when nothing moves, switched off: to remove one keeps readers waiting, to switch
-- it does not.
BEGIN;
SET LOCAL lock_timeout = '1s';
CREATE OR REPLACE FUNCTION curt_track_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO shard_changes (holder, is_link, name) SELECT OLD.domain, true, OLD.key
        WHERE EXISTS (SELECT FROM shard_tracking WHERE shard = OLD.shard);
    ELSE
        INSERT INTO shard_changes (holder, is_link, name) SELECT NEW.domain, true, NEW.key
        WHERE EXISTS (SELECT FROM shard_tracking WHERE shard = NEW.shard);
    END IF;
    RETURN NULL;
END $$;
-- These do not know their shard.
CREATE OR REPLACE FUNCTION curt_track_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.domain, true, NEW.key);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION curt_track_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO shard_changes (holder, is_link, name) VALUES (OLD.owner, false, OLD.name);
    ELSE
        INSERT INTO shard_changes (holder, is_link, name) VALUES (NEW.owner, false, NEW.name);
    END IF;
    RETURN NULL;
END $$;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'curt_track' AND tgrelid = 'links'::regclass) THEN
        CREATE TRIGGER curt_track AFTER INSERT OR UPDATE OR DELETE ON links
        FOR EACH ROW EXECUTE FUNCTION curt_track_link();
        CREATE TRIGGER curt_track AFTER INSERT OR UPDATE ON key_generations
        FOR EACH ROW EXECUTE FUNCTION curt_track_link();
        CREATE TRIGGER curt_track AFTER INSERT OR UPDATE ON link_clicks
        FOR EACH ROW EXECUTE FUNCTION curt_track_spent();
        CREATE TRIGGER curt_track AFTER INSERT OR UPDATE OR DELETE ON idempotency
        FOR EACH ROW EXECUTE FUNCTION curt_track_request();
    END IF;
END $$;
ALTER TABLE links ENABLE TRIGGER curt_track;
ALTER TABLE key_generations ENABLE TRIGGER curt_track;
ALTER TABLE link_clicks ENABLE TRIGGER curt_track;
ALTER TABLE idempotency ENABLE TRIGGER curt_track;
COMMIT

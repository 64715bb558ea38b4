-- Which API key made another, and the key whose quota it counts into; both are NULL for keys that users made.
ALTER TABLE api_keys ADD COLUMN parent TEXT;
ALTER TABLE api_keys ADD COLUMN bucket INTEGER;

CREATE INDEX api_keys_by_parent ON api_keys (parent);

CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;

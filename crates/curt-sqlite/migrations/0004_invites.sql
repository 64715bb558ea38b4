-- Invitations are listed by their end; those that were never used stay behind it.
CREATE INDEX invites_by_expiry ON invites (expires_at, secret_hash);

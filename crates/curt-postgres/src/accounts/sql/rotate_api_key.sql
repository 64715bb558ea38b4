WITH old AS MATERIALIZED (
    SELECT seq, name, parent FROM api_keys WHERE prefix = $14 AND user_id = $3 AND revoked_at IS NULL FOR UPDATE
), new AS (
    INSERT INTO api_keys (
        prefix, secret_hash, user_id, name, scopes, creations_amount, creations_period, redirections_amount,
        redirections_period, created_at, expires_at, parent, bucket
    )
    SELECT $1, $2, $3, old.name, $5, $6, $7, $8, $9, $10,
           -- A parent that is the old key's, too, bounds nothing.
           CASE WHEN old.parent = $12 THEN $11
                ELSE least($11, (SELECT least(p.expires_at, p.revoked_at) FROM api_keys AS p WHERE p.prefix = $12))
           END, $12, $13
    FROM old
    WHERE NOT EXISTS (
        SELECT FROM api_keys AS k WHERE k.user_id = $3 AND k.name = old.name AND k.seq <> old.seq
        AND (k.expires_at IS NULL OR k.expires_at > $10) AND (k.revoked_at IS NULL OR k.revoked_at > $10)
    ) AND (
        old.parent = $12 OR $12::text IS NULL OR EXISTS (
            SELECT FROM api_keys AS p WHERE p.prefix = $12
            AND (p.expires_at IS NULL OR p.expires_at > $10) AND (p.revoked_at IS NULL OR p.revoked_at > $10)
        )
    )
    ON CONFLICT (prefix) DO NOTHING
    RETURNING seq
), retired AS (
    UPDATE api_keys AS k SET name = $4, revoked_at = $15 FROM old, new WHERE k.seq = old.seq
)
SELECT seq FROM new

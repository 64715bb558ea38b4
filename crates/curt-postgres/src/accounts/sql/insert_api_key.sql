INSERT INTO api_keys (
    prefix, secret_hash, user_id, name, scopes, creations_amount, creations_period, redirections_amount,
    redirections_period, created_at, expires_at, parent, bucket
)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
       least($11, (SELECT least(p.expires_at, p.revoked_at) FROM api_keys AS p WHERE p.prefix = $12)), $12, $13
WHERE NOT EXISTS (
    SELECT FROM api_keys AS k WHERE k.user_id = $3 AND k.name = $4
    AND (k.expires_at IS NULL OR k.expires_at > $10) AND (k.revoked_at IS NULL OR k.revoked_at > $10)
) AND (
    $12::text IS NULL OR EXISTS (
        SELECT FROM api_keys AS p WHERE p.prefix = $12
        AND (p.expires_at IS NULL OR p.expires_at > $10) AND (p.revoked_at IS NULL OR p.revoked_at > $10)
    )
)
ON CONFLICT (prefix) DO NOTHING
RETURNING seq

INSERT INTO api_keys (
    prefix, secret_hash, user, name, scopes, creations_amount, creations_period, redirections_amount,
    redirections_period, created_at, expires_at, parent, bucket
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (
           SELECT min(at) FROM (
               SELECT ?11 AS at
               UNION ALL SELECT expires_at FROM api_keys WHERE prefix = ?12 AND ?12 IS NOT ?15
               UNION ALL SELECT revoked_at FROM api_keys WHERE prefix = ?12 AND ?12 IS NOT ?15
           )
       ), ?12, ?13
WHERE NOT EXISTS (
    SELECT 1 FROM api_keys INDEXED BY api_keys_by_user
    WHERE user = ?3 AND name = ?4 AND seq IS NOT ?14
      AND (expires_at IS NULL OR expires_at > ?10) AND (revoked_at IS NULL OR revoked_at > ?10)
) AND (
    ?12 IS NULL OR ?12 IS ?15 OR EXISTS (
        SELECT 1 FROM api_keys WHERE prefix = ?12
        AND (expires_at IS NULL OR expires_at > ?10) AND (revoked_at IS NULL OR revoked_at > ?10)
    )
)
ON CONFLICT (prefix) DO NOTHING
RETURNING seq

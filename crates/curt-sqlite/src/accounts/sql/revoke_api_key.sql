WITH RECURSIVE family (prefix) AS (
    SELECT prefix FROM api_keys WHERE prefix = ?1
    UNION
    SELECT child.prefix FROM family
    JOIN api_keys AS child INDEXED BY api_keys_by_parent ON child.parent = family.prefix
)
UPDATE api_keys SET revoked_at = ?2
WHERE prefix IN (SELECT prefix FROM family) AND (revoked_at IS NULL OR revoked_at > ?2)
RETURNING prefix

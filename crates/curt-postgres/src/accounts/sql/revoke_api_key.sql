WITH RECURSIVE family AS (
    SELECT prefix FROM api_keys WHERE prefix = $1
    UNION
    SELECT child.prefix FROM family JOIN api_keys AS child ON child.parent = family.prefix
), ended AS (
    UPDATE api_keys AS k SET revoked_at = $2 FROM family
    WHERE k.prefix = family.prefix AND (k.revoked_at IS NULL OR k.revoked_at > $2)
    RETURNING k.prefix
)
SELECT prefix FROM ended ORDER BY prefix

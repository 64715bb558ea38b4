-- One statement, so that the moves are those of the list.
SELECT moves, listed.id, first_at, last_at, clicks, bytes, subjects
FROM click_block_moves
LEFT JOIN LATERAL (
    SELECT id, first_at, last_at, clicks, bytes, subjects
    FROM click_blocks
    WHERE last_at >= $1 AND first_at < $2 AND (last_at, id) < ($3, $4)
    ORDER BY last_at DESC, id DESC
    LIMIT $5
) AS listed ON true

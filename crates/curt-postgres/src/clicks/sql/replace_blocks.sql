-- The rows are locked first: whoever comes second finds them gone.
WITH old AS MATERIALIZED (
    SELECT id FROM click_blocks WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE
), found AS MATERIALIZED (
    SELECT count(*) = cardinality($1::bigint[]) AS are_all FROM old
), removed AS (
    DELETE FROM click_blocks USING found WHERE id = ANY($1::bigint[]) AND are_all
), added AS (
    INSERT INTO click_blocks (first_at, last_at, clicks, bytes, subjects, content)
    SELECT block.*
    FROM found, unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[]) AS block
    WHERE are_all
), moved AS (
    UPDATE click_block_moves SET moves = moves + 1 FROM found WHERE are_all
)
SELECT are_all FROM found

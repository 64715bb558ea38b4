-- The rows are locked first: whoever comes second finds them gone, or edited.
WITH old AS MATERIALIZED (
    SELECT r.id
    FROM rollup_runs AS r
    JOIN unnest($1::bigint[], $2::bigint[]) AS listed (id, edits) ON r.id = listed.id AND r.edits = listed.edits
    ORDER BY r.id
    FOR UPDATE OF r
), found AS MATERIALIZED (
    SELECT count(*) = cardinality($1::bigint[]) AS are_all FROM old
), removed AS (
    DELETE FROM rollup_runs USING found WHERE id = ANY($1::bigint[]) AND are_all
), removed_chunks AS (
    DELETE FROM rollup_chunks USING found WHERE run = ANY($1::bigint[]) AND are_all
), run AS (
    INSERT INTO rollup_runs (day, subjects, bytes) SELECT $3, $4, $5 FROM found WHERE are_all RETURNING id
), chunks AS (
    INSERT INTO rollup_chunks (run, first_key, content)
    SELECT run.id, chunk.first_key, chunk.content
    FROM run, unnest($6::bytea[], $7::bytea[]) AS chunk (first_key, content)
)
SELECT are_all FROM found

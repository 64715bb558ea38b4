-- The rows are locked first: whoever comes second finds them gone.
WITH old AS MATERIALIZED (
    SELECT id FROM rollup_runs WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE
), found AS MATERIALIZED (
    SELECT count(*) = cardinality($1::bigint[]) AS are_all FROM old
), removed AS (
    DELETE FROM rollup_runs USING found WHERE id = ANY($1::bigint[]) AND are_all
), removed_chunks AS (
    DELETE FROM rollup_chunks USING found WHERE run = ANY($1::bigint[]) AND are_all
), run AS (
    INSERT INTO rollup_runs (day, subjects, bytes) SELECT $2, $3, $4 FROM found WHERE are_all RETURNING id
), chunks AS (
    INSERT INTO rollup_chunks (run, first_key, content)
    SELECT run.id, chunk.first_key, chunk.content
    FROM run, unnest($5::bytea[], $6::bytea[]) AS chunk (first_key, content)
)
SELECT are_all FROM found

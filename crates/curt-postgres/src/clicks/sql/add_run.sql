WITH run AS (
    INSERT INTO rollup_runs (day, subjects, bytes) VALUES ($1, $2, $3) RETURNING id
)
INSERT INTO rollup_chunks (run, first_key, content)
SELECT run.id, chunk.first_key, chunk.content
FROM run, unnest($4::bytea[], $5::bytea[]) AS chunk (first_key, content)

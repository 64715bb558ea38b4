-- Whoever comes second waits for the first one's commit, and finds another number of edits.
WITH edited AS (
    UPDATE rollup_runs
    SET edits = edits + 1, subjects = greatest(subjects - 1, 0), bytes = greatest(bytes + $3::bigint, 0)
    WHERE id = $1 AND edits = $2
    RETURNING id
), removed AS (
    DELETE FROM rollup_chunks AS c USING edited
    WHERE c.run = edited.id AND c.first_key = $4 AND $5::bytea IS NULL
), changed AS (
    UPDATE rollup_chunks AS c SET first_key = $5, content = $6::bytea FROM edited
    WHERE c.run = edited.id AND c.first_key = $4 AND $5::bytea IS NOT NULL
)
SELECT id FROM edited

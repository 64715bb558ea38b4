-- Whole runs of the oldest days until so many subjects are gone. Every process does so; runs that another one is looking at
-- are left to it.
WITH old AS MATERIALIZED (
    SELECT id, subjects, sum(subjects) OVER (ORDER BY day, id) - subjects AS before
    FROM rollup_runs
    WHERE day < $1
), locked AS MATERIALIZED (
    SELECT id, subjects FROM rollup_runs
    WHERE id IN (SELECT id FROM old WHERE before < $2::bigint) FOR UPDATE SKIP LOCKED
), removed_chunks AS (
    DELETE FROM rollup_chunks USING locked WHERE run = locked.id
), removed AS (
    DELETE FROM rollup_runs AS r USING locked WHERE r.id = locked.id
)
SELECT coalesce(sum(subjects), 0)::bigint FROM locked

-- One statement, so that what it finds is of one moment: a run that is merged meanwhile is found once.
SELECT r.day, (
    SELECT c.content
    FROM rollup_chunks AS c
    WHERE c.run = r.id AND c.first_key <= ?1
    ORDER BY c.first_key DESC
    LIMIT 1
), r.id, r.edits
FROM rollup_runs AS r
WHERE r.day IN (
    SELECT DISTINCT day FROM rollup_runs WHERE day >= ?2 AND day <= ?3 ORDER BY day LIMIT ?4
)
ORDER BY r.day, r.id

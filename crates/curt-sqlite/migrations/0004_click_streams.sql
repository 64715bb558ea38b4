-- Positions are kept per stream: a spool is known by its own id, whatever becomes of the folder that it lies in.
--
-- Positions of spools that had none are not needed again: what they are behind was wiped when it was counted.
DROP TABLE click_positions;

CREATE TABLE click_positions (
    stream    INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (stream, partition)
) STRICT, WITHOUT ROWID;

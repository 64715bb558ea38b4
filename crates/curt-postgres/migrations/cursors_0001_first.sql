-- Named numbers that move by compare-and-set.
CREATE TABLE cursors (
    name  text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 50); -- room for new versions on the same page: an advance touches no index

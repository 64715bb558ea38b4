-- Clicks that a link with max_clicks has granted. Only such links have a row here.
CREATE TABLE link_clicks (
    link  INTEGER PRIMARY KEY,
    spent INTEGER NOT NULL
) STRICT;

-- About how many bytes the single clicks take, with their indexes; changed with them.
CREATE TABLE click_visits_size (
    id    smallint PRIMARY KEY CHECK (id = 1),
    bytes bigint NOT NULL
);

INSERT INTO click_visits_size (id, bytes)
SELECT 1, coalesce(sum(200 + 2 * octet_length(coalesce(key, '')) + octet_length(country) + octet_length(browser)
    + octet_length(system) + octet_length(device) + octet_length(referrer) + octet_length(language)
    + octet_length(array_to_string(coalesce(tags, '{}'), ','))), 0)
FROM click_visits;

-- Dead letters: rows of click_days that could not be decoded, as they were found; a new row took their place.
CREATE TABLE click_days_damaged (
    found_at timestamptz      NOT NULL DEFAULT now(),
    number   bigint           NOT NULL,
    day      integer          NOT NULL,
    kind     smallint         NOT NULL,
    name     text COLLATE "C" NOT NULL,
    counts   bytea            NOT NULL,
    visitors bytea            NOT NULL
);

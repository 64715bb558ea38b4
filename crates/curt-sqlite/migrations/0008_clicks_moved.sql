-- Clicks have a database of their own. What was counted here has been copied there before this step runs.
DROP TABLE click_visits;
DROP TABLE click_days;
DROP TABLE click_subjects;
DROP TABLE click_positions;
DROP TABLE click_salts;

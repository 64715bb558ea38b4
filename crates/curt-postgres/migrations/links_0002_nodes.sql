-- The name by which this database is known from other nodes, made at the first question.
CREATE TABLE node_identity (
    one      boolean PRIMARY KEY CHECK (one),
    identity text NOT NULL
);

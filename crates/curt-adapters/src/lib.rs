//! One folder per engine, one file per port that it serves.

//! Document D.

use super::SeedFigure as F;
use super::Unit::{Bytes, Count};
use crate::workload::Workload;

const WRITES: f64 = 1e9;
const KEY: f64 = 6.0;
const BLOCK: f64 = 10_000.0;

const HDFS: &str = "HDFS";
const PRELOAD: &str = "Short url preload service";

pub(super) fn workload() -> Workload {
    Workload {
        writes_per_month: WRITES,
        years: 2.0,
        ..Workload::default()
    }
}

pub(super) const FIGURES: &[F] = &[
    F::right(
        HDFS,
        "1 billion urls per month means 24 billion records in two years",
        24e9,
        WRITES * 24.0,
        Count,
    ),
    F::right(
        HDFS,
        "24 * 10 ^ 9 * 6 = 144 GB",
        144e9,
        WRITES * 24.0 * KEY,
        Bytes,
    ),
    F::right(PRELOAD, "10K urls: 60K bytes", 60e3, BLOCK * KEY, Bytes),
    F::right(PRELOAD, "the offset value of 60K", 60e3, BLOCK * KEY, Bytes),
    F::right(
        PRELOAD,
        "fewer than 2000: it will load another 10K",
        12e3,
        2_000.0 + BLOCK,
        Count,
    ),
    F::right(PRELOAD, "shortUrl only takes 6 bytes", KEY, KEY, Bytes),
];

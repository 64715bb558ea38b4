//! Document C.

use super::SeedFigure as F;
use super::Unit::{Bytes, Count, PerSecond};
use super::power;
use crate::workload::Workload;

const WRITES: f64 = 600e6;
const READS: f64 = 10e9;
/// A twelfth of a year.
const MONTH: f64 = 365.25 / 12.0 * 86_400.0;
const ROW: f64 = 8.0 + 50.0 + 8.0 + 8.0;
const TEN_YEARS: f64 = WRITES * 12.0 * 10.0;

const SCALE: &str = "Supported scale";
const TABLE: &str = "URL mapping table";
const NODES: &str = "Number of database nodes";

pub(super) fn workload() -> Workload {
    Workload {
        writes_per_month: WRITES,
        reads_per_write: READS / WRITES,
        years: 10.0,
        bytes_per_link: Some(ROW),
        ..Workload::default()
    }
}

pub(super) const FIGURES: &[F] = &[
    F::right(
        SCALE,
        "600 M / month = 228 / second (writes)",
        228.0,
        WRITES / MONTH,
        PerSecond,
    ),
    F::right(
        SCALE,
        "10 B / month = 3508 / second (reads)",
        3_508.0,
        READS / MONTH,
        PerSecond,
    )
    .wrong("3,803: two digits changed places; further down it is 3805"),
    F::right(
        SCALE,
        "600M creations / mon = 7.2 B / y",
        7.2e9,
        WRITES * 12.0,
        Count,
    ),
    F::right(SCALE, "72 B / in 10 years", 72e9, TEN_YEARS, Count),
    F::right(
        SCALE,
        "720 B / century",
        720e9,
        WRITES * 12.0 * 100.0,
        Count,
    ),
    F::right(
        SCALE,
        "26 english alphabets, 0-9: 36chars",
        36.0,
        26.0 + 10.0,
        Count,
    ),
    F::right(
        SCALE,
        "36^8 = 3 trillion possibilities",
        3e12,
        power(36.0, 8),
        Count,
    )
    .rounded("2.8; 72 billion links use 2.6 % of them"),
    F::right(TABLE, "8 + 50 + 8 + 8: 74 bytes per row", 74.0, ROW, Bytes),
    F::right(
        NODES,
        "3805 db reads / second",
        3_805.0,
        READS / MONTH,
        PerSecond,
    ),
    F::right(
        NODES,
        "3508 writes / second",
        3_508.0,
        WRITES / MONTH,
        PerSecond,
    )
    .wrong("that is the number of reads; writes are 228"),
    F::right(NODES, "74 bytes * 720 B", 720e9, TEN_YEARS, Count).wrong(
        "720 billion are the links of a century, 53 TB; the sum goes on with those of ten years",
    ),
    F::right(
        NODES,
        "70 * 70 * 10^9 = 5000 * 10^9 = 5TB",
        5e12,
        ROW * TEN_YEARS,
        Bytes,
    )
    .rounded("74 bytes for 72 billion links are 5.3 TB"),
];

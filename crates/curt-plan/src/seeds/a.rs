//! Document A.

use super::SeedFigure as F;
use super::Unit::{Bytes, Count, PerSecond};
use super::power;
use crate::workload::Workload;

const YEAR_DAYS: f64 = 365.0;
const DAY: f64 = 86_400.0;
const LINKS_PER_YEAR: f64 = 2e9;
const YEARS: f64 = 10.0;
const ROW: f64 = 2e3;
const PER_DAY: f64 = LINKS_PER_YEAR / YEAR_DAYS;
const MADE: f64 = 100.0 * DAY * YEAR_DAYS * YEARS;
/// As the document goes on with it, after rounding up twice.
const LINKS: f64 = 32e9;

const FACTORY: &str = "Core components";
const ESTIMATION: &str = "Estimation";
const MAPPING: &str = "mapping-service";
const CACHING: &str = "Caching";
const SINGLE: &str = "A single db";

pub(super) fn workload() -> Workload {
    Workload {
        writes_per_month: LINKS_PER_YEAR / 12.0,
        reads_per_write: 5.0,
        years: YEARS,
        bytes_per_link: Some(ROW),
        cached_share: 0.2,
        disk_bytes: 2e12,
        cache_bytes: 128e9,
        ..Workload::default()
    }
}

pub(super) const FIGURES: &[F] = &[
        F::right(ESTIMATION, "1 month = 2*10**9 / 365", PER_DAY, LINKS_PER_YEAR / 12.0, Count)
            .wrong("divided by 365, which is a day; a month is a twelfth of a year"),
        F::right(ESTIMATION, "1 day = (2*10**9 / 365) / 30 = 5.5M", 5.5e6, PER_DAY / 30.0, Count)
            .wrong("the sum as written is 183 thousand; 5.5 million is 2*10**9 / 365, without the / 30, and right for a day"),
        F::right(ESTIMATION, "5.5M ~ 6M", 6e6, PER_DAY, Count)
            .rounded("links of a day, rounded up by a tenth"),
        F::right(ESTIMATION, "24 * 60 * 60 seconds = 6M", DAY, 24.0 * 60.0 * 60.0, Count),
        F::right(ESTIMATION, "1 sec = 6M/(24 * 60 * 60) = 70 rps", 70.0, 6e6 / DAY, PerSecond),
        F::right(ESTIMATION, "70 rps ~ 100 rps", 100.0, LINKS_PER_YEAR / YEAR_DAYS / DAY, PerSecond)
            .rounded("2 billion a year are 63 a second: 58 % more from here on"),
        F::right(
            ESTIMATION,
            "100 * 60 * 60 * 24 * 365 * 10 = 31_536_000_000",
            31_536_000_000.0,
            MADE,
            Count,
        ),
        F::right(ESTIMATION, "which is almost 32B", LINKS, MADE, Count)
            .rounded("2 billion a year are 20 billion in ten years; the rest comes of rounding up twice"),
        F::right(ESTIMATION, "64**6 = 68_719_476_736", 68_719_476_736.0, power(64.0, 6), Count),
        F::right(ESTIMATION, "6 digits to store 68B urls", 68e9, power(64.0, 6), Count)
            .rounded("68.7 billion; 32 billion links use 47 % of them, so that every second guess finds one"),
        F::right(ESTIMATION, "6 * 32B = 192GB", 192e9, 6.0 * LINKS, Bytes),
        F::right(MAPPING, "10*10**6 * 10**3 = 10_000_000_000", 10e9, 10e6 * 1e3, Bytes),
        F::right(MAPPING, "2 * 10**3 * 32*10**9 = 64_000_000_000_000", 64e12, ROW * LINKS, Bytes),
        F::right(MAPPING, "32 (64/2) servers", 32.0, 64e12 / 2e12, Count),
        F::right(CACHING, "64* 0.2 = 12.8", 12.8e12, 64e12 * 0.2, Bytes),
        F::right(CACHING, "(12 * 10**3) / 128 = 93.75, 94 cache servers", 93.75, 64e12 * 0.2 / 128e9, Count)
            .wrong("12 in place of the 12.8 above: 12.8 TB on servers of 128 GB are 100"),
        F::right(FACTORY, "1,000 keys out of 4 Trillion", 4e12, power(64.0, 7), Count)
            .rounded("64 symbols, 7 characters: 4.4 trillion; with 62 symbols 3.5"),
        F::right(FACTORY, "the 16TB+ data load", 16e12, ROW * LINKS, Bytes)
            .wrong("the estimation below comes to 64 TB"),
        F::right(SINGLE, "64**8 = 281_474_976_710_656", 281_474_976_710_656.0, power(64.0, 8), Count),
        F::right(SINGLE, "281 * 10^12", 281e12, power(64.0, 8), Count),
        F::right(SINGLE, "64**8 urls would take 200 TB", 200e12, 8.0 * power(64.0, 8), Bytes)
            .wrong("281 trillion keys of 8 bytes are 2,252 TB"),
];

//! Document B.

use super::SeedFigure as F;
use super::Unit::{Bytes, BytesPerSecond, Count, PerSecond, Share};
use super::power;
use crate::workload::Workload;

const USERS: f64 = 100e6;
const WRITES: f64 = USERS * 5.0;
const READS: f64 = WRITES * 100.0;
const OBJECT: f64 = 500.0;
const MONTH: f64 = 30.0 * 86_400.0;
/// As the document goes on with them, after rounding up.
const WRITE_RATE: f64 = 200.0;
const READ_RATE: f64 = 20_000.0;
const LINKS: f64 = WRITES * 12.0 * 5.0;

const TRAFFIC: &str = "Traffic estimate";
const STORAGE: &str = "Storage estimate";
const BANDWIDTH: &str = "Bandwidth estimate";
const CACHE: &str = "Cache estimate";
const ENCODING: &str = "Encoding actual URL";
const OFFLINE: &str = "Generating keys offline";
const HASHING: &str = "Consistent hashing";
const DESIGN: &str = "DB design";
const TELEMETRY: &str = "Telemetry";

pub(super) fn workload() -> Workload {
    Workload {
        writes_per_month: WRITES,
        reads_per_write: 100.0,
        years: 5.0,
        bytes_per_link: Some(OBJECT),
        cached_share: 0.2,
        cache_bytes: 256e9,
        ..Workload::default()
    }
}

pub(super) fn figures() -> Vec<F> {
    [ESTIMATES, KEYS, OTHERS].concat()
}

const ESTIMATES: &[F] = &[
    F::right(
        TRAFFIC,
        "100M*5*100=50000M = 50B readRequests/month",
        50e9,
        READS,
        Count,
    ),
    F::right(
        TRAFFIC,
        "100M*5 = 500M writeRequest/month",
        500e6,
        WRITES,
        Count,
    ),
    F::right(
        TRAFFIC,
        "500M/(10^5*30) = 5000/30 ~ 167 writeRequests/second",
        167.0,
        WRITES / MONTH,
        PerSecond,
    )
    .rounded("a day has 86,400 seconds, not 100,000"),
    F::right(
        TRAFFIC,
        "~ 200 writeRequests/second",
        WRITE_RATE,
        WRITES / MONTH,
        PerSecond,
    )
    .rounded("193, rounded up"),
    F::right(
        TRAFFIC,
        "50B/(10^5*30) = 50*10^4/30 ~ 16667 readRequests/second",
        16_667.0,
        READS / MONTH,
        PerSecond,
    )
    .rounded("a day has 86,400 seconds, not 100,000"),
    F::right(
        TRAFFIC,
        "~ 20000 readRequests/second",
        READ_RATE,
        READS / MONTH,
        PerSecond,
    )
    .rounded("19,290, rounded up"),
    F::right(
        STORAGE,
        "500M writes * 500 = 250000MB = 250 GB",
        250e9,
        WRITES * OBJECT,
        Bytes,
    ),
    F::right(STORAGE, "2.5GB * 12 * 5", 2.5e9, WRITES * OBJECT, Bytes)
        .wrong("a month is 250 GB, as one line above; 60 times 2.5 GB would be 150 GB"),
    F::right(
        STORAGE,
        "60 * 250GB = 15000GB = 15TB",
        15e12,
        LINKS * OBJECT,
        Bytes,
    ),
    F::right(
        BANDWIDTH,
        "200 write/s * 500bytes = 100000b/s = 100KB/s",
        100e3,
        WRITE_RATE * OBJECT,
        BytesPerSecond,
    ),
    F::right(
        BANDWIDTH,
        "20k read/s * 500 bytes = 10000KB/s = 10MB/s",
        10e6,
        READ_RATE * OBJECT,
        BytesPerSecond,
    ),
    F::right(
        CACHE,
        "20000 reads/s * 10^5 ~ 2B reads/day",
        2e9,
        READS / 30.0,
        Count,
    )
    .rounded("1.67 billion a day: the rate and the day were both rounded up"),
    F::right(
        CACHE,
        "2Breads/day * 500bytes * 20% = 1000GB * 20% ~ 200GB",
        200e9,
        2e9 * OBJECT * 0.2,
        Bytes,
    ),
    F::right(
        CACHE,
        "~ 200 GB cache (Modern server can have 256 GB memory)",
        1.0,
        (200e9_f64 / 256e9).ceil(),
        Count,
    ),
];

const KEYS: &[F] = &[
        F::right(ENCODING, "64^6 ~ 68.7B", 68.7e9, power(64.0, 6), Count),
        F::right(ENCODING, "(<15T)", 15e12, LINKS, Count)
            .wrong("15 T are the bytes of five years; the links are 30 billion, for which 6 letters are enough"),
        F::right(ENCODING, "64^7 ~ 4.3T", 4.3e12, power(64.0, 7), Count)
            .rounded("4.398: nearer to 4.4"),
        F::right(ENCODING, "64^8 ~ 280T", 280e12, power(64.0, 8), Count),
        F::right(ENCODING, "2^128-1 ~ 3*10^38", 3e38, power(2.0, 128), Count)
            .rounded("3.4"),
        F::right(ENCODING, "SHA256 produces 256 characters", 256.0, 256.0 / 4.0, Count)
            .wrong("256 bits: 64 hexadecimal characters, or 43 of base 64"),
        F::right(OFFLINE, "280T ~ 2^48 ~ 2.8 *10^14", 2.8e14, power(2.0, 48), Count),
        F::right(OFFLINE, "280T * (48/8)B = 280T*6B ~ 1680TB", 1_680e12, power(64.0, 8) * 6.0, Bytes),
        F::right(OFFLINE, "1680TB ~ 1.6PB", 1.6e15, power(64.0, 8) * 6.0, Bytes)
            .rounded("1.69; as text of 8 characters it is 2.25 PB"),
];

const OTHERS: &[F] = &[
    F::right(DESIGN, "To store Trillions of record", 1e12, LINKS, Count)
        .wrong("500 million a month for five years are 30 billion"),
    F::right(HASHING, "n=4, (1/4)% = 0.25%", 0.0025, 1.0 / 4.0, Share)
        .wrong("1/n is a share: with four servers a quarter of the keys moves"),
    F::right(
        HASHING,
        "k=4000, 0.25/100*4000 = 10 keys",
        10.0,
        4_000.0 / 4.0,
        Count,
    )
    .wrong("a quarter of 4,000"),
    F::right(
        TELEMETRY,
        "5000 db calls reduced to 1 db update",
        5_000.0,
        5_000.0 / 1.0,
        Count,
    ),
];

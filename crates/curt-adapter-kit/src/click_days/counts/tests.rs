use std::collections::BTreeMap;

use curt_core::Dimension;

use super::*;

fn sum(hour: u8, dimension: Dimension, value: &str, count: u64) -> Rollup {
    Rollup {
        hour: Day::FIRST.hour(hour),
        dimension,
        value: value.into(),
        count,
    }
}

fn of(rollups: &[Rollup]) -> Vec<u8> {
    DayCounts::of(Day::FIRST, rollups).encode()
}

/// Stored counts outlive versions.
#[test]
fn the_stored_form_is_fixed() {
    let rollups = [
        sum(0, Dimension::Class, "human", 1),
        sum(23, Dimension::Class, "human", 300),
        sum(1, Dimension::Country, "DE", 2),
    ];
    let mut golden = vec![1, 0, 13, 5];
    golden.extend_from_slice(b"human");
    golden.extend_from_slice(&[0x81, 0x80, 0x80, 0x04, 1, 0xac, 0x02]);
    golden.extend_from_slice(&[1, 5, 2, b'D', b'E', 2, 2]);
    assert_eq!(of(&rollups), golden);
}

#[test]
fn what_was_counted_is_read_back() {
    let rollups = [
        sum(3, Dimension::Referrer, "", 1),
        sum(3, Dimension::Referrer, &"x".repeat(300), u64::MAX),
        sum(9, Dimension::Class, "bot", 7),
    ];
    let bytes = of(&rollups);
    let decoded = DayCounts::decode(&bytes).unwrap();
    assert_eq!(decoded.encode(), bytes);
    let mut seen = Vec::new();
    for_each_value_of(&bytes, Dimension::Referrer, |value, hours| {
        seen.push((value.len(), hours[3]));
    })
    .unwrap();
    assert_eq!(seen, [(0, 1), (300, u64::MAX)]);
    for_each_value_of(&bytes, Dimension::Country, |_, _| panic!("never counted")).unwrap();
}

/// Every cut and every changed byte is either refused or read as something, and never ends the process.
#[test]
fn damage_is_survived() {
    let rollups = [
        sum(3, Dimension::Class, "human", 1 << 40),
        sum(4, Dimension::Country, "DE", 5),
    ];
    let bytes = of(&rollups);
    for end in 0..bytes.len() {
        let cut = DayCounts::decode(&bytes[..end]);
        assert!(cut.is_err() || end == 1 || bytes[end] == Dimension::Country as u8);
    }
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[place] ^= 1 << bit;
            if let Ok(counts) = DayCounts::decode(&other) {
                assert_ne!(counts, DayCounts::decode(&bytes).unwrap());
            }
        }
    }
    assert_eq!(DayCounts::decode(&[]), Err(Damaged));
    assert_eq!(DayCounts::decode(&[3]), Err(Damaged));
}

/// The counts of a dimension by value, and the sum over all.
fn read(bytes: &[u8]) -> (BTreeMap<String, u64>, u64) {
    let mut counts = BTreeMap::new();
    for_each_value_of(bytes, Dimension::Referrer, |value, hours| {
        counts.insert(value.to_owned(), hours.iter().sum());
    })
    .unwrap();
    let total = counts.values().sum();
    (counts, total)
}

#[test]
fn invented_values_do_not_push_out_real_ones() {
    let junk = |window: u64, values: u64| -> Vec<Rollup> {
        let value = |n| sum(1, Dimension::Referrer, &format!("junk-{window}-{n}"), 1);
        (0..values).map(value).collect()
    };
    let add = |bytes: &[u8], rollups: &[Rollup]| {
        let counts = DayCounts::decode(bytes).unwrap();
        counts.merge(DayCounts::of(Day::FIRST, rollups)).encode()
    };
    let mut bytes = add(&of(&[]), &junk(0, 1_000));
    let mut total = 1_000;
    for window in 1..20 {
        bytes = add(&bytes, &junk(window, 5_000));
        bytes = add(&bytes, &[sum(2, Dimension::Referrer, "news.example", 25)]);
        total += 5_025;
        let (counts, sum) = read(&bytes);
        assert_eq!(sum, total, "window {window}");
        assert!(counts.len() <= VALUES_PER_DAY_MAX + 1, "{}", counts.len());
        // The true count is 25 times the windows; the error is below a thousandth of all.
        let news = counts.get("news.example").copied().unwrap_or_default();
        assert!(
            news <= 25 * window && news + total / 1_000 >= 25 * window,
            "{news}"
        );
        let decoded = DayCounts::decode(&bytes).unwrap();
        let floor = decoded.0[0].floor;
        assert!(
            floor <= total / VALUES_PER_DAY_MAX as u64,
            "{floor} of {total}"
        );
    }
}

#[test]
fn up_to_the_bound_every_count_is_exact() {
    let rollups: Vec<_> = (0..VALUES_PER_DAY_MAX)
        .map(|n| sum(1, Dimension::Referrer, &format!("v{n}"), 1 + n as u64))
        .collect();
    let bytes = of(&rollups);
    assert_eq!(bytes[0], EXACT);
    let (counts, _) = read(&bytes);
    assert!(!counts.contains_key(OTHER));
    assert_eq!(counts["v999"], 1_000);
    let more = sum(1, Dimension::Referrer, "one more", 1);
    let more = [more];
    let counts = DayCounts::decode(&bytes).unwrap();
    let counts = counts.merge(DayCounts::of(Day::FIRST, &more));
    let bytes = counts.encode();
    assert_eq!(bytes[0], WITH_CREDIT);
    let decoded = DayCounts::decode(&bytes).unwrap();
    assert_eq!(decoded, counts);
    assert_eq!(read(&bytes).0[OTHER], 1, "one of the two with a count of 1");
}

proptest::proptest! {
    /// The short way to encode a window's rollups writes what the long one does.
    #[test]
    fn rollups_are_encoded_as_counts_are(
        rollups in proptest::collection::vec((0_u8..24, 0_usize..3, 0_u8..6, 0_u64..300), 0..60),
    ) {
        let day = Day::numbered(20_000);
        let dimensions = [Dimension::Country, Dimension::Class, Dimension::City];
        let rollups: Vec<Rollup> = rollups
            .into_iter()
            .map(|(hour, dimension, value, count)| Rollup {
                hour: day.hour(hour),
                dimension: dimensions[dimension],
                value: format!("v{value}").into(),
                count,
            })
            .collect();
        proptest::prop_assert_eq!(encode_rollups(day, &rollups), DayCounts::of(day, &rollups).encode());
    }
}

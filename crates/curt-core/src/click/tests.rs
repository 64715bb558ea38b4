use super::*;

#[test]
fn hours_and_days_begin_at_their_start() {
    assert_eq!(UnixMillis(HOUR_MILLIS - 1).hour(), UnixMillis(0));
    assert_eq!(UnixMillis(-1).hour(), UnixMillis(-HOUR_MILLIS));
    assert_eq!(
        Day::of(UnixMillis(DAY_MILLIS)).start(),
        UnixMillis(DAY_MILLIS)
    );
    assert_eq!(Day::of(UnixMillis(DAY_MILLIS - 1)), Day::FIRST);
    let day = Day::numbered(3);
    for hour in [0, 5, 23] {
        assert_eq!(day.hour_of(day.hour(hour)), hour);
    }
    assert_eq!(day.hour_of(UnixMillis(0)), 0);
    assert_eq!(day.hour_of(day.next().start()), 23);
}

#[test]
fn impossible_days_are_the_nearest_possible_one() {
    assert_eq!(Day::of(UnixMillis(i64::MIN)), Day::FIRST);
    assert_eq!(Day::of(UnixMillis(i64::MAX)), Day::LAST);
    assert_eq!(Day::LAST.next(), Day::LAST);
    assert_eq!(Day::FIRST.minus(1), Day::FIRST);
}

#[test]
fn only_details_are_details() {
    let details = Dimension::ALL
        .into_iter()
        .filter(|one| one.detail().is_some());
    assert_eq!(details.collect::<Vec<_>>(), Dimension::DETAILS);
    let mut details = ClickDetails::default();
    details.set(Dimension::Key, "x");
    assert_eq!(details, ClickDetails::default());
}

#[test]
fn stored_numbers_and_names_lead_back() {
    for dimension in Dimension::ALL {
        assert_eq!(Dimension::from_stored(dimension as u8), Some(dimension));
        assert_eq!(Dimension::named(dimension.name()), Some(dimension));
    }
    for class in ClickClass::ALL {
        assert_eq!(ClickClass::from_stored(class as u8), Some(class));
        assert_eq!(ClickClass::named(class.name()), Some(class));
    }
    assert_eq!(Dimension::from_stored(17), None);
    for (place, dimension) in Dimension::DETAILS.into_iter().enumerate() {
        assert_eq!(dimension.detail(), Some(place));
        let mut details = ClickDetails::default();
        assert_eq!(details.get(dimension), None);
        details.set(dimension, "x");
        assert_eq!(details.get(dimension), Some("x"));
    }
    assert_eq!(ClickClass::from_stored(4), None);
}

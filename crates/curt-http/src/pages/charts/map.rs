//! Countries on a map of tiles, the darker the more clicks.

use std::fmt::Write as _;

use curt_core::ports::Top;

use super::countries::{COLUMNS, ROWS, country, tiles};
use super::grouped;

/// A tile and the gap behind it, in units of the picture.
const STEP: u32 = 12;
const SIDE: u32 = 11;
const SHADES: u64 = 5;

pub(in crate::pages) struct CountryMap {
    pub(in crate::pages) width: u32,
    pub(in crate::pages) height: u32,
    /// The outline of every tile, as one path.
    pub(in crate::pages) empty: String,
    pub(in crate::pages) tiles: Vec<MapTile>,
}

/// A country with clicks.
pub(in crate::pages) struct MapTile {
    pub(in crate::pages) code: String,
    pub(in crate::pages) name: &'static str,
    pub(in crate::pages) count: String,
    pub(in crate::pages) x: u32,
    pub(in crate::pages) y: u32,
    /// 1 to 5.
    pub(in crate::pages) shade: u64,
}

impl MapTile {
    pub(in crate::pages) fn middle(&self) -> u32 {
        self.x + SIDE / 2
    }

    pub(in crate::pages) fn baseline(&self) -> u32 {
        self.y + SIDE - 3
    }
}

impl CountryMap {
    pub(in crate::pages) fn new(countries: &Top) -> Self {
        let mut empty = String::new();
        for (column, row) in tiles() {
            let (x, y) = (u32::from(column) * STEP, u32::from(row) * STEP);
            let _written = write!(empty, "M{x} {y}h{SIDE}v{SIDE}h-{SIDE}z");
        }
        let most = countries.values.iter().map(|(_, count)| *count).max();
        let most = most.unwrap_or(1).max(1);
        let tile = |(code, count): &(Box<str>, u64)| {
            let known = country(code)?;
            let (column, row) = known.tile?;
            Some(MapTile {
                code: code.to_string(),
                name: known.name,
                count: grouped(*count),
                x: u32::from(column) * STEP,
                y: u32::from(row) * STEP,
                shade: shade(*count, most),
            })
        };
        Self {
            width: u32::from(COLUMNS) * STEP,
            height: u32::from(ROWS) * STEP,
            empty,
            tiles: countries.values.iter().filter_map(tile).collect(),
        }
    }
}

/// By order of magnitude: one country has most clicks as a rule, and the others would all look empty.
fn shade(count: u64, most: u64) -> u64 {
    let (count, most) = (count.max(1), most.max(1));
    let below = u64::from(most.ilog2() - count.min(most).ilog2());
    SHADES - (below / 2).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_countries_with_clicks_are_coloured() {
        let top = Top {
            values: vec![
                ("US".into(), 1_000),
                ("DE".into(), 90),
                ("unknown".into(), 5),
            ],
            rest: 7,
        };
        let map = CountryMap::new(&top);
        let tiles: Vec<_> = map
            .tiles
            .iter()
            .map(|tile| (tile.name, tile.shade))
            .collect();
        assert_eq!(tiles, [("United States", 5), ("Germany", 4)]);
        assert!(
            map.tiles
                .iter()
                .all(|tile| tile.x < map.width && tile.y < map.height)
        );
        assert!(map.empty.len() < 6_000);
    }
}

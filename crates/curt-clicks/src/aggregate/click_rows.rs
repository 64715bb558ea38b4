//! Single clicks of a window, in the columns of the blocks that they are stored in.
//!
//! A click is a few numbers: the values have numbers already, so that a click is kept without hashing its texts again, in
//! some 25 bytes until its block is full and in about half as many afterwards.

use std::borrow::Cow;
use std::net::IpAddr;

use curt_core::UnixMillis;
use curt_core::click_block::field::{ADDRESS, FIELDS};
use curt_core::click_block::{
    BLOCK_CLICKS_MAX, BlockColumn, BlockRows, BlockTimes, NewBlock, address_bytes,
};
use curt_core::ports::StreamPartition;
use hashbrown::HashMap;

/// The numbers of a click's values, by column.
pub(super) type RowNumbers = [u32; FIELDS];

#[derive(Default)]
pub(super) struct ClickRows {
    full: Vec<BlockRows>,
    full_bytes: usize,
    times: BlockTimes,
    columns: [NumberedColumn; FIELDS],
    addresses: Addresses,
}

impl ClickRows {
    /// The number of an address, for its column.
    pub(super) fn number_address(&mut self, address: Option<IpAddr>) -> u32 {
        self.addresses.number(address)
    }

    /// Adds a click; `value` tells what the numbers of a column stand for, but for those of addresses.
    pub(super) fn push<'a>(
        &mut self,
        at: UnixMillis,
        numbers: &RowNumbers,
        value: impl Fn(usize, u32) -> Cow<'a, [u8]>,
    ) {
        self.times.push(at);
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column.push(*number);
        }
        if self.times.len() >= BLOCK_CLICKS_MAX {
            self.finish_block(value);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        /// A code in each column, and the differences of times.
        const ROW_BYTES: usize = 2 * FIELDS + 4;
        /// An entry of a column's map, with the room that maps keep free.
        const VALUE_BYTES: usize = 24;
        let values: usize = self.columns.iter().map(|column| column.numbers.len()).sum();
        self.full_bytes + self.times.len() * ROW_BYTES + values * VALUE_BYTES
    }

    fn finish_block<'a>(&mut self, value: impl Fn(usize, u32) -> Cow<'a, [u8]>) {
        let (columns, addresses) = (&self.columns, &self.addresses);
        let block: [BlockColumn<'_>; FIELDS] = std::array::from_fn(|field| {
            let column = &columns[field];
            let value = |number: &u32| match field {
                ADDRESS => Cow::Owned(address_bytes(addresses.get(*number))),
                _ => value(field, *number),
            };
            BlockColumn {
                values: column.numbers.iter().map(value).collect(),
                codes: &column.codes,
            }
        });
        if let Some(rows) = BlockRows::encode(&self.times, &block) {
            self.full_bytes += rows.bytes();
            self.full.push(rows);
        }
        self.times = BlockTimes::default();
        self.columns.iter_mut().for_each(NumberedColumn::clear);
        self.addresses.clear();
    }

    /// Gives the blocks away.
    pub(super) fn take<'a>(
        &mut self,
        partition: StreamPartition,
        from: u64,
        value: impl Fn(usize, u32) -> Cow<'a, [u8]>,
    ) -> Vec<NewBlock> {
        self.finish_block(value);
        self.full_bytes = 0;
        let mut first = 0;
        let of_window = |rows: BlockRows| {
            let clicks = u64::from(rows.clicks());
            let block = rows.of_window(partition, from, first);
            first += clicks;
            block
        };
        std::mem::take(&mut self.full)
            .into_iter()
            .map(of_window)
            .collect()
    }
}

/// A column whose values have numbers.
#[derive(Default)]
struct NumberedColumn {
    codes_by_number: HashMap<u32, u16>,
    /// By code.
    numbers: Vec<u32>,
    codes: Vec<u16>,
}

impl NumberedColumn {
    fn push(&mut self, number: u32) {
        // In most columns the next click has what the last one had.
        if let Some(&last) = self.codes.last()
            && self.numbers[usize::from(last)] == number
        {
            self.codes.push(last);
            return;
        }
        let numbers = &mut self.numbers;
        let code = *self.codes_by_number.entry(number).or_insert_with(|| {
            numbers.push(number);
            u16::try_from(numbers.len() - 1).unwrap_or(u16::MAX)
        });
        self.codes.push(code);
    }

    /// Keeps the memory.
    fn clear(&mut self) {
        self.codes_by_number.clear();
        self.numbers.clear();
        self.codes.clear();
    }
}

/// Numbers for the addresses of a block; 0 is none.
#[derive(Default)]
struct Addresses {
    numbers: HashMap<IpAddr, u32>,
    addresses: Vec<IpAddr>,
}

impl Addresses {
    fn number(&mut self, address: Option<IpAddr>) -> u32 {
        let Some(address) = address else { return 0 };
        let addresses = &mut self.addresses;
        *self.numbers.entry(address).or_insert_with(|| {
            addresses.push(address);
            u32::try_from(addresses.len()).unwrap_or(u32::MAX)
        })
    }

    fn get(&self, number: u32) -> Option<IpAddr> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.addresses.get(place).copied()
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.addresses.clear();
    }
}

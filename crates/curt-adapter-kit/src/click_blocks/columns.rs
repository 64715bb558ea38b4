//! A column: the different values once, and for each row which of them it has, in as few bits as there are values.
//!
//! ```text
//! values · for each value: length · bytes · codes, packed, the lowest bits first
//! ```

use std::collections::HashMap;

use super::BLOCK_CLICKS_MAX;
use crate::varint::{Damaged, push, take, take_counted};

const _: () = assert!(BLOCK_CLICKS_MAX <= 1 << u16::BITS);

/// Values that are added row by row.
#[derive(Default)]
pub(super) struct ColumnWriter {
    numbers: HashMap<Vec<u8>, u16>,
    values: Vec<u8>,
    codes: Vec<u16>,
}

impl ColumnWriter {
    pub(super) fn push(&mut self, value: &[u8]) {
        let code = match self.numbers.get(value) {
            Some(code) => *code,
            None => {
                let code = u16::try_from(self.numbers.len()).unwrap_or(u16::MAX);
                self.numbers.insert(value.to_vec(), code);
                push(&mut self.values, value.len() as u64);
                self.values.extend_from_slice(value);
                code
            }
        };
        self.codes.push(code);
    }

    /// The different values, by their codes.
    pub(super) fn values(&self) -> Vec<&[u8]> {
        let mut values: Vec<&[u8]> = vec![&[]; self.numbers.len()];
        for (value, code) in &self.numbers {
            values[usize::from(*code)] = value;
        }
        values
    }

    /// Per row, the code of its value.
    pub(super) fn codes(&self) -> impl Iterator<Item = u16> {
        self.codes.iter().copied()
    }

    pub(super) fn write_to(&self, bytes: &mut Vec<u8>) {
        let mut column = Vec::new();
        push(&mut column, self.numbers.len() as u64);
        column.extend_from_slice(&self.values);
        pack(&mut column, &self.codes, width_of(self.numbers.len()));
        push(bytes, column.len() as u64);
        bytes.extend_from_slice(&column);
    }
}

/// Bits that tell so many values apart.
fn width_of(values: usize) -> u32 {
    usize::BITS - values.saturating_sub(1).leading_zeros()
}

fn pack(bytes: &mut Vec<u8>, codes: &[u16], width: u32) {
    let (mut pending, mut bits) = (0_u64, 0);
    for code in codes {
        pending |= u64::from(*code) << bits;
        bits += width;
        while bits >= 8 {
            bytes.push(pending.to_le_bytes()[0]);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        bytes.push(pending.to_le_bytes()[0]);
    }
}

/// A column that is read.
pub(super) struct Column<'a> {
    pub(super) values: Vec<&'a [u8]>,
    /// Per row, the place of its value.
    pub(super) codes: Vec<u16>,
}

impl<'a> Column<'a> {
    pub(super) fn read(mut bytes: &'a [u8], rows: usize) -> Result<Self, Damaged> {
        let count = usize::try_from(take(&mut bytes)?).map_err(|_| Damaged)?;
        // A value has a length at least.
        if count > rows || count > bytes.len() || (count == 0 && rows > 0) {
            return Err(Damaged);
        }
        let values: Vec<&[u8]> = (0..count)
            .map(|_| take_counted(&mut bytes))
            .collect::<Result<_, _>>()?;
        let codes = unpack(bytes, rows, width_of(count))?;
        match codes.iter().all(|code| usize::from(*code) < count) {
            true => Ok(Self { values, codes }),
            false => Err(Damaged),
        }
    }

    pub(super) fn value(&self, row: usize) -> &'a [u8] {
        self.values[usize::from(self.codes[row])]
    }
}

fn unpack(bytes: &[u8], rows: usize, width: u32) -> Result<Vec<u16>, Damaged> {
    if bytes.len() as u64 != (rows as u64 * u64::from(width)).div_ceil(8) {
        return Err(Damaged);
    }
    let mask = (1_u64 << width) - 1;
    let (mut pending, mut bits) = (0_u64, 0);
    let mut rest = bytes.iter();
    let mut codes = Vec::with_capacity(rows);
    for _ in 0..rows {
        while bits < width {
            pending |= u64::from(*rest.next().ok_or(Damaged)?) << bits;
            bits += 8;
        }
        codes.push(u16::try_from(pending & mask).map_err(|_| Damaged)?);
        pending >>= width;
        bits -= width;
    }
    // One block has one form.
    match pending {
        0 => Ok(codes),
        _ => Err(Damaged),
    }
}

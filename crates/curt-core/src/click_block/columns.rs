//! A column: the different values once, and for each row which of them it has, in as few bits as there are values.
//!
//! ```text
//! values · for each value: length · bytes · codes, packed, the lowest bits first
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use super::BLOCK_CLICKS_MAX;
use super::block::BlockColumn;
use crate::varint::{Damaged, push, read, read_counted};

const _: () = assert!(BLOCK_CLICKS_MAX <= 1 << u16::BITS);

/// Values that are added row by row, as bytes.
#[derive(Default)]
pub(super) struct ColumnWriter {
    numbers: HashMap<Box<[u8]>, u16>,
    codes: Vec<u16>,
}

impl ColumnWriter {
    pub(super) fn push(&mut self, value: &[u8]) {
        let code = match self.numbers.get(value) {
            Some(code) => *code,
            None => {
                let code = u16::try_from(self.numbers.len()).unwrap_or(u16::MAX);
                self.numbers.insert(value.into(), code);
                code
            }
        };
        self.codes.push(code);
    }

    pub(super) fn column(&self) -> BlockColumn<'_> {
        let mut values: Vec<Cow<'_, [u8]>> = vec![Cow::default(); self.numbers.len()];
        for (value, code) in &self.numbers {
            values[usize::from(*code)] = Cow::Borrowed(value);
        }
        BlockColumn {
            values,
            codes: &self.codes,
        }
    }
}

/// Appends the column, after its length.
pub(super) fn write(column: &BlockColumn<'_>, bytes: &mut Vec<u8>) {
    let mut written = Vec::new();
    push(&mut written, column.values.len() as u64);
    for value in &column.values {
        push(&mut written, value.len() as u64);
        written.extend_from_slice(value);
    }
    pack(&mut written, column.codes, width_of(column.values.len()));
    push(bytes, written.len() as u64);
    bytes.extend_from_slice(&written);
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
        let count = usize::try_from(read(&mut bytes)?).map_err(|_| Damaged)?;
        // A value has a length at least.
        if count > rows || count > bytes.len() || (count == 0 && rows > 0) {
            return Err(Damaged);
        }
        let values: Vec<&[u8]> = (0..count)
            .map(|_| read_counted(&mut bytes))
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

//! How many different visitors there were, in a few kilobytes and without a list of them.
//!
//! Up to [`FEW_MAX`] visitors a [`Sketch`] keeps a 40-bit mark of each and is exact. Beyond, it is a HyperLogLog of 4,096
//! registers read with O. Ertl's estimator ("New cardinality estimation algorithms for HyperLogLog sketches", 2017): one
//! formula for all sizes, without tables of corrections. Its standard error is 1.6 %.
//!
//! Merging is union: any order, any chunks and any repetition of the same marks end in the same bytes, so days,
//! processes and repeated deliveries add up.

use std::fmt;

/// Visitors up to which a sketch is exact: as many as take no more room than the registers.
pub const FEW_MAX: usize = REGISTERS_BYTES / MARK_BYTES;

const INDEX_BITS: u32 = 12;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a mark behind its register's number. A register holds the place of the first 1 among them.
const REST_BITS: u32 = 28;
const RANK_MAX: u8 = 29;
const _: () = assert!(RANK_MAX as u32 == REST_BITS + 1);
/// Bits that a stored register takes.
const RANK_BITS: usize = 5;
const REGISTERS_BYTES: usize = REGISTERS * RANK_BITS / 8;
const MARK_BYTES: usize = 5;

/// First byte of each stored form.
const FEW: u8 = 1;
const MANY: u8 = 2;

const _: () = assert!((RANK_MAX as usize) < (1 << RANK_BITS));
const _: () = assert!((INDEX_BITS + REST_BITS) as usize == MARK_BYTES * 8);

/// A set of visitors that can be counted and merged, but not listed.
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// Marks, sorted and distinct.
    Few(Vec<u64>),
    Many(Box<[u8; REGISTERS]>),
}

/// The bytes are not a stored sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not a sketch of visitors")]
pub struct SketchError;

impl Sketch {
    #[must_use]
    pub const fn new() -> Self {
        Self(Form::Few(Vec::new()))
    }

    /// Adds a visitor by a hash of what tells visitors apart. Only hashes that look random give good estimates.
    pub fn insert(&mut self, hash: u64) {
        self.insert_mark(hash >> (u64::BITS - INDEX_BITS - REST_BITS));
    }

    fn insert_mark(&mut self, mark: u64) {
        match &mut self.0 {
            Form::Few(few) => {
                let Err(place) = few.binary_search(&mark) else {
                    return;
                };
                few.insert(place, mark);
                if few.len() > FEW_MAX {
                    self.0 = Form::Many(registers_of(few));
                }
            }
            Form::Many(registers) => raise(registers, mark),
        }
    }

    /// Makes this the sketch that has seen the visitors of both.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (_, Form::Few(few)) => few.iter().for_each(|&mark| self.insert_mark(mark)),
            (Form::Many(ours), Form::Many(theirs)) => {
                for (our, &their) in ours.iter_mut().zip(theirs.iter()) {
                    *our = their.max(*our);
                }
            }
            (Form::Few(few), Form::Many(theirs)) => {
                let mut registers = theirs.clone();
                few.iter().for_each(|&mark| raise(&mut registers, mark));
                self.0 = Form::Many(registers);
            }
        }
    }

    /// How many different visitors were added: exact up to [`FEW_MAX`], about that many beyond.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        match &self.0 {
            Form::Few(few) => few.len() as u64,
            Form::Many(registers) => estimate(registers),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Few(few) if few.is_empty())
    }

    /// Bytes that the sketch holds beside itself.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Form::Few(few) => few.capacity() * size_of::<u64>(),
            Form::Many(_) => REGISTERS,
        }
    }

    /// A form that later versions can read and that is the same for equal sketches.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Form::Few(few) => {
                let mut bytes = Vec::with_capacity(1 + few.len() * MARK_BYTES);
                bytes.push(FEW);
                for mark in few {
                    bytes.extend_from_slice(&mark.to_be_bytes()[8 - MARK_BYTES..]);
                }
                bytes
            }
            Form::Many(registers) => {
                let mut bytes = Vec::with_capacity(1 + REGISTERS_BYTES);
                bytes.push(MANY);
                for eight in registers.chunks_exact(8) {
                    let packed = eight.iter().fold(0, |packed: u64, &rank| {
                        packed << RANK_BITS | u64::from(rank)
                    });
                    bytes.extend_from_slice(&packed.to_be_bytes()[8 - RANK_BITS..]);
                }
                bytes
            }
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SketchError> {
        match bytes.split_first() {
            Some((&FEW, few)) => few_from(few),
            Some((&MANY, packed)) => many_from(packed),
            _ => Err(SketchError),
        }
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sketch(about {})", self.estimate())
    }
}

fn few_from(bytes: &[u8]) -> Result<Sketch, SketchError> {
    let (chunks, rest) = bytes.as_chunks::<MARK_BYTES>();
    let few: Vec<u64> = chunks.iter().map(|chunk| big_endian(chunk)).collect();
    let rises = few.is_sorted_by(|one, next| one < next);
    if rest.is_empty() && few.len() <= FEW_MAX && rises {
        Ok(Sketch(Form::Few(few)))
    } else {
        Err(SketchError)
    }
}

fn many_from(bytes: &[u8]) -> Result<Sketch, SketchError> {
    if bytes.len() != REGISTERS_BYTES {
        return Err(SketchError);
    }
    let mut registers = Box::new([0; REGISTERS]);
    let (chunks, _) = bytes.as_chunks::<RANK_BITS>();
    for (eight, chunk) in registers.chunks_exact_mut(8).zip(chunks) {
        let mut packed = big_endian(chunk);
        for rank in eight.iter_mut().rev() {
            *rank = (packed & ((1 << RANK_BITS) - 1)) as u8;
            packed >>= RANK_BITS;
        }
    }
    if registers.iter().any(|&rank| rank > RANK_MAX) {
        return Err(SketchError);
    }
    Ok(Sketch(Form::Many(registers)))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn registers_of(few: &[u64]) -> Box<[u8; REGISTERS]> {
    let mut registers = Box::new([0; REGISTERS]);
    few.iter().for_each(|&mark| raise(&mut registers, mark));
    registers
}

fn raise(registers: &mut [u8; REGISTERS], mark: u64) {
    let register = &mut registers[(mark >> REST_BITS) as usize];
    let rest = mark << (u64::BITS - REST_BITS);
    let rank = rest.leading_zeros().min(REST_BITS) + 1;
    let rank = u8::try_from(rank).unwrap_or(RANK_MAX);
    *register = rank.max(*register);
}

fn estimate(registers: &[u8; REGISTERS]) -> u64 {
    let mut with_rank = [0.0_f64; RANK_MAX as usize + 1];
    for &rank in registers {
        with_rank[usize::from(rank)] += 1.0;
    }
    let all = REGISTERS as f64;
    let (untouched, full) = (with_rank[0] / all, with_rank[RANK_MAX as usize] / all);
    let mut sum = all * tau(1.0 - full);
    for count in with_rank[1..RANK_MAX as usize].iter().rev() {
        sum = 0.5 * (sum + count);
    }
    sum += all * sigma(untouched);
    let visitors = all * all / (2.0 * std::f64::consts::LN_2 * sum);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and an estimate is never negative"
    )]
    let visitors = visitors.round() as u64;
    visitors
}

/// `x + Σ x^(2^k) · 2^(k-1)`: what the registers that nobody touched say.
fn sigma(mut x: f64) -> f64 {
    let (mut weight, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight += weight;
        // An `x` of 1 ends here too: its sum grows to infinity, which equals itself.
        if sum == before {
            return sum;
        }
    }
}

/// `(1 - x - Σ (1 - x^(2^-k))² · 2^-k) / 3`: what the registers that can rise no further say.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x).powi(2) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    fn of(seed: u64, visitors: impl IntoIterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::new();
        for visitor in visitors {
            sketch.insert(xxh3_64_with_seed(&visitor.to_le_bytes(), seed));
        }
        sketch
    }

    #[test]
    fn few_visitors_are_counted_exactly() {
        for count in [0, 1, 2, 10, 100, FEW_MAX as u64] {
            let twice = of(1, (0..count).chain(0..count));
            assert_eq!(twice.estimate(), count);
            assert_eq!(twice.is_empty(), count == 0);
        }
    }

    #[test]
    fn many_visitors_are_counted_to_three_percent() {
        const SEEDS: u64 = 20;
        for count in [600, 1_000, 5_000, 10_000, 20_000, 100_000] {
            let errors: Vec<f64> = (0..SEEDS)
                .map(|seed| of(seed, 0..count).estimate() as f64 / count as f64 - 1.0)
                .collect();
            let mean: f64 = errors.iter().sum::<f64>() / SEEDS as f64;
            let squares: f64 = errors.iter().map(|error| error * error).sum();
            let spread = (squares / SEEDS as f64).sqrt();
            assert!(mean.abs() < 0.01, "{count}: off by {mean} on average");
            assert!(spread < 0.02, "{count}: off by {spread}");
        }
        let off = of(0, 0..1_000_000).estimate().abs_diff(1_000_000);
        assert!(off < 30_000, "{off}");
    }

    #[test]
    fn a_sketch_stays_small() {
        let (few, many) = (of(3, 0..FEW_MAX as u64), of(3, 0..100_000));
        assert_eq!(many.to_bytes().len(), 1 + REGISTERS_BYTES);
        assert!(many.held_bytes() <= 4_096 && few.held_bytes() <= 8_192);
        assert!(few.to_bytes().len() <= many.to_bytes().len());
    }

    /// Stored sketches outlive versions.
    #[test]
    fn the_stored_form_is_fixed() {
        let mut sketch = Sketch::new();
        sketch.insert(u64::MAX);
        sketch.insert(0x0123_4567_89ab_cdef);
        let few = [
            1, 0x01, 0x23, 0x45, 0x67, 0x89, 0xff, 0xff, 0xff, 0xff, 0xff,
        ];
        assert_eq!(sketch.to_bytes(), few);
        // Register 0 full, register 1 at rank 2, and one more each up to number 512.
        let mut sketch = Sketch::new();
        sketch.insert(0);
        sketch.insert(0x0014_0000_0000_0000);
        for register in 2..=FEW_MAX as u64 {
            sketch.insert(register << 52 | 1 << 51);
        }
        // Five bits each: 29, 2, and then 1 six times, in the first five bytes.
        let bytes = sketch.to_bytes();
        assert_eq!(bytes[..6], [2, 0xe8, 0x82, 0x10, 0x84, 0x21]);
        assert_eq!(bytes[1 + 320..1 + 326], [0x08, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let few = of(4, 0..3).to_bytes();
        let many = of(4, 0..9_999).to_bytes();
        let mut swapped = few.clone();
        swapped[1..11].rotate_left(MARK_BYTES);
        let mut too_high = many.clone();
        too_high[1] = 0xff;
        let rising = (0..=FEW_MAX as u64).flat_map(|mark| mark.to_be_bytes()[3..].to_vec());
        let too_many: Vec<u8> = [FEW].into_iter().chain(rising).collect();
        for bytes in [
            &[][..],
            &[0],
            &[MANY],
            &few[..few.len() - 1],
            &many[..many.len() - 1],
            &swapped,
            &too_high,
            &too_many,
        ] {
            assert!(Sketch::from_bytes(bytes) == Err(SketchError), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_merge_is_a_union_in_any_order(
            left in vec(0..2_000_u64, 0..900),
            right in vec(0..2_000_u64, 0..900),
        ) {
            let (ours, theirs) = (of(7, left.iter().copied()), of(7, right.iter().copied()));
            let both = of(7, right.iter().chain(&left).copied());
            let (mut forward, mut backward) = (ours.clone(), theirs.clone());
            forward.merge(&theirs);
            backward.merge(&ours);
            prop_assert!(forward == both && backward == both);
            prop_assert!(Sketch::from_bytes(&both.to_bytes()) == Ok(both));
        }

        #[test]
        fn any_bytes_are_read_back_or_refused(bytes in vec(any::<u8>(), 0..40)) {
            if let Ok(sketch) = Sketch::from_bytes(&bytes) {
                prop_assert_eq!(sketch.to_bytes(), bytes);
            }
        }
    }
}

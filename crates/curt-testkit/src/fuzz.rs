//! Seeded mutation of valid samples, for parsers of bytes that come from outside.
//!
//! It runs on the stable toolchain within the ordinary tests: about a second each in `make test`, always with the same
//! seed, and a minute in `make soak`, with a new one. `CURT_FUZZ_SEED` repeats a run. There is no coverage feedback; what
//! a parser accepts joins the samples instead, so that changes add up.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::length::{is_full, length, time_max};

/// Longest input that is tried.
const INPUT_BYTES_MAX: usize = 64 * 1_024;
/// Accepted inputs that are kept to be changed further.
const ACCEPTED_MAX: usize = 256;
/// Changes per input.
const CHANGES_MAX: u32 = 6;
/// No parser needs more address space for inputs of that length; it reveals allocations by a length that was claimed.
const GROWTH_KIB_MAX: u64 = 2 << 20;
/// Bytes at the bounds of numbers, and signs that texts are cut at.
const BYTES: &[u8] = b"\0\x01\x7f\x80\xfe\xff \t\r\n\"%&+,-./:;=?@[\\]_{}09azAZ";

/// What is tried on one parser.
pub struct Fuzz {
    name: &'static str,
    seed: u64,
    samples: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Fuzz {
    /// Starts from `samples`, all of which the parser accepts.
    ///
    /// # Panics
    /// If `CURT_FUZZ_SEED` is no number.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(name: &'static str, samples: impl IntoIterator<Item = S>) -> Self {
        let seed = match std::env::var("CURT_FUZZ_SEED") {
            Ok(seed) => seed
                .parse()
                .unwrap_or_else(|_| panic!("CURT_FUZZ_SEED is no number: {seed:?}")),
            Err(_) if is_full() => rand::rng().random(),
            Err(_) => 1,
        };
        Self {
            name,
            seed,
            samples: samples
                .into_iter()
                .map(|sample| sample.as_ref().to_vec())
                .collect(),
            words: Vec::new(),
        }
    }

    /// Adds texts that mean something to the parser.
    #[must_use]
    pub fn with_words<W: AsRef<[u8]>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words
            .extend(words.into_iter().map(|word| word.as_ref().to_vec()));
        self
    }

    /// Shows inputs to `check` until the time is over. It returns whether the parser accepted the input, and panics when
    /// the parser broke a promise.
    ///
    /// # Panics
    /// If `check` does, if it refuses a sample, takes too long for an input or reserves too much memory.
    pub fn run(mut self, check: impl Fn(&[u8]) -> bool) {
        println!("fuzz {}: CURT_FUZZ_SEED={}", self.name, self.seed);
        for sample in &self.samples {
            assert!(
                self.try_input(sample, &check),
                "refused sample {:?}",
                sample.escape_ascii()
            );
        }
        let mut rng = StdRng::seed_from_u64(self.seed);
        let first_accepted = self.samples.len();
        let reserved_before = reserved_kib();
        let end = Instant::now() + length(Duration::from_secs(1), Duration::from_secs(60));
        let (mut inputs, mut accepted) = (0_u64, 0_u64);
        while Instant::now() < end {
            let input = self.input(&mut rng);
            inputs += 1;
            if self.try_input(&input, &check) {
                accepted += 1;
                if self.samples.len() < first_accepted + ACCEPTED_MAX {
                    self.samples.push(input);
                } else {
                    let place = rng.random_range(first_accepted..self.samples.len());
                    self.samples[place] = input;
                }
            }
        }
        let grown = reserved_kib().saturating_sub(reserved_before);
        println!(
            "fuzz {}: {inputs} inputs, {accepted} accepted, {grown} KiB",
            self.name
        );
        assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB were reserved");
    }

    /// Like [`Fuzz::run`], for a parser of texts.
    pub fn run_texts(self, check: impl Fn(&str) -> bool) {
        self.run(|input| check(&String::from_utf8_lossy(input)));
    }

    fn try_input(&self, input: &[u8], check: &impl Fn(&[u8]) -> bool) -> bool {
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(input)));
        let taken = begun.elapsed();
        let shown = input.escape_ascii();
        match outcome {
            Ok(is_accepted) => {
                assert!(
                    taken < time_max(Duration::from_secs(1)),
                    "{taken:?} for {shown}"
                );
                is_accepted
            }
            Err(panic) => {
                eprintln!("fuzz {}: seed {}, input b\"{shown}\"", self.name, self.seed);
                resume_unwind(panic)
            }
        }
    }

    fn input(&self, rng: &mut StdRng) -> Vec<u8> {
        let mut input = self.sample(rng).to_vec();
        for _ in 0..rng.random_range(1..=CHANGES_MAX) {
            self.change(&mut input, rng);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn sample(&self, rng: &mut StdRng) -> &[u8] {
        &self.samples[rng.random_range(0..self.samples.len())]
    }

    fn change(&self, input: &mut Vec<u8>, rng: &mut StdRng) {
        let at = rng.random_range(0..=input.len());
        let length = rng.random_range(0..=(input.len() - at).min(32));
        match rng.random_range(0..9) {
            0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
            1 if at < input.len() => input[at] = BYTES[rng.random_range(0..BYTES.len())],
            2 => input.insert(at, BYTES[rng.random_range(0..BYTES.len())]),
            3 => input.insert(at, rng.random()),
            4 => drop(input.drain(at..at + length)),
            5 => input.truncate(at),
            6 => {
                let piece = input[at..at + length].to_vec();
                let to = rng.random_range(0..=input.len());
                for _ in 0..rng.random_range(1..=8) {
                    input.splice(to..to, piece.iter().copied());
                }
            }
            7 => {
                let other = self.sample(rng);
                let from = rng.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ if self.words.is_empty() => input.extend_from_slice(&[rng.random()]),
            _ => {
                let word = &self.words[rng.random_range(0..self.words.len())];
                let replaced = if rng.random() { length } else { 0 };
                input.splice(at..at + replaced, word.iter().copied());
            }
        }
    }
}

/// Returns the most address space that this process ever had, where the system tells.
fn reserved_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_inputs_and_they_find_a_planted_fault() {
        let fuzz = Fuzz::new("planted", ["key=value;", "a=b;c=d;"]).with_words(["==", "key"]);
        let inputs = |seed| -> Vec<Vec<u8>> {
            let mut rng = StdRng::seed_from_u64(seed);
            (0..20_000).map(|_| fuzz.input(&mut rng)).collect()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        let has = |fault: fn(&[u8]) -> bool| inputs(1).iter().any(|input| fault(input));
        assert!(has(|input| input.is_empty()), "truncation");
        assert!(
            has(|input| input.windows(2).any(|two| two == b"==")),
            "words"
        );
        assert!(
            has(|input| input.starts_with(b"a=") && input.ends_with(b"value;")),
            "splices"
        );
        assert!(has(|input| std::str::from_utf8(input).is_err()), "bytes");
    }

    #[test]
    #[should_panic(expected = "planted")]
    fn a_panic_of_the_parser_is_the_test_s() {
        Fuzz::new("panics", ["ab"]).run(|input| {
            assert!(!input.contains(&b'/'), "planted");
            true
        });
    }
}

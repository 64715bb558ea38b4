//! Finding the end of a chunked body without decoding it.

/// Follows the chunks of one body (RFC 9112, section 7.1), as strictly as hyper, which decodes them.
#[derive(Debug)]
pub(super) struct ChunkScanner {
    expects: Expects,
    /// Of the chunk under way: its size while that is read, then what is left of it.
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// The first digit of a size.
    Size,
    /// More digits, or what follows them.
    SizeRest,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    /// The first byte of a trailer's line, or the end.
    LineStart,
    Trailer,
    TrailerLineFeed,
    EndLineFeed,
}

/// What some bytes of a chunked body were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// All of them belong to the body, and more of it is to come.
    All,
    /// The body ends with so many of them.
    End(usize),
    /// After so many of them they are no chunks.
    Broken(usize),
}

impl ChunkScanner {
    pub(super) fn new() -> Self {
        Self {
            expects: Expects::Size,
            size: 0,
        }
    }

    pub(super) fn scan(&mut self, bytes: &[u8]) -> Scanned {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.expects == Expects::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let skipped = left.min(bytes.len() - at);
                at += skipped;
                self.size -= skipped as u64;
                if self.size == 0 {
                    self.expects = Expects::DataReturn;
                }
                continue;
            }
            match self.follow(byte) {
                Some(Expects::EndLineFeed) if self.expects == Expects::EndLineFeed => {
                    return Scanned::End(at + 1);
                }
                Some(next) => self.expects = next,
                None => return Scanned::Broken(at),
            }
            at += 1;
        }
        Scanned::All
    }

    /// Returns what comes after `byte`; the end is expected forever. `None`: the byte has no place here.
    fn follow(&mut self, byte: u8) -> Option<Expects> {
        use Expects as E;
        Some(match (self.expects, byte) {
            (E::Size | E::SizeRest, _) if byte.is_ascii_hexdigit() => {
                let digit = u64::from(char::from(byte).to_digit(16)?);
                self.size = self.size.checked_mul(16)?.checked_add(digit)?;
                E::SizeRest
            }
            (E::SizeRest, b' ' | b'\t') => E::SizeRest,
            (E::SizeRest, b';') => E::Extension,
            (E::SizeRest | E::Extension, b'\r') => E::SizeLineFeed,
            (E::Extension, b'\n') => return None,
            (E::Extension, _) => E::Extension,
            (E::SizeLineFeed, b'\n') if self.size == 0 => E::LineStart,
            (E::SizeLineFeed, b'\n') => E::Data,
            (E::DataReturn, b'\r') => E::DataLineFeed,
            (E::DataLineFeed, b'\n') => E::Size,
            (E::LineStart, b'\r') | (E::EndLineFeed, b'\n') => E::EndLineFeed,
            (E::LineStart | E::Trailer, b'\n') => return None,
            (E::Trailer, b'\r') => E::TrailerLineFeed,
            (E::LineStart | E::Trailer, _) => E::Trailer,
            (E::TrailerLineFeed, b'\n') => E::LineStart,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        "5\r\nhello\r\n1a;ext=\"x\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: x\r\n\r\n";

    #[test]
    fn the_end_is_found_however_the_bytes_arrive() {
        let text = format!("{BODY}GET / HTTP/1.1");
        for cut in 0..BODY.len() {
            let (first, rest) = text.as_bytes().split_at(cut);
            let mut scanner = ChunkScanner::new();
            assert_eq!(scanner.scan(first), Scanned::All, "{cut}");
            assert_eq!(scanner.scan(rest), Scanned::End(BODY.len() - cut), "{cut}");
        }
        assert_eq!(ChunkScanner::new().scan(b"0\r\n\r\n"), Scanned::End(5));
    }

    #[test]
    fn what_is_no_chunk_breaks_off() {
        for (text, good) in [
            ("\r\n", 0),
            ("x\r\n", 0),
            ("-1\r\n", 0),
            ("5\n", 1),
            ("1\r\nab", 4),
            ("1\r\na\rb", 5),
            ("1;a\nb", 3),
            ("11111111111111111\r\n", 16),
            ("0\r\n\n", 3),
            ("0\r\na\nb", 4),
            ("0\r\n\rx", 4),
        ] {
            let scanned = ChunkScanner::new().scan(text.as_bytes());
            assert_eq!(scanned, Scanned::Broken(good), "{text:?}");
        }
    }

    #[test]
    fn mutated_chunks_end_at_the_same_byte_however_they_arrive() {
        let samples = [BODY, "0\r\n\r\n", "1;a\r\nb\r\n0\r\n\r\nGET / HTTP/1.1"];
        let words = [
            "\r\n",
            "0\r\n\r\n",
            "ffffffffffffffff",
            "10000000000000000",
            ";",
            "\t",
        ];
        let fuzz = curt_testkit::fuzz::Fuzz::new("chunks", samples).with_words(words);
        fuzz.run(|input| {
            let whole = ChunkScanner::new().scan(input);
            for cut in [1, input.len() / 2, input.len().saturating_sub(1)] {
                let (first, rest) = input.split_at(cut.min(input.len()));
                let mut scanner = ChunkScanner::new();
                let in_two = match scanner.scan(first) {
                    Scanned::All => match scanner.scan(rest) {
                        Scanned::All => Scanned::All,
                        Scanned::End(at) => Scanned::End(first.len() + at),
                        Scanned::Broken(at) => Scanned::Broken(first.len() + at),
                    },
                    ended => ended,
                };
                assert_eq!(in_two, whole, "cut at {cut}");
            }
            match whole {
                Scanned::All => false,
                Scanned::Broken(at) => {
                    assert!(at < input.len());
                    false
                }
                Scanned::End(bytes) => {
                    assert!(
                        input[..bytes].ends_with(b"\r\n\r\n")
                            || input[..bytes].ends_with(b"\n\r\n")
                    );
                    assert_eq!(ChunkScanner::new().scan(&input[..bytes]), whole);
                    true
                }
            }
        });
    }
}

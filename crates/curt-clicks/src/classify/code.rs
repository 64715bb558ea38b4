use super::UNKNOWN;

/// The most letters that a code has.
const LETTERS_MAX: usize = 3;

/// A short code of ASCII letters, of a country or a language, or nothing. Copied instead of allocated: every click has
/// two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    letters: [u8; LETTERS_MAX],
    length: u8,
}

impl Code {
    pub const UNKNOWN: Self = Self {
        letters: [0; LETTERS_MAX],
        length: 0,
    };

    /// The unknown code when the text is anything but two or three letters.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let right = (2..=LETTERS_MAX).contains(&text.len());
        if !right || !text.iter().all(u8::is_ascii_alphabetic) {
            return Self::UNKNOWN;
        }
        let mut letters = [0; LETTERS_MAX];
        letters[..text.len()].copy_from_slice(text);
        Self {
            letters,
            length: u8::try_from(text.len()).unwrap_or_default(),
        }
    }

    /// A number of 24 bits that stands for the code.
    #[must_use]
    pub fn number(self) -> u32 {
        let [first, second, third] = self.letters;
        u32::from_be_bytes([0, first, second, third])
    }

    /// The code that has this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        let [_, letters @ ..] = number.to_be_bytes();
        let length = letters.iter().position(|&letter| letter == 0);
        Self::parse(&letters[..length.unwrap_or(LETTERS_MAX)])
    }

    #[must_use]
    pub fn to_lowercase(mut self) -> Self {
        self.letters.make_ascii_lowercase();
        self
    }

    #[must_use]
    pub fn to_uppercase(mut self) -> Self {
        self.letters.make_ascii_uppercase();
        self
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match std::str::from_utf8(&self.letters[..usize::from(self.length)]) {
            Ok(code) if !code.is_empty() => code,
            _ => UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_one_code() {
        for code in ["", "DE", "de", "gsw", "zz", "AAA"] {
            let code = Code::parse(code.as_bytes());
            assert!(code.number() < 1 << 24);
            assert_eq!(Code::from_number(code.number()), code);
        }
    }
}

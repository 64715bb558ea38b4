//! Rust source cut into code, strings and comments: enough to tell a name from a word in a text, and no more.

/// A name, a number or a single sign of code, and the line that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// One source in three layers. Each layer has the length and the line ends of the source; what belongs to another layer
/// is blank in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    pub(crate) code: String,
    pub(crate) strings: String,
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Code,
    Strings,
    Comments,
}

impl Layers {
    pub(crate) fn of(source: &str) -> Self {
        let mut layers = Self::default();
        let mut rest = source;
        while !rest.is_empty() {
            let (layer, length) = next_piece(rest);
            let (piece, after) = rest.split_at(length);
            layers.push(layer, piece);
            rest = after;
        }
        layers
    }

    fn push(&mut self, layer: Layer, piece: &str) {
        let blank: String = piece
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
            .collect();
        for (target, of) in [
            (&mut self.code, Layer::Code),
            (&mut self.strings, Layer::Strings),
            (&mut self.comments, Layer::Comments),
        ] {
            target.push_str(if of == layer { piece } else { &blank });
        }
    }

    /// Returns the names, numbers and signs of the code in order.
    pub(crate) fn tokens(&self) -> Vec<Token<'_>> {
        let mut tokens = Vec::new();
        let mut line = 1;
        let mut rest = self.code.as_str();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|sign| !is_word(sign)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            if first == '\n' {
                line += 1;
            } else if !first.is_whitespace() {
                tokens.push(Token { text, line });
            }
            rest = after;
        }
        tokens
    }
}

pub(crate) fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// Returns the layer and length of what `rest` begins with.
fn next_piece(rest: &str) -> (Layer, usize) {
    if rest.starts_with("//") {
        return (Layer::Comments, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Layer::Comments, block_comment(rest));
    }
    // Before words: `b"` is the beginning of a string, and a whole word is taken at once, so that `ab"` is none.
    if let Some(length) = string(rest) {
        return (Layer::Strings, length);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let is_word_first = rest.starts_with(is_word);
    let is_end = |sign| is_word(sign) != is_word_first || matches!(sign, '"' | '\'' | '/');
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let length = rest[first..]
        .find(is_end)
        .map_or(rest.len(), |at| first + at);
    (Layer::Code, length)
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of the string that `rest` begins with, with its prefix and quotes.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.find(|sign| !matches!(sign, 'b' | 'c' | 'r'))?;
    let (prefix, body) = rest.split_at(prefix);
    if !matches!(prefix, "" | "b" | "c" | "r" | "br" | "cr") {
        return None;
    }
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let inner = body[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    let inner = body.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, sign) in inner.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(prefix.len() + at + 2),
            _ => {}
        }
    }
    Some(rest.len())
}

/// Tells a character such as `'"'` from a lifetime such as `'a`.
fn character(rest: &str) -> (Layer, usize) {
    let mut signs = rest.char_indices().skip(1);
    match (signs.next(), signs.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            let from = at + 1;
            let length = rest[from..]
                .find('\'')
                .map_or(rest.len(), |at| from + at + 1);
            (Layer::Strings, length)
        }
        (Some(_), Some((at, '\''))) => (Layer::Strings, at + 1),
        _ => (Layer::Code, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_strings_and_comments_are_not_code() {
        let source = "let a = \"b // \\\" c\"; // d \"e\"\nlet f = r#\"g\"h\"#; /* i /* j */ k */ 'l' 'm: '\\'' n b\"o\"";
        let layers = Layers::of(source);
        let names: Vec<&str> = layers
            .tokens()
            .into_iter()
            .map(|token| token.text)
            .filter(|text| text.chars().all(is_word))
            .collect();
        assert_eq!(names, ["let", "a", "let", "f", "m", "n"]);
        assert!(layers.strings.contains("g\"h") && !layers.strings.contains('d'));
        assert!(layers.comments.contains("i /* j */ k") && !layers.comments.contains('g'));
        assert_eq!(layers.code.len(), source.len());
    }

    #[test]
    fn tokens_know_their_line() {
        let layers = Layers::of("/* a\nb */ c\n\"d\ne\" f");
        let lines: Vec<(&str, usize)> = layers
            .tokens()
            .iter()
            .map(|token| (token.text, token.line))
            .collect();
        assert_eq!(lines, [("c", 2), ("f", 4)]);
    }
}

//! Texts that pages cut: strangers choose how long they are.

/// The beginning of a text that would take more than `bytes_max` in a page, where what has to be escaped takes more.
pub(super) fn shortened(text: &str, bytes_max: usize) -> String {
    let mut taken = 0;
    for (at, letter) in text.char_indices() {
        taken += match letter {
            '<' | '>' | '&' | '"' | '\'' => "&#60;".len(),
            other => other.len_utf8(),
        };
        if taken > bytes_max {
            return format!("{}…", &text[..at]);
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_takes_more_room() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 3), "abc…");
        assert_eq!(shortened("ää", 3), "ä…");
        assert_eq!(shortened("<<<", 10), "<<…");
        assert_eq!(shortened("", 0), "");
    }
}

//! Positions in a list as text that clients carry to the next page.

/// The position `after` in the list `list`. The checksum tells a cut or made-up cursor from one of ours.
pub fn seal(list: &str, after: &str) -> Box<str> {
    let sealed = format!("{list}:{after}");
    let sum = crc32fast::hash(sealed.as_bytes());
    format!("{sealed}:{sum:08x}").into_boxed_str()
}

/// Returns the position, if this list gave the cursor as it is, to the letter.
pub fn unseal<'a>(list: &str, cursor: &'a str) -> Option<&'a str> {
    let (sealed, _sum) = cursor.rsplit_once(':')?;
    let after = sealed.strip_prefix(list)?.strip_prefix(':')?;
    (*seal(list, after) == *cursor).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutated_cursors_are_exactly_ours_or_refused() {
        let samples = [
            seal("links", "2026-11-17:abc"),
            seal("links", ""),
            seal("links", "\u{e4}:7"),
        ];
        let samples: Vec<&str> = samples.iter().map(|cursor| &**cursor).collect();
        curt_testkit::fuzz::Fuzz::new("cursors", samples)
            .with_words(["links:", ":", "+", "0"])
            .run_texts(|text| {
                let after = unseal("links", text);
                assert!(
                    after.is_none_or(|after| *seal("links", after) == *text),
                    "{text:?}"
                );
                assert_eq!(unseal("clicks", text), None, "a cursor of another list");
                after.is_some()
            });
    }
}

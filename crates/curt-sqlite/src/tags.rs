//! Several tags in one column.

/// One tag per line, with `\` and line feeds inside a tag escaped. No tags: nothing is stored.
pub(super) fn join_tags(tags: &[Box<str>]) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    let escaped: Vec<String> = tags
        .iter()
        .map(|tag| tag.replace('\\', "\\\\").replace('\n', "\\n"))
        .collect();
    Some(escaped.join("\n"))
}

pub(super) fn split_tags(text: Option<&str>) -> Vec<Box<str>> {
    let Some(text) = text else {
        return Vec::new();
    };
    text.split('\n')
        .map(|line| {
            let mut tag = String::with_capacity(line.len());
            let mut symbols = line.chars();
            while let Some(symbol) = symbols.next() {
                match symbol {
                    '\\' => tag.push(if symbols.next() == Some('n') {
                        '\n'
                    } else {
                        '\\'
                    }),
                    other => tag.push(other),
                }
            }
            tag.into_boxed_str()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_as_they_were() {
        for tags in [
            vec![],
            vec![""],
            vec!["a"],
            vec!["a", "b c", "ä"],
            vec!["\\n", "\n", "\\", "x\\\ny"],
        ] {
            let tags: Vec<Box<str>> = tags.into_iter().map(Into::into).collect();
            assert_eq!(split_tags(join_tags(&tags).as_deref()), tags);
        }
    }
}

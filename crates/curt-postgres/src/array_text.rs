/// An array in PostgreSQL's text form: arrays cannot be elements of arrays of different lengths, texts can.
pub(super) fn array_text<'a>(items: impl Iterator<Item = Option<&'a str>>) -> String {
    let items: Vec<String> = items
        .map(|item| match item {
            Some(item) => format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\"")),
            None => "NULL".to_owned(),
        })
        .collect();
    format!("{{{}}}", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_quoted_whatever_they_hold() {
        let items = [Some("a"), None, Some("NULL"), Some("b\\\"c{},")];
        assert_eq!(
            array_text(items.into_iter()),
            r#"{"a",NULL,"NULL","b\\\"c{},"}"#
        );
        assert_eq!(array_text(std::iter::empty()), "{}");
    }
}

//! The little that is read from the service's XML: texts between known tags, none of which has attributes.

/// The text between the first `<tag>` and its end.
pub(super) fn text<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    texts(xml, tag).next()
}

/// The texts of all elements of this name, in order.
pub(super) fn texts<'a>(xml: &'a str, tag: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (text, after) = after.split_once(&close)?;
        rest = after;
        Some(text)
    })
}

/// A text as it was before it went into XML.
pub(super) fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_order() {
        let xml = "<L><Key>a</Key><C><Key>b</Key></C><KeyCount>2</KeyCount><E/></L>";
        assert_eq!(texts(xml, "Key").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(text(xml, "KeyCount"), Some("2"));
        assert_eq!(text(xml, "E"), None);
        assert_eq!(text("<Key>cut", "Key"), None);
    }

    #[test]
    fn escapes_are_undone_once() {
        assert_eq!(unescape("a&amp;lt;b &quot;c&#34;"), "a&lt;b \"c\"");
    }
}

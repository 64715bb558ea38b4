//! What the service answers.

use roxmltree::{Document, Node};
use ureq::http::HeaderMap;

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads the answer as XML. `None` where it is none.
    pub(super) fn read_xml<T>(&self, read: impl FnOnce(Node<'_, '_>) -> T) -> Option<T> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let document = Document::parse(text.trim_start()).ok()?;
        Some(read(document.root_element()))
    }

    /// Code and message of a refusal; both are empty where the answer is something else.
    pub(super) fn refusal(&self) -> (String, String) {
        let read = |root: Node<'_, '_>| match root.has_tag_name("Error") {
            true => (child(root, "Code"), child(root, "Message")),
            false => Default::default(),
        };
        self.read_xml(read).unwrap_or_default()
    }

    /// Whether a change was made. Putting parts together begins with an answer of 200, which may turn out to be a refusal
    /// at its end, or may be cut off before.
    pub(super) fn is_done(&self) -> bool {
        let is_result = |root: Node<'_, '_>| !root.has_tag_name("Error");
        self.status == 200 && (self.body.is_empty() || self.read_xml(is_result) == Some(true))
    }
}

/// The elements of this name, wherever they are, in order.
pub(super) fn elements<'a>(
    root: Node<'a, 'a>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 'a>> {
    root.descendants()
        .filter(move |node| node.has_tag_name(name))
}

/// The text of the child of this name; empty where there is none.
pub(super) fn child(parent: Node<'_, '_>, name: &str) -> String {
    let child = parent.children().find(|node| node.has_tag_name(name));
    let text = child.and_then(|child| child.text());
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    #[test]
    fn children_are_read_in_any_namespace_and_unescaped() {
        for namespace in ["", " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""] {
            let body = format!(
                "<?xml version=\"1.0\"?><L{namespace}><Key>a</Key><C><Key>b&amp;lt;&#34;</Key></C><E/></L>"
            );
            let keys = reply(200, &body).read_xml(|root| {
                let parents = root.descendants().map(|node| child(node, "Key"));
                parents.filter(|key| !key.is_empty()).collect::<Vec<_>>()
            });
            assert_eq!(keys.unwrap(), ["a", "b&lt;\""]);
        }
    }

    #[test]
    fn an_answer_of_200_may_be_a_refusal_or_cut_off() {
        assert!(reply(200, "").is_done());
        assert!(reply(200, "<R xmlns=\"a\"><Key>a</Key></R>").is_done());
        assert!(
            !reply(
                200,
                "<?xml version=\"1.0\"?>\n  <Error><Code>a</Code></Error>"
            )
            .is_done()
        );
        assert!(!reply(200, "<R><Key>a</Key>").is_done());
        assert!(!reply(412, "").is_done());
    }

    #[test]
    fn a_page_that_is_no_refusal_has_no_code() {
        let refusal = reply(403, "<Error><Code>a</Code><Message>b</Message></Error>").refusal();
        assert_eq!(refusal, ("a".into(), "b".into()));
        for other in ["", "<html>", "<R><Code>a</Code></R>", "\u{0}"] {
            assert_eq!(reply(502, other).refusal(), Default::default());
        }
    }

    #[test]
    fn mutated_answers_are_read_as_something() {
        let samples = [
            "<Error><Code>NoSuchKey</Code><Message>gone &amp; lost</Message></Error>",
            "<L xmlns=\"x\"><Key>a</Key><Contents><Key>b</Key></Contents></L>",
            "<CompleteMultipartUploadResult><ETag>\"1\"</ETag></CompleteMultipartUploadResult>",
        ];
        curt_testkit::fuzz::Fuzz::new("S3 answers", samples)
            .with_words([
                "<Error>",
                "</",
                "&lt;",
                "<!DOCTYPE a [<!ENTITY b \"bb\">]>",
                "&b;",
            ])
            .run_texts(|text| {
                let reply = reply(200, text);
                let (code, message) = reply.refusal();
                assert!(code.len() + message.len() <= 4 * text.len(), "it grows");
                let is_xml = reply.read_xml(|_| ()).is_some();
                assert!(!reply.is_done() || is_xml || text.is_empty());
                is_xml
            });
    }
}

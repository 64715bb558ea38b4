//! Reading an HTTP/1.1 answer: as much of the protocol as the servers under test speak.

use super::report::Failure;

const HEADERS_MAX: usize = 32;

/// A whole answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) location: Option<&'a [u8]>,
    /// The server will close the connection.
    pub(super) closes: bool,
    pub(super) body: &'a [u8],
}

/// How far the bytes go.
#[derive(Debug)]
pub(super) enum Parsed<'a> {
    /// An answer, and how many bytes it has.
    Whole(Answer<'a>, usize),
    /// At least this many bytes are needed in all.
    Partial(usize),
}

/// Parses exactly one answer. Bytes after its end are an error: nothing was asked that they could answer.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed<'_>, Failure> {
    match parse_first(bytes)? {
        Parsed::Whole(_, length) if length < bytes.len() => Err(Failure::Malformed),
        parsed => Ok(parsed),
    }
}

/// Parses the first of the answers to pipelined requests.
pub(super) fn parse_first(bytes: &[u8]) -> Result<Parsed<'_>, Failure> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) =
        head.parse(bytes).map_err(|_| Failure::Malformed)?
    else {
        return Ok(Parsed::Partial(bytes.len() + 1));
    };
    let status = head.code.ok_or(Failure::Malformed)?;
    let mut length = matches!(status, 204 | 304).then_some(0);
    let (mut location, mut closes) = (None, false);
    for header in head.headers.iter() {
        // The length of a name tells these three apart without comparing the others.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                length = Some(decimal(header.value).ok_or(Failure::Malformed)?);
            }
            8 if header.name.eq_ignore_ascii_case("location") => location = Some(header.value),
            10 if header.name.eq_ignore_ascii_case("connection") => {
                closes = header.value.eq_ignore_ascii_case(b"close");
            }
            _ => {}
        }
    }
    // Without a length the end of the answer is unknown: the servers under test always send one.
    let whole = head_bytes + length.ok_or(Failure::Malformed)?;
    if bytes.len() < whole {
        return Ok(Parsed::Partial(whole));
    }
    let answer = Answer {
        status,
        location,
        closes,
        body: &bytes[head_bytes..whole],
    };
    Ok(Parsed::Whole(answer, whole))
}

fn decimal(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: &[u8] =
        b"HTTP/1.1 302 Found\r\nlocation: https://a/b\r\nContent-Length: 3\r\n\r\nabc";

    #[test]
    fn an_answer_is_whole_only_at_its_last_byte() {
        for cut in 0..FOUND.len() {
            let parsed = parse(&FOUND[..cut]);
            assert!(
                matches!(parsed, Ok(Parsed::Partial(needed)) if needed > cut),
                "{cut}"
            );
        }
        let Ok(Parsed::Whole(answer, _)) = parse(FOUND) else {
            panic!("not whole");
        };
        assert_eq!((answer.status, answer.body), (302, &b"abc"[..]));
        assert_eq!(answer.location, Some(&b"https://a/b"[..]));
        assert!(!answer.closes);
    }

    #[test]
    fn the_first_of_several_answers_ends_where_the_next_begins() {
        let two = [FOUND, FOUND, b"HTTP"].concat();
        let Ok(Parsed::Whole(answer, length)) = parse_first(&two) else {
            panic!("not whole");
        };
        assert_eq!((answer.body, length), (&b"abc"[..], FOUND.len()));
    }

    #[test]
    fn the_end_of_the_connection_is_noticed() {
        let bytes = b"HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n";
        assert!(matches!(parse(bytes), Ok(Parsed::Whole(answer, _)) if answer.closes));
    }

    #[test]
    fn what_cannot_be_delimited_is_malformed() {
        for bytes in [
            &b"SMTP hello\r\n\r\n"[..],
            b"HTTP/1.1 302 Found\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\nmore",
        ] {
            assert_eq!(parse(bytes).err(), Some(Failure::Malformed));
        }
    }
}

//! The answers to meta commands, and what may be a key.

use memchr::memmem;

/// An item is at most this large with Memcached's own default; a line much longer than any answer's is not one.
const ITEM_BYTES_MAX: usize = 1_024 * 1_024;
const LINE_BYTES_MAX: usize = 2_048;
/// Longest key that Memcached takes.
const NAME_BYTES_MAX: usize = 250;

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `VA`: an item, and the number of its version if that was asked for.
    Item { bytes: Vec<u8>, version: u64 },
    /// `HD`, `MN`: done.
    Done,
    /// `EN`: no such item.
    Miss,
    /// `NS`, `EX`, `NF`: another version is there, or none.
    Refused,
    /// `STAT`: one figure of many, until `END`.
    Stat(String),
    /// The server could not do it, such as without memory.
    Error(String),
}

/// Bytes that are no answer: nothing on this connection can be trusted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

/// Reads the first answer, and how many bytes it took. `None`: there is more to come.
pub(crate) fn read_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Garbled> {
    let Some(end) = memmem::find(bytes, b"\r\n") else {
        return match bytes.len() > LINE_BYTES_MAX {
            true => Err(Garbled),
            false => Ok(None),
        };
    };
    let line = str::from_utf8(&bytes[..end]).map_err(|_| Garbled)?;
    let after = end + 2;
    let mut words = line.split(' ');
    let reply = match words.next().unwrap_or_default() {
        "VA" => return read_item(bytes, after, words),
        "HD" | "MN" | "END" | "OK" => Reply::Done,
        "EN" => Reply::Miss,
        "NS" | "EX" | "NF" => Reply::Refused,
        "STAT" => Reply::Stat(line.to_owned()),
        "SERVER_ERROR" => Reply::Error(line.to_owned()),
        // ERROR and CLIENT_ERROR too: what we send is understood, or this is no server of ours.
        _ => return Err(Garbled),
    };
    Ok(Some((reply, after)))
}

fn read_item<'a>(
    bytes: &[u8],
    start: usize,
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Option<(Reply, usize)>, Garbled> {
    let length: usize = words
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or(Garbled)?;
    if length > ITEM_BYTES_MAX {
        return Err(Garbled);
    }
    let version = words.find_map(|word| word.strip_prefix('c'));
    let version = match version {
        Some(number) => number.parse().map_err(|_| Garbled)?,
        None => 0,
    };
    let end = start + length;
    let Some(rest) = bytes.get(end..end + 2) else {
        return Ok(None);
    };
    if rest != b"\r\n" {
        return Err(Garbled);
    }
    let bytes = bytes[start..end].to_vec();
    Ok(Some((Reply::Item { bytes, version }, end + 2)))
}

/// Whether Memcached takes this as a key: a space or a line end in one would be a command of its own.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(bytes: &[u8], version: u64) -> Reply {
        let bytes = bytes.to_vec();
        Reply::Item { bytes, version }
    }

    #[test]
    fn answers_are_read_one_after_the_other() {
        let mut bytes: &[u8] = b"VA 4 c77\r\na\r\nb\r\nEN\r\nHD\r\nNS\r\nVA 0\r\n\r\nMN\r\n";
        let mut replies = Vec::new();
        while let Some((reply, length)) = read_reply(bytes).unwrap() {
            replies.push(reply);
            bytes = &bytes[length..];
        }
        let want = [
            item(b"a\r\nb", 77),
            Reply::Miss,
            Reply::Done,
            Reply::Refused,
            item(b"", 0),
            Reply::Done,
        ];
        assert_eq!((replies.as_slice(), bytes.len()), (&want[..], 0));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for garbled in [
            "HTTP/1.1 400 Bad Request\r\n",
            "ERROR\r\n",
            "CLIENT_ERROR bad\r\n",
            "VA x\r\n",
            "VA 3 c1\r\nabcde",
            "VA 99999999\r\n",
            "\r\n",
        ] {
            assert_eq!(read_reply(garbled.as_bytes()), Err(Garbled), "{garbled:?}");
        }
        assert_eq!(read_reply(&[b'x'; LINE_BYTES_MAX + 1]), Err(Garbled));
    }

    #[test]
    fn a_key_cannot_hold_a_command() {
        for wrong in ["", "a b", "a\r\nflush_all", "ä", "a\0", &"a".repeat(251)] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
        assert!(is_name("curt:0/a.B-_9"));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            if let Ok(Some((_, length))) = read_reply(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }

        #[test]
        fn an_answer_in_pieces_waits_for_the_rest(content: Vec<u8>, version: u64) {
            let mut whole = format!("VA {} c{version}\r\n", content.len()).into_bytes();
            whole.extend(&content);
            whole.extend(b"\r\n");
            for end in 0..whole.len() {
                prop_assert_eq!(read_reply(&whole[..end]), Ok(None));
            }
            let read = read_reply(&whole);
            prop_assert_eq!(read, Ok(Some((item(&content, version), whole.len()))));
        }
    }
}

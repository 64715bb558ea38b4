//! Response heads, written once and then only copied.

use std::array;
use std::time::{Duration, UNIX_EPOCH};

use curt_core::{RedirectStatus, ServedLink, UnixMillis};

use super::RedirectFields;
use crate::redirect::parse::Persistence;

const DATE_PLACEHOLDER: &[u8] = b"Thu, 01 Jan 1970 00:00:00 GMT";

/// One of each status, for answers that may be kept and for those that may not.
const HEADS: usize = 2 * RedirectStatus::ALL.len();

/// One thread's ready-made heads, from the status line to the name of the `Location` field. The date inside is
/// brought up to date when the second changes, so that an answer is three copies and no formatting.
#[derive(Debug)]
pub(crate) struct ResponseHeads {
    fields: RedirectFields,
    heads: [Head; HEADS],
    second: i64,
}

#[derive(Debug)]
struct Head {
    bytes: Vec<u8>,
    date_at: usize,
}

impl ResponseHeads {
    pub(crate) fn new(fields: RedirectFields) -> Self {
        Self {
            heads: array::from_fn(|place| {
                Head::of(RedirectStatus::ALL[place / 2], place % 2 == 1, &fields)
            }),
            fields,
            second: 0,
        }
    }

    /// Brings the date up to date. Cheap when the second is still the same.
    pub(crate) fn refresh(&mut self, now: UnixMillis) {
        let second = now.0.div_euclid(1_000);
        if second == self.second {
            return;
        }
        self.second = second;
        let date = http_date(second);
        for Head { bytes, date_at } in &mut self.heads {
            bytes[*date_at..*date_at + date.len()].copy_from_slice(date.as_bytes());
        }
    }

    /// Appends the answer at `now` up to and with `Location: `; the target and [`finish`] follow.
    pub(crate) fn start(&self, out: &mut Vec<u8>, hit: &ServedLink, now: UnixMillis) {
        let place = 2 * place(hit.status()) + usize::from(self.fields.kept(hit, now));
        out.extend_from_slice(&self.heads[place].bytes);
    }
}

/// Ends the `Location` line and the head.
pub(crate) fn finish(out: &mut Vec<u8>, persistence: Persistence) {
    out.extend_from_slice(match persistence {
        Persistence::Implied => b"\r\n\r\n",
        Persistence::Stated => b"\r\nconnection: keep-alive\r\n\r\n",
        Persistence::Close => b"\r\nconnection: close\r\n\r\n",
    });
}

/// The date as HTTP writes it, 29 bytes. Before 1970 and after 9999 the clock is wrong and 1970 is as good as any.
pub(crate) fn http_date(second: i64) -> String {
    let latest = UnixMillis::MAX.0 / 1_000;
    let second = if second > latest { 0 } else { second };
    let since = Duration::from_secs(u64::try_from(second).unwrap_or(0));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

impl Head {
    fn of(status: RedirectStatus, kept: bool, fields: &RedirectFields) -> Self {
        let mut bytes =
            format!("HTTP/1.1 {} {}\r\ndate: ", status.code(), reason(status)).into_bytes();
        let date_at = bytes.len();
        bytes.extend_from_slice(DATE_PLACEHOLDER);
        for (name, value) in fields.of(kept) {
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
        }
        bytes.extend_from_slice(b"\r\nlocation: ");
        Self { bytes, date_at }
    }
}

fn place(status: RedirectStatus) -> usize {
    match status {
        RedirectStatus::MovedPermanently => 0,
        RedirectStatus::Found => 1,
        RedirectStatus::TemporaryRedirect => 2,
        RedirectStatus::PermanentRedirect => 3,
    }
}

fn reason(status: RedirectStatus) -> &'static str {
    match status {
        RedirectStatus::MovedPermanently => "Moved Permanently",
        RedirectStatus::Found => "Found",
        RedirectStatus::TemporaryRedirect => "Temporary Redirect",
        RedirectStatus::PermanentRedirect => "Permanent Redirect",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::HttpSettings;

    #[test]
    fn a_head_holds_what_the_settings_ask_for() {
        let mut heads = ResponseHeads::new(RedirectFields::new(&HttpSettings::default()));
        let head = |heads: &ResponseHeads, place: usize| {
            String::from_utf8(heads.heads[place].bytes.clone()).unwrap()
        };
        heads.refresh(UnixMillis(784_111_777_999));
        assert_eq!(
            head(&heads, 2 * place(RedirectStatus::Found)),
            "HTTP/1.1 302 Found\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncache-control: private, no-store\r\n\
             x-robots-tag: noindex\r\nreferrer-policy: strict-origin-when-cross-origin\r\ncontent-length: 0\r\n\
             location: "
        );
        heads.refresh(UnixMillis(784_111_778_000));
        assert_eq!(
            head(&heads, 2 * place(RedirectStatus::PermanentRedirect) + 1),
            "HTTP/1.1 308 Permanent Redirect\r\ndate: Sun, 06 Nov 1994 08:49:38 GMT\r\n\
             cache-control: private, max-age=30\r\nx-robots-tag: noindex\r\n\
             referrer-policy: strict-origin-when-cross-origin\r\ncontent-length: 0\r\nlocation: "
        );
    }

    #[test]
    fn every_status_has_its_own_head() {
        for (at, status) in RedirectStatus::ALL.into_iter().enumerate() {
            assert_eq!(place(status), at);
        }
    }

    #[test]
    fn a_wrong_clock_still_gives_a_date() {
        for second in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(http_date(second).len(), DATE_PLACEHOLDER.len());
        }
    }
}

//! A click as others may read it: one JSON object, documented in `docs/click-stream.md`.
//!
//! Fields may be added without a new version; whoever reads ignores those that it does not know. A field that changes its
//! meaning or goes away makes a new version, which older consumers put among the dead letters.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use curt_core::{Attribution, DomainId, OwnerId, PackedTags, UnixMillis};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::code::{RecordError, decode, encode};
use super::{ClickRecord, Method, Outcome, UtmText};

const VERSION: u32 = 1;
/// What stands for an address that was left out.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// How much of visitors' addresses leaves the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpForm {
    Full,
    /// The network: 24 bits of IP version 4 and 48 of version 6.
    #[default]
    Network,
    Nothing,
}

impl IpForm {
    fn apply(self, address: IpAddr) -> Option<IpAddr> {
        match (self, address) {
            (_, NO_ADDRESS) | (Self::Nothing, _) => None,
            (Self::Full, address) => Some(address),
            (Self::Network, IpAddr::V4(address)) => {
                Some(Ipv4Addr::from_bits(address.to_bits() & !0xff).into())
            }
            (Self::Network, IpAddr::V6(address)) => {
                let kept = !(u128::MAX >> 48);
                Some(Ipv6Addr::from_bits(address.to_bits() & kept).into())
            }
        }
    }
}

/// Tells a record from all others: its producer, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId {
    pub producer: u64,
    pub sequence: u64,
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:x}", self.producer, self.sequence)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    v: u32,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    short_code: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    ip: Cow<'a, str>,
    #[serde(borrow, default)]
    user_agent: Cow<'a, str>,
    #[serde(borrow, default)]
    referer: Cow<'a, str>,
    #[serde(borrow, default)]
    language: Cow<'a, str>,
    #[serde(borrow, default)]
    utm: Cow<'a, str>,
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default)]
    prefetch: bool,
    #[serde(default)]
    domain: u32,
    #[serde(default)]
    generation: u32,
    #[serde(borrow, default)]
    owner: Cow<'a, str>,
    #[serde(default)]
    tags: Vec<Cow<'a, str>>,
}

/// Adds the click to `out`. Texts that are not UTF-8 lose what is not.
pub fn encode_json(click: &ClickRecord<'_>, id: RecordId, ip_form: IpForm, out: &mut Vec<u8>) {
    let ip = ip_form.apply(click.address);
    let utm: Vec<u8> = click.utm.bytes().collect();
    let owner = click.attribution.reported_owner();
    let document = Document {
        v: VERSION,
        id: id.to_string().into(),
        short_code: String::from_utf8_lossy(click.key),
        timestamp: rfc3339(click.at).into(),
        ip: ip.map_or_else(String::new, |ip| ip.to_string()).into(),
        user_agent: String::from_utf8_lossy(click.agent),
        referer: String::from_utf8_lossy(click.referrer),
        language: String::from_utf8_lossy(click.language),
        utm: String::from_utf8_lossy(&utm),
        outcome: outcome_name(click.outcome).into(),
        method: method_name(click.method).into(),
        prefetch: click.prefetch,
        domain: click.domain.0,
        generation: click.generation,
        owner: owner
            .map_or_else(String::new, |owner| owner.0.to_string())
            .into(),
        tags: click.attribution.tags.iter().map(Cow::Borrowed).collect(),
    };
    // Strings, numbers and a vector: writing them to memory cannot fail.
    let _written = serde_json::to_writer(out, &document);
}

/// Reads a click of either form; `buffer` is used for JSON.
pub fn decode_any<'a>(
    bytes: &'a [u8],
    buffer: &'a mut Vec<u8>,
) -> Result<ClickRecord<'a>, RecordError> {
    if bytes.first() != Some(&b'{') {
        return decode(bytes);
    }
    buffer.clear();
    transcode(bytes, buffer)?;
    decode(buffer)
}

/// From JSON to the form that the rest of the line reads, with all its bounds.
fn transcode(json: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
    let document: Document<'_> = serde_json::from_slice(json).map_err(|_| of_version(json))?;
    if document.v != VERSION {
        return Err(unknown_version(document.v));
    }
    let time: Timestamp = document
        .timestamp
        .parse()
        .map_err(|_| RecordError::Range("time"))?;
    let address = match &*document.ip {
        "" => NO_ADDRESS,
        text => text.parse().map_err(|_| RecordError::Range("address"))?,
    };
    let owner = match &*document.owner {
        "" => OwnerId::ANONYMOUS,
        text => OwnerId(text.parse().map_err(|_| RecordError::Range("owner"))?),
    };
    let mut tags = Vec::new();
    PackedTags::pack(document.tags.iter().map(|tag| &**tag), &mut tags);
    let tags = PackedTags::from_bytes(&tags).map_err(|_| RecordError::Range("tags"))?;
    let click = ClickRecord {
        at: UnixMillis(time.as_millisecond()),
        domain: DomainId(document.domain),
        key: document.short_code.as_bytes(),
        generation: document.generation,
        outcome: read_outcome(&document.outcome)?,
        method: read_method(&document.method)?,
        prefetch: document.prefetch,
        address,
        agent: document.user_agent.as_bytes(),
        referrer: document.referer.as_bytes(),
        language: document.language.as_bytes(),
        utm: UtmText::from_bytes(document.utm.as_bytes()),
        attribution: Attribution { owner, tags },
    };
    encode(&click, out);
    Ok(())
}

/// A version that is not known may look in any way.
fn of_version(json: &[u8]) -> RecordError {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    match serde_json::from_slice(json) {
        Ok(Versioned { v }) if v != VERSION => unknown_version(v),
        _ => RecordError::Json,
    }
}

fn unknown_version(version: u32) -> RecordError {
    RecordError::Version(u8::try_from(version).unwrap_or(u8::MAX))
}

fn rfc3339(time: UnixMillis) -> String {
    let stamp = Timestamp::from_millisecond(time.0).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{stamp:.3}")
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Redirected => "redirected",
        Outcome::Absent => "absent",
        Outcome::Base => "base",
    }
}

fn read_outcome(name: &str) -> Result<Outcome, RecordError> {
    let all = [Outcome::Redirected, Outcome::Absent, Outcome::Base];
    let found = all.into_iter().find(|one| outcome_name(*one) == name);
    found.ok_or(RecordError::Range("outcome"))
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Other => "other",
    }
}

fn read_method(name: &str) -> Result<Method, RecordError> {
    let all = [Method::Get, Method::Head, Method::Other];
    let found = all.into_iter().find(|one| method_name(*one) == name);
    found.ok_or(RecordError::Range("method"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RecordId = RecordId {
        producer: 0xabc,
        sequence: 0x1f,
    };

    fn sample<'a>(tags: &'a [u8]) -> ClickRecord<'a> {
        ClickRecord {
            at: UnixMillis(1_790_000_000_123),
            domain: DomainId(3),
            key: b"abc",
            generation: 2,
            outcome: Outcome::Redirected,
            method: Method::Get,
            prefetch: true,
            address: Ipv4Addr::new(192, 0, 2, 7).into(),
            agent: "Agent \"1.0\" é\n".as_bytes(),
            referrer: b"https://a.example/?x=1",
            language: b"de",
            utm: UtmText::from_bytes(b"utm_source=s"),
            attribution: Attribution {
                owner: OwnerId(300),
                tags: PackedTags::from_bytes(tags).unwrap(),
            },
        }
    }

    fn json(click: &ClickRecord<'_>, ip_form: IpForm) -> String {
        let mut out = Vec::new();
        encode_json(click, ID, ip_form, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_document_does_not_change() {
        let text = json(&sample(b"\x01a\x02bc"), IpForm::Full);
        assert_eq!(
            text,
            r#"{"v":1,"id":"0000000000000abc-1f","shortCode":"abc","timestamp":"2026-09-21T14:13:20.123Z","ip":"192.0.2.7","userAgent":"Agent \"1.0\" é\n","referer":"https://a.example/?x=1","language":"de","utm":"utm_source=s","outcome":"redirected","method":"GET","prefetch":true,"domain":3,"generation":2,"owner":"300","tags":["a","bc"]}"#
        );
    }

    #[test]
    fn a_click_is_read_as_it_was_written() {
        let mut buffer = Vec::new();
        let click = sample(b"\x01a\x02bc");
        let text = json(&click, IpForm::Full);
        assert_eq!(decode_any(text.as_bytes(), &mut buffer), Ok(click));
        let mut bytes = Vec::new();
        encode(&click, &mut bytes);
        assert_eq!(decode_any(&bytes, &mut buffer), Ok(click));
        for (outcome, method) in [
            (Outcome::Absent, Method::Head),
            (Outcome::Base, Method::Other),
        ] {
            let click = ClickRecord {
                outcome,
                method,
                ..sample(b"")
            };
            let text = json(&click, IpForm::Full);
            assert_eq!(decode_any(text.as_bytes(), &mut buffer), Ok(click));
        }
    }

    #[test]
    fn addresses_leave_the_server_only_as_far_as_they_may() {
        let six: IpAddr = "2001:db8:1:2:3:4:5:6".parse().unwrap();
        let of = |address, form: IpForm| form.apply(address).map(|ip| ip.to_string());
        let four: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(of(four, IpForm::Network).as_deref(), Some("192.0.2.0"));
        assert_eq!(of(six, IpForm::Network).as_deref(), Some("2001:db8:1::"));
        assert_eq!(of(six, IpForm::Full), Some(six.to_string()));
        assert_eq!(of(four, IpForm::Nothing), None);
        let text = json(&sample(b""), IpForm::Nothing);
        assert!(text.contains(r#""ip":"""#), "{text}");
        let mut buffer = Vec::new();
        assert_eq!(
            decode_any(text.as_bytes(), &mut buffer).unwrap().address,
            NO_ADDRESS
        );
    }

    #[test]
    fn what_is_no_click_is_told_why() {
        let good = json(&sample(b""), IpForm::Full);
        for (text, reason) in [
            ("{".to_owned(), "json"),
            ("{}".to_owned(), "json"),
            (r#"{"v":2}"#.to_owned(), "version"),
            (good.replace(r#""v":1"#, r#""v":2"#), "version"),
            (good.replace("2026-09-21T", "soon"), "range"),
            (good.replace("192.0.2.7", "here"), "range"),
            (good.replace("GET", "GOT"), "range"),
            (good.replace("redirected", "eaten"), "range"),
            (format!("{good}x"), "json"),
        ] {
            let error = decode_any(text.as_bytes(), &mut Vec::new()).unwrap_err();
            assert_eq!(error.reason(), reason, "{text}");
        }
        let more = good.replace(r#"{"v""#, r#"{"new":[1],"v""#);
        assert!(
            decode_any(more.as_bytes(), &mut Vec::new()).is_ok(),
            "a field that is not known"
        );
    }
}

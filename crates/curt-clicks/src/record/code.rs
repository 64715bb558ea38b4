//! How a click is written down.
//!
//! ```text
//! version  1 byte: 1
//! flags    1 byte: outcome (bits 0, 1), method (2, 3), prefetch (4), address of IP version 6 (5)
//! time     varint, zigzag
//! domain, generation   varints
//! address  4 or 16 bytes
//! key      a varint of its length, then its bytes
//! agent, referrer, language, attribution, utm   the same, up to the last one that is not empty
//! ```
//! The texts of the last line are the [shared](SplitRecord) ones. An attribution is the owner, a varint, and the packed
//! tags. A checksum is the business of whoever stores the record: the spool frames each with one, and so does Kafka.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use curt_core::limits::KEY_BYTES_MAX;
use curt_core::ports::SplitRecord;
use curt_core::{Attribution, DomainId, OwnerId, PackedTags, UnixMillis, varint};

use super::{
    AGENT_BYTES_MAX, ClickRecord, LANGUAGE_BYTES_MAX, Method, Outcome, REFERRER_BYTES_MAX,
    UTM_BYTES_MAX, UtmText,
};

const VERSION: u8 = 1;

const METHOD_SHIFT: u8 = 2;
const TWO_BITS: u8 = 0b11;
const PREFETCH: u8 = 1 << 4;
const IP_VERSION_6: u8 = 1 << 5;
const UNUSED_BITS: u8 = 0b11 << 6;
/// Of an owner, as a varint, and tags.
const ATTRIBUTION_BYTES_MAX: usize = 10 + PackedTags::BYTES_MAX;

/// Why bytes are not a click. None of these heals with time: the record is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the record is of version {0}, which this release does not know")]
    Version(u8),
    #[error("the record ends before its {0}")]
    Short(&'static str),
    #[error("the record's {0} is out of range")]
    Range(&'static str),
    #[error("the record goes on after its end")]
    Long,
    #[error("the record begins like JSON and is not that of a click")]
    Json,
}

impl RecordError {
    /// One word for metrics and the dead letters.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Version(_) => "version",
            Self::Short(_) => "short",
            Self::Range(_) => "range",
            Self::Long => "long",
            Self::Json => "json",
        }
    }
}

/// Buffers for the parts of a click that are not in one piece, reused from click to click.
#[derive(Debug, Default)]
pub struct RecordBuffers {
    own: Vec<u8>,
    attribution: Vec<u8>,
    utm: Vec<u8>,
}

impl RecordBuffers {
    /// Encodes the click; texts beyond their bounds are cut.
    pub fn split<'a>(&'a mut self, click: &ClickRecord<'a>) -> SplitRecord<'a> {
        self.own.clear();
        encode_own(click, &mut self.own);
        self.attribution.clear();
        encode_attribution(&click.attribution, &mut self.attribution);
        self.utm.clear();
        if !click.utm.is_empty() {
            self.utm.extend(click.utm.bytes());
        }
        SplitRecord {
            own: &self.own,
            shared: [
                cut(click.agent, AGENT_BYTES_MAX),
                cut(click.referrer, REFERRER_BYTES_MAX),
                cut(click.language, LANGUAGE_BYTES_MAX),
                &self.attribution,
                &self.utm,
            ],
        }
    }
}

/// Adds the click to `out`, in one piece.
pub fn encode(click: &ClickRecord<'_>, out: &mut Vec<u8>) {
    RecordBuffers::default().split(click).join(out);
}

fn encode_own(click: &ClickRecord<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, flags(click)]);
    varint::push(out, zigzag(click.at.0));
    varint::push(out, click.domain.0.into());
    varint::push(out, click.generation.into());
    match click.address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
    let key = cut(click.key, KEY_BYTES_MAX);
    varint::push(out, key.len() as u64);
    out.extend_from_slice(key);
}

/// Nothing where there is neither owner nor tag.
fn encode_attribution(attribution: &Attribution<'_>, out: &mut Vec<u8>) {
    let tags = attribution.tags.as_bytes();
    if attribution.owner != OwnerId::ANONYMOUS || !tags.is_empty() {
        varint::push(out, attribution.owner.0);
        out.extend_from_slice(cut(tags, PackedTags::BYTES_MAX));
    }
}

fn flags(click: &ClickRecord<'_>) -> u8 {
    let mut flags = click.outcome as u8 | (click.method as u8) << METHOD_SHIFT;
    if click.prefetch {
        flags |= PREFETCH;
    }
    if click.address.is_ipv6() {
        flags |= IP_VERSION_6;
    }
    flags
}

/// Small numbers of either sign become small numbers.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn cut(text: &[u8], max: usize) -> &[u8] {
    &text[..text.len().min(max)]
}

/// Reads what [`encode`] wrote. Any bytes are answered, none with a panic.
pub fn decode(bytes: &[u8]) -> Result<ClickRecord<'_>, RecordError> {
    let mut rest = Rest(bytes);
    let version = rest.byte("version")?;
    if version != VERSION {
        return Err(RecordError::Version(version));
    }
    let flags = rest.byte("flags")?;
    let click = ClickRecord {
        outcome: outcome(flags)?,
        method: method(flags)?,
        prefetch: flags & PREFETCH != 0,
        at: UnixMillis(unzigzag(rest.number("time")?)),
        domain: DomainId(rest.small_number("domain")?),
        generation: rest.small_number("generation")?,
        address: rest.address(flags & IP_VERSION_6 != 0)?,
        key: rest.text("key", KEY_BYTES_MAX)?,
        agent: rest.shared_text("agent", AGENT_BYTES_MAX)?,
        referrer: rest.shared_text("referrer", REFERRER_BYTES_MAX)?,
        language: rest.shared_text("language", LANGUAGE_BYTES_MAX)?,
        attribution: rest.attribution()?,
        utm: UtmText::from_bytes(rest.shared_text("utm", UTM_BYTES_MAX)?),
    };
    match rest.0 {
        [] => Ok(click),
        _ => Err(RecordError::Long),
    }
}

fn outcome(flags: u8) -> Result<Outcome, RecordError> {
    match flags & TWO_BITS {
        0 => Ok(Outcome::Redirected),
        1 => Ok(Outcome::Absent),
        2 => Ok(Outcome::Base),
        _ => Err(RecordError::Range("outcome")),
    }
}

fn method(flags: u8) -> Result<Method, RecordError> {
    if flags & UNUSED_BITS != 0 {
        return Err(RecordError::Range("flags"));
    }
    match flags >> METHOD_SHIFT & TWO_BITS {
        0 => Ok(Method::Get),
        1 => Ok(Method::Head),
        2 => Ok(Method::Other),
        _ => Err(RecordError::Range("method")),
    }
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(RecordError::Short(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, RecordError> {
        let (&byte, rest) = self.0.split_first().ok_or(RecordError::Short(what))?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self, what: &'static str) -> Result<u64, RecordError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if number >> shift != bits {
                break; // bits were lost at the top
            }
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(RecordError::Range(what))
    }

    fn small_number(&mut self, what: &'static str) -> Result<u32, RecordError> {
        u32::try_from(self.number(what)?).map_err(|_| RecordError::Range(what))
    }

    fn address(&mut self, version_6: bool) -> Result<IpAddr, RecordError> {
        const WHAT: &str = "address";
        if version_6 {
            let (octets, rest) = self
                .0
                .split_first_chunk::<16>()
                .ok_or(RecordError::Short(WHAT))?;
            self.0 = rest;
            Ok(Ipv6Addr::from(*octets).into())
        } else {
            let (octets, rest) = self
                .0
                .split_first_chunk::<4>()
                .ok_or(RecordError::Short(WHAT))?;
            self.0 = rest;
            Ok(Ipv4Addr::from(*octets).into())
        }
    }

    fn attribution(&mut self) -> Result<Attribution<'a>, RecordError> {
        const WHAT: &str = "attribution";
        let mut rest = self.shared_text(WHAT, ATTRIBUTION_BYTES_MAX)?;
        if rest.is_empty() {
            return Ok(Attribution::default());
        }
        let owner = varint::take(&mut rest).ok_or(RecordError::Range(WHAT))?;
        let tags = PackedTags::from_bytes(rest).map_err(|_| RecordError::Range(WHAT))?;
        Ok(Attribution {
            owner: OwnerId(owner),
            tags,
        })
    }

    /// Empty where the record has ended.
    fn shared_text(&mut self, what: &'static str, max: usize) -> Result<&'a [u8], RecordError> {
        match self.0 {
            [] => Ok(&[]),
            _ => self.text(what, max),
        }
    }

    fn text(&mut self, what: &'static str, max: usize) -> Result<&'a [u8], RecordError> {
        let length = self.number(what)?;
        match usize::try_from(length) {
            Ok(length) if length <= max => self.bytes(length, what),
            _ => Err(RecordError::Range(what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RECORD_BYTES_MAX;
    use curt_core::limits::{TAG_BYTES_MAX, TAGS_MAX};
    use proptest::prelude::*;

    fn encoded(click: &ClickRecord<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(click, &mut bytes);
        bytes
    }

    fn sample() -> ClickRecord<'static> {
        ClickRecord {
            at: UnixMillis(1_790_000_000_123),
            domain: DomainId(3),
            key: b"abc",
            generation: 2,
            outcome: Outcome::Redirected,
            method: Method::Get,
            prefetch: false,
            address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            agent: b"Agent/1.0",
            referrer: b"",
            language: b"de",
            utm: UtmText::default(),
            attribution: Attribution::default(),
        }
    }

    fn attributed<'a>(click: ClickRecord<'a>, tags: &'a [u8]) -> ClickRecord<'a> {
        let owner = OwnerId(300);
        let tags = PackedTags::from_bytes(tags).unwrap();
        ClickRecord {
            attribution: Attribution { owner, tags },
            ..click
        }
    }

    #[test]
    fn the_bytes_do_not_change() {
        let bytes = b"\x01\x00\xf6\xb1\x83\xc5\x98\x68\x03\x02\xc0\x00\x02\x07\x03abc\x09Agent/1.0\x00\x02de\x07\xac\x02\x01a\x02bc";
        let click = attributed(sample(), b"\x01a\x02bc");
        assert_eq!(encoded(&click), bytes);
        assert_eq!(decode(bytes), Ok(click));
        let other = ClickRecord {
            at: UnixMillis(-1),
            outcome: Outcome::Base,
            method: Method::Other,
            prefetch: true,
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            key: b"",
            ..sample()
        };
        let bytes =
            b"\x01\x3a\x01\x03\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x09Agent/1.0\0\x02de";
        assert_eq!(encoded(&other), bytes);
        assert_eq!(decode(bytes), Ok(other));
    }

    #[test]
    fn utm_parameters_of_target_and_forwarded_query_are_kept() {
        let (target, query) = (b"https://a.example/?x=1&utm_source=s&y=2", "q=1&utm_term=t");
        for (target, query, kept) in [
            (&target[..], Some(query), "utm_source=s&y=2&utm_term=t"),
            (&target[..], None, "utm_source=s&y=2"),
            (b"https://a.example/", Some(query), "utm_term=t"),
            (b"https://a.example/utm_source=s", Some("q=1"), ""),
            (b"https://a.example/?x=1", None, ""),
            (b"https://a.example/#f?utm_source=s", None, ""),
            (
                b"https://a.example/?utm_source=s#f&utm_medium=m",
                Some(query),
                "utm_source=s&utm_term=t",
            ),
        ] {
            let click = ClickRecord {
                utm: UtmText::find(target, query),
                ..attributed(sample(), b"\x01a")
            };
            let bytes = encoded(&click);
            let read = decode(&bytes).unwrap();
            assert_eq!(read.utm.bytes().collect::<Vec<_>>(), kept.as_bytes());
            // A click without any takes no byte for them.
            let without = encoded(&attributed(sample(), b"\x01a")).len();
            let added = if kept.is_empty() { 0 } else { kept.len() + 1 };
            assert_eq!(bytes.len(), without + added);
        }
        let long = format!("utm_source={}", "s".repeat(400));
        let utm = UtmText::find(b"https://a.example/?utm_term=t", Some(&long));
        assert_eq!(utm.bytes().count(), UTM_BYTES_MAX);
    }

    #[test]
    fn long_texts_are_cut_and_no_click_is_longer_than_the_bound() {
        let long = vec![0xff; 5_000];
        let mut tags = Vec::new();
        PackedTags::pack(["t".repeat(TAG_BYTES_MAX).as_str(); TAGS_MAX], &mut tags);
        let click = ClickRecord {
            at: UnixMillis(i64::MIN),
            domain: DomainId(u32::MAX),
            generation: u32::MAX,
            address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            key: &long,
            agent: &long,
            referrer: &long,
            language: &long,
            utm: UtmText::from_bytes(&long),
            attribution: Attribution {
                owner: OwnerId(u64::MAX),
                tags: PackedTags::from_bytes(&tags).unwrap(),
            },
            ..sample()
        };
        let bytes = encoded(&click);
        assert!(bytes.len() <= RECORD_BYTES_MAX, "{}", bytes.len());
        let read = decode(&bytes).unwrap();
        assert_eq!(read.key, &long[..64]);
        assert_eq!(read.agent, &long[..512]);
        assert_eq!(read.referrer, &long[..512]);
        assert_eq!(read.language, &long[..64]);
        assert_eq!(read.utm, UtmText::from_bytes(&long[..256]));
        assert_eq!(read.at, UnixMillis(i64::MIN));
        assert_eq!(read.attribution, click.attribution);
    }

    #[test]
    fn what_is_not_a_click_is_named() {
        let good = encoded(&attributed(sample(), b"\x01a"));
        // Where a shared text ends, the record may end: those that are missing are empty.
        let text_ends = [18, 28, 29, 32];
        for end in 0..good.len() {
            match decode(&good[..end]) {
                Ok(_) => assert!(text_ends.contains(&end), "{end}"),
                Err(error) => assert!(matches!(error, RecordError::Short(_)), "{end}: {error}"),
            }
        }
        let mut odd_tags = good.clone();
        *odd_tags.last_mut().unwrap() = 0xff;
        assert_eq!(decode(&odd_tags), Err(RecordError::Range("attribution")));
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            decode(&bytes).map(drop)
        };
        assert_eq!(changed(0, 2), Err(RecordError::Version(2)));
        assert_eq!(changed(1, 0b11), Err(RecordError::Range("outcome")));
        assert_eq!(changed(1, 0b1100), Err(RecordError::Range("method")));
        assert_eq!(changed(1, 0b100_0000), Err(RecordError::Range("flags")));
        assert_eq!(changed(14, 65), Err(RecordError::Range("key")));
        let endless = [&good[..2], &[0xff; 20]].concat();
        assert_eq!(decode(&endless), Err(RecordError::Range("time")));
        let longer = [&good[..], &[1, b'u', 0]].concat();
        assert_eq!(decode(&longer), Err(RecordError::Long));
    }

    fn any_text(max: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..=max)
    }

    proptest! {
        #[test]
        fn every_click_comes_back(
            (at, domain, generation) in any::<(i64, u32, u32)>(),
            (outcome, method, prefetch) in (0_usize..3, 0_usize..3, any::<bool>()),
            address in any::<IpAddr>(),
            (key, agent) in (any_text(64), any_text(512)),
            (referrer, language, utm) in (any_text(512), any_text(64), any_text(256)),
            (owner, tags) in (any::<u64>(), proptest::collection::vec("\\PC{0,16}", 0..8)),
        ) {
            let mut packed = Vec::new();
            PackedTags::pack(tags.iter().map(String::as_str), &mut packed);
            let click = ClickRecord {
                at: UnixMillis(at),
                domain: DomainId(domain),
                key: &key,
                generation,
                outcome: [Outcome::Redirected, Outcome::Absent, Outcome::Base][outcome],
                method: [Method::Get, Method::Head, Method::Other][method],
                prefetch,
                address,
                agent: &agent,
                referrer: &referrer,
                language: &language,
                utm: UtmText::from_bytes(&utm),
                attribution: Attribution {
                    owner: OwnerId(owner),
                    tags: PackedTags::from_bytes(&packed).unwrap(),
                },
            };
            let bytes = encoded(&click);
            prop_assert!(bytes.len() <= RECORD_BYTES_MAX);
            prop_assert_eq!(decode(&bytes), Ok(click));
        }

        /// What decodes also encodes to something that decodes to the same.
        #[test]
        fn any_bytes_are_answered(bytes in any_text(200), is_known in any::<bool>()) {
            let mut bytes = bytes;
            if let (true, Some(first)) = (is_known, bytes.first_mut()) {
                *first = VERSION;
            }
            if let Ok(click) = decode(&bytes) {
                let again = encoded(&click);
                prop_assert_eq!(decode(&again), Ok(click));
            }
        }
    }

    #[test]
    fn mutated_records_are_read_or_refused_and_read_again_the_same() {
        let long = ClickRecord {
            agent: &[0xff; 512],
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            ..sample()
        };
        let samples = [
            sample(),
            attributed(sample(), b"\x01a\x02bc"),
            attributed(long, b""),
            ClickRecord {
                utm: UtmText::from_bytes(b"utm_source=s"),
                ..sample()
            },
        ];
        let words: [&[u8]; 5] = [
            b"\x80\x80",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x80\x00",
            b"\x01\x3a",
            b"\x01\x00",
        ];
        let samples = samples.iter().map(encoded);
        curt_testkit::fuzz::Fuzz::new("click record", samples)
            .with_words(words)
            .run(|input| match decode(input) {
                Ok(click) => {
                    let again = encoded(&click);
                    assert!(again.len() <= input.len().min(RECORD_BYTES_MAX), "grew");
                    assert_eq!(decode(&again), Ok(click));
                    true
                }
                Err(error) => {
                    assert!(!error.reason().is_empty());
                    false
                }
            });
    }
}

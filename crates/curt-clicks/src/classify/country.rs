//! Which country an address is in, from a file in MaxMind's format.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashMap;
use maxminddb::{PathElement, Reader};

use super::{Code, ReferenceData};

/// Where the code stands in a record: lists of countries alone keep it at the top, MaxMind's own files inside.
const PATHS: [&[PathElement<'static>]; 2] = [
    &[PathElement::Key("country_code")],
    &[PathElement::Key("country"), PathElement::Key("iso_code")],
];

/// Records whose country is remembered; a list of countries has a few hundred.
const REMEMBERED: usize = 65_536;

/// A list of networks and their countries, or an empty one that knows no country.
#[derive(Default)]
pub struct Countries(Option<Reader<Vec<u8>>>);

/// Why a file of countries cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the file of countries cannot be used")]
pub struct CountriesError(#[from] maxminddb::MaxMindDbError);

impl Countries {
    /// Knows no country: every visitor's is unknown.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the file into memory. It is not mapped: a file that is replaced or cut in place would end the process.
    pub fn open(path: &Path) -> Result<Self, CountriesError> {
        Ok(Self(Some(Reader::open_readfile(path)?)))
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, CountriesError> {
        Ok(Self(Some(Reader::from_source(bytes)?)))
    }
}

/// Asks a list, and remembers the country of each record that it has met: finding the record is cheap, decoding it
/// is not.
pub(super) struct CountryLookups {
    reference: Arc<ReferenceData>,
    by_record: HashMap<usize, Code>,
}

impl CountryLookups {
    pub(super) fn new(reference: Arc<ReferenceData>) -> Self {
        Self {
            reference,
            by_record: HashMap::new(),
        }
    }

    /// Unknown where the list has no such network, does not cover the address's family, or is damaged there.
    pub(super) fn country(&mut self, address: IpAddr) -> Code {
        let Some(reader) = &self.reference.countries.0 else {
            return Code::UNKNOWN;
        };
        let Ok(found) = reader.lookup(address.to_canonical()) else {
            return Code::UNKNOWN;
        };
        let Some(record) = found.offset() else {
            return Code::UNKNOWN;
        };
        if let Some(&known) = self.by_record.get(&record) {
            return known;
        }
        let code = PATHS
            .iter()
            .find_map(|path| found.decode_path::<&str>(path).ok().flatten())
            .filter(|code| code.len() == 2)
            .map_or(Code::UNKNOWN, |code| {
                Code::parse(code.as_bytes()).to_uppercase()
            });
        if self.by_record.len() >= REMEMBERED {
            self.by_record.clear();
        }
        self.by_record.insert(record, code);
        code
    }
}

#[cfg(test)]
mod tests {
    use mmdb_writer::{Value, Writer};

    use super::*;

    fn written(networks: &[(&str, Value)]) -> Arc<ReferenceData> {
        let mut writer = Writer::new("test");
        for (network, record) in networks {
            let network: ipnet::IpNet = network.parse().unwrap();
            writer.insert_value(network, record.clone()).unwrap();
        }
        let countries = Countries::from_bytes(writer.to_bytes().unwrap()).unwrap();
        Arc::new(ReferenceData {
            countries,
            ..ReferenceData::default()
        })
    }

    fn flat(code: &str) -> Value {
        Value::map([("country_code", Value::from(code))])
    }

    fn country(lookups: &mut CountryLookups, address: &str) -> String {
        let address = address.parse().unwrap();
        lookups.country(address).as_str().to_owned()
    }

    #[test]
    fn both_forms_of_record_are_read() {
        let nested = Value::map([
            ("country", Value::map([("iso_code", Value::from("SE"))])),
            ("continent", Value::map([("code", Value::from("EU"))])),
        ]);
        let countries = written(&[
            ("81.2.69.0/24", flat("GB")),
            ("89.160.20.0/24", nested),
            ("2001:4860::/32", flat("us")),
            ("5.5.5.0/24", flat("Atlantis")),
            ("6.6.6.0/24", Value::map([("asn", Value::from(7_u32))])),
        ]);
        let mut lookups = CountryLookups::new(countries);
        for _ in 0..2 {
            assert_eq!(country(&mut lookups, "81.2.69.142"), "GB");
            assert_eq!(country(&mut lookups, "::ffff:81.2.69.1"), "GB");
            assert_eq!(country(&mut lookups, "89.160.20.128"), "SE");
            assert_eq!(country(&mut lookups, "2001:4860:4860::8888"), "US");
            assert_eq!(country(&mut lookups, "5.5.5.5"), "unknown");
            assert_eq!(country(&mut lookups, "6.6.6.6"), "unknown");
            assert_eq!(country(&mut lookups, "127.0.0.1"), "unknown");
            assert_eq!(country(&mut lookups, "2a00::1"), "unknown");
        }
    }

    #[test]
    fn without_a_list_every_country_is_unknown() {
        let mut lookups = CountryLookups::new(Arc::default());
        assert_eq!(country(&mut lookups, "8.8.8.8"), "unknown");
    }

    #[test]
    fn a_file_that_is_no_list_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countries.mmdb");
        assert!(Countries::open(&path).is_err());
        std::fs::write(&path, b"not a list").unwrap();
        assert!(Countries::open(&path).is_err());
    }

    #[test]
    fn mutated_lists_are_refused_or_name_codes_of_two_letters() {
        let nested = Value::map([("country", Value::map([("iso_code", Value::from("SE"))]))]);
        let mut writer = Writer::new("test");
        for (network, record) in [
            ("81.2.69.0/24", flat("GB")),
            ("89.160.20.0/24", nested),
            ("2001:4860::/32", flat("us")),
        ] {
            writer
                .insert_value(network.parse::<ipnet::IpNet>().unwrap(), record)
                .unwrap();
        }
        let words: [&[u8]; 5] = [
            b"country_code",
            b"iso_code",
            b"\x42GB",
            b"\xe1\x47country",
            b"\x20\x00",
        ];
        let samples = [writer.to_bytes().unwrap()];
        curt_testkit::fuzz::Fuzz::new("countries", samples)
            .with_words(words)
            .run(|input| {
                let Ok(countries) = Countries::from_bytes(input.to_vec()) else {
                    return false;
                };
                let mut lookups = CountryLookups::new(Arc::new(ReferenceData {
                    countries,
                    ..ReferenceData::default()
                }));
                for address in [
                    "81.2.69.142",
                    "89.160.20.128",
                    "2001:4860:4860::8888",
                    "127.0.0.1",
                ] {
                    let code = country(&mut lookups, address);
                    assert!(
                        code == "unknown" || code.len() == 2 && code.is_ascii(),
                        "{code:?}"
                    );
                }
                true
            });
    }
}

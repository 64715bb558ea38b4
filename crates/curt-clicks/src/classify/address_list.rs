//! What is known of addresses, from files in MaxMind's format: the country, the city, who runs the network.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use curt_core::limits::VALUE_BYTES_MAX;
use hashbrown::HashMap;
use maxminddb::{LookupResult, PathElement, Reader};

use super::Code;

type ValuePath = &'static [PathElement<'static>];

/// Where a country's code stands in a record: lists of countries alone keep it at the top, MaxMind's own files inside.
const COUNTRY: [ValuePath; 2] = [
    &[PathElement::Key("country_code")],
    &[PathElement::Key("country"), PathElement::Key("iso_code")],
];
const CITY: [ValuePath; 2] = [
    &[
        PathElement::Key("city"),
        PathElement::Key("names"),
        PathElement::Key("en"),
    ],
    &[PathElement::Key("city")],
];
const NETWORK: [ValuePath; 2] = [
    &[PathElement::Key("autonomous_system_organization")],
    &[PathElement::Key("as_name")],
];

/// Records whose content is remembered; a list of countries has a few hundred.
const REMEMBERED: usize = 65_536;

/// A list of networks and what is known of each, or an empty one that knows none.
#[derive(Default)]
pub struct AddressList(Option<Reader<Vec<u8>>>);

/// Why a file cannot be used as a list of addresses.
#[derive(Debug, thiserror::Error)]
#[error("the file is no MMDB list of addresses")]
pub struct AddressListError(#[from] maxminddb::MaxMindDbError);

impl AddressList {
    /// Knows no address.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the file into memory. It is not mapped: a file that is replaced or cut in place would end the process.
    pub fn open(path: &Path) -> Result<Self, AddressListError> {
        Ok(Self(Some(Reader::open_readfile(path)?)))
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, AddressListError> {
        Ok(Self(Some(Reader::from_source(bytes)?)))
    }

    /// As [`from_bytes`](Self::from_bytes), with what is wrong as a text.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, String> {
        Self::from_bytes(bytes).map_err(|error| format!("{error}: {}", error.0))
    }
}

/// Where an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPlace {
    /// Two letters of ISO 3166, or unknown.
    pub country: Code,
    /// With the code of the country, as many places share a name.
    pub city: Option<Arc<str>>,
}

impl AddressPlace {
    pub(super) fn read(found: &Found<'_>) -> Self {
        let code = text(found, &COUNTRY).filter(|code| code.len() == 2);
        let country = code.map_or(Code::UNKNOWN, |code| {
            Code::parse(code.as_bytes()).to_uppercase()
        });
        let city = text(found, &CITY).and_then(|city| match country {
            Code::UNKNOWN => value(city),
            country => value(&format!("{city}, {}", country.as_str())),
        });
        Self { country, city }
    }
}

/// The organisation that runs a network.
pub(super) fn read_network(found: &Found<'_>) -> Option<Arc<str>> {
    text(found, &NETWORK).and_then(value)
}

type Found<'a> = LookupResult<'a, Vec<u8>>;

fn text<'a>(found: &Found<'a>, paths: &[ValuePath]) -> Option<&'a str> {
    let texts = paths.iter();
    let mut texts = texts.filter_map(|path| found.decode_path::<&str>(path).ok().flatten());
    texts.find(|text| !text.is_empty())
}

/// A value that can be counted: files are the operator's, and may be wrong.
fn value(text: &str) -> Option<Arc<str>> {
    let text = text.replace(char::is_control, "\u{fffd}");
    let text = text[..text.floor_char_boundary(VALUE_BYTES_MAX)].trim();
    (!text.is_empty()).then(|| text.into())
}

/// Asks a list, and remembers what it said of each record that it has met: finding the record is cheap, decoding it is
/// not.
pub(super) struct AddressLookups<T> {
    read: fn(&Found<'_>) -> T,
    by_record: HashMap<usize, T>,
}

impl<T: Clone + Default> AddressLookups<T> {
    pub(super) fn new(read: fn(&Found<'_>) -> T) -> Self {
        Self {
            read,
            by_record: HashMap::new(),
        }
    }

    /// The default where the list has no such network, does not cover the address's family, or is damaged there.
    pub(super) fn get(&mut self, list: &AddressList, address: IpAddr) -> T {
        let Some(reader) = &list.0 else {
            return T::default();
        };
        let Ok(found) = reader.lookup(address.to_canonical()) else {
            return T::default();
        };
        let Some(record) = found.offset() else {
            return T::default();
        };
        if let Some(known) = self.by_record.get(&record) {
            return known.clone();
        }
        let read = (self.read)(&found);
        if self.by_record.len() >= REMEMBERED {
            self.by_record.clear();
        }
        self.by_record.insert(record, read.clone());
        read
    }
}

#[cfg(test)]
mod tests {
    use mmdb_writer::{Value, Writer};

    use super::*;

    fn list(networks: &[(&str, Value)]) -> AddressList {
        AddressList::from_bytes(bytes(networks)).unwrap()
    }

    fn bytes(networks: &[(&str, Value)]) -> Vec<u8> {
        let mut writer = Writer::new("test");
        for (network, record) in networks {
            let network: ipnet::IpNet = network.parse().unwrap();
            writer.insert_value(network, record.clone()).unwrap();
        }
        writer.to_bytes().unwrap()
    }

    fn flat(code: &str) -> Value {
        Value::map([("country_code", Value::from(code))])
    }

    fn city(name: &str, country: &str) -> Value {
        let names = Value::map([("en", Value::from(name)), ("de", Value::from("anders"))]);
        Value::map([
            ("city", Value::map([("names", names)])),
            ("country", Value::map([("iso_code", Value::from(country))])),
        ])
    }

    fn place(
        lookups: &mut AddressLookups<AddressPlace>,
        list: &AddressList,
        address: &str,
    ) -> String {
        let place = lookups.get(list, address.parse().unwrap());
        let city = place.city.as_deref().unwrap_or("-");
        format!("{} {city}", place.country.as_str())
    }

    #[test]
    fn countries_and_cities_are_read_in_every_form() {
        let nested = Value::map([
            ("country", Value::map([("iso_code", Value::from("SE"))])),
            ("continent", Value::map([("code", Value::from("EU"))])),
        ]);
        let plain = Value::map([
            ("city", Value::from("Lyon")),
            ("country_code", Value::from("FR")),
        ]);
        let list = list(&[
            ("81.2.69.0/24", flat("GB")),
            ("89.160.20.0/24", nested),
            ("2001:4860::/32", flat("us")),
            ("5.5.5.0/24", flat("Atlantis")),
            ("6.6.6.0/24", Value::map([("asn", Value::from(7_u32))])),
            ("7.7.7.0/24", city("London", "CA")),
            ("8.8.8.0/24", plain),
            ("9.9.9.0/24", Value::map([("city", Value::from("Nowhere"))])),
        ]);
        let mut lookups = AddressLookups::new(AddressPlace::read);
        for _ in 0..2 {
            for (address, expected) in [
                ("81.2.69.142", "GB -"),
                ("::ffff:81.2.69.1", "GB -"),
                ("89.160.20.128", "SE -"),
                ("2001:4860:4860::8888", "US -"),
                ("5.5.5.5", "unknown -"),
                ("6.6.6.6", "unknown -"),
                ("7.7.7.7", "CA London, CA"),
                ("8.8.8.8", "FR Lyon, FR"),
                ("9.9.9.9", "unknown Nowhere"),
                ("127.0.0.1", "unknown -"),
                ("2a00::1", "unknown -"),
            ] {
                assert_eq!(place(&mut lookups, &list, address), expected, "{address}");
            }
        }
    }

    #[test]
    fn networks_have_the_name_of_their_organisation() {
        let organisation = |name: &str| {
            Value::map([
                ("autonomous_system_number", Value::from(64_500_u32)),
                ("autonomous_system_organization", Value::from(name)),
            ])
        };
        let list = list(&[
            ("81.2.69.0/24", organisation("Example Telecom")),
            ("5.5.5.0/24", organisation("a\nb")),
            ("6.6.6.0/24", organisation(&"x".repeat(300))),
            ("7.7.7.0/24", flat("DE")),
        ]);
        let mut lookups = AddressLookups::new(read_network);
        let mut network = |address: &str| lookups.get(&list, address.parse().unwrap());
        for _ in 0..2 {
            assert_eq!(network("81.2.69.1").as_deref(), Some("Example Telecom"));
            assert_eq!(network("5.5.5.5").as_deref(), Some("a\u{fffd}b"));
            assert_eq!(network("6.6.6.6").map(|name| name.len()), Some(255));
            assert_eq!(network("7.7.7.7"), None);
            assert_eq!(network("127.0.0.1"), None);
        }
    }

    #[test]
    fn without_a_list_nothing_is_known() {
        let mut lookups = AddressLookups::new(AddressPlace::read);
        let none = AddressList::none();
        assert_eq!(place(&mut lookups, &none, "8.8.8.8"), "unknown -");
    }

    #[test]
    fn a_file_that_is_no_list_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("countries.mmdb");
        assert!(AddressList::open(&path).is_err());
        std::fs::write(&path, b"not a list").unwrap();
        assert!(AddressList::open(&path).is_err());
    }

    #[test]
    fn mutated_lists_are_refused_or_name_codes_of_two_letters() {
        let nested = Value::map([("country", Value::map([("iso_code", Value::from("SE"))]))]);
        let sample = bytes(&[
            ("81.2.69.0/24", flat("GB")),
            ("89.160.20.0/24", nested),
            ("2001:4860::/32", city("Paris", "fr")),
        ]);
        let words: [&[u8]; 6] = [
            b"country_code",
            b"iso_code",
            b"\x44city",
            b"\x42GB",
            b"\xe1\x47country",
            b"\x20\x00",
        ];
        curt_testkit::fuzz::Fuzz::new("address list", [sample])
            .with_words(words)
            .run(|input| {
                let Ok(list) = AddressList::from_bytes(input.to_vec()) else {
                    return false;
                };
                let mut lookups = AddressLookups::new(AddressPlace::read);
                for address in [
                    "81.2.69.142",
                    "89.160.20.128",
                    "2001:4860:4860::8888",
                    "127.0.0.1",
                ] {
                    let place = lookups.get(&list, address.parse().unwrap());
                    let code = place.country.as_str();
                    assert!(
                        code == "unknown" || code.len() == 2 && code.is_ascii(),
                        "{code:?}"
                    );
                    assert!(place.city.is_none_or(|city| city.len() <= VALUE_BYTES_MAX));
                }
                true
            });
    }
}

use std::io::{self, ErrorKind};

/// An answer: its head as it came, and its body without framing.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status line and headers, byte for byte, with the empty line at their end.
    pub raw_head: Vec<u8>,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    pub status: u16,
    pub reason: String,
    /// In order, names as they were written.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

pub(super) fn malformed(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

impl Response {
    /// The value of a header that is there once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.header_values(name);
        let first = values.next();
        first.filter(|_| values.next().is_none())
    }

    /// All values of a header.
    pub fn header_values<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.headers
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text, with anything that is no UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> io::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .map_err(|error| malformed(format!("no JSON: {error}: {}", self.text())))
    }

    /// Whether the server will read another request on this connection.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        let says = |word: &str| {
            self.header_values("connection")
                .flat_map(|value| value.split(','))
                .any(|own| own.trim().eq_ignore_ascii_case(word))
        };
        let framed = self.header("content-length").is_some()
            || self.header("transfer-encoding").is_some()
            || self.has_no_body();
        framed && !says("close") && (self.minor_version == 1 || says("keep-alive"))
    }

    fn has_no_body(&self) -> bool {
        matches!(self.status, 100..=199 | 204 | 304)
    }

    /// Reads a head that ends with an empty line. Anything that the standard does not allow to be sent is an error.
    pub(super) fn parse_head(raw: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(raw).map_err(|_| malformed("a head that is no text"))?;
        let text = text
            .strip_suffix("\r\n\r\n")
            .ok_or_else(|| malformed("a head without an empty line"))?;
        let mut lines = text.split("\r\n");
        let (minor_version, status, reason) = parse_status_line(lines.next().unwrap_or_default())?;
        let headers = lines.map(parse_header).collect::<io::Result<_>>()?;
        Ok(Self {
            raw_head: raw.to_vec(),
            minor_version,
            status,
            reason,
            headers,
            body: Vec::new(),
        })
    }

    /// Where the body of an answer to `method` ends.
    pub(super) fn framing(&self, method: &str) -> io::Result<Framing> {
        let lengths: Vec<&str> = self.header_values("content-length").collect();
        let coded: Vec<&str> = self.header_values("transfer-encoding").collect();
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let framing = match (lengths.as_slice(), coded.as_slice()) {
            ([], []) => Framing::UntilClose,
            ([length], []) if digits(length) => {
                let length = length.parse();
                Framing::Length(length.map_err(|_| malformed("an endless Content-Length"))?)
            }
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
            _ => {
                let what = format!("Content-Length {lengths:?}, Transfer-Encoding {coded:?}");
                return Err(malformed(what));
            }
        };
        if method == "HEAD" || self.has_no_body() {
            return Ok(Framing::Length(0));
        }
        Ok(framing)
    }
}

fn parse_status_line(line: &str) -> io::Result<(u8, u16, String)> {
    let wrong = || malformed(format!("the status line {line:?}"));
    let (version, rest) = line.split_once(' ').ok_or_else(wrong)?;
    let minor = match version {
        "HTTP/1.0" => 0,
        "HTTP/1.1" => 1,
        _ => return Err(wrong()),
    };
    let (code, reason) = rest.split_once(' ').ok_or_else(wrong)?;
    let three_digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let status = code.parse().ok().filter(|_| three_digits);
    Ok((minor, status.ok_or_else(wrong)?, reason.to_owned()))
}

fn parse_header(line: &str) -> io::Result<(String, String)> {
    let wrong = || malformed(format!("the header line {line:?}"));
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let visible = |byte: u8| byte == b'\t' || byte >= b' ' && byte != 0x7F;
    if name.is_empty() || !name.bytes().all(symbol) || !value.bytes().all(visible) {
        return Err(wrong());
    }
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

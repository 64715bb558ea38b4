use std::fmt;

use aws_sdk_dynamodb::config::Credentials;
use curt_adapter_kit::address::Address;
use curt_core::{ErrorKind, PortError, PortResult};

use crate::failure::BACKEND;

/// Table names have 255 bytes, of which curt needs a few.
const PREFIX_BYTES_MAX: usize = 200;

/// What an address says, ready to connect.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) region: String,
    /// What the names of tables begin with.
    pub(crate) prefix: String,
    /// Where the service is, if not where the region has it.
    pub(crate) endpoint: Option<String>,
    pub(crate) credentials: Credentials,
}

impl Route {
    /// `environment` is asked for credentials that the address leaves out.
    pub(crate) fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&["endpoint"]).map_err(invalid)?;
        if address.scheme != "dynamodb" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        let region = match &address.hosts[..] {
            [region] if region.port.is_none() && is_name(&region.name) => region.name.clone(),
            _ => {
                return Err(invalid(
                    "after dynamodb:// stands a region; where the service is, says ?endpoint=http://host:port",
                ));
            }
        };
        let [prefix] = &address.path[..] else {
            return Err(invalid(
                "it names one prefix of tables: dynamodb://region/prefix",
            ));
        };
        if !is_name(prefix) || prefix.len() > PREFIX_BYTES_MAX {
            return Err(invalid(format!(
                "{prefix:?} cannot begin the names of tables: letters, digits, _, - and ., {PREFIX_BYTES_MAX} at most"
            )));
        }
        let endpoint = address.parameter("endpoint").map(str::to_owned);
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if endpoint.as_ref().is_some_and(|url| !is_url(url)) {
            return Err(invalid("an endpoint begins with http:// or https://"));
        }
        Ok(Self {
            region,
            prefix: prefix.clone(),
            endpoint,
            credentials: credentials(&address, environment)?,
        })
    }
}

fn credentials(
    address: &Address,
    environment: impl Fn(&str) -> Option<String>,
) -> PortResult<Credentials> {
    let new = |key: String, secret: String, token: Option<String>| {
        Credentials::new(key, secret, token, None, "curt")
    };
    match (&address.user, &address.password) {
        (Some(key), Some(secret)) => return Ok(new(key.clone(), secret.clone(), None)),
        (None, None) => {}
        _ => return Err(invalid("an access key and its secret key go together")),
    }
    let key = environment("AWS_ACCESS_KEY_ID");
    let secret = environment("AWS_SECRET_ACCESS_KEY");
    let (Some(key), Some(secret)) = (key, secret) else {
        return Err(invalid(
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write dynamodb://KEY:SECRET@region/prefix",
        ));
    };
    Ok(new(key, secret, environment("AWS_SESSION_TOKEN")))
}

/// Region and prefix; nothing secret.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.region, self.prefix)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({self})")
    }
}

fn is_name(name: &str) -> bool {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_symbol)
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn every_part_is_read() {
        let text = "dynamodb://me:p%2Fw@eu-central-1/curt.blue?endpoint=http://127.0.0.1:8000";
        let route = Route::parse(text, bare).unwrap();
        assert_eq!(
            (&*route.region, &*route.prefix),
            ("eu-central-1", "curt.blue")
        );
        assert_eq!(route.endpoint.as_deref(), Some("http://127.0.0.1:8000"));
        assert_eq!(route.credentials.access_key_id(), "me");
        assert_eq!(route.credentials.secret_access_key(), "p/w");
    }

    #[test]
    fn credentials_come_from_the_environment_where_the_address_has_none() {
        let environment = |name: &str| Some(format!("the-{name}"));
        let route = Route::parse("dynamodb://eu-central-1/curt", environment).unwrap();
        let credentials = route.credentials;
        assert_eq!(credentials.access_key_id(), "the-AWS_ACCESS_KEY_ID");
        assert_eq!(credentials.session_token(), Some("the-AWS_SESSION_TOKEN"));
        let error = Route::parse("dynamodb://eu-central-1/curt", bare).unwrap_err();
        assert!(error.detail.contains("AWS_ACCESS_KEY_ID"), "{error}");
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_its_secret() {
        for wrong in [
            "dynamodb://u:hush@eu",
            "dynamodb://u:hush@eu/",
            "dynamodb://u:hush@eu/a/b",
            "dynamodb://u:hush@eu:8000/a",
            "dynamodb://u:hush@eu,us/a",
            "dynamodb://u:hush@eu/a%20b",
            "dynamodb://:hush@eu/a",
            "dynamodb://u:hush@eu/a?region=us",
            "dynamodb://u:hush@eu/a?endpoint=127.0.0.1:8000",
            "dynamo://u:hush@eu/a",
        ] {
            let error = Route::parse(wrong, bare).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(!format!("{error:?}").contains("hush"), "{wrong}: {error}");
        }
    }
}

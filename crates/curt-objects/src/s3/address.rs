use std::fmt;

use curt_core::{PortError, PortResult};
use ureq::tls::{Certificate, PemItem, RootCerts};

use super::asked;
use super::sign::{Credentials, encode};
use curt_adapter_kit::address::Address;

const PARAMETERS: [&str; 3] = ["region", "endpoint", "ca"];
const DEFAULT_REGION: &str = "us-east-1";

/// What an address says, ready to ask.
pub(super) struct Route {
    pub(super) credentials: Credentials,
    pub(super) region: String,
    /// `https://host`, without a slash at the end.
    pub(super) origin: String,
    pub(super) host: String,
    /// What comes before the names of objects in a request's path, percent-encoded, with a slash at the end.
    pub(super) bucket_path: String,
    /// What comes before the names of key files in the names of objects: empty, or with a slash at the end.
    pub(super) prefix: String,
    pub(super) authorities: Option<RootCerts>,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.origin, self.bucket_path, self.prefix)
    }
}

impl Route {
    /// `environment` is asked for what the address leaves out.
    pub(super) fn parse(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&PARAMETERS).map_err(invalid)?;
        if address.scheme != "s3" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        let [bucket] = &address.hosts[..] else {
            return Err(invalid("an address names one bucket"));
        };
        if bucket.port.is_some() {
            return Err(invalid(
                "after s3:// stands a bucket; where the service is, says ?endpoint=http://host:port",
            ));
        }
        let region = address.parameter("region").map(str::to_owned);
        let region = region
            .or_else(|| environment("AWS_REGION"))
            .or_else(|| environment("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| DEFAULT_REGION.into());
        let (origin, bucket_path) = match address.parameter("endpoint") {
            Some(endpoint) => (endpoint.trim_end_matches('/').into(), in_path(&bucket.name)),
            // The service's certificate is for names with one label before its own.
            None if bucket.name.contains('.') => (
                format!("https://s3.{region}.amazonaws.com"),
                in_path(&bucket.name),
            ),
            None => (
                format!("https://{}.s3.{region}.amazonaws.com", bucket.name),
                "/".into(),
            ),
        };
        let mut prefix = address.path.join("/");
        if !prefix.is_empty() {
            prefix.push('/');
        }
        Ok(Self {
            credentials: credentials(&address, environment)?,
            host: host_of(&origin)?,
            region,
            origin,
            bucket_path,
            prefix,
            authorities: authorities(&address)?,
        })
    }
}

fn in_path(bucket: &str) -> String {
    format!("/{}/", encode(bucket, false))
}

fn host_of(origin: &str) -> PortResult<String> {
    let host = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    host.filter(|host| !host.is_empty() && !host.contains(['/', '?', '@', ' ']))
        .map(str::to_owned)
        .ok_or_else(|| invalid("an endpoint is http:// or https:// and a host"))
}

fn credentials(
    address: &Address,
    environment: impl Fn(&str) -> Option<String>,
) -> PortResult<Credentials> {
    if let (Some(access_key), Some(secret_key)) = (&address.user, &address.password) {
        return Ok(Credentials {
            access_key: access_key.clone(),
            secret_key: secret_key.clone(),
            session_token: None,
        });
    }
    if address.user.is_some() || address.password.is_some() {
        return Err(invalid("an access key and its secret key go together"));
    }
    let access_key = environment("AWS_ACCESS_KEY_ID");
    let secret_key = environment("AWS_SECRET_ACCESS_KEY");
    let (Some(access_key), Some(secret_key)) = (access_key, secret_key) else {
        return Err(invalid(
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write s3://KEY:SECRET@bucket",
        ));
    };
    Ok(Credentials {
        access_key,
        secret_key,
        session_token: environment("AWS_SESSION_TOKEN"),
    })
}

/// The authorities that the address names. Read once: a wrong path must show at the start.
fn authorities(address: &Address) -> PortResult<Option<RootCerts>> {
    let Some(path) = address.parameter("ca") else {
        return Ok(None);
    };
    let unreadable = || format!("the authority's certificate {path:?} cannot be read");
    let pem = std::fs::read(path).map_err(|error| invalid(unreadable()).with_source(error))?;
    let items = ureq::tls::parse_pem(&pem);
    let certificates: Vec<Certificate<'static>> = items
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(invalid(unreadable()));
    }
    Ok(Some(RootCerts::new_with_certs(&certificates)))
}

fn invalid(detail: impl Into<String>) -> PortError {
    asked("read the address").invalid(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PortResult<Route> {
        Route::parse(text, |_| None)
    }

    #[test]
    fn a_bucket_is_a_host_and_with_an_endpoint_a_folder() {
        let route = parse("s3://K:s%2Fs@keys/curt/prod?region=eu-west-1").unwrap();
        assert_eq!(route.origin, "https://keys.s3.eu-west-1.amazonaws.com");
        assert_eq!((&*route.bucket_path, &*route.prefix), ("/", "curt/prod/"));
        assert_eq!(route.credentials.secret_key, "s/s");
        let route = parse("s3://K:s@my.keys").unwrap();
        assert_eq!(route.origin, "https://s3.us-east-1.amazonaws.com");
        assert_eq!((&*route.bucket_path, &*route.prefix), ("/my.keys/", ""));
        let route = parse("s3://K:s@keys/a?endpoint=http://127.0.0.1:9000/").unwrap();
        assert_eq!(route.host, "127.0.0.1:9000");
        assert_eq!((&*route.bucket_path, &*route.prefix), ("/keys/", "a/"));
    }

    #[test]
    fn the_environment_fills_in() {
        let environment = |name: &str| Some(format!("the-{name}"));
        let route = Route::parse("s3://keys", environment).unwrap();
        assert_eq!(route.region, "the-AWS_REGION");
        let credentials = &route.credentials;
        assert_eq!(credentials.access_key, "the-AWS_ACCESS_KEY_ID");
        assert_eq!(
            credentials.session_token.as_deref(),
            Some("the-AWS_SESSION_TOKEN")
        );
        let route = Route::parse("s3://K:s@keys?region=r", environment).unwrap();
        assert_eq!(route.region, "r");
        assert_eq!(route.credentials.session_token, None);
    }

    #[test]
    fn wrong_addresses_are_refused_without_showing_the_secret() {
        for wrong in [
            "s3://keys",
            "s3://K@keys",
            "s3://K:hush@a,b",
            "s3://K:hush@host:9000/keys",
            "s3://K:hush@keys?endpoint=127.0.0.1:9000",
            "s3://K:hush@keys?endpoint=http://a/b",
            "s3://K:hush@keys?bucket=a",
            "s3://K:hush@keys?ca=/no/such/file",
            "hdfs://K:hush@keys",
        ] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error.kind, curt_core::ErrorKind::Invalid, "{wrong}");
            assert!(
                !format!("{error}{error:?}").contains("hush"),
                "{wrong}: {error}"
            );
        }
    }
}

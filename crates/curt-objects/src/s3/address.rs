use curt_adapter_kit::address::Address;
use curt_core::{PortError, PortResult};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use ureq::tls::{Certificate, PemItem, RootCerts};
use url::Url;

use super::operation;

const PARAMETERS: [&str; 3] = ["region", "endpoint", "ca"];
const DEFAULT_REGION: &str = "us-east-1";

/// What an address says, ready to ask.
#[derive(Debug)]
pub(super) struct S3Address {
    pub(super) bucket: Bucket,
    pub(super) credentials: Credentials,
    /// What comes before the names of key files in the names of objects: empty, or with a slash at the end.
    pub(super) prefix: String,
    pub(super) authorities: Option<RootCerts>,
}

impl S3Address {
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
        // In a URL they would lead to other objects, or to another bucket.
        if address
            .path
            .iter()
            .any(|part| matches!(&**part, "." | ".."))
        {
            return Err(invalid("a prefix has no parts \".\" and \"..\""));
        }
        let mut prefix = address.path.join("/");
        if !prefix.is_empty() {
            prefix.push('/');
        }
        Ok(Self {
            bucket: bucket(&address, &environment)?,
            credentials: credentials(&address, &environment)?,
            prefix,
            authorities: authorities(&address)?,
        })
    }
}

fn bucket(address: &Address, environment: impl Fn(&str) -> Option<String>) -> PortResult<Bucket> {
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
    let (endpoint, style) = match address.parameter("endpoint") {
        Some(endpoint) => (endpoint.to_owned(), UrlStyle::Path),
        None => {
            let endpoint = format!("https://s3.{region}.amazonaws.com");
            // The service's certificate is for names with one label before its own.
            let is_label = !bucket.name.contains('.');
            (
                endpoint,
                if is_label {
                    UrlStyle::VirtualHost
                } else {
                    UrlStyle::Path
                },
            )
        }
    };
    let wrong = "an endpoint is http:// or https:// and a host";
    let endpoint = Url::parse(&endpoint).map_err(|error| invalid(wrong).with_source(error))?;
    if endpoint.path() != "/" || endpoint.query().is_some() || !endpoint.username().is_empty() {
        return Err(invalid(wrong));
    }
    Bucket::new(endpoint, style, bucket.name.clone(), region)
        .map_err(|error| invalid(wrong).with_source(error))
}

fn credentials(
    address: &Address,
    environment: impl Fn(&str) -> Option<String>,
) -> PortResult<Credentials> {
    match (&address.user, &address.password) {
        (Some(key), Some(secret)) => return Ok(Credentials::new(key, secret)),
        (None, None) => {}
        _ => return Err(invalid("an access key and its secret key go together")),
    }
    let key = environment("AWS_ACCESS_KEY_ID");
    let secret = environment("AWS_SECRET_ACCESS_KEY");
    let (Some(key), Some(secret)) = (key, secret) else {
        return Err(invalid(
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write s3://KEY:SECRET@bucket",
        ));
    };
    Ok(match environment("AWS_SESSION_TOKEN") {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
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
    operation("read the address").invalid(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PortResult<S3Address> {
        S3Address::parse(text, |_| None)
    }

    fn url(address: &S3Address) -> String {
        address.bucket.object_url(&address.prefix).to_string()
    }

    #[test]
    fn a_bucket_is_a_host_and_with_an_endpoint_a_folder() {
        let address = parse("s3://K:s%2Fs@keys/curt/prod?region=eu-west-1").unwrap();
        let want = "https://keys.s3.eu-west-1.amazonaws.com/curt/prod/";
        assert_eq!(url(&address), want);
        assert_eq!(address.credentials.secret(), "s/s");
        let address = parse("s3://K:s@my.keys").unwrap();
        assert_eq!(url(&address), "https://s3.us-east-1.amazonaws.com/my.keys/");
        let address = parse("s3://K:s@keys/a?endpoint=http://127.0.0.1:9000/").unwrap();
        assert_eq!(url(&address), "http://127.0.0.1:9000/keys/a/");
    }

    #[test]
    fn the_environment_fills_in() {
        let environment = |name: &str| Some(format!("the-{name}"));
        let address = S3Address::parse("s3://keys", environment).unwrap();
        assert_eq!(address.bucket.region(), "the-AWS_REGION");
        let credentials = &address.credentials;
        assert_eq!(credentials.key(), "the-AWS_ACCESS_KEY_ID");
        assert_eq!(credentials.token(), Some("the-AWS_SESSION_TOKEN"));
        let address = S3Address::parse("s3://K:s@keys?region=r", environment).unwrap();
        assert_eq!(address.bucket.region(), "r");
        assert_eq!(address.credentials.token(), None);
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
            "s3://K:hush@keys/a/../../other",
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

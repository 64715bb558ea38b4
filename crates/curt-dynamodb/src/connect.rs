//! The client, and the tables that it needs.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedHttpClient};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use curt_core::PortResult;

use crate::address::Route;
use crate::schema;
use crate::settings::DynamoDbSettings;

/// One attempt to reach the service and to bring the tables up to date.
pub(crate) async fn connect(
    route: Arc<Route>,
    settings: Arc<DynamoDbSettings>,
) -> PortResult<Client> {
    schema::migrate(&schema_client(&route, &settings), &route).await?;
    Ok(new_client(&route, &settings, settings.call_timeout / 2))
}

/// A client for tables, which take longer than items.
pub(crate) fn schema_client(route: &Route, settings: &DynamoDbSettings) -> Client {
    new_client(route, settings, settings.background_timeout)
}

/// A client that connects with its first request, and waits so long for each answer.
fn new_client(route: &Route, settings: &DynamoDbSettings, answer_timeout: Duration) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout)
        .operation_timeout(answer_timeout)
        .build();
    let mut config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(route.region.clone()))
        .credentials_provider(route.credentials.clone())
        .http_client(http_client(route))
        .timeout_config(timeouts)
        // Repeated by those who can tell what became of it, in the time that is left of the call.
        .retry_config(RetryConfig::disabled());
    config.set_endpoint_url(route.endpoint.clone());
    Client::from_conf(config.build())
}

fn http_client(route: &Route) -> SharedHttpClient {
    let is_plain = |endpoint: &str| endpoint.starts_with("http://");
    match route.endpoint.as_deref().is_some_and(is_plain) {
        true => Builder::new().build_http(),
        false => Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https(),
    }
}

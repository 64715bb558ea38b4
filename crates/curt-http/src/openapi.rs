//! The OpenAPI document: what the handlers' annotations do not say.

use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};

pub(crate) const PATH: &str = "/api/openapi.json";

const DESCRIPTION: &str = "\
Make short links, manage them, and follow them.

Every error is a problem document (RFC 9457) with a stable `code`; a client that asks for `text/html` gets a page \
instead. Times are RFC 3339. Bodies are UTF-8 JSON; fields that are unknown or given twice are refused. A link that \
belongs to somebody else is answered like one that does not exist.";

/// Everything but the paths.
pub(crate) fn preamble() -> OpenApi {
    let info = InfoBuilder::new()
        .title("curt")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(
            LicenseBuilder::new()
                .name("MIT OR Apache-2.0")
                .identifier(Some("MIT OR Apache-2.0"))
                .build(),
        ))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .components(Some(
            ComponentsBuilder::new()
                .security_scheme("bearer", bearer())
                .security_scheme("header", header("X-Api-Key"))
                .build(),
        ))
        .security(Some([requirement("bearer"), requirement("header")]))
        .tags(Some([
            tag("links", "Links as a REST resource."),
            tag(
                "original",
                "The two operations of the API as it was first written down.",
            ),
            tag("redirect", "What visitors use."),
            tag("health", "For whoever watches the server."),
        ]))
        .build()
}

fn bearer() -> SecurityScheme {
    SecurityScheme::Http(
        HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, made with `curt key add NAME`."))
            .build(),
    )
}

fn header(name: &str) -> SecurityScheme {
    SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)))
}

fn requirement(name: &str) -> SecurityRequirement {
    SecurityRequirement::new(name, Vec::<String>::new())
}

fn tag(name: &str, description: &str) -> utoipa::openapi::Tag {
    TagBuilder::new()
        .name(name)
        .description(Some(description))
        .build()
}

//! The OpenAPI document: what the handlers' annotations do not say.

use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required,
};

pub(crate) const PATH: &str = "/api/openapi.json";

const DESCRIPTION: &str = "\
Make short links, manage them, and follow them; and the accounts of those who do.

Programs send an API key; a browser that is signed in has a cookie, which counts for changes only on the way from one \
of this server's own pages. A key has scopes: `read`, `create`, `manage`, and for administrators `admin`; a session has \
all that its user may do.

Every error is a problem document (RFC 9457) with a stable `code`; a client that asks for `text/html` gets a page \
instead. Times are RFC 3339. Bodies are UTF-8 JSON; fields that are unknown or given twice are refused. What \
belongs to somebody else is answered like what does not exist.";

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
                .security_scheme("parameter", parameter("api_dev_key"))
                .security_scheme("session", cookie("__Host-curt_session"))
                .build(),
        ))
        .security(Some(usual_ways()))
        .tags(Some([
            tag("links", "Links as a REST resource."),
            tag("stats", "Reports on clicks."),
            tag("permissions", "Who may follow private links."),
            tag("users", "People and their accounts."),
            tag("sessions", "Browsers that are signed in."),
            tag("keys", "API keys."),
            tag(
                "original",
                "The two operations of the API as it was first written down.",
            ),
            tag("redirect", "What visitors use."),
            tag("health", "For whoever watches the server."),
        ]))
        .build()
}

/// What the annotations cannot say: bodies that may be left out because the query can hold the same, and, where links
/// may be made without an API key, that none is needed.
pub(crate) fn finish(mut document: OpenApi, anonymous_create: bool) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let original = path.ends_with("URL");
        for operation in [&mut item.post, &mut item.delete].into_iter().flatten() {
            let creates = operation.operation_id.as_deref().is_some_and(is_create);
            if original && let Some(RefOr::T(body)) = &mut operation.request_body {
                body.required = Some(Required::False);
            }
            if creates && anonymous_create {
                let mut ways = operation.security.take().unwrap_or_else(usual_ways);
                ways.push(SecurityRequirement::default());
                operation.security = Some(ways);
            }
        }
    }
    document
}

fn is_create(operation: &str) -> bool {
    ["createLink", "createLinks", "createURL"].contains(&operation)
}

fn usual_ways() -> Vec<SecurityRequirement> {
    ["bearer", "header", "session"].map(requirement).into()
}

fn bearer() -> SecurityScheme {
    SecurityScheme::Http(
        HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "An API key, made here or with `curt api-key add NAME`.",
            ))
            .build(),
    )
}

fn header(name: &str) -> SecurityScheme {
    SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)))
}

fn cookie(name: &str) -> SecurityScheme {
    let cookie = ApiKeyValue::with_description(
        name,
        "A session, begun by signing in. Without TLS the cookie's name has no `__Host-`.",
    );
    SecurityScheme::ApiKey(ApiKey::Cookie(cookie))
}

fn parameter(name: &str) -> SecurityScheme {
    SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::new(name)))
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

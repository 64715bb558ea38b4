//! The OpenAPI document: what the handlers' annotations do not say.

use std::collections::BTreeMap;
use std::time::Duration;

use curt_links::LinkSettings;
use utoipa::openapi::path::PathItem;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required,
};

/// Where links are followed.
const KEY_PATH: &str = "/{key}";
pub(crate) const PATH: &str = "/api/openapi.json";

const DAY_SECONDS: u64 = 24 * 3_600;

const DESCRIPTION: &str = "\
Make short links, manage them, and follow them; and the accounts of those who do.

Programs send an API key; a browser that is signed in has a cookie, which counts for changes only on the way from one \
of this server's own pages. A key has scopes: `read`, `create`, `manage`, and for administrators `admin`; a session has \
all that its user may do.

Every error is a problem document (RFC 9457) with a stable `code`; a client that asks for `text/html` gets a page \
instead. Times are RFC 3339. Bodies are UTF-8 JSON; fields that are unknown or given twice are refused. What \
belongs to somebody else is answered like what does not exist.

Requests that are repeated get the same answer, apart from `Date`, `X-Request-Id` and what `RateLimit` says is left, with these \
exceptions. A create makes another link each time, unless it has an `Idempotency-Key`: then the answer has \
`Idempotent-Replayed: true` and shows the link as it is now. A name that the first request took (an alias, the name of an API \
key, an email address) is refused with 409. What the first request deleted, revoked or removed is answered with 404, and a \
deleted link with 410 as long as it can be restored. Secrets (tokens of keys and sessions, codes) are shown once, and each \
request makes new ones. A revision that has changed since is refused with 412.

Answers of 1 KiB and more are compressed for clients that send `Accept-Encoding: gzip`; single links are not, so that their \
`ETag` stays the one to edit with. A browser may use the API from a page of another origin, with an API key, if the server \
allows that origin.";

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
            tag("tags", "Tags of links."),
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
            tag("system", "The installation: its state, and what it needs."),
            tag("health", "For whoever watches the server."),
        ]))
        .build()
}

/// What the annotations cannot say: bodies that may be left out because the query can hold the same; where links may be
/// made without an API key, that none is needed; what the settings say about links; and under which address the server is
/// reached.
pub(crate) fn finish(
    mut document: OpenApi,
    anonymous_create: bool,
    links: &LinkSettings,
    base: &str,
) -> OpenApi {
    document.servers = Some(vec![ServerBuilder::new().url(base).build()]);
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
    if let Some(item) = document.paths.paths.get_mut(KEY_PATH) {
        add_forwarded_methods(item);
    }
    if let Some(components) = &mut document.components {
        for name in ["NewLink", "LinkChanges"] {
            let target = property(&mut components.schemas, name, "target");
            if let Some(target) = target {
                target.pattern = Some(target_pattern(&links.schemes));
            }
        }
        if let Some(expires_at) = description(&mut components.schemas, "NewLink", "expires_at") {
            expires_at.push_str(&default_life(links.default_expiry));
        }
    }
    document
}

/// What holds for `PUT` holds for every method of a link, but an annotation names one, and each needs an id of its own.
fn add_forwarded_methods(item: &mut PathItem) {
    let by = |method: &str| {
        let mut operation = item.put.clone()?;
        operation.operation_id = Some(format!("followBy{method}"));
        Some(operation)
    };
    let (patch, delete, options) = (by("Patch"), by("Delete"), by("Options"));
    (item.patch, item.delete, item.options) = (patch, delete, options);
}

type Schemas = BTreeMap<String, RefOr<Schema>>;

fn property<'a>(schemas: &'a mut Schemas, schema: &str, name: &str) -> Option<&'a mut Object> {
    match find_property(schemas, schema, name)? {
        RefOr::T(Schema::Object(property)) => Some(property),
        _ => None,
    }
}

/// The description of a property, whatever its form.
fn description<'a>(schemas: &'a mut Schemas, schema: &str, name: &str) -> Option<&'a mut String> {
    match find_property(schemas, schema, name)? {
        RefOr::T(Schema::Object(property)) => property.description.as_mut(),
        RefOr::T(Schema::OneOf(property)) => property.description.as_mut(),
        RefOr::Ref(property) => Some(&mut property.description),
        RefOr::T(_) => None,
    }
}

fn find_property<'a>(
    schemas: &'a mut Schemas,
    schema: &str,
    name: &str,
) -> Option<&'a mut RefOr<Schema>> {
    match schemas.get_mut(schema)? {
        RefOr::T(Schema::Object(object)) => object.properties.get_mut(name),
        _ => None,
    }
}

/// What every target matches: one of the schemes in upper or lower case and a host without a user's name before it, or,
/// where one of the usual schemes is put before it, a host with a dot alone.
fn target_pattern(schemes: &[Box<str>]) -> String {
    let is_usual = |scheme: &str| ["http", "https"].contains(&scheme);
    let host_alone = match schemes.iter().any(|scheme| is_usual(scheme)) {
        true => r"|[^\s/\\?#@:]+\.[^\s/\\?#@:.]",
        false => "",
    };
    format!(r"^(({})://[^/\\?#@]{host_alone})", in_any_case(schemes))
}

fn in_any_case(schemes: &[Box<str>]) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' => format!("[{}{letter}]", letter.to_ascii_uppercase()),
        '.' | '+' => format!("[{letter}]"),
        other => other.to_string(),
    };
    let spelled = |scheme: &str| scheme.chars().map(letter).collect::<String>();
    schemes
        .iter()
        .map(|scheme| spelled(scheme))
        .collect::<Vec<_>>()
        .join("|")
}

fn default_life(default_expiry: Option<Duration>) -> String {
    match default_expiry {
        None => " This server's default: never.".to_owned(),
        Some(life) if life.as_secs() % DAY_SECONDS == 0 => {
            let days = life.as_secs() / DAY_SECONDS;
            format!(" This server's default: {days} days after the link begins to redirect.")
        }
        Some(life) => {
            let seconds = life.as_secs();
            format!(" This server's default: {seconds} seconds after the link begins to redirect.")
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_of_targets_follows_the_schemes() {
        let pattern = target_pattern(&["http".into(), "ftp".into()]);
        assert_eq!(
            pattern,
            r"^(([Hh][Tt][Tt][Pp]|[Ff][Tt][Pp])://[^/\\?#@]|[^\s/\\?#@:]+\.[^\s/\\?#@:.])"
        );
        let other = target_pattern(&["x+y".into()]);
        assert_eq!(other, r"^(([Xx][+][Yy])://[^/\\?#@])");
    }
}

//! Keys that are, or may become, routes of the server itself.

/// Compared without regard to case, so that no look-alike of a route is given away either.
const WORDS: &[&str] = &[
    ".well-known",
    "account",
    "accounts",
    "admin",
    "administrator",
    "api",
    "app",
    "assets",
    "auth",
    "billing",
    "bulk",
    "cdn",
    "clicks",
    "config",
    "console",
    "createurl",
    "css",
    "dashboard",
    "deleteurl",
    "dev",
    "domains",
    "download",
    "errors",
    "export",
    "favicon.ico",
    "fonts",
    "graphql",
    "health",
    "healthz",
    "help",
    "icons",
    "images",
    "img",
    "import",
    "index",
    "index.html",
    "index.php",
    "info",
    "invite",
    "invites",
    "js",
    "key",
    "keys",
    "link",
    "links",
    "live",
    "livez",
    "login",
    "logout",
    "manage",
    "manifest.json",
    "me",
    "metrics",
    "new",
    "oauth",
    "oidc",
    "openapi",
    "openapi.json",
    "password",
    "ping",
    "preview",
    "privacy",
    "problems",
    "profile",
    "public",
    "qr",
    "ready",
    "readyz",
    "register",
    "report",
    "reports",
    "reset",
    "rest",
    "robots.txt",
    "root",
    "rpc",
    "search",
    "security",
    "security.txt",
    "session",
    "sessions",
    "settings",
    "setup",
    "shorten",
    "sign-in",
    "sign-out",
    "sign-up",
    "signin",
    "signout",
    "signup",
    "sitemap.xml",
    "sso",
    "static",
    "stats",
    "status",
    "support",
    "sw.js",
    "system",
    "tag",
    "tags",
    "terms",
    "test",
    "token",
    "tokens",
    "user",
    "users",
    "v1",
    "v2",
    "verify",
    "version",
    "webhook",
    "webhooks",
    "well-known",
    "www",
    "xmlrpc.php",
    "yourls-api.php",
];

/// Whether `key` must not be given to a link.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_reserved_in_any_case() {
        for key in [
            "api",
            "API",
            "Health",
            "metrics",
            "robots.txt",
            "favicon.ico",
            "Links",
        ] {
            assert!(is_reserved(key), "{key}");
        }
        assert!(!is_reserved("apis1"));
    }

    #[test]
    fn the_list_is_sorted_and_lower_case() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| *word == word.to_lowercase()));
    }
}

//! Every kind of error that a client can meet, with a name that never changes.

use http::StatusCode;

/// What went wrong, from the client's side. The slug is part of the API: it is never renamed or reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemCode {
    MalformedRequest,
    MalformedJson,
    CredentialsMissing,
    CredentialsInvalid,
    WrongCredentials,
    SignInNeeded,
    LinkPasswordWrong,
    CrossSite,
    ScopeMissing,
    SignUpClosed,
    InviteInvalid,
    LinkForbidden,
    BrowserNeeded,
    NotFound,
    LinkNotFound,
    LinkScheduled,
    MethodNotAllowed,
    HeaderTimeout,
    BodyTimeout,
    AliasTaken,
    EmailTaken,
    KeyNameTaken,
    TooMany,
    LinkGone,
    LinkExpired,
    LinkDisabled,
    LinkExhausted,
    CreatedLinkGone,
    LinkBlocked,
    StaleRevision,
    StaleAccount,
    BodyTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    InvalidInput,
    IdempotencyMismatch,
    RateLimited,
    TooManyAtOnce,
    HeadTooLarge,
    Internal,
    StoreUnavailable,
    KeysExhausted,
    Overloaded,
    TooManyConnections,
    TooManyBodies,
    TooManyFeeds,
    VersionNotSupported,
}

impl ProblemCode {
    /// In the order of their statuses.
    pub const ALL: [Self; 47] = [
        Self::MalformedRequest,
        Self::MalformedJson,
        Self::CredentialsMissing,
        Self::CredentialsInvalid,
        Self::WrongCredentials,
        Self::SignInNeeded,
        Self::LinkPasswordWrong,
        Self::CrossSite,
        Self::ScopeMissing,
        Self::SignUpClosed,
        Self::InviteInvalid,
        Self::LinkForbidden,
        Self::BrowserNeeded,
        Self::NotFound,
        Self::LinkNotFound,
        Self::LinkScheduled,
        Self::MethodNotAllowed,
        Self::HeaderTimeout,
        Self::BodyTimeout,
        Self::AliasTaken,
        Self::EmailTaken,
        Self::KeyNameTaken,
        Self::TooMany,
        Self::LinkGone,
        Self::LinkExpired,
        Self::LinkDisabled,
        Self::LinkExhausted,
        Self::CreatedLinkGone,
        Self::LinkBlocked,
        Self::StaleRevision,
        Self::StaleAccount,
        Self::BodyTooLarge,
        Self::UriTooLong,
        Self::UnsupportedMediaType,
        Self::InvalidInput,
        Self::IdempotencyMismatch,
        Self::RateLimited,
        Self::TooManyAtOnce,
        Self::HeadTooLarge,
        Self::Internal,
        Self::StoreUnavailable,
        Self::KeysExhausted,
        Self::Overloaded,
        Self::TooManyConnections,
        Self::TooManyBodies,
        Self::TooManyFeeds,
        Self::VersionNotSupported,
    ];

    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.slug() == slug)
    }

    /// The last part of the problem's `type`, and its `code`.
    #[must_use]
    pub fn slug(self) -> &'static str {
        self.facts().0
    }

    #[must_use]
    pub fn status(self) -> StatusCode {
        self.facts().1
    }

    /// A short summary, the same for every occurrence.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.facts().2
    }

    /// What the client can do about it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        self.facts().3
    }

    /// Whether it is about a short link that leads nowhere now, whoever asks.
    #[must_use]
    pub fn is_dead_link(self) -> bool {
        matches!(
            self,
            Self::LinkNotFound
                | Self::LinkScheduled
                | Self::LinkGone
                | Self::LinkExpired
                | Self::LinkDisabled
                | Self::LinkExhausted
        )
    }

    #[rustfmt::skip]
    #[expect(clippy::too_many_lines, reason = "a table, two lines for each code")]
    fn facts(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        match self {
            Self::MalformedRequest => ("malformed-request", StatusCode::BAD_REQUEST, "The request is malformed",
                "A header, the query or the path of the request does not follow its syntax. The detail names the part."),
            Self::MalformedJson => ("malformed-json", StatusCode::BAD_REQUEST, "The body is not valid JSON",
                "Check the body with a JSON tool: the detail gives the line and the column of the first error. Bodies are UTF-8 and at most 128 levels deep."),
            Self::CredentialsMissing => ("credentials-missing", StatusCode::UNAUTHORIZED, "An API key is needed",
                "Send your API key as \"Authorization: Bearer KEY\" or \"X-Api-Key: KEY\". The operator of this server makes keys with \"curt api-key add NAME\"."),
            Self::CredentialsInvalid => ("credentials-invalid", StatusCode::UNAUTHORIZED, "The API key is not valid",
                "The key is unknown, revoked or expired. Check that it was copied whole, or ask the operator for a new one."),
            Self::CrossSite => ("cross-site", StatusCode::FORBIDDEN, "The request came from another site",
                "Without an API key this can be done only from one of this server's own pages, not by a page of another site."),
            Self::WrongCredentials => ("wrong-credentials", StatusCode::UNAUTHORIZED, "Email or password is wrong",
                "Check both and try again. An administrator can set a new password with \"curt user password EMAIL\"."),
            Self::SignInNeeded => ("sign-in-needed", StatusCode::UNAUTHORIZED, "This link is private",
                "Sign in, or send an API key, of somebody who may follow it."),
            Self::LinkPasswordWrong => ("link-password-wrong", StatusCode::UNAUTHORIZED, "The password of the link is missing or wrong",
                "Send the password that you got with the link, as the field \"password\" of a form, by POST."),
            Self::ScopeMissing => ("scope-missing", StatusCode::FORBIDDEN, "The credentials do not allow this",
                "Use an API key that has the scope that the detail names, or an administrator's where it is \"admin\"."),
            Self::SignUpClosed => ("sign-up-closed", StatusCode::FORBIDDEN, "Signing up is not open here",
                "Ask an administrator for an account or an invitation."),
            Self::InviteInvalid => ("invite-invalid", StatusCode::FORBIDDEN, "The invitation is not valid",
                "It is unknown, used or expired. Ask for a new one."),
            Self::LinkForbidden => ("link-forbidden", StatusCode::FORBIDDEN, "You may not follow this link",
                "It is private. Ask its owner to give you permission."),
            Self::BrowserNeeded => ("browser-needed", StatusCode::FORBIDDEN, "This link is opened in a browser",
                "It can be opened only so many times. Programs, HEAD and what browsers fetch ahead take none of these, and are not told where it leads."),
            Self::NotFound => ("not-found", StatusCode::NOT_FOUND, "There is nothing at this address",
                "Check the path. The API is described at /api."),
            Self::LinkNotFound => ("link-not-found", StatusCode::NOT_FOUND, "There is no such link",
                "Check the key, upper and lower case included. A link can be managed only with an API key of its owner."),
            Self::MethodNotAllowed => ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "The method is not allowed here",
                "The Allow header lists the methods that this address accepts."),
            Self::HeaderTimeout => ("header-timeout", StatusCode::REQUEST_TIMEOUT, "The header took too long to arrive",
                "Send request line and headers within five seconds."),
            Self::BodyTimeout => ("body-timeout", StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive",
                "Send the body without a pause of ten seconds, and at 64 KiB a second or more."),
            Self::AliasTaken => ("alias-taken", StatusCode::CONFLICT, "The alias is already taken",
                "Choose another alias, or leave it out to get a generated key. The alias of a deleted link stays taken for a while."),
            Self::EmailTaken => ("email-taken", StatusCode::CONFLICT, "Another account has this email",
                "Sign in with it, or choose another."),
            Self::KeyNameTaken => ("key-name-taken", StatusCode::CONFLICT, "Another API key has this name",
                "Choose another name, or revoke or rotate that key."),
            Self::TooMany => ("too-many", StatusCode::CONFLICT, "There are too many of these already",
                "Remove some that are not needed any more."),
            Self::LinkScheduled => ("link-scheduled", StatusCode::NOT_FOUND, "The link does not work yet",
                "It begins to work at a later time. Try again then, or ask whoever gave it to you."),
            Self::LinkGone => ("link-gone", StatusCode::GONE, "The link has been removed",
                "It was deleted, or expired some time ago. Ask whoever gave it to you for a new one."),
            Self::LinkExpired => ("link-expired", StatusCode::GONE, "The link has expired",
                "It was made to work until a certain time, which has passed. Ask whoever gave it to you for a new one."),
            Self::LinkDisabled => ("link-disabled", StatusCode::GONE, "The link is switched off",
                "An administrator of this server has switched it off; it may come back. Ask whoever gave it to you."),
            Self::LinkExhausted => ("link-exhausted", StatusCode::GONE, "The link has been used up",
                "It could be opened only so many times. Ask whoever gave it to you for a new one."),
            Self::CreatedLinkGone => ("created-link-gone", StatusCode::GONE, "The link that this request made is gone",
                "An earlier request with this Idempotency-Key made the link, and it was deleted or purged since. Use a new Idempotency-Key to make another link."),
            Self::LinkBlocked => ("link-blocked", StatusCode::GONE, "The link has been blocked",
                "Its target is on this server's list of blocked addresses. Do not open the target directly either."),
            Self::StaleAccount => ("stale-account", StatusCode::PRECONDITION_FAILED, "The account has changed in the meantime",
                "Read it again, and repeat the change."),
            Self::StaleRevision => ("stale-revision", StatusCode::PRECONDITION_FAILED, "The link has changed in the meantime",
                "Read the link again, look at what changed, and repeat the request with the new ETag in If-Match."),
            Self::BodyTooLarge => ("body-too-large", StatusCode::PAYLOAD_TOO_LARGE, "The body is too large",
                "An ordinary body has at most 64 KiB, a bulk body at most 4 MiB and 1,000 links. Send several requests."),
            Self::UriTooLong => ("uri-too-long", StatusCode::URI_TOO_LONG, "The address is too long",
                "Send long values in the body instead of the query."),
            Self::UnsupportedMediaType => ("unsupported-media-type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body has an unsupported type",
                "Set Content-Type to a type that the operation accepts, most often application/json."),
            Self::InvalidInput => ("invalid-input", StatusCode::UNPROCESSABLE_ENTITY, "Some of the input is not valid",
                "The list \"errors\" names each field with the reason."),
            Self::IdempotencyMismatch => ("idempotency-mismatch", StatusCode::UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request",
                "Use a new Idempotency-Key for each new request, and the same one only to repeat a request unchanged."),
            Self::RateLimited => ("rate-limited", StatusCode::TOO_MANY_REQUESTS, "Too many requests",
                "Wait for as many seconds as Retry-After says. RateLimit and RateLimit-Policy tell what is left of which limit."),
            Self::TooManyAtOnce => ("too-many-at-once", StatusCode::TOO_MANY_REQUESTS, "Too many requests at once",
                "Wait for the answers to your requests under way before you send more, or try again after the time in Retry-After."),
            Self::HeadTooLarge => ("head-too-large", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large",
                "Request line and headers together have at most 16 KiB and 64 fields."),
            Self::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong on our side",
                "The server's log tells the operator more: give them the X-Request-Id of the answer."),
            Self::StoreUnavailable => ("store-unavailable", StatusCode::SERVICE_UNAVAILABLE, "The link store does not answer",
                "Try again after the time in Retry-After. With an Idempotency-Key a create can be repeated safely."),
            Self::KeysExhausted => ("keys-exhausted", StatusCode::SERVICE_UNAVAILABLE, "No free key was found",
                "Try again, or choose an alias. If it stays so, the operator should set longer keys."),
            Self::Overloaded => ("overloaded", StatusCode::SERVICE_UNAVAILABLE, "The server has too much of this to do",
                "More is asked for at the same time than the server takes on, by you or by all together: lists, searches, reports, passwords. Ask for fewer at once, and try again after the time in Retry-After."),
            Self::TooManyConnections => ("too-many-connections", StatusCode::SERVICE_UNAVAILABLE, "The server is busy",
                "There are more connections than the server may hold. Try again after the time in Retry-After."),
            Self::TooManyBodies => ("too-many-bodies", StatusCode::SERVICE_UNAVAILABLE, "The server receives too much at once",
                "Requests under way hold as much as the server gives them. Try again after the time in Retry-After, or send less at once: small requests find room first."),
            Self::TooManyFeeds => ("too-many-feeds", StatusCode::SERVICE_UNAVAILABLE, "Too many live feeds are open",
                "A user, an address and the server have only so many at once. Close feeds that nobody looks at, or try again after the time in Retry-After."),
            Self::VersionNotSupported => ("version-not-supported", StatusCode::HTTP_VERSION_NOT_SUPPORTED, "The HTTP version is not supported",
                "This server speaks HTTP/1.1 and HTTP/1.0."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slugs_are_distinct_and_lead_back_to_their_code() {
        let slugs: HashSet<_> = ProblemCode::ALL.iter().map(|code| code.slug()).collect();
        assert_eq!(slugs.len(), ProblemCode::ALL.len());
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::from_slug(code.slug()), Some(code));
            assert!(code.status().is_client_error() || code.status().is_server_error());
        }
    }
}

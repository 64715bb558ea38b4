//! The problems that each operation can answer with, for the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::ToSchema;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder};

use crate::problem::{InvalidField, PROBLEM_JSON, Problem, ProblemBody, ProblemCode};

type Responses = BTreeMap<String, RefOr<Response>>;

/// One response per status, with an example per problem.
fn responses(codes: &[ProblemCode]) -> Responses {
    let mut by_status: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
    // Whatever asks a store may be refused by one that has too much to do.
    let asks_store = codes.contains(&ProblemCode::StoreUnavailable);
    let refused = asks_store.then_some(ProblemCode::Overloaded);
    for code in codes.iter().chain(&refused) {
        by_status
            .entry(code.status().as_u16())
            .or_default()
            .push(*code);
    }
    by_status
        .into_iter()
        .map(|(status, codes)| (status.to_string(), response(&codes).into()))
        .collect()
}

fn response(codes: &[ProblemCode]) -> Response {
    let titles: Vec<_> = codes.iter().map(|code| code.title()).collect();
    let examples = codes.iter().map(|code| {
        let example = ExampleBuilder::new().value(Some(example(*code))).build();
        (code.slug(), example)
    });
    let schema = Ref::from_schema_name(ProblemBody::name());
    let content = ContentBuilder::new()
        .schema(Some(schema))
        .examples_from_iter(examples)
        .build();
    let mut response = ResponseBuilder::new()
        .description(format!("{}.", titles.join("; or: ")))
        .content(PROBLEM_JSON, content);
    for (name, description) in headers(codes) {
        let header = HeaderBuilder::new().description(Some(description)).build();
        response = response.header(name, header);
    }
    response.build()
}

fn headers(codes: &[ProblemCode]) -> Vec<(&'static str, &'static str)> {
    match codes {
        [
            ProblemCode::CredentialsMissing
            | ProblemCode::WrongCredentials
            | ProblemCode::SignInNeeded,
            ..,
        ] => {
            vec![("WWW-Authenticate", "How to send an API key.")]
        }
        [
            ProblemCode::StoreUnavailable | ProblemCode::TooManyBodies | ProblemCode::TooManyFeeds,
            ..,
        ] => {
            vec![("Retry-After", "Seconds after which to try again.")]
        }
        [ProblemCode::TooManyAtOnce, ..] => {
            vec![("Retry-After", "Seconds after which to try again.")]
        }
        [ProblemCode::RateLimited, ..] => vec![
            ("Retry-After", "Seconds after which to try again."),
            (
                "RateLimit-Policy",
                "The limit: how much in how many seconds.",
            ),
            (
                "RateLimit",
                "What is left of it, and in how many seconds all of it is back.",
            ),
        ],
        [ProblemCode::StaleRevision, ..] => vec![("ETag", "The link's revision now.")],
        _ => Vec::new(),
    }
}

fn example(code: ProblemCode) -> Value {
    let problem = match code {
        ProblemCode::InvalidInput => Problem::invalid(vec![InvalidField::new(
            "target",
            "target_scheme",
            "The target must begin with one of: http, https.",
        )]),
        code => Problem::new(code),
    };
    json!(problem.body())
}

use ProblemCode as P;

macro_rules! documented {
    ($($(#[$doc:meta])* $name:ident: $($code:ident)+;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                responses(&[$(P::$code),+])
            }
        }
    )+};
}

documented! {
    CreateProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        BodyTimeout AliasTaken CreatedLinkGone BodyTooLarge UnsupportedMediaType InvalidInput IdempotencyMismatch
        RateLimited TooManyAtOnce Internal StoreUnavailable TooManyBodies KeysExhausted;
    BulkProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        BodyTimeout BodyTooLarge UnsupportedMediaType InvalidInput IdempotencyMismatch RateLimited TooManyAtOnce
        Internal StoreUnavailable TooManyBodies KeysExhausted;
    BulkChangeProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing BodyTimeout
        BodyTooLarge UnsupportedMediaType InvalidInput TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    TagsProblems: CredentialsMissing CredentialsInvalid ScopeMissing InvalidInput UriTooLong Internal StoreUnavailable;
    RenameTagProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing BodyTimeout BodyTooLarge
        UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    RemoveTagProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing UriTooLong InvalidInput Internal
        StoreUnavailable;
    ListProblems: CredentialsMissing CredentialsInvalid ScopeMissing InvalidInput UriTooLong Internal
        StoreUnavailable;
    ReadProblems: MalformedRequest CredentialsMissing CredentialsInvalid ScopeMissing LinkNotFound UriTooLong
        Internal StoreUnavailable;
    QrProblems: CredentialsMissing CredentialsInvalid ScopeMissing LinkNotFound UriTooLong InvalidInput Internal
        StoreUnavailable;
    ChangeProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        LinkNotFound BodyTimeout LinkGone StaleRevision BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput
        RateLimited TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    DeleteProblems: MalformedRequest CredentialsMissing CredentialsInvalid CrossSite ScopeMissing LinkNotFound
        LinkGone StaleRevision UriTooLong Internal StoreUnavailable;
    RestoreProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        LinkNotFound BodyTimeout StaleRevision BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce
        Internal StoreUnavailable TooManyBodies;
    SwitchProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing LinkNotFound UriTooLong Internal
        StoreUnavailable;
    ListPermissionsProblems: CredentialsMissing CredentialsInvalid ScopeMissing LinkNotFound UriTooLong InvalidInput
        Internal StoreUnavailable;
    GrantProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing LinkNotFound
        BodyTimeout TooMany BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce Internal
        StoreUnavailable TooManyBodies;
    DeletePermissionProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing LinkNotFound NotFound
        UriTooLong Internal StoreUnavailable;
    NewUserProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing SignUpClosed
        InviteInvalid BodyTimeout EmailTaken BodyTooLarge UnsupportedMediaType InvalidInput RateLimited
        TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    AdminListProblems: CredentialsMissing CredentialsInvalid ScopeMissing UriTooLong InvalidInput Internal
        StoreUnavailable;
    PlanProblems: CredentialsMissing CredentialsInvalid ScopeMissing UriTooLong InvalidInput Internal StoreUnavailable;
    AdminReadProblems: CredentialsMissing CredentialsInvalid ScopeMissing Internal StoreUnavailable;
    ReadUserProblems: CredentialsMissing CredentialsInvalid ScopeMissing NotFound UriTooLong Internal
        StoreUnavailable;
    UserChangeProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing NotFound
        BodyTimeout WrongCredentials EmailTaken BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput
        RateLimited TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    RemoveUserProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing NotFound UriTooLong InvalidInput
        Internal StoreUnavailable;
    PasswordProblems: MalformedJson CredentialsMissing CredentialsInvalid WrongCredentials CrossSite ScopeMissing
        NotFound BodyTimeout StaleAccount BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput RateLimited
        TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    SignInProblems: MalformedJson WrongCredentials CrossSite BodyTimeout BodyTooLarge UnsupportedMediaType
        InvalidInput RateLimited TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    ListSessionsProblems: CredentialsMissing CredentialsInvalid ScopeMissing Internal StoreUnavailable;
    EndProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing NotFound UriTooLong Internal
        StoreUnavailable;
    NewKeyProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing NotFound BodyTimeout
        KeyNameTaken TooMany BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce Internal
        StoreUnavailable TooManyBodies;
    RotateProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing NotFound BodyTimeout
        BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce Internal StoreUnavailable
        TooManyBodies;
    InviteProblems: MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing BodyTimeout
        BodyTooLarge UnsupportedMediaType InvalidInput TooManyAtOnce Internal StoreUnavailable TooManyBodies;
    LinkStatsProblems: CredentialsMissing CredentialsInvalid ScopeMissing LinkNotFound NotFound UriTooLong
        InvalidInput Internal StoreUnavailable;
    EraseProblems: CredentialsMissing CredentialsInvalid CrossSite ScopeMissing LinkNotFound NotFound UriTooLong
        InvalidInput Internal StoreUnavailable;
    StatsProblems: CredentialsMissing CredentialsInvalid ScopeMissing NotFound UriTooLong InvalidInput Internal
        StoreUnavailable;
    LinkLiveProblems: CredentialsMissing CredentialsInvalid ScopeMissing LinkNotFound NotFound UriTooLong
        InvalidInput TooManyFeeds Internal StoreUnavailable;
    LiveProblems: CredentialsMissing CredentialsInvalid ScopeMissing NotFound UriTooLong InvalidInput TooManyFeeds
        Internal StoreUnavailable;
    CreateUrlProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        BodyTimeout AliasTaken BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput RateLimited TooManyAtOnce
        Internal StoreUnavailable TooManyBodies KeysExhausted;
    DeleteUrlProblems: MalformedRequest MalformedJson CredentialsMissing CredentialsInvalid CrossSite ScopeMissing
        LinkNotFound BodyTimeout BodyTooLarge UriTooLong UnsupportedMediaType InvalidInput TooManyAtOnce Internal
        StoreUnavailable TooManyBodies;
    FollowProblems: SignInNeeded CredentialsInvalid LinkPasswordWrong ScopeMissing LinkForbidden BrowserNeeded
        LinkNotFound LinkScheduled LinkGone LinkExpired LinkDisabled LinkExhausted LinkBlocked UriTooLong RateLimited
        Internal StoreUnavailable;
    ForwardProblems: SignInNeeded CredentialsInvalid LinkPasswordWrong CrossSite ScopeMissing LinkForbidden BrowserNeeded
        LinkNotFound LinkScheduled MethodNotAllowed LinkGone LinkExpired LinkDisabled LinkExhausted LinkBlocked UriTooLong
        RateLimited Internal StoreUnavailable;
    UnlockProblems: MalformedRequest SignInNeeded CredentialsInvalid LinkPasswordWrong CrossSite ScopeMissing
        LinkForbidden BrowserNeeded LinkNotFound LinkScheduled MethodNotAllowed BodyTimeout LinkGone LinkExpired LinkDisabled LinkExhausted LinkBlocked BodyTooLarge UriTooLong UnsupportedMediaType RateLimited TooManyAtOnce
        Internal StoreUnavailable TooManyBodies;
}

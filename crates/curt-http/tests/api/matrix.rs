//! G11, H14: every endpoint × every method × everybody who could ask, in one table.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::{NewKey, Origin, UserRef};
use curt_core::reserved::is_reserved;
use curt_core::{Allowance, Clock, Role, Scope, Scopes};
use http::{Method, Request};
use tokio::task::JoinSet;

use crate::harness::{ADA, Answer, BASE, EVE, ROOT, World};

/// Who asks. What is asked for belongs to Ada.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    /// A key that was never made.
    Garbage,
    Revoked,
    Expired,
    /// A good key of a user who is kept out.
    Disabled,
    /// Bob, with all that a member may do.
    Stranger,
    /// Ada, with all that a member may do.
    Owner,
    /// Root, with all that an administrator may do.
    Admin,
    /// Ada's keys for one scope each.
    Read,
    Create,
    Manage,
    /// Root's key for that scope alone.
    AdminOnly,
    /// Ada's browser, from one of our pages.
    Session,
    /// Ada's browser, on the way from a page of another site.
    CrossSite,
}

/// Each with the column of the table that says what they get.
const EVERYBODY: [(Who, usize); 14] = [
    (Who::Nobody, 0),
    (Who::Garbage, 1),
    (Who::Revoked, 1),
    (Who::Expired, 1),
    (Who::Disabled, 1),
    (Who::Stranger, 2),
    (Who::Owner, 3),
    (Who::Admin, 4),
    (Who::Read, 5),
    (Who::Create, 6),
    (Who::Manage, 7),
    (Who::AdminOnly, 8),
    (Who::Session, 9),
    (Who::CrossSite, 10),
];

type Statuses = [u16; 11];
/// Method, path, body, and the statuses for everybody.
type Row = (&'static str, &'static str, &'static str, Statuses);

/// For all of them the same.
const fn all(status: u16) -> Statuses {
    [status; 11]
}

/// A form without the token of a page: whoever is not signed in is sent to do that.
const SIGNED_IN_FORM: Statuses = [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403];

/// A page for whoever is signed in; reading it from another site's link is no harm.
const SIGNED_IN_PAGE: Statuses = [303, 303, 303, 303, 303, 303, 303, 303, 303, 200, 200];

const NEW_USER: &str =
    r#"{"first_name":"Dan","last_name":"","email":"dan@example.com","password":"long enough"}"#;
const NEW_ADMIN: &str = r#"{"first_name":"Dan","last_name":"","email":"dan@example.com","password":"long enough","role":"admin"}"#;
const NEW_EMAIL: &str = r#"{"email":"new@example.com","current_password":"correct horse battery"}"#;
const SIGN_IN: &str = r#"{"email":"ada@example.com","password":"correct horse battery"}"#;
const OWN_PASSWORD: &str =
    r#"{"old_password":"correct horse battery","new_password":"another good one"}"#;
const SOMEBODYS_PASSWORD: &str = r#"{"new_password":"another good one"}"#;
const KEY_WITH_ALLOWANCE: &str = r#"{"name":"n","creations":{"amount":5,"period_seconds":60}}"#;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                              nobody  bad  stranger owner admin read create manage admin-only session cross-site
    ("GET",    "/api/v1/links", "",                   [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("HEAD",   "/api/v1/links", "",                   [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links?owner_id=1", "",           [401, 401, 403, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links?owner_id=all", "",         [401, 401, 403, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("POST",   "/api/v1/links", r#"{"target":"https://a.example/"}"#,
                                                      [401, 401, 201, 201, 201, 403, 201, 403, 403, 201, 403]),
    ("PUT",    "/api/v1/links", "{}",                 all(405)),
    ("PATCH",  "/api/v1/links", "{}",                 all(405)),
    ("DELETE", "/api/v1/links", "",                   all(405)),
    ("POST",   "/api/v1/links/bulk", r#"{"links":[{"target":"https://a.example/"}]}"#,
                                                      [401, 401, 200, 200, 200, 403, 200, 403, 403, 200, 403]),
    ("PATCH",  "/api/v1/links/bulk", r#"{"keys":["mine"],"change":"delete"}"#,
                                                      [401, 401, 200, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("PATCH",  "/api/v1/links/bulk", r#"{"keys":["mine"],"change":"disable"}"#,
                                                      [401, 401, 403, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("PUT",    "/api/v1/links/bulk", "{}",            all(405)),
    ("GET",    "/api/v1/links.csv", "",               [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links.csv?owner_id=all", "",  [401, 401, 403, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("POST",   "/api/v1/links.csv", "",               all(405)),
    ("GET",    "/api/v1/tags", "",                    [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("POST",   "/api/v1/tags", "{}",                  all(405)),
    ("PATCH",  "/api/v1/tags/a", r#"{"name":"b"}"#,   [401, 401, 200, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("DELETE", "/api/v1/tags/a", "",                  [401, 401, 200, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("GET",    "/api/v1/tags/a", "",                  all(405)),
    // A GET on `bulk` would be a link of that name, which is reserved: the path belongs to the POST.
    ("GET",    "/api/v1/links/bulk", "",              all(405)),
    ("GET",    "/api/v1/links/mine", "",              [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("HEAD",   "/api/v1/links/mine", "",              [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("PATCH",  "/api/v1/links/mine", r#"{"title":"t"}"#,
                                                      [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    // Whoever may not read does not read it back.
    ("PATCH",  "/api/v1/links/mine", "{}",            [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("PATCH",  "/api/v1/links/mine", r#"{"visibility":"private"}"#,
                                                      [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("POST",   "/api/v1/links/mine", "{}",            all(405)),
    ("PUT",    "/api/v1/links/mine", "{}",            all(405)),
    ("DELETE", "/api/v1/links/mine", "",              [401, 401, 404, 204, 204, 403, 403, 204, 403, 204, 403]),
    ("POST",   "/api/v1/links/mine/restore", "",      [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("POST",   "/api/v1/links/nope/restore", "",      [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("GET",    "/api/v1/links/mine/restore", "",      all(405)),
    ("GET",    "/api/v1/links/nope", "",              [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("PATCH",  "/api/v1/links/nope", "{}",            [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("DELETE", "/api/v1/links/nope", "",              [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("POST",   "/api/v1/links/mine/disable", "",      [401, 401, 403, 403, 200, 403, 403, 403, 204, 403, 403]),
    ("POST",   "/api/v1/links/mine/enable", "",       [401, 401, 403, 403, 200, 403, 403, 403, 204, 403, 403]),
    ("POST",   "/api/v1/links/nope/disable", "",      [401, 401, 403, 403, 404, 403, 403, 403, 404, 403, 403]),
    ("POST",   "/api/v1/links/nope/enable", "",       [401, 401, 403, 403, 404, 403, 403, 403, 404, 403, 403]),
    ("GET",    "/api/v1/links/mine/qr", "",           [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/qr", "",           [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/qr", "",           all(405)),
    ("GET",    "/links/mine/qr.svg", "",              [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("POST",   "/links/mine/qr.svg", "",              all(405)),
    ("GET",    "/api/v1/links/mine/disable", "",      all(405)),
    ("GET",    "/api/v1/links/mine/enable", "",       all(405)),
    ("GET",    "/api/v1/links/mine/permissions", "",  [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/permissions", "",  [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/permissions", r#"{"email":"bob@example.com"}"#,
                                                      [401, 401, 404, 201, 201, 403, 403, 204, 403, 201, 403]),
    ("POST",   "/api/v1/links/mine/permissions", r#"{"user_id":"2"}"#,
                                                      [401, 401, 404, 403, 201, 403, 403, 403, 403, 403, 403]),
    ("PUT",    "/api/v1/links/mine/permissions", "{}", all(405)),
    ("DELETE", "/api/v1/links/mine/permissions/{permission}", "",
                                                      [401, 401, 404, 204, 204, 403, 403, 204, 403, 204, 403]),
    ("DELETE", "/api/v1/links/mine/permissions/999", "",
                                                      [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("GET",    "/api/v1/links/mine/permissions/1", "", all(405)),
    // Live feeds end at once when asked to.
    ("GET",    "/api/v1/links/mine/stats", "",        [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/stats", "",        [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats", "",        all(405)),
    ("GET",    "/api/v1/stats", "",                   [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/stats", "",                   all(405)),
    ("GET",    "/api/v1/links/mine/stats.csv", "",    [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/stats.csv", "",    [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats.csv", "",    all(405)),
    ("GET",    "/api/v1/stats.csv", "",               [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/stats.csv", "",               all(405)),
    ("GET",    "/api/v1/links/mine/stats/country", "", [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/stats/country", "", [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/stats/country", "", all(405)),
    ("GET",    "/api/v1/stats/country", "",           [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/stats/country", "",           all(405)),
    ("GET",    "/api/v1/links/mine/clicks", "",       [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/clicks", "",       [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/clicks", "",       all(405)),
    ("DELETE", "/api/v1/links/mine/clicks", "",       [401, 401, 404, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("DELETE", "/api/v1/links/mine/clicks?counts=true", "",
                                                      [401, 401, 404, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("DELETE", "/api/v1/links/nope/clicks", "",       [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("GET",    "/api/v1/clicks", "",                  [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/clicks", "",                  all(405)),
    ("GET",    "/api/v1/links/mine/clicks.csv", "",   [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/clicks.csv", "",   [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/clicks.csv", "",   all(405)),
    ("GET",    "/api/v1/clicks.csv", "",              [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/clicks.csv", "",              all(405)),
    ("GET",    "/api/v1/links/mine/live?seconds=0", "", [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/nope/live?seconds=0", "", [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("POST",   "/api/v1/links/mine/live?seconds=0", "", all(405)),
    ("GET",    "/api/v1/live?seconds=0", "",          [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/live?seconds=0", "",          all(405)),
    ("HEAD",   "/api/v1/stats", "",                   [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("HEAD",   "/api/v1/live?seconds=0", "",          [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/links/mine/stats/age", "",    [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("GET",    "/api/v1/stats/age", "",               [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("GET",    "/api/v1/orphans", "",                 [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/orphans", "",                 all(405)),
    ("GET",    "/api/v1/orphans/key", "",             [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/orphans/key", "",             all(405)),
    ("GET",    "/api/v1/orphans/country", "",         [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("GET",    "/api/v1/orphans/clicks", "",          [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/orphans/clicks", "",          all(405)),
    ("POST",   "/api/v1/createURL?original_url=https://a.example/", "",
                                                      [401, 401, 200, 200, 200, 403, 200, 403, 403, 200, 403]),
    ("GET",    "/api/v1/createURL", "",               all(405)),
    ("PUT",    "/api/v1/createURL", "",               all(405)),
    ("DELETE", "/api/v1/createURL", "",               all(405)),
    ("DELETE", "/api/v1/deleteURL?url_key=mine", "",  [401, 401, 404, 200, 200, 403, 403, 200, 403, 200, 403]),
    ("GET",    "/api/v1/deleteURL", "",               all(405)),
    ("POST",   "/api/v1/deleteURL", "",               all(405)),

    // Signing up is closed here; administrators add people all the same.
    ("POST",   "/api/v1/users", NEW_USER,             [403, 401, 403, 403, 201, 403, 403, 403, 201, 403, 403]),
    ("POST",   "/api/v1/users", NEW_ADMIN,            [401, 401, 403, 403, 201, 403, 403, 403, 201, 403, 403]),
    ("GET",    "/api/v1/users", "",                   [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("PUT",    "/api/v1/users", "{}",                 all(405)),
    ("GET",    "/api/v1/users/me", "",                [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/users/1", "",                 [401, 401, 404, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/users/99", "",                [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("GET",    "/api/v1/users/nobody", "",            [401, 401, 404, 404, 404, 404, 403, 403, 403, 404, 404]),
    ("PATCH",  "/api/v1/users/me", r#"{"last_name":"X"}"#,
                                                      [401, 401, 200, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("PATCH",  "/api/v1/users/me", "{}",              [401, 401, 200, 200, 200, 403, 403, 204, 403, 200, 403]),
    // What one signs in with is changed with the password, by a session as by a key.
    ("PATCH",  "/api/v1/users/1", r#"{"email":"new@example.com"}"#,
                                                      [401, 401, 404, 422, 200, 403, 403, 422, 403, 422, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"email":"new@example.com","current_password":"a wrong guess"}"#,
                                                      [401, 401, 404, 401, 200, 403, 403, 401, 403, 401, 403]),
    ("PATCH",  "/api/v1/users/1", NEW_EMAIL,          [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"email":" Ada@Example.com"}"#,
                                                      [401, 401, 404, 200, 200, 403, 403, 204, 403, 200, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"role":"admin"}"#,
                                                      [401, 401, 404, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"disabled":true}"#,
                                                      [401, 401, 404, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"creations":null}"#,
                                                      [401, 401, 404, 403, 200, 403, 403, 403, 403, 403, 403]),
    ("PATCH",  "/api/v1/users/1", r#"{"redirections":{"amount":1,"period_seconds":1}}"#,
                                                      [401, 401, 404, 403, 200, 403, 403, 403, 403, 403, 403]),
    // Nobody locks themselves out.
    ("PATCH",  "/api/v1/users/me", r#"{"disabled":true}"#,
                                                      [401, 401, 403, 403, 422, 403, 403, 403, 403, 403, 403]),
    ("PATCH",  "/api/v1/users/4", r#"{"role":"member"}"#,
                                                      [401, 401, 404, 404, 422, 403, 403, 404, 403, 404, 403]),
    ("DELETE", "/api/v1/users/me", "",                [401, 401, 403, 403, 422, 403, 403, 403, 422, 403, 403]),
    // Ada has links.
    ("DELETE", "/api/v1/users/1", "",                 [401, 401, 403, 403, 422, 403, 403, 403, 422, 403, 403]),
    ("DELETE", "/api/v1/users/1?delete_links=true", "", [401, 401, 403, 403, 204, 403, 403, 403, 204, 403, 403]),
    ("DELETE", "/api/v1/users/99", "",                [401, 401, 403, 403, 404, 403, 403, 403, 404, 403, 403]),
    ("PUT",    "/api/v1/users/1", "{}",               all(405)),
    ("POST",   "/api/v1/users/1/password", OWN_PASSWORD,
                                                      [401, 401, 404, 204, 422, 403, 403, 204, 403, 204, 403]),
    ("POST",   "/api/v1/users/me/password", OWN_PASSWORD,
                                                      [401, 401, 401, 204, 401, 403, 403, 204, 403, 204, 403]),
    ("POST",   "/api/v1/users/1/password", SOMEBODYS_PASSWORD,
                                                      [401, 401, 404, 422, 204, 403, 403, 422, 403, 422, 403]),
    ("GET",    "/api/v1/users/me/password", "",       all(405)),
    ("POST",   "/api/v1/invites", "{}",               [401, 401, 403, 403, 201, 403, 403, 403, 201, 403, 403]),
    ("GET",    "/api/v1/invites", "",                 [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("DELETE", "/api/v1/invites/{invite}", "",        [401, 401, 403, 403, 204, 403, 403, 403, 204, 403, 403]),
    ("DELETE", "/api/v1/invites/nope", "",            [401, 401, 403, 403, 404, 403, 403, 403, 404, 403, 403]),
    ("GET",    "/api/v1/invites/nope", "",            all(405)),
    ("GET",    "/api/v1/limits", "",                  [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/limits", "",                  all(405)),
    ("GET",    "/api/v1/blocklist", "",               [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/blocklist", "",               all(405)),
    ("GET",    "/api/v1/plan?seed=A", "",             [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/plan", "",                    all(405)),
    ("GET",    "/api/v1/system", "",                  [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("POST",   "/api/v1/system", "",                  all(405)),
    ("GET",    "/api/v1/audit?action=signed_in&actor_id=1&subject=x", "",
                                                      [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("GET",    "/api/v1/audit", "",                   [401, 401, 403, 403, 200, 403, 403, 403, 200, 403, 403]),
    ("DELETE", "/api/v1/audit", "",                   all(405)),

    // Signing in asks for nothing but email and password, whatever else is shown.
    ("POST",   "/api/v1/sessions", SIGN_IN,           [201, 201, 201, 201, 201, 201, 201, 201, 201, 201, 403]),
    ("GET",    "/api/v1/sessions", "",                [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("DELETE", "/api/v1/sessions", "",                all(405)),
    ("DELETE", "/api/v1/sessions/{session}", "",      [401, 401, 404, 204, 404, 403, 403, 204, 403, 204, 403]),
    ("DELETE", "/api/v1/sessions/aaaaaaaaaaaaaaaa", "", [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    // Only a session can be signed out.
    ("DELETE", "/api/v1/sessions/current", "",        [401, 401, 404, 404, 404, 403, 403, 404, 403, 204, 403]),
    ("GET",    "/api/v1/sessions/current", "",        all(405)),

    ("GET",    "/api/v1/keys", "",                    [401, 401, 200, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("GET",    "/api/v1/keys?user_id=1", "",             [401, 401, 403, 200, 200, 200, 403, 403, 403, 200, 200]),
    ("POST",   "/api/v1/keys", r#"{"name":"n"}"#,     [401, 401, 201, 201, 201, 403, 403, 201, 403, 201, 403]),
    ("POST",   "/api/v1/keys?user_id=1", r#"{"name":"n"}"#,
                                                      [401, 401, 403, 201, 201, 403, 403, 201, 403, 201, 403]),
    // A key cannot make a stronger one.
    ("POST",   "/api/v1/keys", r#"{"name":"n","scopes":["read"]}"#,
                                                      [401, 401, 201, 201, 201, 403, 403, 422, 403, 201, 403]),
    ("POST",   "/api/v1/keys", r#"{"name":"n","scopes":["admin"]}"#,
                                                      [401, 401, 422, 422, 201, 403, 403, 422, 403, 422, 403]),
    ("POST",   "/api/v1/keys?user_id=1", r#"{"name":"n","scopes":["admin"]}"#,
                                                      [401, 401, 403, 422, 422, 403, 403, 422, 403, 422, 403]),
    ("POST",   "/api/v1/keys", KEY_WITH_ALLOWANCE,    [401, 401, 403, 403, 201, 403, 403, 403, 403, 403, 403]),
    ("PUT",    "/api/v1/keys", "{}",                  all(405)),
    // Nor turn into one.
    ("POST",   "/api/v1/keys/{prefix}/rotate", "",    [401, 401, 404, 201, 201, 403, 403, 403, 403, 201, 403]),
    ("POST",   "/api/v1/keys/aaaaaaaa/rotate", "{}",  [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("GET",    "/api/v1/keys/aaaaaaaa/rotate", "",    all(405)),
    ("DELETE", "/api/v1/keys/{prefix}", "",           [401, 401, 404, 204, 204, 403, 403, 204, 403, 204, 403]),
    ("DELETE", "/api/v1/keys/aaaaaaaa", "",           [401, 401, 404, 404, 404, 403, 403, 404, 403, 404, 403]),
    ("GET",    "/api/v1/keys/aaaaaaaa", "",           all(405)),

    ("GET",    "/mine",               "", all(302)),
    ("HEAD",   "/mine",               "", all(302)),
    // There is no password to be given to a link that is for everybody.
    ("POST",   "/mine",               "", all(405)),
    ("PUT",    "/mine",               "", all(405)),
    ("PATCH",  "/mine",               "", all(405)),
    ("DELETE", "/mine",               "", all(405)),
    ("OPTIONS","/mine",               "", all(405)),
    ("POST",   "/kept",               "", all(307)),
    ("PUT",    "/kept",               "", all(307)),
    ("OPTIONS","/kept",               "", all(307)),
    ("GET",    "/mine/",              "", all(302)),
    ("GET",    "/nope",               "", all(404)),
    ("GET",    "/",                   "", all(200)),
    ("HEAD",   "/",                   "", all(200)),
    ("PUT",    "/",                   "", all(405)),
    ("DELETE", "/",                   "", all(405)),
    // Pages for people know sessions and no keys; a form counts only with the token of the page that showed it.
    ("GET",    "/sign-in",            "", all(200)),
    ("POST",   "/sign-in",  "email=a&password=b",     [401, 401, 401, 401, 401, 401, 401, 401, 401, 401, 403]),
    ("GET",    "/sign-up",            "", all(403)),
    ("POST",   "/sign-up",  "email=a&password=b",     [403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403]),
    ("GET",    "/setup?token=x",      "", all(404)),
    ("POST",   "/setup",    "token=x",                [404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 403]),
    ("GET",    "/sign-out",           "", all(405)),
    ("POST",   "/sign-out", "x=y",                    SIGNED_IN_FORM),
    ("GET",    "/account",            "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 200, 200]),
    ("POST",   "/account",  "x=y",                    SIGNED_IN_FORM),
    ("POST",   "/account/password", "x=y",            SIGNED_IN_FORM),
    ("POST",   "/account/sessions/end", "x=y",        SIGNED_IN_FORM),
    ("POST",   "/account/keys", "x=y",                SIGNED_IN_FORM),
    ("POST",   "/account/keys/rotate", "x=y",         SIGNED_IN_FORM),
    ("POST",   "/account/keys/revoke", "x=y",         SIGNED_IN_FORM),
    ("GET",    "/account/keys",       "", all(405)),
    ("GET",    "/links",              "",             SIGNED_IN_PAGE),
    ("POST",   "/links",              "", all(405)),
    ("GET",    "/links/export",       "",             SIGNED_IN_PAGE),
    ("POST",   "/links/bulk",         "x=y",          SIGNED_IN_FORM),
    ("GET",    "/links/mine",         "",             SIGNED_IN_PAGE),
    ("GET",    "/links/nope",         "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 404, 404]),
    ("GET",    "/links/mine/edit",    "",             SIGNED_IN_PAGE),
    ("POST",   "/links/mine/edit",    "x=y",          SIGNED_IN_FORM),
    ("POST",   "/links/mine/delete",  "x=y",          SIGNED_IN_FORM),
    ("POST",   "/links/mine/restore", "x=y",          SIGNED_IN_FORM),
    ("POST",   "/links/mine/switch",  "x=y",          SIGNED_IN_FORM),
    ("POST",   "/links/mine/permissions", "x=y",      SIGNED_IN_FORM),
    ("POST",   "/links/mine/permissions/revoke", "x=y", SIGNED_IN_FORM),
    ("GET",    "/links/mine/delete",  "", all(405)),
    ("GET",    "/clicks",             "",             SIGNED_IN_PAGE),
    ("GET",    "/clicks?owner=all",   "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/clicks/orphans",     "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/tags",               "",             SIGNED_IN_PAGE),
    ("POST",   "/tags/rename",        "x=y",          SIGNED_IN_FORM),
    ("POST",   "/tags/remove",        "x=y",          SIGNED_IN_FORM),
    // Ada is no administrator.
    ("GET",    "/admin",              "", all(303)),
    ("GET",    "/admin/users",        "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/users", "x=y",                 [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/users/1",      "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/users/1", "x=y",               [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/users/1/switch", "x=y",        [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/users/1/remove", "x=y",        [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/invitations",  "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/invitations", "x=y",           [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/invitations/revoke", "x=y",    [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/limits",       "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/audit",        "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/blocklist",    "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("POST",   "/admin/blocklist/switch", "x=y",      [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/system",       "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/admin/plan",         "",             [303, 303, 303, 303, 303, 303, 303, 303, 303, 403, 403]),
    ("GET",    "/api",                "", all(200)),
    ("POST",   "/api",                "", all(405)),
    ("GET",    "/api/operations/createLink", "", all(200)),
    ("GET",    "/api/operations/nope", "", all(404)),
    ("POST",   "/api/operations/createLink", "", all(405)),
    ("GET",    "/api/openapi.json",   "", all(200)),
    ("DELETE", "/api/openapi.json",   "", all(405)),
    ("GET",    "/problems",           "", all(200)),
    ("GET",    "/problems/internal",  "", all(200)),
    ("GET",    "/problems/nope",      "", all(404)),
    ("POST",   "/problems/internal",  "", all(405)),
    ("GET",    "/health/live",        "", all(200)),
    ("GET",    "/health/ready",       "", all(200)),
    ("POST",   "/health/ready",       "", all(405)),
    ("GET",    "/health/create",      "", all(200)),
    ("GET",    "/robots.txt",         "", all(200)),
    ("GET",    "/favicon.ico",        "", all(200)),
    ("GET",    "/assets/nope.css",    "", all(404)),
    // Metrics have a port of their own.
    ("GET",    "/metrics",            "", all(404)),
    ("GET",    "/api/v1",             "", all(200)),
    ("POST",   "/api/v1",             "", all(405)),
    ("GET",    "/api/v2/links",       "", all(404)),
    ("GET",    "/api/v1/links/",      "", all(404)),
    ("GET",    "/a/b/c",              "", all(404)),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_endpoint_answers_everybody_as_the_table_says() {
    let mut rows = JoinSet::new();
    for row in TABLE {
        rows.spawn(deviations(row));
    }
    let deviations = rows.join_all().await.concat();
    assert!(deviations.is_empty(), "{}", deviations.join("\n"));
}

/// What is stored about Ada and her link, and is not read back from a change with a key that has not the scope `read`.
const READABLE: [&str; 2] = ["https://example.com/x", "ada@example.com"];

async fn deviations((method, path, body, statuses): &'static Row) -> Vec<String> {
    let mut deviations = Vec::new();
    let mut scene = Scene::new().await;
    for (who, column) in EVERYBODY {
        let answer = scene.ask(method, path, body, who).await;
        let case = format!("{method} {path} {body} by {who:?}: {answer:?}");
        check(method, &answer, &case);
        let is_change = !["GET", "HEAD"].contains(method);
        if is_change && [Who::Create, Who::Manage, Who::AdminOnly].contains(&who) {
            let told = READABLE.iter().find(|text| answer.body.contains(**text));
            if let Some(text) = told.filter(|text| !body.contains(**text)) {
                deviations.push(format!("{text} was read, {case}"));
            }
        }
        if answer.status.as_u16() != statuses[column] {
            deviations.push(format!("{} expected, {case}", statuses[column]));
        }
        if answer.status.is_success() && is_change {
            scene = Scene::new().await;
        }
        // Nobody is to be refused for what others tried.
        scene.world.clock.advance(Duration::from_secs(60));
    }
    deviations
}

#[tokio::test]
async fn every_documented_operation_is_in_the_table() {
    let world = World::new().await;
    let document = world.call(Method::GET, "/api/openapi.json", None).await;
    let document = document.json();
    let mut count = 0;
    for (template, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let is_row = |row: &&Row| row.0.eq_ignore_ascii_case(method) && fits(row.1, template);
            let row = TABLE.iter().find(is_row);
            assert!(row.is_some(), "{method} {template} is not in the table");
            count += 1;
        }
    }
    assert!(count > 30, "{count} operations");
}

fn fits(path: &str, template: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let mut parts = path.split('/').zip(template.split('/'));
    path.matches('/').count() == template.matches('/').count()
        && parts.all(|(part, named)| part == named || named.starts_with('{') && !is_reserved(part))
}

/// A world where Ada has a link, and whatever else is asked for.
struct Scene {
    world: World,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new().await;
        world.ready.pass("serving");
        world.link("mine").await;
        let kept = r#"{"target":"https://example.com/x","alias":"kept","redirect_status":307}"#;
        let made = world.call_raw(Method::POST, "/api/v1/links", &[], Some(kept));
        assert_eq!(made.await.status, 201);
        Self { world }
    }

    async fn ask(&self, method: &str, path: &str, body: &str, who: Who) -> Answer {
        if path.contains("/password") || path.contains("/sessions") || body.contains("password") {
            // Ada has a password from now on.
            self.world.session(ADA).await;
        }
        let path = self.filled_in(path).await;
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in self.credentials(who).await {
            request = request.header(name, value);
        }
        let kind = match body.as_bytes().first() {
            None => None,
            Some(b'{') => Some("application/json"),
            Some(_) => Some("application/x-www-form-urlencoded"),
        };
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.world.send(request).await
    }

    async fn filled_in(&self, path: &str) -> String {
        let (before, rest) = match path.split_once('{') {
            Some((before, rest)) => (before, rest),
            None => return path.to_owned(),
        };
        let (name, after) = rest.split_once('}').unwrap();
        let id = match name {
            "permission" => self.permission().await,
            "prefix" => id_of(&self.world.key),
            "invite" => {
                let hour = Duration::from_secs(3_600);
                let users = &self.world.accounts.users;
                let made = users.invite(Role::Member, hour, Origin::OPERATOR).await;
                made.unwrap().code
            }
            "session" => id_of(&self.world.session(ADA).await),
            _ => panic!("{name}"),
        };
        format!("{before}{id}{after}")
    }

    async fn permission(&self) -> String {
        let link = curt_testkit::sample::id("mine");
        let permissions = &self.world.accounts.permissions;
        let granted = permissions.grant(&link, 1, UserRef::Id(EVE), Origin::OPERATOR);
        granted.await.unwrap().permission.id.0.to_string()
    }

    async fn credentials(&self, who: Who) -> Vec<(&'static str, String)> {
        let world = &self.world;
        let bearer = |key: String| vec![("authorization", format!("Bearer {key}"))];
        let only = async |user, scope: Scope| world.key_for(user, scope.name(), &[scope]).await;
        match who {
            Who::Nobody => Vec::new(),
            Who::Garbage => bearer("curt_aaaaaaaa_00000000000000000000000000000000".to_owned()),
            Who::Revoked => bearer(world.revoked.clone()),
            Who::Expired => bearer(self.expired().await),
            Who::Disabled => bearer(self.disabled().await),
            Who::Stranger => bearer(world.stranger.clone()),
            Who::Owner => bearer(world.key.clone()),
            Who::Admin => bearer(world.key_for(ROOT, "all", &Scope::ALL).await),
            Who::Read => bearer(only(ADA, Scope::Read).await),
            Who::Create => bearer(only(ADA, Scope::Create).await),
            Who::Manage => bearer(only(ADA, Scope::Manage).await),
            Who::AdminOnly => bearer(only(ROOT, Scope::Admin).await),
            Who::Session => vec![self.cookie().await, ("origin", BASE.to_owned())],
            Who::CrossSite => vec![
                self.cookie().await,
                ("origin", "https://evil.example".to_owned()),
                ("sec-fetch-site", "cross-site".to_owned()),
            ],
        }
    }

    async fn cookie(&self) -> (&'static str, String) {
        let token = self.world.session(ADA).await;
        ("cookie", format!("__Host-curt_session={token}"))
    }

    async fn expired(&self) -> String {
        let second = Duration::from_secs(1);
        let key = NewKey {
            user: ADA,
            name: "short".to_owned(),
            scopes: Scopes::ALL.iter().filter(|s| *s != Scope::Admin).collect(),
            allowance: Allowance::default(),
            expires_at: Some(self.world.clock.now().plus(second)),
        };
        let api_keys = &self.world.accounts.api_keys;
        let issued = api_keys.issue(key, Scopes::ALL, Origin::OPERATOR).await;
        self.world.clock.advance(second);
        issued.unwrap().token
    }

    async fn disabled(&self) -> String {
        let key = self.world.key_for(EVE, "good", &[Scope::Manage]).await;
        let users = &self.world.accounts.users;
        let disabled = users.disable(UserRef::Id(EVE), Origin::OPERATOR).await;
        assert!(disabled.unwrap().disabled_at.is_some());
        key
    }
}

/// The public part of a token.
fn id_of(token: &str) -> String {
    token.split('_').nth(1).unwrap().to_owned()
}

/// What holds for every answer, whatever was asked.
fn check(method: &str, answer: &Answer, case: &str) {
    // A redirect to a target has no content, and looks as a worker's.
    if answer.header("x-robots-tag").is_empty() {
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{case}");
        let policy = answer.header("content-security-policy");
        assert!(!policy.is_empty(), "{case}");
    }
    assert!(!answer.header("referrer-policy").is_empty(), "{case}");
    assert!(!answer.header("cache-control").is_empty(), "{case}");
    assert!(!answer.header("x-request-id").is_empty(), "{case}");
    assert!(!answer.headers.contains_key("server"), "{case}");
    // A form that was refused comes again.
    let is_form = answer.header("content-type").starts_with("text/html");
    if method == "HEAD" {
        assert!(answer.body.is_empty(), "{case}");
    } else if answer.status.is_client_error() && !is_form {
        answer.problem();
    }
    match answer.status.as_u16() {
        401 if is_form => {}
        401 => assert!(
            answer.header("www-authenticate").starts_with("Bearer"),
            "{case}"
        ),
        405 => assert!(!answer.header("allow").is_empty(), "{case}"),
        _ => {}
    }
}

#[tokio::test]
async fn a_key_comes_in_one_of_three_ways_and_a_header_wins() {
    let world = World::new().await;
    let (good, bad) = (world.key.as_str(), "curt_bad");
    let query =
        |key: &str| format!("/api/v1/createURL?original_url=https://a.example/&api_dev_key={key}");
    let plain = "/api/v1/createURL?original_url=https://a.example/".to_owned();
    for (path, header, status) in [
        (
            plain.clone(),
            Some(("authorization", format!("Bearer {good}"))),
            200,
        ),
        (
            plain.clone(),
            Some(("authorization", format!("bearer  {good}"))),
            200,
        ),
        (
            plain.clone(),
            Some(("authorization", format!("Basic {good}"))),
            401,
        ),
        (plain.clone(), Some(("authorization", good.to_owned())), 401),
        (plain.clone(), Some(("x-api-key", good.to_owned())), 200),
        (plain.clone(), Some(("x-api-key", bad.to_owned())), 401),
        (plain, None, 401),
        (query(good), None, 200),
        (query(bad), None, 401),
        (query(bad), Some(("x-api-key", good.to_owned())), 200),
        (query(good), Some(("x-api-key", bad.to_owned())), 401),
    ] {
        let mut request = Request::builder().method(Method::POST).uri(&path);
        if let Some((name, value)) = &header {
            request = request.header(*name, value);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {header:?}");
    }
    // The REST resource takes no key from the query: addresses end up in logs.
    let path = format!("/api/v1/links?api_dev_key={good}");
    let request = Request::get(path).body(Body::empty()).unwrap();
    assert_eq!(world.send(request).await.status, 401);
}

#[tokio::test]
async fn no_route_can_be_taken_by_an_alias() {
    for (_, path, _, _) in TABLE {
        let first = path
            .trim_start_matches('/')
            .split(['/', '?'])
            .next()
            .unwrap();
        let link = ["mine", "kept", "nope", "", "a"].contains(&first);
        assert!(link || is_reserved(first), "{path}");
    }
}

//! A browser with a session.

use std::net::SocketAddr;

use curt_testkit::http::Request;
use serde_json::json;

use crate::api::{Answer, Api};
use crate::site::Site;

pub(crate) struct Browser {
    server: SocketAddr,
    cookie: String,
}

impl Browser {
    pub(crate) fn sign_in(site: &Site, email: &str, password: &str) -> Self {
        let shown = json!({ "email": email, "password": password });
        let request = Request::post("/api/v1/sessions").json(&shown);
        let answer = site.api().send(&request).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = answer.cookie("curt_session").unwrap();
        Self {
            server: site.http(),
            cookie: format!("curt_session={session}"),
        }
    }

    /// The value of the session's cookie.
    pub(super) fn secret(&self) -> &str {
        self.cookie.split_once('=').unwrap().1
    }

    /// The request as the browser sends it from one of the server's pages.
    pub(crate) fn signed(&self, request: Request) -> Request {
        request
            .header("Cookie", &self.cookie)
            .header("Origin", format!("http://{}", self.server))
    }

    pub(super) fn send(&self, request: Request) -> Answer {
        let request = self.signed(request);
        Api::new(self.server, "").send(&request).unwrap()
    }
}

//! The REST API as a client uses it: one connection, one API key.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use curt_testkit::http::{Connection, Request, Response};
use serde_json::{Value, json};

/// A busy machine may keep one of many clients waiting.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Api {
    address: SocketAddr,
    token: String,
    connection: Option<Connection>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    response: Response,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.header(name)
    }

    /// The value of a cookie that the answer sets.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let mut lines = self.response.header_values("set-cookie");
        let pair = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        pair.split(';').next()
    }

    pub(crate) fn json(&self) -> Value {
        self.response.json().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        self.response.text()
    }
}

impl Api {
    /// Connects with the first request.
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Self {
            address,
            token: token.to_owned(),
            connection: None,
        }
    }

    /// The API key that it acts with.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// An error ends the connection; the next request opens another.
    pub(crate) fn send(&mut self, request: &Request) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = Connection::open(self.address)?;
                connection.set_timeout(WAIT_MAX);
                connection
            }
        };
        let response = connection.send(request)?;
        if response.keeps_alive() {
            self.connection = Some(connection);
        }
        Ok(Answer {
            status: response.status,
            response,
        })
    }

    /// With the API key, if there is one.
    fn signed(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, path);
        match self.token.as_str() {
            "" => request,
            token => request.bearer(token),
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(&self.signed("GET", path))
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        self.send(&self.signed("POST", path).json(body))
    }

    pub(crate) fn create(&mut self, target: &str) -> io::Result<Answer> {
        self.post("/api/v1/links", &json!({ "target": target }))
    }

    /// Creates a link by a request that may be repeated, here or elsewhere, under the same name.
    pub(crate) fn create_once(&mut self, target: &str, name: &str) -> io::Result<Answer> {
        self.post_once("/api/v1/links", &json!({ "target": target }), name)
    }

    /// Posts a request that may be repeated under the same name.
    pub(crate) fn post_once(&mut self, path: &str, body: &Value, name: &str) -> io::Result<Answer> {
        let request = self.signed("POST", path);
        self.send(&request.header("Idempotency-Key", name).json(body))
    }

    pub(crate) fn bulk(&mut self, targets: &[String]) -> io::Result<Answer> {
        let links: Vec<Value> = targets
            .iter()
            .map(|target| json!({ "target": target }))
            .collect();
        self.post("/api/v1/links/bulk", &json!({ "links": links }))
    }

    pub(crate) fn edit(&mut self, key: &str, changes: &Value) -> io::Result<Answer> {
        let path = format!("/api/v1/links/{key}");
        self.send(&self.signed("PATCH", &path).json(changes))
    }

    pub(crate) fn delete(&mut self, key: &str) -> io::Result<Answer> {
        self.send(&self.signed("DELETE", &format!("/api/v1/links/{key}")))
    }

    /// Follows a short link as a visitor without any credentials.
    pub(crate) fn follow(&mut self, key: &str) -> io::Result<Answer> {
        self.send(&Request::get(&format!("/{key}")))
    }
}

/// The keys of a bulk answer in which every link was created.
pub(crate) fn bulk_results(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["failed"], 0, "{body}");
    let results = body["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["link"]["key"].as_str().unwrap().to_owned())
        .collect()
}

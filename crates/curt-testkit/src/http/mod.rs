//! A small blocking HTTP/1.1 client over a plain socket.
//!
//! It exists to see what really is on the wire: it sends any bytes, keeps every byte of an answer's head, and refuses
//! answers that a lenient client would let pass. [`Connection`] is one socket; [`Client`] keeps one alive and opens it
//! again when the server has closed it.

mod connection;
mod response;

pub use connection::Connection;
pub use response::Response;

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;

/// A request to be sent. `Host` and `Content-Length` are added unless they are given.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    #[must_use]
    pub fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: impl Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// `Authorization: Bearer …`.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    #[must_use]
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("Content-Type", content_type)
    }

    #[must_use]
    pub fn json(self, value: &serde_json::Value) -> Self {
        self.body("application/json", value.to_string())
    }

    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The request as it goes over the wire.
    #[must_use]
    pub fn encode(&self, host: &str) -> Vec<u8> {
        let has = |wanted: &str| {
            let mut names = self.headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !has("host") {
            head += &format!("Host: {host}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let body = self.body.as_deref();
        if let Some(body) = body.filter(|_| !has("content-length") && !has("transfer-encoding")) {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        [head.as_bytes(), body.unwrap_or_default()].concat()
    }
}

/// Sends requests to one server over one connection at a time.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.send(&Request::get(path))
    }

    /// Sends the request and reads the answer, over the connection of the request before where that is still open.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let kept = self.connection.take();
        let usable = kept.filter(|kept| !kept.is_closed());
        let mut connection = match usable {
            Some(connection) => connection,
            None => Connection::open(self.address)?,
        };
        let response = connection.send(request)?;
        if response.keeps_alive() {
            self.connection = Some(connection);
        }
        Ok(response)
    }
}

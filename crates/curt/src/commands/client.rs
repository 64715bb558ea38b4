//! A client of the REST API, for the commands that talk to a running server.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, RequestBuilder};
use url::Url;

use crate::exit_code::{CommandError, ExitReason};

/// Longer than the server's own limits, so that its answer and not ours explains a slow request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where a server answers by default.
const URL_DEFAULT: &str = "http://127.0.0.1:8080";
const URL_VARIABLE: &str = "CURT_URL";
const API_KEY_VARIABLE: &str = "CURT_API_KEY";

/// Which server, and as whom.
///
/// The variables are read here and not by the argument parser, which would show them as required in its usage lines.
#[derive(Args, Debug)]
pub(super) struct ServerArgs {
    /// The server's address [env: CURT_URL] [default: <http://127.0.0.1:8080>]
    #[arg(long, global = true, value_parser = parse_server, help_heading = "Server")]
    url: Option<Url>,

    /// The API key [env: CURT_API_KEY]
    #[arg(long, global = true, value_name = "API_KEY", help_heading = "Server")]
    api_key: Option<String>,

    /// Print the server's JSON
    #[arg(long, global = true, help_heading = "Output")]
    pub(super) json: bool,
}

impl ServerArgs {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let variable = |name| std::env::var(name).ok();
        let base = match (&self.url, variable(URL_VARIABLE)) {
            (Some(url), _) => url.clone(),
            (None, Some(text)) if !text.is_empty() => parse_server(&text).map_err(|problem| {
                CommandError::new(ExitReason::Refused, format!("{URL_VARIABLE}: {problem}"))
            })?,
            (None, _) => parse_server(URL_DEFAULT).map_err(anyhow::Error::msg)?,
        };
        let (api_key, source) = match &self.api_key {
            Some(key) => (Some(key.clone()), "--api-key"),
            None => (variable(API_KEY_VARIABLE), API_KEY_VARIABLE),
        };
        if api_key.as_ref().is_some_and(|key| key.trim().is_empty()) {
            let message = format!(
                "{source} is empty: give an API key (curt api-key add NAME makes one), or leave it out"
            );
            return Err(CommandError::new(ExitReason::NotPermitted, message).into());
        }
        Ok(Client::new(base, api_key))
    }
}

fn parse_server(text: &str) -> Result<Url, String> {
    let example = "write it as https://go.example.com";
    let url =
        Url::parse(text).map_err(|why| format!("{text:?} is not a URL ({why}): {example}"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(format!("{text:?} is not a server's address: {example}")),
    }
}

pub(super) struct Client {
    agent: Agent,
    base: Url,
    api_key: Option<String>,
}

impl Client {
    fn new(base: Url, api_key: Option<String>) -> Self {
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .into();
        Self {
            agent,
            base,
            api_key,
        }
    }

    pub(super) fn get(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<Value> {
        let mut url = self.at(path)?;
        url.query_pairs_mut().extend_pairs(query);
        let request = self.signed(self.agent.get(url.as_str()));
        self.read(request.call())
    }

    /// The answer's bytes, whatever they are.
    pub(super) fn get_bytes(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<Vec<u8>> {
        let mut url = self.at(path)?;
        url.query_pairs_mut().extend_pairs(query);
        let request = self.signed(self.agent.get(url.as_str()));
        let mut answer = self.reached(request.call())?;
        if !answer.status().is_success() {
            self.read(Ok(answer))?;
            bail!("the server did not answer with a picture");
        }
        let bytes = answer.body_mut().read_to_vec();
        bytes.context("could not read the answer")
    }

    pub(super) fn post(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        let url = self.at(path)?;
        let request = self.signed(self.agent.post(url.as_str()));
        let request = request.content_type("application/json");
        self.read(request.send(body.to_string()))
    }

    pub(super) fn patch(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        let url = self.at(path)?;
        let request = self.signed(self.agent.patch(url.as_str()));
        let request = request.content_type("application/json");
        self.read(request.send(body.to_string()))
    }

    pub(super) fn delete(&self, path: &[&str]) -> anyhow::Result<()> {
        self.delete_with(path, &[]).map(drop)
    }

    pub(super) fn delete_with(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<Value> {
        let mut url = self.at(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.read(self.signed(self.agent.delete(url.as_str())).call())
    }

    fn at(&self, path: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{} cannot be a server's address", self.base))?
            .pop_if_empty()
            .extend(["api", "v1"])
            .extend(path);
        Ok(url)
    }

    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let request = request.header("Accept", "application/json");
        match &self.api_key {
            Some(key) => request.header("Authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    /// Lines of an answer without an end, as they come. `last_event_id` is the last event that was seen before.
    pub(super) fn lines(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        last_event_id: Option<&str>,
    ) -> anyhow::Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
        let mut url = self.at(path)?;
        url.query_pairs_mut().extend_pairs(query);
        let mut request = self.signed(self.agent.get(url.as_str()));
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let endless = request.config();
        let endless = endless.timeout_global(None).build();
        let answer = self.reached(endless.call())?;
        if !answer.status().is_success() {
            self.read(Ok(answer))?;
            bail!("the server did not answer with events");
        }
        Ok(BufReader::new(answer.into_body().into_reader()).lines())
    }

    fn reached(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> anyhow::Result<Response<Body>> {
        answer.map_err(|error| {
            let message = format!(
                "could not reach {}: is the server running? (curt serve; --url or CURT_URL names another): {error}",
                self.base
            );
            CommandError::new(ExitReason::Unreachable, message).into()
        })
    }

    /// The answer's JSON, or its problem as an error.
    fn read(&self, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Value> {
        let mut answer = self.reached(answer)?;
        let status = answer.status();
        let text = answer
            .body_mut()
            .read_to_string()
            .context("could not read the answer")?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(body);
        }
        let message = explain(status, &body, self.api_key.is_some());
        Err(CommandError::new(reason(status), message).into())
    }
}

/// The reason that a status of the API stands for.
pub(super) fn reason(status: StatusCode) -> ExitReason {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ExitReason::NotPermitted,
        StatusCode::NOT_FOUND | StatusCode::GONE => ExitReason::NotFound,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => ExitReason::Unreachable,
        status if status.is_client_error() => ExitReason::Refused,
        _ => ExitReason::Other,
    }
}

/// A problem document as text.
pub(super) fn explain(status: StatusCode, problem: &Value, had_key: bool) -> String {
    let fields = problem["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = problem["title"]
        .as_str()
        .map_or_else(|| format!("the server answered {status}"), str::to_owned);
    // With field errors the detail only repeats them.
    if let Some(detail) = problem["detail"].as_str().filter(|_| fields.is_empty()) {
        text.push_str(&format!("\n  {detail}"));
    }
    for field in fields {
        let name = field["field"].as_str().unwrap_or("?");
        let message = field["message"].as_str().unwrap_or("is not valid");
        text.push_str(&format!("\n  {name}: {message}"));
    }
    if status == StatusCode::UNAUTHORIZED && !had_key {
        text.push_str(
            "\n  give an API key with --api-key or CURT_API_KEY (curt api-key add NAME makes one)",
        );
    }
    text
}

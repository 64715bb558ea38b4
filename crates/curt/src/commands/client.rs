//! A client of the REST API, for the commands that talk to a running server.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, RequestBuilder};
use url::Url;

/// Longer than the server's own limits, so that its answer and not ours explains a slow request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Which server, and as whom.
#[derive(Args, Debug)]
pub(super) struct ServerArgs {
    /// The server's address
    #[arg(
        long,
        env = "CURT_URL",
        default_value = "http://127.0.0.1:8080",
        global = true
    )]
    url: String,

    /// The API key
    #[arg(
        long,
        env = "CURT_API_KEY",
        hide_env_values = true,
        global = true,
        value_name = "KEY"
    )]
    api_key: Option<String>,

    /// Print the server's JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
}

impl ServerArgs {
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.url, self.api_key.clone())
    }
}

pub(super) struct Client {
    agent: Agent,
    base: Url,
    api_key: Option<String>,
}

impl Client {
    fn new(base: &str, api_key: Option<String>) -> anyhow::Result<Self> {
        let base: Url = base
            .parse()
            .with_context(|| format!("{base:?} is not a URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            bail!("{base} is not a server's address: it begins with http:// or https://");
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .into();
        Ok(Self {
            agent,
            base,
            api_key,
        })
    }

    pub(super) fn get(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<Value> {
        let mut url = self.at(path)?;
        url.query_pairs_mut().extend_pairs(query);
        let request = self.signed(self.agent.get(url.as_str()));
        self.read(request.call())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = self.at(&path
            .split('/')
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>())?;
        let request = self.signed(self.agent.post(url.as_str()));
        self.read(
            request
                .content_type("application/json")
                .send(body.to_string()),
        )
    }

    pub(super) fn patch(&self, key: &str, body: &Value) -> anyhow::Result<Value> {
        let url = self.at(&["api", "v1", "links", key])?;
        let request = self.signed(self.agent.patch(url.as_str()));
        self.read(
            request
                .content_type("application/json")
                .send(body.to_string()),
        )
    }

    pub(super) fn delete(&self, key: &str) -> anyhow::Result<()> {
        let url = self.at(&["api", "v1", "links", key])?;
        self.read(self.signed(self.agent.delete(url.as_str())).call())
            .map(drop)
    }

    fn at(&self, path: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{} cannot be a server's address", self.base))?
            .pop_if_empty()
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
        answer.with_context(|| {
            format!(
                "could not reach {}: is the server running? (curt serve; --url names another)",
                self.base
            )
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
        bail!("{}", explain(status, &body, self.api_key.is_some()))
    }
}

fn explain(status: StatusCode, problem: &Value, had_key: bool) -> String {
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

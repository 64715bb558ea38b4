//! `POST /api/v1/links` and `POST /api/v1/links/bulk`.

use std::io::Write as _;

use serde::Deserialize;

use super::answer::Answer;
use super::engine::Traffic;
use super::report::{Failure, LoadReport};
use super::{BULK_MAX, LoadError, Plan, measured, within};
use crate::keys::target_for;

/// A load of creates. Every link has a target of its own.
#[derive(Clone, Debug)]
pub struct CreateLoad {
    pub plan: Plan,
    pub api_key: String,
    /// Links per request; `None`: one, through the endpoint for single links.
    pub bulk: Option<usize>,
    /// Length of the targets.
    pub target_bytes: usize,
    /// Whether the keys that the server gave are returned.
    pub keep_keys: bool,
}

impl CreateLoad {
    /// Single links with targets of 60 bytes.
    #[must_use]
    pub fn new(plan: Plan, api_key: impl Into<String>) -> Self {
        Self {
            plan,
            api_key: api_key.into(),
            bulk: None,
            target_bytes: 60,
            keep_keys: false,
        }
    }
}

/// A report with the keys of the links that were acknowledged, where they were asked for.
#[derive(Clone, Debug)]
pub struct CreateReport {
    pub load: LoadReport,
    pub keys: Vec<String>,
}

/// Runs a load of creates to its end.
pub fn create(load: &CreateLoad) -> Result<CreateReport, LoadError> {
    if let Some(bulk) = load.bulk {
        within("links per request", bulk as u64, 1, BULK_MAX as u64)?;
    }
    within("target bytes", load.target_bytes as u64, 1, 2_048)?;
    let path = if load.bulk.is_some() { "/bulk" } else { "" };
    let mut traffic = Creates {
        before_length: format!(
            "POST /api/v1/links{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: ",
            load.plan.addr, load.api_key
        ),
        load,
        composed: 0,
        body: String::new(),
        keys: Vec::new(),
    };
    let report = measured(&load.plan, &mut traffic)?;
    Ok(CreateReport {
        load: report,
        keys: traffic.keys,
    })
}

struct Creates<'a> {
    load: &'a CreateLoad,
    before_length: String,
    composed: u64,
    body: String,
    keys: Vec<String>,
}

impl Creates<'_> {
    fn add_link(&mut self) {
        self.composed += 1;
        let name = format!("{:x}-{}", self.load.plan.seed, self.composed);
        self.body.push_str("{\"target\":\"");
        self.body
            .push_str(&target_for(&name, self.load.target_bytes));
        self.body.push_str("\"}");
    }
}

impl Traffic for Creates<'_> {
    fn compose(&mut self, out: &mut Vec<u8>) -> u64 {
        self.body.clear();
        match self.load.bulk {
            None => self.add_link(),
            Some(links) => {
                self.body.push_str("{\"links\":[");
                for place in 0..links {
                    if place > 0 {
                        self.body.push(',');
                    }
                    self.add_link();
                }
                self.body.push_str("]}");
            }
        }
        out.extend_from_slice(self.before_length.as_bytes());
        // Writing into a vector cannot fail.
        let _written = write!(out, "{}\r\n\r\n", self.body.len());
        out.extend_from_slice(self.body.as_bytes());
        0
    }

    fn judge(&mut self, _ticket: u64, answer: &Answer<'_>) -> Result<u64, Failure> {
        match self.load.bulk {
            None => self.judge_single(answer),
            Some(links) => self.judge_bulk(links, answer),
        }
    }
}

impl Creates<'_> {
    fn judge_single(&mut self, answer: &Answer<'_>) -> Result<u64, Failure> {
        if answer.status != 201 {
            return Err(Failure::Status(answer.status));
        }
        if self.load.keep_keys {
            let link: LinkBody<'_> =
                serde_json::from_slice(answer.body).map_err(|_| Failure::Malformed)?;
            self.keys.push(link.key.to_owned());
        }
        Ok(1)
    }

    /// A bulk request counts when every link of it was created: a run in which some were refused is not comparable.
    fn judge_bulk(&mut self, links: usize, answer: &Answer<'_>) -> Result<u64, Failure> {
        if !matches!(answer.status, 200 | 201 | 207) {
            return Err(Failure::Status(answer.status));
        }
        let bulk: BulkBody<'_> =
            serde_json::from_slice(answer.body).map_err(|_| Failure::Malformed)?;
        let created: Vec<&LinkBody<'_>> = bulk
            .results
            .iter()
            .filter_map(|item| item.link.as_ref())
            .collect();
        if created.len() != links {
            return Err(Failure::Refused);
        }
        if self.load.keep_keys {
            self.keys
                .extend(created.iter().map(|link| link.key.to_owned()));
        }
        Ok(links as u64)
    }
}

#[derive(Deserialize)]
struct LinkBody<'a> {
    key: &'a str,
}

#[derive(Deserialize)]
struct BulkBody<'a> {
    #[serde(borrow)]
    results: Vec<BulkItem<'a>>,
}

#[derive(Deserialize)]
struct BulkItem<'a> {
    #[serde(borrow)]
    link: Option<LinkBody<'a>>,
}

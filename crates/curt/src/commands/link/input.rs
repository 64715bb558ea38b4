//! What people write on the command line, as the API wants it.

use std::io::BufRead as _;
use std::io::IsTerminal as _;

use anyhow::Context as _;
use console::Term;
use serde_json::Value;
use url::Url;

use crate::exit_code::{CommandError, ExitReason};

/// The key of a link, given alone or as a whole short URL, of whatever host: the server may be reached by another name
/// than the one that its links have.
pub(crate) fn parse_key(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} names no link: write its key, or its whole short URL");
    let path = match Url::parse(text) {
        Ok(url) if url.has_host() => url.path().trim_matches('/').to_owned(),
        _ if text.contains('/') => {
            let after_host = text.split_once('/').map_or("", |(_, path)| path);
            after_host.trim_matches('/').to_owned()
        }
        _ => text.to_owned(),
    };
    match path.is_empty() || path.contains('/') {
        true => Err(wrong()),
        false => Ok(path),
    }
}

/// A number of people, or any.
pub(super) fn parse_max_clicks(text: &str) -> Result<Value, String> {
    if text == "any" {
        return Ok(Value::Null);
    }
    let number = text.parse::<u64>().map(Value::from);
    number.map_err(|_| format!("{text:?} is not a number: write one, such as 100, or any"))
}

/// The first line of standard input, or what is typed at the terminal without being shown.
pub(super) fn read_password(from_stdin: bool) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if from_stdin {
        let mut line = String::new();
        stdin
            .lock()
            .read_line(&mut line)
            .context("could not read the password from standard input")?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    if !stdin.is_terminal() {
        let message = "there is no terminal to ask for the password: give it with --password-stdin";
        return Err(CommandError::new(ExitReason::Refused, message).into());
    }
    let terminal = Term::stderr();
    terminal.write_str("Password of the link: ")?;
    let password = terminal.read_secure_line();
    password.context("could not read the password from the terminal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_alone_or_from_its_short_url() {
        for text in [
            "plan",
            "http://127.0.0.1:8080/plan",
            "https://go.example.com/plan/",
            "https://go.example.com/plan?utm_source=x#top",
            "go.example.com/plan",
            "/plan",
        ] {
            assert_eq!(parse_key(text).as_deref(), Ok("plan"), "{text}");
        }
        for text in ["", "/", "https://go.example.com/", "https://a/b/c", "a/b/c"] {
            let why = parse_key(text).unwrap_err();
            assert!(why.contains("short URL"), "{text}: {why}");
        }
    }
}

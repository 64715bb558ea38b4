//! H10: whoever gets hold of the files gets nothing that opens a door.

use std::fs;
use std::path::{Path, PathBuf};

use curt_testkit::http::Request;
use serde_json::{Value, json};

use super::browser::Browser;
use super::run;
use crate::api::{Answer, Api};
use crate::files::{all_files, holds};
use crate::site::Site;

const ADA: &str = "ada@example.com";

/// Secrets that somebody was shown or made up, by what they are.
#[derive(Default)]
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn add(&mut self, what: &'static str, secret: &str) -> String {
        assert!(secret.len() >= 8, "{what} is too short to be looked for");
        self.0.push((what, secret.to_owned()));
        secret.to_owned()
    }

    /// A token's public part may be stored; what follows it may not.
    fn add_token(&mut self, what: &'static str, token: &str) -> String {
        self.add(what, token.rsplit('_').next().unwrap());
        token.to_owned()
    }
}

/// Every way in which bytes are commonly written.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        bytes.to_vec(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
        bytes.iter().rev().copied().collect(),
    ];
    for alphabet in ["+/", "-_"] {
        // Within a longer text it may begin at any of three places.
        forms.extend((0..3).map(|skipped| base64(&bytes[skipped..], alphabet)));
    }
    forms
}

/// Of the part that fills whole groups, so that it is the same whatever follows.
fn base64(bytes: &[u8], last_two: &str) -> Vec<u8> {
    let letters = ('A'..='Z').chain('a'..='z').chain('0'..='9');
    let symbols: Vec<u8> = letters.map(|c| c as u8).chain(last_two.bytes()).collect();
    let groups = bytes.chunks_exact(3);
    groups
        .flat_map(|group| {
            let bits = group
                .iter()
                .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            [18, 12, 6, 0].map(|shift| symbols[(bits >> shift & 63) as usize])
        })
        .collect()
}

/// Whatever the server wrote: its data, its logs, its output. Commands print secrets once, for whoever asked.
fn written_files(site: &Site) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = all_files(site.folder());
    files.retain(|path| !is_shown_once(path));
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

fn is_shown_once(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with("command-") && name.ends_with(".stdout")
}

/// Returns how many bytes were looked through.
fn assert_nowhere(site: &Site, secrets: &Secrets, when: &str) -> usize {
    let files = written_files(site);
    let is_stored = files.iter().any(|(_, bytes)| holds(bytes, ADA.as_bytes()));
    assert!(is_stored, "{when}: the files do not hold what they must");
    for (what, secret) in &secrets.0 {
        for form in forms(secret) {
            for (path, bytes) in &files {
                assert!(
                    !holds(bytes, &form),
                    "{when}: {what} is in {}",
                    path.display()
                );
            }
        }
    }
    files.iter().map(|(_, bytes)| bytes.len()).sum()
}

fn sent(answer: Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    answer.json()
}

/// Uses everything that has a secret, well and badly.
fn live(site: &Site) -> Secrets {
    let mut secrets = Secrets::default();
    let admin = secrets.add_token("an API key", &run(site, &["api-key", "add", "admin"]));
    secrets.add(
        "a password",
        &run(site, &["user", "add", "bob@example.com"]),
    );
    let address = run(site, &["user", "invite"]);
    secrets.add("an invitation", address.split("invite=").nth(1).unwrap());
    let mut api = Api::new(site.http(), &admin);

    let invited = sent(api.post("/api/v1/invites", &json!({})).unwrap(), 201);
    let code = secrets.add("an invitation", invited["code"].as_str().unwrap());
    let first = secrets.add("a password", "first password of Ada's");
    let ada = json!({
        "first_name": "Ada", "last_name": "Lovelace", "email": ADA, "password": first, "invite": code,
    });
    let sign_up = Request::post("/api/v1/users").json(&ada);
    sent(api.send(&sign_up).unwrap(), 201);
    let before = Browser::sign_in(site, ADA, &first);
    secrets.add_token("a session", before.secret());
    let second = secrets.add("a password", "second password of Ada's");
    let change = json!({ "old_password": first, "new_password": second });
    let change = Request::post("/api/v1/users/me/password").json(&change);
    assert!(before.send(change).status < 300);
    let browser = Browser::sign_in(site, ADA, &second);
    secrets.add_token("a session", browser.secret());

    let made = Request::post("/api/v1/keys").json(&json!({ "name": "laptop" }));
    let made = sent(browser.send(made), 201);
    let key = secrets.add_token("an API key", made["token"].as_str().unwrap());
    let prefix = key.split('_').nth(1).unwrap();
    let rotate = Request::post(&format!("/api/v1/keys/{prefix}/rotate")).json(&json!({}));
    let rotated = sent(browser.send(rotate), 201);
    secrets.add_token("an API key", rotated["token"].as_str().unwrap());

    let opens = secrets.add("a link's password", "open sesame, please");
    let link =
        json!({ "target": "https://example.com/", "visibility": "password", "password": opens });
    let link = sent(api.post("/api/v1/links", &link).unwrap(), 201);
    let link = format!("/{}", link["key"].as_str().unwrap());
    let unlock = |password: &str| {
        let form = format!("password={password}");
        Request::post(&link).body("application/x-www-form-urlencoded", form)
    };
    assert_eq!(
        api.send(&unlock("open+sesame,+please")).unwrap().status,
        303
    );

    // Wrong ones are often nearly right, or right elsewhere; and keys come in addresses too.
    let wrong = secrets.add("a wrong password", "almostthesecret");
    assert_eq!(api.send(&unlock(&wrong)).unwrap().status, 401);
    let sign_in = json!({ "email": ADA, "password": wrong });
    let sign_in = Request::post("/api/v1/sessions").json(&sign_in);
    assert_eq!(api.send(&sign_in).unwrap().status, 401);
    let path = format!("/api/v1/createURL?api_dev_key={key}");
    let create = Request::post(&path).json(&json!({ "original_url": "https://example.com/" }));
    assert_eq!(api.send(&create).unwrap().status, 200);
    let stray = secrets.add_token(
        "a key that is not one",
        &format!("curt_{prefix}_{}", "q7".repeat(16)),
    );
    assert_eq!(
        Api::new(site.http(), &stray)
            .get("/api/v1/links")
            .unwrap()
            .status,
        401
    );
    secrets
}

#[test]
fn no_password_key_session_or_code_is_in_any_file() {
    // Logs as talkative as they can be, and no millions of free keys in the file, which only take time to read.
    let settings = [
        "accounts.sign_up=invite",
        "log.level=trace",
        "keys.strategy=snowflake",
    ];
    let mut site = Site::start(&settings);
    let mut secrets = live(&site);
    secrets.add_token("an API key", site.token());
    site.kill();
    let after_kill = assert_nowhere(&site, &secrets, "after kill -9");
    site.restart();
    assert!(site.terminate().success());
    let after_stop = assert_nowhere(&site, &secrets, "after a stop");
    println!(
        "people: {} secrets in {} forms each are nowhere in {after_kill} bytes after kill -9 nor {after_stop} after a stop",
        secrets.0.len(),
        forms("a secret").len()
    );
}

#[test]
fn what_is_looked_for_would_be_found() {
    let secret = "correct horse battery";
    // As written by `base64` and `xxd -p`, with something before and behind.
    for written in [
        "..correct horse battery..",
        "LlhYY29ycmVjdCBob3JzZSBiYXR0ZXJ5IQ==",
        "WGNvcnJlY3QgaG9yc2UgYmF0dGVyeSEh",
        "WFhjb3JyZWN0IGhvcnNlIGJhdHRlcnkh",
        "20636f727265637420686f727365206261747465727921",
    ] {
        let found = forms(secret)
            .iter()
            .any(|form| holds(written.as_bytes(), form));
        assert!(found, "{written}");
    }
    assert!(
        !forms(secret)
            .iter()
            .any(|form| holds(b"correct horse batter", form))
    );
}

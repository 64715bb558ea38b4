//! Chromium, driven as a person would use it, by WebDriver.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::engine::Recipe;
use super::home::Home;
use super::port::on_free_ports;
use super::{Engine, Missing, Port, cache};
use crate::http::{Client, Request};

const CHROMIUM: Missing = Missing {
    engine: "Chromium",
    install: "apt-get install chromium chromium-driver",
};
const AXE: Missing = Missing {
    engine: "axe-core",
    install: "apt-get install npm, then make engines",
};
/// The name of an element in WebDriver's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// For what a page is waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The script that finds what keeps people from using a page.
pub fn accessibility_checker() -> Result<String> {
    let script = AXE.file(cache::cached("axe").join("axe.min.js"))?;
    Ok(fs::read_to_string(script)?)
}

/// How a window looks at pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub is_dark: bool,
    pub has_scripts: bool,
}

impl Look {
    pub const DESKTOP: Self = Self {
        width: 1_280,
        height: 900,
        is_dark: false,
        has_scripts: true,
    };
    pub const PHONE: Self = Self {
        width: 390,
        height: 844,
        ..Self::DESKTOP
    };

    #[must_use]
    pub const fn dark(self) -> Self {
        Self {
            is_dark: true,
            ..self
        }
    }

    #[must_use]
    pub fn without_scripts(self) -> Self {
        Self {
            has_scripts: false,
            ..self
        }
    }
}

/// The driver of browsers. It starts in milliseconds, so none is shared.
#[derive(Debug)]
pub struct Driver {
    port: Port,
    _engine: Engine,
}

impl Driver {
    pub fn start() -> Result<Self> {
        CHROMIUM.program("chromium")?;
        let program = CHROMIUM.program("chromedriver")?;
        on_free_ports(|| {
            let home = Home::new()?;
            let port = Port::free()?;
            let (address, number) = (port.address(), port.to_string());
            let (program, folder) = (program.clone(), home.path().to_owned());
            let recipe = Recipe {
                name: "ChromeDriver",
                command: Box::new(move || command(&program, &number, &folder)),
                serves: Box::new(move || is_ready(address).unwrap_or(false)),
                stop_signal: Signal::TERM,
            };
            let engine = Engine::start(home, recipe)?;
            Ok(Self {
                port,
                _engine: engine,
            })
        })
    }

    /// A browser of its own, without cookies, that ends with the value.
    pub fn browser(&self, look: Look) -> Result<Browser> {
        Browser::open(self.port.address(), look)
    }
}

fn command(program: &Path, port: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // Profiles, caches and crash reports stay in the folder that is removed with the driver.
    command
        .arg(format!("--port={port}"))
        .arg("--log-level=WARNING")
        .envs(["TMPDIR", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, folder)));
    command
}

fn is_ready(address: SocketAddr) -> Result<bool> {
    let answer: Value = serde_json::from_str(&Client::new(address).get("/status")?.text())?;
    Ok(answer["value"]["ready"] == true)
}

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    address: SocketAddr,
    session: String,
}

/// A part of a page that is shown.
#[derive(Clone, Debug)]
pub struct Element(String);

impl Browser {
    fn open(address: SocketAddr, look: Look) -> Result<Self> {
        let Look { width, height, .. } = look;
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            // Containers often have next to nothing there.
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
            // Pages name other hosts, and none may be asked.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1".to_owned(),
        ];
        if look.is_dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let scripts = if look.has_scripts { 1 } else { 2 };
        let options = json!({
            "args": arguments,
            "prefs": { "profile.managed_default_content_settings.javascript": scripts },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "pageLoad": 60_000, "script": 60_000 },
        } } });
        let answer = call(address, &Request::post("/session").json(&wanted))?;
        let session = answer["sessionId"].as_str().context("no session")?;
        let browser = Self {
            address,
            session: session.to_owned(),
        };
        // Headless windows are not narrower than 500 pixels unless the device is emulated.
        browser.emulate(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 }),
        )?;
        if look.is_dark {
            let dark = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
            browser.emulate("Emulation.setEmulatedMedia", &json!({ "features": dark }))?;
        }
        Ok(browser)
    }

    fn emulate(&self, command: &str, parameters: &Value) -> Result<()> {
        let body = json!({ "cmd": command, "params": parameters });
        self.post("goog/cdp/execute", &body).map(drop)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let path = format!("/session/{}/{path}", self.session);
        call(self.address, &Request::post(&path).json(body))
    }

    fn get(&self, path: &str) -> Result<Value> {
        let path = format!("/session/{}/{path}", self.session);
        call(self.address, &Request::get(&path))
    }

    fn get_text(&self, path: &str) -> Result<String> {
        let value = self.get(path)?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Opens an address and waits until it is loaded.
    pub fn open_page(&self, url: &str) -> Result<()> {
        self.post("url", &json!({ "url": url })).map(drop)
    }

    pub fn reload(&self) -> Result<()> {
        self.post("refresh", &json!({})).map(drop)
    }

    /// The address of the page that is shown.
    pub fn url(&self) -> Result<String> {
        self.get_text("url")
    }

    pub fn title(&self) -> Result<String> {
        self.get_text("title")
    }

    /// The page as it is now.
    pub fn source(&self) -> Result<String> {
        self.get_text("source")
    }

    /// What a visitor can read on the page.
    pub fn text(&self) -> Result<String> {
        self.text_of(&self.find("body")?)
    }

    /// Everything that a CSS selector finds now.
    pub fn find_all(&self, selector: &str) -> Result<Vec<Element>> {
        let body = json!({ "using": "css selector", "value": selector });
        let found = self.post("elements", &body)?;
        let found = found.as_array().context("no list of elements")?;
        let element = |value: &Value| Some(Element(value[ELEMENT].as_str()?.to_owned()));
        Ok(found.iter().filter_map(element).collect())
    }

    /// The first that a CSS selector finds, as soon as there is one.
    pub fn find(&self, selector: &str) -> Result<Element> {
        let mut found = Err(anyhow::anyhow!("nothing was looked for"));
        self.wait_until(&format!("{selector} is there"), || {
            found = self.find_all(selector).map(|mut all| match all.is_empty() {
                true => None,
                false => Some(all.swap_remove(0)),
            });
            matches!(found, Err(_) | Ok(Some(_)))
        })?;
        found?.with_context(|| format!("no {selector}"))
    }

    /// Waits until `is_so`, and says what was not so when it never is.
    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + WAIT_MAX;
        while !is_so() {
            if Instant::now() >= end {
                let url = self.url().unwrap_or_default();
                let text = self.source().unwrap_or_default();
                bail!("waited for: {what}; at {url}:\n{text}");
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    pub fn wait_for_text(&self, text: &str) -> Result<()> {
        self.wait_until(&format!("the text {text:?}"), || {
            self.text().is_ok_and(|shown| shown.contains(text))
        })
    }

    pub fn text_of(&self, element: &Element) -> Result<String> {
        self.get_text(&format!("element/{}/text", element.0))
    }

    /// An attribute or property; empty where there is none.
    pub fn attribute_of(&self, element: &Element, name: &str) -> Result<String> {
        let value = self.post(
            "execute/sync",
            &json!({
                "script": "return String(arguments[0][arguments[1]] ?? arguments[0].getAttribute(arguments[1]) ?? '')",
                "args": [{ ELEMENT: element.0 }, name],
            }),
        )?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Clicks on it, as the visitor sees it: what is covered or not shown is refused.
    pub fn click(&self, selector: &str) -> Result<()> {
        let element = self.find(selector)?;
        self.click_on(&element)
    }

    pub fn click_on(&self, element: &Element) -> Result<()> {
        self.post(&format!("element/{}/click", element.0), &json!({}))
            .map(drop)
    }

    /// Replaces what stands in a field.
    pub fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let element = self.find(selector)?;
        self.post(&format!("element/{}/clear", element.0), &json!({}))?;
        self.type_into(&element, text)
    }

    pub fn type_into(&self, element: &Element, text: &str) -> Result<()> {
        let body = json!({ "text": text });
        self.post(&format!("element/{}/value", element.0), &body)
            .map(drop)
    }

    /// Runs a script in the page and returns its answer. Works also where the visitor's scripts are off.
    pub fn run_script(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        let body = json!({ "script": script, "args": arguments });
        self.post("execute/sync", &body)
    }

    /// The same for a script that calls its last argument when it is done.
    pub fn run_script_until_called(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        let body = json!({ "script": script, "args": arguments });
        self.post("execute/async", &body)
    }

    /// What the browser complained about since the last call: errors of scripts, refusals by the page's policy.
    pub fn complaints(&self) -> Result<Vec<String>> {
        let entries = self.post("se/log", &json!({ "type": "browser" }))?;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let text = |entry: &Value| entry["message"].as_str().map(str::to_owned);
        Ok(entries.iter().filter_map(text).collect())
    }

    /// The window as PNG.
    pub fn screenshot(&self) -> Result<Vec<u8>> {
        let text = self.get_text("screenshot")?;
        let picture = data_encoding::BASE64.decode(text.as_bytes());
        picture.context("the picture is not in base 64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let end = Request::new("DELETE", &format!("/session/{}", self.session));
        // The driver ends its browsers when it ends.
        let _ended = call(self.address, &end);
    }
}

/// Sends a command of WebDriver's and returns the value of its answer.
fn call(address: SocketAddr, request: &Request) -> Result<Value> {
    let answer = Client::new(address).send(request)?;
    let body: Value = serde_json::from_str(&answer.text()).context("no JSON from ChromeDriver")?;
    let value = body["value"].clone();
    if answer.status >= 400 {
        bail!("{}: {}", value["error"], value["message"]);
    }
    Ok(value)
}

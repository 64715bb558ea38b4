//! One installation of curt and, most of the time, its running server.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Output};
use std::time::Duration;

use curt_testkit::http::Client;
use curt_testkit::process::{App, Server};

use crate::alone::Company;
use crate::api::Api;
use crate::length::time_max;
use crate::metrics::Metrics;

/// How long a server may take to stop when it is asked to: its default grace period is 10 s.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Site {
    app: App,
    settings: Vec<String>,
    server: Option<Server>,
    token: String,
    /// The last to go: its server is gone by then.
    _company: Company,
}

impl Site {
    /// A new installation with these settings (`key=value`), an API key, and a running server.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let mut site = Self::new(settings);
        site.token = site.new_token("tests");
        site.restart();
        site
    }

    /// As [`start`](Self::start), with settings that commands have, too: where the data is.
    pub(crate) fn start_with_stores(settings: &[&str]) -> Self {
        let set = |app: App, setting: &&str| {
            let (key, value) = setting.split_once('=').expect("key=value");
            app.setting(key, value)
        };
        let mut site = Self::of(&[], |app| settings.iter().fold(app, set));
        site.token = site.new_token("tests");
        site.restart();
        site
    }

    /// A new installation with an empty database, for commands that come before the first start.
    pub(crate) fn prepared(settings: &[&str]) -> Self {
        let site = Self::new(settings);
        site.begin();
        site
    }

    fn begin(&self) {
        self.app.run(&["migrate", "--new"]).unwrap();
    }

    /// An empty folder: no data, no server and no API key.
    pub(crate) fn new(settings: &[&str]) -> Self {
        Self::with_environment(settings, &[])
    }

    /// The same with these variables, each the path of something.
    pub(crate) fn with_environment(settings: &[&str], environment: &[(&str, &Path)]) -> Self {
        let set = |app: App, (name, value): &(&str, &Path)| app.env(name, value);
        Self::of(settings, |app| environment.iter().fold(app, set))
    }

    /// As [`start`](Self::start), with so many files that the process may have open at most.
    pub(crate) fn start_with_files(settings: &[&str], files_max: u32) -> Self {
        let script = format!("ulimit -n {files_max} && exec \"$0\" \"$@\"");
        let mut site = Self::of(settings, |app| app.behind(["sh", "-c", &script]));
        site.token = site.new_token("tests");
        site.restart();
        site
    }

    fn of(settings: &[&str], adjust: impl FnOnce(App) -> App) -> Self {
        let company = Company::join();
        let app = adjust(App::new(env!("CARGO_BIN_EXE_curt")).unwrap());
        Self {
            app: app.ready_within(Duration::from_secs(120)),
            settings: settings.iter().map(|text| (*text).to_owned()).collect(),
            server: None,
            token: String::new(),
            _company: company,
        }
    }

    /// Starts the server on the data that is there.
    pub(crate) fn restart(&mut self) {
        self.restart_as(&[]);
    }

    /// The same with these roles alone.
    pub(crate) fn restart_as(&mut self, roles: &[&str]) {
        assert!(self.server.is_none(), "the server runs already");
        let quiet = ["--set", "log.level=warn"];
        let given = roles.iter().chain(&quiet).map(|text| (*text).to_owned());
        let arguments: Vec<String> = given.chain(self.set_arguments()).collect();
        self.server = Some(self.app.start_with(&arguments).unwrap());
    }

    /// The settings of the next start, instead of those before.
    pub(crate) fn change_settings(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|text| (*text).to_owned()).collect();
    }

    /// `--set key=value` for each setting.
    pub(crate) fn set_arguments(&self) -> Vec<String> {
        let pairs = self.settings.iter();
        pairs
            .flat_map(|setting| ["--set".to_owned(), setting.clone()])
            .collect()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.app.folder()
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("a running server")
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.server().http().unwrap()
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn use_token(&mut self, token: &str) {
        token.clone_into(&mut self.token);
    }

    /// Another API key of the user with this name, who is added when new.
    pub(crate) fn new_token(&self, user: &str) -> String {
        let name = format!("{:x}", rand::random::<u64>());
        let email = format!("{user}@example.com");
        let add = || self.app.output(&["user", "add", &email]).unwrap();
        // Refused when there is one, which is as good; or because there is no data yet.
        if add().status.code() == Some(78) {
            self.begin();
            add();
        }
        let arguments = ["api-key", "add", &name, "--user", &email];
        let printed = self.app.run(&arguments).unwrap();
        printed.trim().to_owned()
    }

    /// A connection that acts with the site's API key.
    pub(crate) fn api(&self) -> Api {
        Api::new(self.http(), &self.token)
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let admin = self.server().admin().unwrap();
        let answer = Client::new(admin).get("/metrics").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        Metrics::parse(&answer.text())
    }

    /// Runs a command of the binary in the site's folder.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.app.output(arguments).unwrap()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.server
            .take()
            .expect("a running server")
            .kill()
            .unwrap();
    }

    /// SIGTERM, and the end that follows from it in time.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let server = self.server.take().expect("a running server");
        server.terminate(time_max(STOP_TIME_MAX)).unwrap()
    }
}

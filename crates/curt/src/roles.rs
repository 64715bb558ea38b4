//! What one process does of the whole.

use std::fmt;
use std::sync::Arc;

use clap::ValueEnum;
use curt_keys::{KeySupply, Strategy};

use crate::config::{Config, ConfigError, StoreSettings};
use crate::supervisor::Supervisor;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Follow links
    Redirect,
    /// Create and manage links
    Api,
    /// Mint keys ahead of time
    Keygen,
    /// Move keys to where they are used
    Keysync,
    /// Purge expired links
    Purge,
    /// Count clicks that were written down
    Clicks,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Redirect => "redirect",
            Self::Api => "api",
            Self::Keygen => "keygen",
            Self::Keysync => "keysync",
            Self::Purge => "purge",
            Self::Clicks => "clicks",
        }
    }
}

/// The chosen roles; none chosen means all.
#[derive(Clone, Debug)]
pub(crate) struct Roles(Vec<Role>);

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|role| role.name()).collect();
        f.write_str(&names.join(" "))
    }
}

impl Roles {
    /// One listener answers redirects and the API alike, so a process has both or neither: serving an API that nobody
    /// named would be a surprise. Roles that would do nothing for other processes are refused, too.
    pub(crate) fn new(chosen: Vec<Role>, config: &Config) -> anyhow::Result<Self> {
        let roles = Self(if chosen.is_empty() {
            Role::value_variants().to_vec()
        } else {
            chosen
        });
        anyhow::ensure!(
            roles.has(Role::Redirect) == roles.has(Role::Api),
            "the roles redirect and api go together in this version: name both, or none"
        );
        roles.check_keys(config)?;
        Ok(roles)
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// Whether anybody outside is answered.
    pub(crate) fn serve_http(&self) -> bool {
        self.has(Role::Redirect)
    }

    /// Whether the process cannot do without the links database.
    pub(crate) fn need_links(&self) -> bool {
        [Role::Redirect, Role::Api, Role::Purge, Role::Clicks]
            .into_iter()
            .any(|role| self.has(role))
    }

    /// Whether the process counts clicks or reports on them.
    pub(crate) fn need_clicks(&self) -> bool {
        self.serve_http() || self.has(Role::Clicks)
    }

    /// How the process describes itself to others: where it is and what it does.
    pub(crate) fn description(&self) -> String {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("{}/{} {self}", host.trim(), std::process::id())
    }

    /// A process that only makes or moves keys works for others: what it uses must be theirs, too.
    fn check_keys(&self, config: &Config) -> Result<(), ConfigError> {
        if self.has(Role::Api) || !(self.has(Role::Keygen) || self.has(Role::Keysync)) {
            return Ok(());
        }
        let store = &config.store;
        let refuse = |key: &str, way_out: &str| {
            Err(ConfigError::new(format!(
                "{key}: no other process could use what this one makes: name the role api too, or use {way_out}"
            )))
        };
        let moves = self.has(Role::Keysync);
        match config.keys.strategy {
            Strategy::Pool | Strategy::Status => {
                if !store.keys.iter().all(|shard| shard.kind().is_shared()) {
                    return refuse("store.keys", "postgres://… or mysql://…");
                }
                if moves && store.pool.is_empty() {
                    return refuse("store.pool", "redis://…");
                }
            }
            Strategy::File => {
                let cursor = store.cursor.as_ref().unwrap_or(&store.links);
                if !cursor.kind().is_shared() {
                    return refuse("store.cursor", "postgres://… or zookeeper://…");
                }
                if !store.files.kind().is_shared() {
                    return refuse("store.files", "file:FOLDER, hdfs://… or s3://…");
                }
            }
            Strategy::Claim if !store.links.kind().is_shared() => {
                return refuse("store.links", "postgres://…");
            }
            Strategy::Claim => {}
            idle @ (Strategy::Snowflake | Strategy::Sequence | Strategy::Hash) => {
                return Err(ConfigError::new(format!(
                    "keys.strategy: {idle} needs neither keygen nor keysync: every server makes its own keys"
                )));
            }
        }
        if !store.leases.kind().is_shared() {
            return refuse("store.leases", "zookeeper://… or redis://…");
        }
        Ok(())
    }
}

/// Starts the roles around keys. A process that creates links and draws straight from the keys database also settles
/// its batches there.
pub(crate) fn start_keys(
    roles: &Roles,
    store: &StoreSettings,
    supervisor: &Supervisor,
    supply: &Arc<KeySupply>,
) {
    if roles.has(Role::Keygen) {
        supervisor.start("keygen", |stop| supply.clone().run_keygen(stop));
    }
    if roles.has(Role::Keysync) || roles.has(Role::Api) && store.pool.is_empty() {
        supervisor.start("keysync", |stop| supply.clone().run_keysync(stop));
    }
    supervisor.start("heartbeat", |stop| supply.clone().run_heartbeat(stop));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(set: &[&str]) -> Config {
        Config::with(set).unwrap()
    }

    #[test]
    fn no_role_means_all_and_half_a_listener_is_refused() {
        let config = config(&[]);
        let all = Roles::new(Vec::new(), &config).unwrap();
        assert!(Role::value_variants().iter().all(|role| all.has(*role)));
        assert!(Roles::new(vec![Role::Redirect], &config).is_err());
        assert!(Roles::new(vec![Role::Api, Role::Purge], &config).is_err());
    }

    #[test]
    fn roles_that_nobody_else_could_profit_from_are_refused_by_setting() {
        let shared = [
            "store.keys=postgres://h/keys",
            "store.pool=redis://h",
            "store.leases=zookeeper://h/curt",
        ];
        let roles = |roles: &[Role], set: &[&str]| Roles::new(roles.to_vec(), &config(set));
        for (role, missing) in [
            (Role::Keygen, "store.keys"),
            (Role::Keysync, "store.keys"),
            (Role::Keygen, "store.leases"),
            (Role::Keysync, "store.pool"),
            (Role::Keysync, "store.leases"),
        ] {
            let others: Vec<&str> = shared
                .into_iter()
                .filter(|setting| !setting.starts_with(missing))
                .collect();
            let problem = roles(&[role], &others).unwrap_err().to_string();
            assert!(problem.starts_with(missing), "{role:?}: {problem}");
            assert!(roles(&[role], &shared).is_ok(), "{role:?}");
            // Beside a listener it works for itself.
            assert!(roles(&[Role::Redirect, Role::Api, role], &[]).is_ok());
        }
        let keygen = roles(&[Role::Keygen], &shared).unwrap();
        assert!(!keygen.serve_http() && !keygen.need_links());
        let idle = roles(&[Role::Keygen], &["keys.strategy=snowflake"]).unwrap_err();
        assert!(idle.to_string().contains("keys.strategy"), "{idle}");
    }
}

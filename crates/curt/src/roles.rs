//! What one process does of the whole.

use std::sync::Arc;

use clap::ValueEnum;
use curt_keys::KeySupply;
use curt_links::Purger;

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
    /// Count visits that were written down
    Clicks,
}

/// The chosen roles; none chosen means all.
#[derive(Clone, Debug)]
pub(crate) struct Roles(Vec<Role>);

impl Roles {
    /// One listener answers redirects and the API alike, so a process has both or neither: serving an API that nobody
    /// named would be a surprise.
    pub(crate) fn new(chosen: Vec<Role>) -> anyhow::Result<Self> {
        let roles = Self(if chosen.is_empty() {
            Role::value_variants().to_vec()
        } else {
            chosen
        });
        anyhow::ensure!(
            roles.has(Role::Redirect) == roles.has(Role::Api),
            "the roles redirect and api go together in this version: name both, or none"
        );
        Ok(roles)
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// Whether anybody outside is answered.
    pub(crate) fn serve_http(&self) -> bool {
        self.has(Role::Redirect)
    }
}

/// Starts the roles that work in the background.
pub(crate) fn start_background(
    roles: &Roles,
    supervisor: &Supervisor,
    supply: &Arc<KeySupply>,
    purger: Arc<Purger>,
) {
    if roles.has(Role::Keygen) {
        supervisor.start("keygen", |stop| supply.clone().run_keygen(stop));
    }
    // The process that creates links also fills its own ring.
    if roles.has(Role::Keysync) || roles.has(Role::Api) {
        supervisor.start("keysync", |stop| supply.clone().run_keysync(stop));
    }
    if roles.has(Role::Purge) {
        supervisor.start("purge", |stop| purger.run(stop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_role_means_all_and_half_a_listener_is_refused() {
        let all = Roles::new(Vec::new()).unwrap();
        assert!(Role::value_variants().iter().all(|role| all.has(*role)));
        assert!(Roles::new(vec![Role::Redirect]).is_err());
        assert!(Roles::new(vec![Role::Api, Role::Purge]).is_err());
        assert!(!Roles::new(vec![Role::Keygen]).unwrap().serve_http());
    }
}

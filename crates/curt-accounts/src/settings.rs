use std::time::Duration;

/// Who may make an account without an administrator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignUp {
    #[default]
    Closed,
    /// Whoever shows the code of an invitation.
    Invite,
    Open,
}

/// What becomes of the links of users who are disabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisabledLinks {
    /// They redirect as before.
    #[default]
    Serve,
    /// They are gone, until their owner is enabled again.
    Gone,
}

#[derive(Clone, Debug)]
pub struct AccountSettings {
    pub sign_up: SignUp,
    pub disabled_links: DisabledLinks,
    /// A session ends when it has not been used for this long.
    pub session_idle: Duration,
    /// A session ends this long after the sign-in, however much it is used.
    pub session_max: Duration,
    pub passwords: PasswordSettings,
}

impl Default for AccountSettings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        Self {
            sign_up: SignUp::default(),
            disabled_links: DisabledLinks::default(),
            session_idle: DAY * 14,
            session_max: DAY * 90,
            passwords: PasswordSettings::default(),
        }
    }
}

/// What one guess at a password costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordSettings {
    pub memory_kib: u32,
    pub passes: u32,
    /// Hashes of users' passwords computed at the same time; each holds its memory and a core.
    pub hashers: usize,
    /// The same for passwords of links, so that signing in does not wait for them.
    pub link_hashers: usize,
}

impl PasswordSettings {
    pub(crate) fn of_links(self) -> Self {
        Self {
            hashers: self.link_hashers,
            ..self
        }
    }
}

impl Default for PasswordSettings {
    fn default() -> Self {
        Self {
            memory_kib: 19 * 1_024,
            passes: 2,
            hashers: 2,
            link_hashers: 1,
        }
    }
}

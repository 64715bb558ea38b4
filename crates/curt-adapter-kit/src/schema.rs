//! The numbered steps that make and change the tables of an engine: forward only.

/// One step of a schema. Numbers follow each other from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    pub number: u32,
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    /// What a database remembers after this step. Builds before the first release counted from 1, and their tables are
    /// others: that is how they are told apart.
    #[must_use]
    pub fn stored_version(&self) -> u32 {
        BEFORE_RELEASE_MAX + self.number
    }
}

/// The highest version that a build before the first release can have stored.
const BEFORE_RELEASE_MAX: u32 = 1_000;

/// Why a schema cannot be brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "written by a build of curt from before the first release (schema {0}), which cannot be updated: start with an \
         empty database; that build can still read this one"
    )]
    BeforeRelease(u32),
    #[error(
        "written by a newer curt (schema {version}, this one knows {known}): use that one, or a backup from before its \
         update"
    )]
    Newer { version: u32, known: usize },
}

/// The steps that a database has not seen yet which remembers the version `stored`, or 0 when it is empty.
pub fn pending_migrations(
    steps: &'static [Migration],
    stored: u32,
) -> Result<&'static [Migration], SchemaError> {
    let done = match stored {
        0 => 0,
        1..=BEFORE_RELEASE_MAX => return Err(SchemaError::BeforeRelease(stored)),
        _ => stored - BEFORE_RELEASE_MAX,
    };
    let known = steps.len();
    let newer = SchemaError::Newer {
        version: done,
        known,
    };
    steps.get(done as usize..).ok_or(newer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(number: u32) -> Migration {
        Migration {
            number,
            name: "step",
            sql: "",
        }
    }

    static STEPS: [Migration; 2] = [step(1), step(2)];

    #[test]
    fn what_is_missing_is_pending_and_other_schemas_are_named() {
        assert_eq!(pending_migrations(&STEPS, 0), Ok(&STEPS[..]));
        let after = |number: usize| STEPS[number - 1].stored_version();
        assert_eq!(pending_migrations(&STEPS, after(1)), Ok(&STEPS[1..]));
        assert_eq!(pending_migrations(&STEPS, after(2)), Ok(&[][..]));
        for (stored, text) in [
            (1, "before the first release (schema 1)"),
            (14, "(schema 14)"),
        ] {
            let error = pending_migrations(&STEPS, stored).unwrap_err().to_string();
            assert!(
                error.contains(text) && error.contains("empty database"),
                "{error}"
            );
        }
        let error = pending_migrations(&STEPS, after(2) + 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("newer curt (schema 3, this one knows 2)"),
            "{error}"
        );
    }
}

use std::path::PathBuf;

use anyhow::Result;

use crate::skipped;

/// An engine is not installed on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub engine: &'static str,
    /// A command besides `make engines` that installs it.
    pub install: &'static str,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { engine, install } = self;
        write!(
            f,
            "{engine} is missing (install it with: make engines, or {install})"
        )
    }
}

impl std::error::Error for Missing {}

impl Missing {
    /// The program by its name, from the path of programs or a folder where Debian keeps servers.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf, Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path)
            .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
        let mut programs = folders.map(|folder| folder.join(name));
        let found = programs.find(|program| program.is_file());
        found.ok_or_else(|| self.clone())
    }

    /// The file, where the machine has it.
    pub(super) fn file(&self, path: PathBuf) -> Result<PathBuf, Self> {
        if path.exists() {
            Ok(path)
        } else {
            Err(self.clone())
        }
    }
}

/// The engine, or `None` after saying that `test` is skipped because the engine is missing. See [`need!`](crate::need).
///
/// # Panics
/// When the engine is installed and did not start: that is a failure, not a reason to skip.
#[expect(clippy::panic, reason = "fails the test that asked")]
pub fn unless_missing<T>(test: &str, started: Result<T>) -> Option<T> {
    match started {
        Ok(engine) => Some(engine),
        Err(error) => {
            let Some(missing) = error.downcast_ref::<Missing>() else {
                panic!("an engine did not start: {error:#}");
            };
            let test = test.trim_end_matches("::here");
            let test = test.trim_end_matches("::{{closure}}");
            skipped::say(test, &missing.to_string());
            None
        }
    }
}

/// The engine that an expression starts; where it is not installed, the test ends here and counts as skipped.
#[macro_export]
macro_rules! need {
    ($engine:expr) => {{
        // Its path holds the name of the test, which nothing else tells reliably.
        fn here() {}
        let test = ::std::any::type_name_of_val(&here);
        match $crate::engines::unless_missing(test, $engine) {
            Some(engine) => engine,
            None => return,
        }
    }};
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    const NOTHING: Missing = Missing {
        engine: "Nothing",
        install: "apt-get install nothing",
    };

    #[test]
    fn a_program_is_found_and_a_missing_one_is_named_with_its_cure() {
        assert!(NOTHING.program("sh").unwrap().ends_with("sh"));
        let error = NOTHING.program("no-such-program").unwrap_err();
        let cure = "Nothing is missing (install it with: make engines, or apt-get install nothing)";
        assert_eq!(error.to_string(), cure);
    }

    #[test]
    fn an_engine_that_fails_to_start_fails_the_test() {
        let failed = || unless_missing::<()>("t", Err(anyhow!("oops")));
        assert!(std::panic::catch_unwind(failed).is_err());
        assert_eq!(unless_missing("t", Ok(1)), Some(1));
    }
}

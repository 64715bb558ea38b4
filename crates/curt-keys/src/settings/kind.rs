use std::fmt;
use std::str::FromStr;

/// Where generated keys come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Random keys minted ahead into the ledger, moved to the pool if there is one, drawn into the buffer.
    #[default]
    Pool,
    /// The same line over a ledger that marks or moves taken keys instead of deleting them. The form is chosen
    /// where the ledger is opened.
    Status,
    /// Blocks of a file of fixed-width keys, claimed by compare-and-set.
    File,
    /// Link rows made ahead of time and claimed by the link store itself.
    Claim,
    /// 48-bit ids of time, data centre, machine and sequence.
    Snowflake,
    /// 48-bit running numbers.
    Sequence,
    /// A hash of target and owner.
    Hash,
}

impl Strategy {
    pub const ALL: [Self; 7] = [
        Self::Pool,
        Self::Status,
        Self::File,
        Self::Claim,
        Self::Snowflake,
        Self::Sequence,
        Self::Hash,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Status => "status",
            Self::File => "file",
            Self::Claim => "claim",
            Self::Snowflake => "snowflake",
            Self::Sequence => "sequence",
            Self::Hash => "hash",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not one of a strategy or a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {name:?}: use {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: &'static str,
}

impl FromStr for Strategy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| UnknownName {
                what: "key strategy",
                name: name.to_owned(),
                known: "pool, status, file, claim, snowflake, sequence or hash",
            })
    }
}

/// The digest of the `hash` strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashKind {
    Md5,
    #[default]
    Sha256,
}

impl HashKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
        }
    }
}

impl fmt::Display for HashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HashKind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Md5, Self::Sha256]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownName {
                what: "hash",
                name: name.to_owned(),
                known: "md5 or sha256",
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        for kind in [HashKind::Md5, HashKind::Sha256] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("Pool".parse::<Strategy>().is_err());
        assert!("sha1".parse::<HashKind>().is_err());
    }
}

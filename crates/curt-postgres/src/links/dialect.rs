//! What statements of lists look like for which engine.

/// Whether a row of `part` has no click left.
const EXHAUSTED: &str = "coalesce(max_clicks <= coalesce((SELECT c.spent FROM link_clicks AS c \
     WHERE c.domain = part.domain AND c.key = part.key), 0), false)";

/// The same where clicks are counted in the row.
const EXHAUSTED_IN_ROW: &str = "coalesce(max_clicks <= spent, false)";

/// Which statements the engine takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    #[default]
    Plain,
    /// Those of engines that spread tables over servers, and of the tables that they have.
    Distributed,
}

impl Dialect {
    /// The condition under which a row of `part` has no click left.
    pub(super) fn exhausted(self) -> &'static str {
        match self {
            Self::Plain => EXHAUSTED,
            Self::Distributed => EXHAUSTED_IN_ROW,
        }
    }

    /// ASCII letters in lower case, whatever the language of the database.
    pub(super) fn lower(self, column: &str) -> String {
        match self {
            Self::Plain => format!("lower({column} COLLATE \"C\")"),
            Self::Distributed => format!(
                "translate({column}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"
            ),
        }
    }

    /// The tags of a row, in lower case.
    pub(super) fn tags(self) -> &'static str {
        match self {
            Self::Plain => "ARRAY(SELECT lower(tag COLLATE \"C\") FROM unnest(tags) AS tag)",
            Self::Distributed => "tags_lower",
        }
    }
}

//! What can be edited of a link, as text: as it is stored, as somebody typed it, and as they saw it before.

use curt_core::{Link, RedirectStatus, UnixMillis, Visibility};
use curt_links::{EditLink, Expiry, LinkEdit, NewPassword};

use crate::api::Rfc3339;
use crate::pages::form::Form;
use crate::problem::InvalidField;

/// Names of the fields and what pages call them, in the order of the form.
pub(super) const FIELDS: [(&str, &str); 9] = [
    ("target", "Long address"),
    ("title", "Title"),
    ("tags", "Tags"),
    ("expires_at", "Ends"),
    ("valid_since", "Begins"),
    ("visibility", "Who may follow it"),
    ("max_clicks", "Limit of clicks"),
    ("redirect_status", "Redirect status"),
    ("forward_query", "Query is passed on"),
];

/// The values of [`FIELDS`], in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkFields([String; FIELDS.len()]);

/// A field that somebody else changed since the form was opened.
pub(super) struct ChangedField {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) was: String,
    pub(super) theirs: String,
    pub(super) mine: String,
    /// Whether both changed it, so that one of them has to give way.
    pub(super) is_conflict: bool,
}

impl LinkFields {
    pub(super) fn of_link(link: &Link) -> Self {
        let number = |number: Option<u64>| number.map_or_else(String::new, |most| most.to_string());
        Self([
            link.target.as_str().to_owned(),
            link.title.as_deref().unwrap_or_default().to_owned(),
            link.tags.join(", "),
            link.expires_at.map_or_else(String::new, local_time),
            link.valid_since.map_or_else(String::new, local_time),
            link.visibility.name().to_owned(),
            number(link.max_clicks),
            link.status.code().to_string(),
            yes_or_no(link.forward_query).to_owned(),
        ])
    }

    /// What a form holds. A box that is not ticked is not sent.
    pub(super) fn of_form(form: &Form, prefix: &str) -> Self {
        Self(FIELDS.map(|(name, _)| {
            let text = form.text(&format!("{prefix}{name}"));
            match name {
                "forward_query" => yes_or_no(text == "yes").to_owned(),
                // Browsers send line ends in their own way.
                _ => text.replace("\r\n", "\n"),
            }
        }))
    }

    pub(super) fn get(&self, name: &str) -> &str {
        let at = FIELDS.iter().position(|(known, _)| *known == name);
        at.and_then(|at| self.0.get(at)).map_or("", String::as_str)
    }

    /// Name and value of each.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = FIELDS.iter().map(|(name, _)| *name);
        names.zip(self.0.iter().map(String::as_str))
    }

    /// Puts two edits of the same link together: what only others changed is theirs, everything else is `self`'s. Returns
    /// what others changed.
    pub(super) fn merge(&mut self, was: &Self, theirs: &Self) -> Vec<ChangedField> {
        let mut changed = Vec::new();
        for (at, (name, label)) in FIELDS.into_iter().enumerate() {
            let (mine, was, theirs) = (&mut self.0[at], &was.0[at], &theirs.0[at]);
            if theirs == was {
                continue;
            }
            let is_conflict = mine != was && mine != theirs;
            changed.push(ChangedField {
                name,
                label,
                was: was.clone(),
                theirs: theirs.clone(),
                mine: mine.clone(),
                is_conflict,
            });
            if !is_conflict {
                theirs.clone_into(mine);
            }
        }
        changed
    }

    /// The edit that makes `self` of what is stored: fields that are equal are left alone, so that a link whose end is past
    /// can be given a title. A new password goes with the visibility of that name.
    pub(super) fn edit_of(
        &self,
        stored: &Self,
        password: &str,
    ) -> Result<LinkEdit, Vec<InvalidField>> {
        let mut edit = EditLink::default();
        let mut mistakes = Vec::new();
        for ((name, text), (_, stored)) in self.all().zip(stored.all()) {
            if text != stored
                && let Err(mistake) = set(&mut edit, name, text)
            {
                mistakes.push(mistake);
            }
        }
        let has_password = !password.is_empty();
        match self.get("visibility") {
            "password" => {}
            _ if has_password => mistakes.push(InvalidField::new(
                "password",
                "password_unused",
                "A password goes only with “Whoever knows the password”. Choose that, or leave this empty.",
            )),
            _ => {}
        }
        match mistakes.is_empty() {
            true => Ok(LinkEdit {
                link: edit,
                password: has_password.then(|| Some(NewPassword(password.to_owned()))),
            }),
            false => Err(mistakes),
        }
    }
}

fn set(edit: &mut EditLink, name: &'static str, text: &str) -> Result<(), InvalidField> {
    let wrong = |message: &'static str| InvalidField::new(name, "value", message);
    match name {
        "target" => edit.target = Some(text.to_owned()),
        "title" => edit.title = Some((!text.is_empty()).then(|| text.to_owned())),
        "tags" => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            edit.tags = Some(tags.map(str::to_owned).collect());
        }
        "expires_at" => {
            let at = parse_time(text).map_err(wrong)?;
            edit.expires_at = Some(at.map_or(Expiry::Never, Expiry::At));
        }
        "valid_since" => edit.valid_since = Some(parse_time(text).map_err(wrong)?),
        "visibility" => {
            let known = [
                Visibility::Public,
                Visibility::Private,
                Visibility::Password,
            ];
            let chosen = known.into_iter().find(|known| known.name() == text);
            edit.visibility = Some(chosen.ok_or_else(|| wrong("Choose one of the list."))?);
        }
        "max_clicks" => {
            let most = match text {
                "" => None,
                text => Some(text.parse().map_err(|_| wrong("Write a number."))?),
            };
            edit.max_clicks = Some(most);
        }
        "redirect_status" => {
            let code = text.parse().ok().and_then(RedirectStatus::from_code);
            edit.status = Some(code.ok_or_else(|| wrong("Choose one of the list."))?);
        }
        _ => edit.forward_query = Some(text == "yes"),
    }
    Ok(())
}

fn yes_or_no(is_set: bool) -> &'static str {
    if is_set { "yes" } else { "no" }
}

/// In UTC, as fields for date and time hold it: to the minute.
fn local_time(at: UnixMillis) -> String {
    let text = Rfc3339(at).to_string();
    text.get(..16).unwrap_or(&text).to_owned()
}

/// Browsers send `2030-12-31T23:59`, some with seconds.
fn parse_time(text: &str) -> Result<Option<UnixMillis>, &'static str> {
    let whole = match text.len() {
        0 => return Ok(None),
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => format!("{text}Z"),
    };
    let at = Rfc3339::parse(&whole);
    at.map(|at| Some(at.0))
        .map_err(|_| "Write date and time as in 2030-12-31T23:59.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(target: &str, title: &str, tags: &str) -> LinkFields {
        let mut fields = LinkFields::default();
        for (at, text) in [target, title, tags].into_iter().enumerate() {
            text.clone_into(&mut fields.0[at]);
        }
        fields
    }

    #[test]
    fn edits_of_different_fields_are_put_together() {
        let was = fields("t", "old", "a");
        let theirs = fields("t2", "old", "a");
        let mut mine = fields("t", "new", "a");
        let changed = mine.merge(&was, &theirs);
        assert_eq!(mine, fields("t2", "new", "a"));
        assert!(changed.len() == 1 && changed[0].name == "target" && !changed[0].is_conflict);
    }

    #[test]
    fn edits_of_the_same_field_are_told_and_mine_is_kept() {
        let was = fields("t", "old", "a");
        let theirs = fields("t", "theirs", "b");
        let mut mine = fields("t", "mine", "b");
        let changed = mine.merge(&was, &theirs);
        assert_eq!(mine, fields("t", "mine", "b"));
        let told: Vec<_> = changed
            .iter()
            .map(|field| (field.name, field.is_conflict))
            .collect();
        assert_eq!(
            told,
            [("title", true), ("tags", false)],
            "the same change is none"
        );
    }

    #[test]
    fn only_what_differs_is_edited() {
        let stored = fields("t", "old", "a");
        let edit = fields("t", "", "a, b").edit_of(&stored, "").unwrap();
        assert_eq!(edit.link.target, None);
        assert_eq!(edit.link.title, Some(None));
        assert_eq!(edit.link.tags, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(edit.link.expires_at, None);
        let refused = fields("t", "", "").edit_of(&stored, "secret").unwrap_err();
        assert_eq!(refused[0].field, "password");
    }

    #[test]
    fn times_are_those_of_the_field() {
        let at = parse_time("2030-12-31T23:59").unwrap().unwrap();
        assert_eq!(local_time(at), "2030-12-31T23:59");
        assert_eq!(
            parse_time("2030-12-31T23:59:30").unwrap(),
            Some(at.plus(std::time::Duration::from_secs(30)))
        );
        assert_eq!(parse_time(""), Ok(None));
        assert!(parse_time("soon").is_err() && parse_time("2030-02-31T00:00").is_err());
    }
}

//! Titles and tags: what users write about a link.

use curt_core::limits::{TAG_BYTES_MAX, TAGS_MAX, TITLE_BYTES_MAX};
use curt_core::{Field, FieldError};

/// The title without spaces around it; an empty one is none.
pub(super) fn parse_title(text: &str) -> Result<Option<Box<str>>, FieldError> {
    let title = text.trim();
    if title.len() > TITLE_BYTES_MAX {
        return Err(FieldError::new(
            Field::Title,
            "title_too_long",
            format!("A title has at most {TITLE_BYTES_MAX} bytes."),
        ));
    }
    if title.chars().any(char::is_control) {
        return Err(FieldError::new(
            Field::Title,
            "title_control",
            "A title must not hold control characters.",
        ));
    }
    Ok((!title.is_empty()).then(|| title.into()))
}

/// Tags in lower case, with '-' for spaces, each one once, in the order given.
pub(crate) fn parse_tags(texts: &[String]) -> Result<Vec<Box<str>>, Vec<FieldError>> {
    let mut tags: Vec<Box<str>> = Vec::new();
    let mut errors: Vec<FieldError> = Vec::new();
    for text in texts {
        match parse_tag(text) {
            Ok(tag) if tags.contains(&tag) => {}
            Ok(tag) => tags.push(tag),
            // The same mistake in ten tags is one mistake.
            Err(error) if errors.contains(&error) => {}
            Err(error) => errors.push(error),
        }
        if tags.len() > TAGS_MAX {
            errors.push(tag_error(
                "tags_too_many",
                format!("A link has at most {TAGS_MAX} tags."),
            ));
            break;
        }
    }
    if errors.is_empty() {
        Ok(tags)
    } else {
        Err(errors)
    }
}

fn parse_tag(text: &str) -> Result<Box<str>, FieldError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(tag_error("tag_empty", "A tag must not be empty.".into()));
    }
    if text.chars().any(|c| c.is_control() || c == ',') {
        return Err(tag_error(
            "tag_symbols",
            "A tag must not hold commas or control characters.".into(),
        ));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let tag = words.join("-").to_lowercase();
    if tag.len() > TAG_BYTES_MAX {
        return Err(tag_error(
            "tag_too_long",
            format!("A tag has at most {TAG_BYTES_MAX} bytes."),
        ));
    }
    Ok(tag.into())
}

fn tag_error(code: &'static str, message: String) -> FieldError {
    FieldError::new(Field::Tags, code, message)
}

//! Which links the page lists: what the form says, as the API would ask for it.

use url::form_urlencoded;

use crate::api::list_query::{self, ListRequest};
use crate::api::time::{Rfc3339, parse_day};
use crate::pages::form::Form;
use crate::problem::Problem;

/// Links on one page: few enough that a page of the longest titles is small.
const LINKS_MAX: &str = "25";

/// As the form shows it again. Empty: not filtered by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListFilter {
    pub(super) search: String,
    /// Separated by commas.
    pub(super) tags: String,
    pub(super) state: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) order: String,
    /// `all` for everybody's.
    pub(super) owner: String,
    cursor: String,
}

impl ListFilter {
    pub(super) fn of(query: &Form) -> Self {
        Self {
            search: query.text("search"),
            tags: query.text("tag"),
            state: query.text("state"),
            from: query.text("from"),
            to: query.text("to"),
            order: query.text("order"),
            owner: query.text("owner"),
            cursor: query.text("cursor"),
        }
    }

    /// The list of the API that this is.
    pub(super) fn request(&self) -> Result<ListRequest, Problem> {
        let mut query = self.asked()?;
        query.append_pair("limit", LINKS_MAX);
        if !self.cursor.is_empty() {
            query.append_pair("cursor", &self.cursor);
        }
        list_query::parse(&query.finish())
    }

    /// The same list whole.
    pub(super) fn file_request(&self) -> Result<ListRequest, Problem> {
        let mut asked = self.clone();
        if asked.order == "clicks" {
            asked.order = String::new();
        }
        list_query::parse_for_file(&asked.asked()?.finish())
    }

    fn asked(&self) -> Result<form_urlencoded::Serializer<'static, String>, Problem> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("search", &self.search),
            ("state", &self.state),
            ("order", &self.order),
            ("owner_id", &self.owner),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        for tag in self.tags.split(',').map(str::trim) {
            if !tag.is_empty() {
                query.append_pair("tag", tag);
            }
        }
        let wrong = |field: &'static str| {
            move |error: crate::api::time::TimeError| match error {
                crate::api::time::TimeError::Syntax => {
                    Problem::invalid_field(field, "time", "Write a day as in 2030-12-31.")
                }
                calendar => Problem::invalid_field(field, "time", calendar.to_string()),
            }
        };
        if !self.from.is_empty() {
            let day = parse_day(&self.from).map_err(wrong("from"))?;
            query.append_pair("created_from", &format!("{day}T00:00:00Z"));
        }
        if !self.to.is_empty() {
            let end = Rfc3339::parse_end_of_day(&self.to).map_err(wrong("to"))?;
            query.append_pair("created_before", &end.to_string());
        }
        Ok(query)
    }

    /// The address of the page with this list.
    pub(super) fn address(&self) -> String {
        self.address_at(&self.cursor)
    }

    pub(super) fn address_at(&self, cursor: &str) -> String {
        match self.query_at(cursor) {
            query if query.is_empty() => "/links".to_owned(),
            query => format!("/links?{query}"),
        }
    }

    /// The address of the file with this list.
    pub(super) fn file_address(&self) -> String {
        match self.query_at("") {
            query if query.is_empty() => "/links/export".to_owned(),
            query => format!("/links/export?{query}"),
        }
    }

    pub(super) fn query(&self) -> String {
        self.query_at(&self.cursor)
    }

    fn query_at(&self, cursor: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("search", self.search.as_str()),
            ("tag", &self.tags),
            ("state", &self.state),
            ("from", &self.from),
            ("to", &self.to),
            ("order", &self.order),
            ("owner", &self.owner),
            ("cursor", cursor),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }

    /// Whether anything but order and position was asked for.
    pub(super) fn is_narrowed(&self) -> bool {
        let narrowing = [&self.search, &self.tags, &self.state, &self.from, &self.to];
        narrowing.iter().any(|value| !value.is_empty())
    }

    pub(super) fn has_cursor(&self) -> bool {
        !self.cursor.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_a_list_of_the_api() {
        let text =
            b"search=a+b&tag=x%2C+y&state=expired&from=2026-01-02&to=2026-01-03&order=key&cursor=";
        let filter = ListFilter::of(&Form::parse(text));
        let asked = filter.request().unwrap().query;
        assert_eq!(asked.search.as_deref(), Some("a b"));
        assert_eq!(asked.tags, ["x".into(), "y".into()]);
        let days = asked
            .created_before
            .unwrap()
            .since(asked.created_from.unwrap());
        assert_eq!(days.as_secs(), 2 * 86_400, "both days belong to it");
        assert_eq!(asked.limit, 25);
        let again = Form::parse(filter.address_at("c").split_once('?').unwrap().1.as_bytes());
        let again = ListFilter::of(&again);
        assert_eq!(again.cursor, "c");
        assert_eq!((again.search, again.tags), (filter.search, filter.tags));
    }

    #[test]
    fn what_cannot_be_asked_for_is_named() {
        for (text, field) in [
            ("from=soon", "from"),
            ("to=2026-02-31", "to"),
            ("state=gone", "state"),
            ("order=best", "order"),
        ] {
            let filter = ListFilter::of(&Form::parse(text.as_bytes()));
            let problem = filter.request().unwrap_err();
            assert_eq!(problem.errors()[0].field, field, "{text}");
        }
        let ranked = ListFilter::of(&Form::parse(b"order=clicks"));
        assert!(ranked.file_request().is_ok(), "a file is not ranked");
    }
}

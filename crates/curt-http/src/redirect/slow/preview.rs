//! `/{key}+`: what a link is, in place of its target.

use axum::response::{IntoResponse, Response};
use curt_core::{Link, Visibility};
use curt_links::{Resolution, Who};

use super::click::ClickRecord;
use crate::pages;
use crate::problem::Problem;

impl ClickRecord<'_> {
    /// The page about a link, in place of its target. Links that are not for everybody, or for so many clicks only, have
    /// none: it would tell what they keep back. Whoever tries keys hears as much, and as often, as by following them.
    pub(super) async fn preview(self, key: &str) -> Response {
        if let Some(limited) = self.throttle_decision() {
            return limited.into_response();
        }
        match self.previewed(key).await {
            Ok(link) => pages::preview_page(self.app, self.caller, &link),
            Err(problem) => problem.into_response(),
        }
    }

    async fn previewed(&self, key: &str) -> Result<Link, Problem> {
        match self.resolve(Some(key)).await {
            Ok(Resolution::Live(_) | Resolution::Guarded(_)) => {}
            other => return Err(self.nowhere(other).await),
        }
        let link = self.app.links.get(Who::Anybody, key).await?;
        match link.visibility == Visibility::Public && link.max_clicks.is_none() {
            true => Ok(link),
            false => Err(self.absent().await),
        }
    }
}

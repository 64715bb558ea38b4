//! Lists of links, whoever shows them.

use std::sync::Arc;

use curt_accounts::Principal;
use curt_core::ports::ListQuery;
use curt_core::{Link, Scope};
use curt_links::Who;

use super::list_query::{ListRequest, OwnerFilter};
use super::{link_view, ranked_list};
use crate::caller::check_scope;
use crate::problem::Problem;
use crate::state::App;

/// One page of a list.
pub(crate) struct ListedLinks {
    pub(crate) links: Vec<Link>,
    /// Of each link, in order; `None`: they cannot be told right now.
    pub(crate) clicks: Option<Vec<u64>>,
    pub(crate) next: Option<String>,
}

/// Reads one page of what was asked for.
pub(crate) async fn list(
    app: &App,
    principal: &Principal,
    asked: ListRequest,
) -> Result<ListedLinks, Problem> {
    let by_clicks = asked.by_clicks;
    let (who, query) = whose(principal, asked)?;
    let links = Arc::clone(&app.links);
    if by_clicks {
        let reports = app.reports.clone().ok_or_else(|| {
            let message = "This server does not count clicks.";
            Problem::invalid_field("order", "unavailable", message)
        })?;
        let ranking = ranked_list::rank(links, reports, who, query, app.clock.now());
        let page = app.scans.read(principal.user, ranking).await??;
        return Ok(ListedLinks {
            links: page.links,
            clicks: Some(page.clicks),
            next: page.next,
        });
    }
    let page = app
        .scans
        .read(principal.user, async move { links.list(who, query).await })
        .await??;
    Ok(ListedLinks {
        clicks: link_view::clicks(app, principal.user, &page.links).await,
        links: page.links,
        next: page.next.as_deref().map(str::to_owned),
    })
}

/// Whose links to list. Others' are for administrators.
pub(super) fn whose(
    principal: &Principal,
    asked: ListRequest,
) -> Result<(Who, ListQuery), Problem> {
    let own = OwnerFilter::One(principal.user);
    let owner = match asked.owner.unwrap_or(own) {
        mine if mine == own => return Ok((Who::Owner(principal.user), asked.query)),
        OwnerFilter::All => None,
        OwnerFilter::One(owner) => Some(owner),
    };
    check_scope(principal, Scope::Admin)?;
    let query = ListQuery {
        owner,
        ..asked.query
    };
    Ok((Who::Anybody, query))
}

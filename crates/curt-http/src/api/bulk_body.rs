//! Many links in one request as JSON.

use curt_core::limits::BULK_LINKS_MAX;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{Object, bounded_list};
use super::link_body::{LinkBody, NewLinkBody};
use crate::problem::ProblemBody;

const _: () = assert!(BULK_LINKS_MAX == 1_000); // the schema below can hold only a literal number

/// Links to be made together. Each one succeeds or fails on its own.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLinks)]
pub(crate) struct BulkBody {
    #[serde(deserialize_with = "bounded_list::<BULK_LINKS_MAX, _, _>")]
    #[schema(value_type = Vec<NewLinkBody>, min_items = 1, max_items = 1000)]
    pub links: Vec<Object<NewLinkBody>>,
}

/// What became of each link, in the order of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BulkResults)]
pub(crate) struct BulkResultsBody {
    /// How many links were made.
    pub created: usize,
    /// How many were refused.
    pub failed: usize,
    pub results: Vec<BulkResult>,
}

/// What became of one link.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BulkResult {
    Created {
        #[schema(minimum = 201, maximum = 201, example = 201)]
        status: u16,
        link: Box<LinkBody>,
    },
    /// An earlier request had made the link, and without the scope `read` it is not shown.
    Unread {
        #[schema(minimum = 204, maximum = 204, example = 204)]
        status: u16,
        #[schema(example = "spring-sale")]
        key: String,
    },
    Failed {
        #[schema(minimum = 400, maximum = 599, example = 409)]
        status: u16,
        problem: ProblemBody,
    },
}

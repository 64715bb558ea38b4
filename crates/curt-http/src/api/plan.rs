//! `GET /api/v1/plan`: what a number of links and clicks needs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_core::Scope;
use curt_plan::{CapacityPlan, Costs, SeedDocument, Workload, parse_amount};
use http::Uri;
use serde::Serialize;
use serde_json::Value;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::documented::PlanProblems;
use crate::caller::Caller;
use crate::problem::{InvalidField, Problem, ProblemCode};
use crate::state::App;

/// As the schema says.
const INPUT_BYTES_MAX: usize = 40;

/// The parameters as the OpenAPI document shows them; [`parse`] reads them. Each is a number, with `k`, `M`, `B` or
/// `T` behind it if that is shorter.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct PlanParams {
    /// Links made in a month; 1M unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "500M")]
    writes_per_month: Option<String>,
    /// Clicks for each link that is made; 100 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "100")]
    reads_per_write: Option<String>,
    /// How long links are added and kept, in years; 5 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "5")]
    years: Option<String>,
    /// What a link takes on disk; as measured unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "500")]
    bytes_per_link: Option<String>,
    /// The share of all links that caches hold; 0.2 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "0.2")]
    cached_share: Option<String>,
    /// How many times the average the busiest second has; 3 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "3")]
    peak: Option<String>,
    /// The share of keys that may be in use at the end; 0.001 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "0.001")]
    guess_odds: Option<String>,
    /// Disk of a machine for links; 2T unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "2T")]
    disk_bytes: Option<String>,
    /// Memory of a cache server; 128G unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "128G")]
    cache_bytes: Option<String>,
    /// Cores of a server; 4 unless said otherwise.
    #[param(nullable = false, max_length = 40, example = "4")]
    cores: Option<String>,
    /// Begin with what a document that curt was built from assumes, and have its sums checked: `A`, `B`, `C` or `D`; none if
    /// empty.
    #[param(nullable = false, pattern = "^[A-Da-d]?$", example = "A")]
    seed: Option<String>,
}

/// A plan, and the checked sums of a document if one was named.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CapacityPlan)]
pub(crate) struct PlanBody {
    /// Rates, storage, bandwidth, keys with their odds, machines, a configuration to start from, and the costs per unit that
    /// all of it goes by.
    #[schema(value_type = Object)]
    plan: Value,
    /// The document's figures, each with what it states, what follows, and a verdict; `null` without `seed`.
    #[schema(value_type = Option<Vec<Object>>, required = true)]
    figures: Option<Value>,
}

/// What a plan is asked for.
pub(crate) struct PlanRequest {
    pub(crate) workload: Workload,
    pub(crate) seed: Option<SeedDocument>,
}

/// Plan an installation
///
/// For administrators: what a number of links and clicks needs, by the costs that were measured for this version.
#[utoipa::path(
    get,
    path = "/api/v1/plan",
    tag = "system",
    operation_id = "getPlan",
    params(PlanParams),
    responses((status = 200, description = "The plan.", body = PlanBody), PlanProblems),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_scope(&app, Scope::Admin).await?;
    let asked = parse(uri.query().unwrap_or_default())?;
    let plan = make(asked.workload)?;
    let internal = |_| Problem::new(ProblemCode::Internal);
    let figures = asked.seed.map(|seed| serde_json::to_value(seed.figures()));
    let body = PlanBody {
        plan: serde_json::to_value(plan).map_err(internal)?,
        figures: figures.transpose().map_err(internal)?,
    };
    Ok(Json(body).into_response())
}

/// Makes a plan by the costs of this build.
pub(crate) fn make(workload: Workload) -> Result<CapacityPlan, Problem> {
    let costs = Costs::measured().map_err(|error| {
        tracing::error!(%error, "costs of a plan missing");
        Problem::new(ProblemCode::Internal)
    })?;
    Ok(CapacityPlan::new(workload, costs))
}

/// Reads a query. An input that is empty is as if it were not there: forms send all of theirs.
pub(crate) fn parse(text: &str) -> Result<PlanRequest, Problem> {
    let given: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let mut errors = Vec::new();
    let named = given.iter().find(|(name, _)| name == "seed");
    let seed = named.and_then(|(_, value)| SeedDocument::from_name(value));
    if named.is_some() && seed.is_none() {
        errors.push(InvalidField::new("seed", "value", "Must be A, B, C or D."));
    }
    let mut workload = seed.map_or_else(Workload::default, SeedDocument::workload);
    for (at, (name, value)) in given.iter().enumerate() {
        let field = || name.chars().take(64).collect::<String>();
        if given.iter().take(at).any(|(before, _)| before == name) {
            let why = "Give this parameter once.";
            errors.push(InvalidField::new(field(), "duplicate", why));
        } else if name == "seed" {
        } else if let Some(input) = workload.field_mut(name) {
            let amount = Some(value).filter(|value| value.len() <= INPUT_BYTES_MAX);
            match amount.and_then(|amount| parse_amount(amount)) {
                Some(amount) => *input = amount,
                None => {
                    let why = "Must be a number, such as 1000000, 0.5, 500M or 2B.";
                    errors.push(InvalidField::new(field(), "value", why));
                }
            }
        } else {
            let why = "There is no such parameter.";
            errors.push(InvalidField::new(field(), "unknown", why));
        }
    }
    if errors.is_empty()
        && let Err(wrong) = workload.check()
    {
        let sentence = |text: &str| format!("M{}.", &text[1..]);
        errors.extend(
            wrong
                .into_iter()
                .map(|error| InvalidField::new(error.field, "range", sentence(&error.message))),
        );
    }
    match errors.is_empty() {
        true => Ok(PlanRequest { workload, seed }),
        false => Err(Problem::invalid(errors)),
    }
}

//! `/admin/plan`: what an installation needs.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use curt_plan::{
    CapacityPlan, Picture, PlanSection, SeedDocument, SeedFigure, SumVerdict, Workload, sections,
};
use http::{StatusCode, Uri};

use super::{AdminBar, Refused, administrator, frame};
use crate::api::plan::{make, parse};
use crate::caller::Caller;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::{page, refused};
use crate::state::App;

const PATH: &str = "/admin/plan";

/// Inputs with what they are and what they are unless said otherwise.
const INPUTS: [(&str, &str, &str); 10] = [
    ("writes_per_month", "Links made in a month", "1M"),
    ("reads_per_write", "Clicks for each of them", "100"),
    ("years", "Years that links are kept", "5"),
    ("bytes_per_link", "Bytes of a link on disk", "measured"),
    ("cached_share", "Share of links in caches", "0.2"),
    ("peak", "Busiest second, times the average", "3"),
    ("guess_odds", "Share of keys in use at the end", "0.001"),
    ("disk_bytes", "Disk of a machine for links", "2T"),
    ("cache_bytes", "Memory of a cache server", "128G"),
    ("cores", "Cores of a server", "4"),
];

#[derive(Template)]
#[template(path = "admin_plan.html")]
struct PlanPage {
    frame: Frame,
    bar: AdminBar,
    inputs: Vec<PlanInput>,
    seeds: Vec<SeedChoice>,
    seed: Option<SeedTable>,
    plan: Option<PlanView>,
}

struct PlanInput {
    name: &'static str,
    about: &'static str,
    usual: &'static str,
    value: String,
}

struct SeedChoice {
    name: &'static str,
    title: &'static str,
    is_chosen: bool,
}

struct SeedTable {
    name: &'static str,
    title: &'static str,
    wrong: usize,
    rows: Vec<FigureRow>,
}

struct FigureRow {
    part: &'static str,
    quote: &'static str,
    stated: String,
    value: String,
    note: &'static str,
    verdict: &'static str,
    is_wrong: bool,
}

struct PlanView {
    sections: Vec<PlanSection>,
    configuration: String,
    measured: String,
    width: usize,
    boxes: Vec<StageView>,
}

/// A stage with its place in the picture.
struct StageView {
    x: usize,
    name: &'static str,
    machines: String,
    about: String,
    inflow: String,
    /// Where its machines stand.
    places: Vec<(usize, usize)>,
}

/// Pixels from one stage of the picture to the next, and from one machine to the next.
const STAGE_STEP: usize = 300;
/// Pixels before the first machine, for what comes to it.
const INFLOW: usize = 140;
const MACHINE_STEP: usize = 26;
const IN_A_COLUMN: usize = 4;

impl FigureRow {
    fn of(figure: &SeedFigure) -> Self {
        Self {
            part: figure.part,
            quote: figure.quote,
            stated: figure.stated_text(),
            value: figure.value_text(),
            note: figure.note,
            verdict: match figure.verdict {
                SumVerdict::Right => "right",
                SumVerdict::Rounded => "rounded",
                SumVerdict::Wrong => "wrong",
            },
            is_wrong: figure.verdict == SumVerdict::Wrong,
        }
    }
}

impl SeedTable {
    fn of(seed: SeedDocument) -> Self {
        let rows: Vec<FigureRow> = seed.figures().iter().map(FigureRow::of).collect();
        Self {
            name: seed.name(),
            title: seed.title(),
            wrong: rows.iter().filter(|row| row.is_wrong).count(),
            rows,
        }
    }
}

impl PlanView {
    fn of(plan: &CapacityPlan) -> Self {
        let stages = Picture::new(plan).stages;
        let boxes: Vec<StageView> = stages
            .into_iter()
            .enumerate()
            .map(|(at, stage)| {
                let x = INFLOW + at * STAGE_STEP;
                let place = |machine: usize| {
                    let (column, row) = (machine / IN_A_COLUMN, machine % IN_A_COLUMN);
                    (x + column * 62, 48 + row * MACHINE_STEP)
                };
                StageView {
                    x,
                    name: stage.name,
                    machines: stage.machines,
                    about: stage.about,
                    inflow: stage.inflow,
                    places: (0..stage.boxes).map(place).collect(),
                }
            })
            .collect();
        let costs = &plan.costs;
        Self {
            sections: sections(plan),
            configuration: plan.configuration.clone(),
            measured: format!(
                "measured {} with {}, on {}",
                costs.date, costs.versions, costs.machine
            ),
            width: boxes.len() * STAGE_STEP,
            boxes,
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let query = uri.query().unwrap_or_default();
    let asked = parse(query);
    let form = Form::parse(query.as_bytes());
    let seed = asked.as_ref().ok().and_then(|asked| asked.seed);
    let bar = AdminBar::new(PATH, &administrator);
    let (bar, plan, problem) = match asked {
        Ok(asked) => (bar, Some(make(asked.workload)?), None),
        Err(problem) => (bar.failed(&problem), None, Some(problem)),
    };
    let shown = PlanPage {
        frame: frame(&app, &administrator),
        bar,
        inputs: inputs(&form, plan.as_ref().map(|plan| &plan.workload), seed),
        seeds: SeedDocument::ALL
            .into_iter()
            .map(|one| SeedChoice {
                name: one.name(),
                title: one.title(),
                is_chosen: seed == Some(one),
            })
            .collect(),
        seed: seed.map(SeedTable::of),
        plan: plan.as_ref().map(PlanView::of),
    };
    Ok(match problem {
        Some(problem) => refused(problem, |status| page(status, &shown)).into_response(),
        None => page(StatusCode::OK, &shown),
    })
}

/// The form as it was sent; with a document, what that assumes.
fn inputs(form: &Form, workload: Option<&Workload>, seed: Option<SeedDocument>) -> Vec<PlanInput> {
    let assumed = |name: &str| {
        let mut workload = workload.filter(|_| seed.is_some())?.clone();
        let is_said = name != "bytes_per_link" || workload.bytes_per_link.is_some();
        let value = workload.field_mut(name).filter(|_| is_said)?;
        // Whole numbers above a thousand: nobody plans for parts of a link.
        Some(match *value >= 1e3 {
            true => format!("{value:.0}"),
            false => value.to_string(),
        })
    };
    INPUTS
        .into_iter()
        .map(|(name, about, usual)| PlanInput {
            name,
            about,
            usual,
            value: match form.text(name) {
                typed if typed.is_empty() => assumed(name).unwrap_or_default(),
                typed => typed,
            },
        })
        .collect()
}

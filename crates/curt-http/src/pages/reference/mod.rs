//! The pages of the API: the OpenAPI document, for people. One lists the operations, and each has a page of its own with
//! the objects that it takes and answers with.

mod read;

use std::sync::{Arc, OnceLock};

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::frame::Frame;
use super::page as render;
use crate::caller::Caller;
use crate::compression::{NotReflecting, StaticText};
use crate::problem::{Problem, ProblemCode};
use crate::state::App;
use crate::{api, openapi};
use read::{Object, Operation, Reference};

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage<'a> {
    frame: Frame,
    reference: &'a Reference,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct OperationPage<'a> {
    frame: Frame,
    base: &'a str,
    operation: &'a Operation,
    objects: Vec<&'a Object>,
}

/// The document in the forms in which it is served, each made at the first request for it: before, a server need not know
/// its own address.
#[derive(Default)]
struct ApiDocument {
    json: OnceLock<StaticText>,
    reference: OnceLock<Reference>,
}

impl ApiDocument {
    fn json(&self, app: &App) -> &StaticText {
        self.json.get_or_init(|| {
            let json = serde_json::to_vec_pretty(&api::document(app));
            StaticText::new(json.unwrap_or_default())
        })
    }

    fn reference(&self, app: &App) -> &Reference {
        self.reference.get_or_init(|| {
            let document = serde_json::to_value(api::document(app));
            Reference::read(&document.unwrap_or_default())
        })
    }
}

pub(super) fn routes() -> Router<Arc<App>> {
    let for_list = Arc::<ApiDocument>::default();
    let for_operation = Arc::clone(&for_list);
    let for_programs = Arc::clone(&for_list);
    let list = async move |State(app): State<Arc<App>>, caller: Caller| {
        show_list(&app, &caller, &for_list).await
    };
    let operation =
        async move |State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>| {
            show_operation(&app, &caller, &for_operation, &id).await
        };
    let document = async move |State(app): State<Arc<App>>, headers: HeaderMap| {
        let form = for_programs.json(&app).choose(&app, &headers).respond();
        ([(CONTENT_TYPE, "application/json")], form).into_response()
    };
    Router::new()
        .route("/api", get(list))
        .route("/api/operations/{id}", get(operation))
        .route(openapi::PATH, get(document))
}

async fn show_list(app: &App, caller: &Caller, document: &ApiDocument) -> Response {
    let mut page = render(
        StatusCode::OK,
        &ReferencePage {
            frame: Frame::of_caller(app, caller).await.at("/api"),
            reference: document.reference(app),
        },
    );
    page.extensions_mut().insert(NotReflecting);
    page
}

async fn show_operation(app: &App, caller: &Caller, document: &ApiDocument, id: &str) -> Response {
    let reference = document.reference(app);
    let Some(operation) = reference.operation(id) else {
        return Problem::new(ProblemCode::NotFound).into_response();
    };
    let mut page = render(
        StatusCode::OK,
        &OperationPage {
            frame: Frame::of_caller(app, caller).await.at("/api"),
            base: app.public.base(),
            operation,
            objects: reference.objects_of(operation),
        },
    );
    page.extensions_mut().insert(NotReflecting);
    page
}

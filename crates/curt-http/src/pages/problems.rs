//! Errors, for people.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::assets::Assets;
use super::{VERSION, insert_missing, page};
use crate::problem::{InvalidField, Problem, ProblemCode};

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    assets: &'static Assets,
    version: &'static str,
    status: StatusCode,
    slug: &'static str,
    title: &'static str,
    detail: &'a str,
    errors: &'a [InvalidField],
}

#[derive(Template)]
#[template(path = "problems.html")]
struct IndexPage {
    assets: &'static Assets,
    version: &'static str,
    codes: [ProblemCode; ProblemCode::ALL.len()],
}

#[derive(Template)]
#[template(path = "problem_kind.html")]
struct KindPage {
    assets: &'static Assets,
    version: &'static str,
    code: ProblemCode,
}

/// The page in place of `answer`, which showed the problem to a program.
pub(crate) fn problem_page(problem: &Problem, answer: Response) -> Response {
    let body = problem.body();
    let mut shown = page(
        answer.status(),
        &ProblemPage {
            assets: Assets::addresses(),
            version: VERSION,
            status: answer.status(),
            slug: body.code,
            title: body.title,
            detail: &body.detail,
            errors: &body.errors,
        },
    );
    insert_missing(&mut shown, &answer);
    shown
}

pub(super) async fn index() -> Response {
    page(
        StatusCode::OK,
        &IndexPage {
            assets: Assets::addresses(),
            version: VERSION,
            codes: ProblemCode::ALL,
        },
    )
}

pub(super) async fn kind(Path(code): Path<String>) -> Response {
    match ProblemCode::from_slug(&code) {
        Some(code) => page(
            StatusCode::OK,
            &KindPage {
                assets: Assets::addresses(),
                version: VERSION,
                code,
            },
        ),
        None => Problem::new(ProblemCode::NotFound).into_response(),
    }
}

//! The API page: the OpenAPI document, for people.

use std::sync::{Arc, OnceLock};

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use super::frame::Frame;
use super::page as render;
use crate::api;
use crate::caller::Caller;
use crate::compression::{NotReflecting, StaticText};
use crate::state::App;

/// Stands for the server's address in examples until the page is asked for.
const BASE: &str = "{base}";

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage<'a> {
    frame: Frame,
    base: &'a str,
    reference: &'a Reference,
}

struct Reference {
    openapi: String,
    about: Vec<Prose>,
    groups: Vec<Group>,
    objects: Vec<Object>,
}

struct Group {
    about: String,
    first: bool,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    method_class: String,
    path: String,
    summary: String,
    about: Vec<Prose>,
    parameters: Vec<Field>,
    body: Option<Body>,
    answers: Vec<Answer>,
    example: String,
}

impl Operation {
    /// A command to try the operation with, against the server at `base`.
    fn example_at(&self, base: &str) -> String {
        self.example.replace(BASE, base)
    }
}

struct Body {
    object: String,
    kinds: Vec<String>,
    fields: Vec<Field>,
}

struct Answer {
    status: String,
    about: String,
    object: Option<String>,
}

struct Object {
    name: String,
    about: Vec<Prose>,
    kind: Vec<KindPart>,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    place: Option<String>,
    needed: bool,
    kind: Vec<KindPart>,
    about: Vec<Prose>,
}

/// A paragraph: text, with code in between.
type Prose = Vec<ProseSpan>;

struct ProseSpan {
    code: bool,
    text: String,
}

struct KindPart {
    /// Whether the text is the name of an object.
    object: bool,
    text: String,
}

/// The document in the forms in which it is served, each made at the first request for it: before, a server need not know
/// its own address.
#[derive(Default)]
pub(super) struct ApiDocument {
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

/// `/api`.
pub(super) fn page(document: Arc<ApiDocument>) -> MethodRouter<Arc<App>> {
    get(
        move |State(app): State<Arc<App>>, caller: Caller| async move {
            let page = ReferencePage {
                frame: Frame::of_caller(&app, &caller).await.at("/api"),
                base: app.public.base(),
                reference: document.reference(&app),
            };
            let mut page = render(StatusCode::OK, &page);
            page.extensions_mut().insert(NotReflecting);
            page
        },
    )
}

/// `/api/openapi.json`.
pub(super) fn document(document: Arc<ApiDocument>) -> MethodRouter<Arc<App>> {
    get(
        move |State(app): State<Arc<App>>, headers: HeaderMap| async move {
            let form = document.json(&app).choose(&app, &headers).respond();
            ([(CONTENT_TYPE, "application/json")], form).into_response()
        },
    )
}

impl Reference {
    fn read(document: &Value) -> Self {
        let tags = document["tags"].as_array().cloned().unwrap_or_default();
        let groups = tags.iter().enumerate().map(|(at, tag)| Group {
            about: text(&tag["description"]).trim_end_matches('.').to_owned(),
            first: at == 0,
            operations: operations(document, &tag["name"]),
        });
        let schemas = entries(&document["components"]["schemas"]);
        Self {
            openapi: text(&document["openapi"]),
            about: prose(&document["info"]["description"]),
            groups: groups.collect(),
            objects: schemas.map(|(name, schema)| object(name, schema)).collect(),
        }
    }
}

fn operations(document: &Value, tag: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in entries(&document["paths"]) {
        for method in ["post", "get", "patch", "delete", "put", "options"] {
            let described = &item[method];
            let tags = described["tags"].as_array();
            if tags.is_some_and(|tags| tags.contains(tag)) {
                found.push(operation(document, path, method, described));
            }
        }
    }
    found
}

fn operation(document: &Value, path: &str, method: &str, described: &Value) -> Operation {
    let parameters: Vec<_> = list(&described["parameters"])
        .map(|parameter| Field {
            name: text(&parameter["name"]),
            place: Some(format!("in the {}", text(&parameter["in"]))),
            needed: parameter["required"] == true,
            kind: kind(&parameter["schema"]),
            about: prose(&parameter["description"]),
        })
        .collect();
    let contents = &described["requestBody"]["content"];
    let body = entries(contents).next().and_then(|(_, content)| {
        let name = object_name(&content["schema"])?;
        let schema = &document["components"]["schemas"][&name];
        Some(Body {
            fields: object(&name, schema).fields,
            object: name,
            kinds: entries(contents).map(|(kind, _)| kind.clone()).collect(),
        })
    });
    let answers = entries(&described["responses"]).map(|(status, response)| Answer {
        status: status.clone(),
        about: text(&response["description"]),
        object: entries(&response["content"])
            .filter_map(|(_, content)| object_name(&content["schema"]))
            .next(),
    });
    Operation {
        id: text(&described["operationId"]),
        method: method.to_uppercase(),
        method_class: method.to_owned(),
        path: path.to_owned(),
        summary: text(&described["summary"]),
        about: prose(&described["description"]),
        example: example(document, path, method, described),
        answers: answers.collect(),
        parameters,
        body,
    }
}

/// [`Operation::example_at`], for any server.
fn example(document: &Value, path: &str, method: &str, described: &Value) -> String {
    let mut path = path.to_owned();
    for parameter in list(&described["parameters"]).filter(|one| one["in"] == "path") {
        let hole = format!("{{{}}}", text(&parameter["name"]));
        path = path.replace(&hole, &text(&parameter["example"]));
    }
    let mut lines = vec![match method {
        "get" => format!("curl {BASE}{path}"),
        _ => format!("curl -X {} {BASE}{path}", method.to_uppercase()),
    }];
    if described["security"] != serde_json::json!([{}]) {
        lines.push("-H \"Authorization: Bearer $CURT_API_KEY\"".to_owned());
    }
    if let Some((kind, content)) = entries(&described["requestBody"]["content"]).next() {
        lines.push(format!("-H 'Content-Type: {kind}'"));
        let value = sample(document, &content["schema"], 0);
        lines.push(format!("-d '{value:#}'"));
    }
    lines.join(" \\\n  ")
}

/// A value that fits the schema, from the examples in it.
fn sample(document: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(name) = object_name(schema) {
        return sample(
            document,
            &document["components"]["schemas"][&name],
            depth + 1,
        );
    }
    if depth > 4 {
        return Value::Null;
    }
    if schema["type"] == "array" {
        return Value::Array(vec![sample(document, &schema["items"], depth + 1)]);
    }
    let properties = entries(&schema["properties"]).filter_map(|(name, property)| {
        let needed = list(&schema["required"]).any(|required| required == name);
        let value = match &property["example"] {
            Value::Null if needed => sample(document, property, depth + 1),
            Value::Null => return None,
            given => given.clone(),
        };
        Some((name.clone(), value))
    });
    Value::Object(properties.collect::<Map<_, _>>())
}

fn object(name: &str, schema: &Value) -> Object {
    let required: Vec<_> = list(&schema["required"]).collect();
    let mut fields: Vec<_> = entries(&schema["properties"])
        .map(|(field, property)| Field {
            name: field.clone(),
            place: None,
            needed: required.iter().any(|required| *required == field),
            kind: kind(property),
            about: prose(description(property)),
        })
        .collect();
    fields.sort_by_key(|field| !field.needed);
    Object {
        name: name.to_owned(),
        about: prose(&schema["description"]),
        kind: kind(schema),
        fields,
    }
}

/// Where a value may be null, the description is that of its other form.
fn description(property: &Value) -> &Value {
    match &property["description"] {
        Value::Null => &property["oneOf"][0]["description"],
        given => given,
    }
}

/// The type of a value, in words.
fn kind(schema: &Value) -> Vec<KindPart> {
    let plain = |text: String| KindPart {
        object: false,
        text,
    };
    if let Some(name) = object_name(schema) {
        return vec![KindPart {
            object: true,
            text: name,
        }];
    }
    for many in ["oneOf", "anyOf", "allOf"] {
        let kinds: Vec<_> = list(&schema[many]).map(kind).collect();
        if !kinds.is_empty() {
            return joined(kinds);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(text).collect();
        return vec![plain(values.join(", "))];
    }
    let types: Vec<_> = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let kinds = types.iter().map(|name| match name.as_str() {
        "array" => {
            let mut parts = vec![plain("list of ".to_owned())];
            parts.extend(kind(&schema["items"]));
            parts
        }
        "object" => {
            let fields = entries(&schema["properties"]);
            let names: Vec<_> = fields.map(|(name, _)| name.as_str()).collect();
            vec![plain(format!("object with {}", names.join(" and ")))]
        }
        "string" if schema["format"].is_string() => vec![plain(text(&schema["format"]))],
        name => vec![plain(name.to_owned())],
    });
    joined(kinds.collect())
}

fn joined(kinds: Vec<Vec<KindPart>>) -> Vec<KindPart> {
    let mut parts = Vec::new();
    for (at, kind) in kinds.into_iter().enumerate() {
        if at > 0 {
            parts.push(KindPart {
                object: false,
                text: " or ".to_owned(),
            });
        }
        parts.extend(kind);
    }
    parts
}

fn object_name(schema: &Value) -> Option<String> {
    let name = schema["$ref"].as_str()?.rsplit('/').next()?;
    Some(name.to_owned())
}

/// Paragraphs are set apart by empty lines, code by backticks.
fn prose(value: &Value) -> Vec<Prose> {
    let paragraphs = value.as_str().unwrap_or_default().split("\n\n");
    paragraphs
        .filter(|paragraph| !paragraph.trim().is_empty())
        .map(|paragraph| {
            let parts = paragraph.split('`').enumerate();
            parts
                .map(|(at, text)| ProseSpan {
                    code: at % 2 == 1,
                    text: text.to_owned(),
                })
                .collect()
        })
        .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

//! Reading request bodies: bounded in bytes and in time, within the [budget](crate::body_budget), with errors that name
//! the field.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::BytesMut;
use curt_core::limits::HTTP_BODY_BYTES_MAX;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use http_body_util::BodyExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::error::Category;
use serde_path_to_error::Segment;
use tokio::time::timeout_at;

use crate::body_budget::{BodyPermit, BodySource};
use crate::body_rate::BodyRate;
use crate::problem::{InvalidField, Problem, ProblemCode};
use crate::state::App;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// What a body of unknown length is counted by as it grows.
const GROWTH_BYTES: usize = 64 * 1_024;

/// Mistakes that are told of one body.
const MISTAKES_MAX: usize = 16;
/// Larger bodies are told their first mistake alone: to find the others a body is held a second time, in a form that
/// takes many times its size.
const MISTAKES_BODY_BYTES_MAX: usize = 16 * 1_024;

/// A body that arrived, with the room that it takes in the budget.
pub(crate) struct Whole {
    bytes: BytesMut,
    permit: BodyPermit,
}

impl Whole {
    /// Returns the room without the bytes, for what was made of them.
    pub(crate) fn into_permit(self) -> BodyPermit {
        self.permit
    }
}

impl Deref for Whole {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the whole body, if it has at most `bytes_max` bytes, arrives in time and the budget has room for it. A body of
/// known length is refused before its first byte is read.
pub(crate) async fn read(
    app: &App,
    source: BodySource,
    mut body: Body,
    bytes_max: usize,
) -> Result<Whole, Problem> {
    let too_large = || {
        Problem::new(ProblemCode::BodyTooLarge)
            .detail(format!("The body may have at most {bytes_max} bytes."))
    };
    let known = body.size_hint().lower();
    if known > bytes_max as u64 {
        return Err(too_large());
    }
    let mut permit = app.bodies.reserve(source, known)?;
    // Memory that nothing was written to yet costs nothing, and a buffer that grows costs twice.
    let mut bytes = BytesMut::with_capacity(usize::try_from(known).unwrap_or(bytes_max));
    let mut reserved = bytes.capacity();
    let mut rate = BodyRate::new(app.settings.server.body_timeout);
    loop {
        let frame = timeout_at(rate.deadline(), body.frame())
            .await
            .map_err(|_| Problem::new(ProblemCode::BodyTimeout))?;
        let Some(frame) = frame else {
            return Ok(Whole { bytes, permit });
        };
        let frame = frame.map_err(|_| {
            Problem::new(ProblemCode::MalformedRequest).detail("The body broke off.")
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > bytes_max {
            return Err(too_large());
        }
        if length > reserved {
            reserved = length.next_multiple_of(GROWTH_BYTES).min(bytes_max);
            permit.resize(reserved as u64)?;
            bytes.reserve(reserved - bytes.len());
        }
        bytes.extend_from_slice(&data);
        rate.received(data.len());
    }
}

/// Which of `accepted` the body is written in.
pub(crate) fn media_type(
    headers: &HeaderMap,
    accepted: &[&'static str],
) -> Result<&'static str, Problem> {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim)
        .unwrap_or_default();
    let found = accepted
        .iter()
        .find(|media_type| media_type.eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| {
        let problem = Problem::new(ProblemCode::UnsupportedMediaType)
            .detail(format!("Content-Type must be {}.", accepted.join(" or ")));
        if accepted.contains(&MERGE_PATCH) {
            problem.header(
                HeaderName::from_static("accept-patch"),
                "application/merge-patch+json, application/json",
            )
        } else {
            problem
        }
    })
}

/// Reads JSON strictly: syntax is 400; a wrong type, an unknown or a repeated field is 422 and names the field.
pub(crate) fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let error = match serde_json::from_slice::<T>(body) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match error.classify() {
        Category::Io | Category::Syntax | Category::Eof => {
            Err(Problem::new(ProblemCode::MalformedJson).detail(sentence(&error.to_string())))
        }
        Category::Data => Err(refused::<T>(body, &error)),
    }
}

/// Reads the body again to find the fields: following the path costs, so only failures pay for it.
fn refused<T: DeserializeOwned>(body: &[u8], error: &serde_json::Error) -> Problem {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let found = serde_path_to_error::deserialize::<_, T>(&mut deserializer).err();
    let path = found.as_ref().map(|found| found.path().clone());
    let first = mistake(path.as_ref(), &error.to_string());
    let mut mistakes = vec![first];
    if let Some(path) = path.filter(|_| body.len() <= MISTAKES_BODY_BYTES_MAX) {
        find_others::<T>(body, path, &mut mistakes);
    }
    Problem::invalid(mistakes)
}

/// Adds what else is wrong, by reading the body without the fields that were. What is missing shows only when nothing
/// else is wrong, and only the first of it.
fn find_others<T: DeserializeOwned>(
    body: &[u8],
    first: serde_path_to_error::Path,
    mistakes: &mut Vec<InvalidField>,
) {
    let Ok(mut rest) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let mut wrong = first;
    while mistakes.len() < MISTAKES_MAX
        && take_out(&mut rest, &wrong, &mistakes[mistakes.len() - 1])
    {
        let Err(found) = serde_path_to_error::deserialize::<_, T>(&rest) else {
            return;
        };
        let next = mistake(Some(found.path()), &found.inner().to_string());
        // A field that was taken out because it was wrong is not missing.
        if mistakes.iter().any(|before| before.field == next.field) {
            return;
        }
        mistakes.push(next);
        wrong = found.path().clone();
    }
}

/// Removes the field that a mistake is in. Says whether there was one.
fn take_out(body: &mut Value, path: &serde_path_to_error::Path, mistake: &InvalidField) -> bool {
    let mut names: Vec<Segment> = path.iter().cloned().collect();
    // serde's path may end at the object around the field, whose name is in the mistake.
    if mistake.code == "unknown" || mistake.code == "duplicate" {
        let name = mistake.field.rsplit('.').next().unwrap_or_default();
        if !matches!(names.last(), Some(Segment::Map { key }) if key == name) {
            let key = name.to_owned();
            names.push(Segment::Map { key });
        }
    }
    while !matches!(names.last(), Some(Segment::Map { .. }) | None) {
        names.pop();
    }
    let Some(Segment::Map { key: last }) = names.pop() else {
        return false;
    };
    let mut around = Some(body);
    for name in &names {
        around = around.and_then(|value| match name {
            Segment::Map { key } => value.get_mut(key),
            Segment::Seq { index } => value.get_mut(index),
            _ => None,
        });
    }
    let fields = around.and_then(Value::as_object_mut);
    fields.is_some_and(|fields| fields.remove(&last).is_some())
}

fn mistake(path: Option<&serde_path_to_error::Path>, message: &str) -> InvalidField {
    let path = path.map(ToString::to_string).unwrap_or_default();
    let message = message.split(" at line ").next().unwrap_or_default();
    let (code, named) = if let Some(rest) = message.strip_prefix("unknown field `") {
        ("unknown", rest.split('`').next())
    } else if let Some(rest) = message.strip_prefix("missing field `") {
        ("missing", rest.split('`').next())
    } else if let Some(rest) = message.strip_prefix("duplicate field `") {
        ("duplicate", rest.split('`').next())
    } else if message.starts_with("invalid value") {
        ("value", None)
    } else if message.starts_with("invalid length") {
        ("count", None)
    } else {
        ("type", None)
    };
    InvalidField::new(field_name(path, named), code, sentence(message))
}

/// serde's path ends sometimes at the field and sometimes at the object around it.
fn field_name(path: String, named: Option<&str>) -> Cow<'static, str> {
    let path = match path.as_str() {
        "." | "?" => String::new(),
        _ => path,
    };
    match named {
        None if path.is_empty() => Cow::Borrowed("body"),
        None => path.into(),
        Some(name) if path.is_empty() || path == name => name.to_owned().into(),
        Some(name) if path.ends_with(&format!(".{name}")) => path.into(),
        Some(name) => format!("{path}.{name}").into(),
    }
}

/// A message of a part below, without a capital and a full stop, as a sentence.
fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    match characters.next() {
        Some(first) => format!("{}{}.", first.to_ascii_uppercase(), characters.as_str()),
        None => String::new(),
    }
}

/// A JSON object. serde alone would also read a struct from an array of its fields in order.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Only(PhantomData))
    }
}

/// For fields whose `null` means something else than their absence.
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a list of at most `MAX` elements. It is refused at the first one too many: a body of a few megabytes could hold
/// values of hundreds.
pub(crate) fn bounded_list<'de, const MAX: usize, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Bounded<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Bounded<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a sequence of at most {MAX} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut kept = Vec::new();
            while let Some(element) = list.next_element()? {
                if kept.len() == MAX {
                    return Err(A::Error::invalid_length(MAX + 1, &self));
                }
                kept.push(element);
            }
            Ok(kept)
        }
    }
    deserializer.deserialize_seq(Bounded::<T, MAX>(PhantomData))
}

/// As [`bounded_list`], where `null` stands for no list.
pub(crate) fn bounded_list_or_null<'de, const MAX: usize, T, D>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct List<T, const MAX: usize>(Vec<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            bounded_list::<MAX, T, D>(deserializer).map(List)
        }
    }
    let list = Option::<List<T, MAX>>::deserialize(deserializer)?;
    Ok(list.map(|List(list)| list))
}

/// The whole body as one JSON object.
pub(crate) async fn json<T: DeserializeOwned>(
    app: &App,
    source: BodySource,
    request: Request,
) -> Result<T, Problem> {
    object(app, source, request, &[JSON]).await
}

/// As [`json`], for changes.
pub(crate) async fn merge_patch<T: DeserializeOwned>(
    app: &App,
    source: BodySource,
    request: Request,
) -> Result<T, Problem> {
    object(app, source, request, &[MERGE_PATCH, JSON]).await
}

/// As [`json`], where no body at all stands for an empty object.
pub(crate) async fn json_or_default<T: DeserializeOwned + Default>(
    app: &App,
    source: BodySource,
    request: Request,
) -> Result<T, Problem> {
    if !request.headers().contains_key(CONTENT_TYPE) && request.body().is_end_stream() {
        return Ok(T::default());
    }
    json(app, source, request).await
}

async fn object<T: DeserializeOwned>(
    app: &App,
    source: BodySource,
    request: Request,
    accepted: &[&'static str],
) -> Result<T, Problem> {
    let (parts, raw) = request.into_parts();
    media_type(&parts.headers, accepted)?;
    let raw = read(app, source, raw, HTTP_BODY_BYTES_MAX).await?;
    let Object(read) = from_json(&raw)?;
    Ok(read)
}

/// Refuses a body that no form of ours sends.
pub(crate) fn form_only(headers: &HeaderMap) -> Result<(), Problem> {
    media_type(headers, &[FORM]).map(|_| ())
}

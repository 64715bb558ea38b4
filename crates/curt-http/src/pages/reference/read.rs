//! The OpenAPI document as pages show it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Stands for the server's address in examples until the page is asked for.
const BASE: &str = "{base}";

pub(super) struct Reference {
    pub(super) openapi: String,
    pub(super) about: Vec<Prose>,
    pub(super) groups: Vec<Group>,
    /// By name.
    objects: BTreeMap<String, Object>,
}

pub(super) struct Group {
    pub(super) about: String,
    pub(super) operations: Vec<Operation>,
}

pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) method_class: String,
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) about: Vec<Prose>,
    pub(super) parameters: Vec<Field>,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    pub(super) example: String,
}

impl Operation {
    /// A command to try the operation with, against the server at `base`.
    pub(super) fn example_at(&self, base: &str) -> String {
        self.example.replace(BASE, base)
    }

    fn object_names(&self) -> Vec<&str> {
        let body = self.body.iter().map(|body| body.object.as_str());
        let answers = self.answers.iter().filter_map(|one| one.object.as_deref());
        let parameters = self.parameters.iter().flat_map(|one| names_in(&one.kind));
        body.chain(answers).chain(parameters).collect()
    }
}

pub(super) struct Body {
    pub(super) object: String,
    pub(super) kinds: Vec<String>,
}

pub(super) struct Answer {
    pub(super) status: String,
    pub(super) about: String,
    pub(super) object: Option<String>,
}

pub(super) struct Object {
    pub(super) name: String,
    pub(super) about: Vec<Prose>,
    pub(super) kind: Vec<KindPart>,
    pub(super) fields: Vec<Field>,
}

impl Object {
    fn object_names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().flat_map(|field| names_in(&field.kind));
        names_in(&self.kind).chain(fields)
    }
}

fn names_in(kind: &[KindPart]) -> impl Iterator<Item = &str> {
    let objects = kind.iter().filter(|part| part.object);
    objects.map(|part| part.text.as_str())
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) place: Option<String>,
    pub(super) needed: bool,
    pub(super) kind: Vec<KindPart>,
    pub(super) about: Vec<Prose>,
}

/// A paragraph: text, with code in between.
pub(super) type Prose = Vec<ProseSpan>;

pub(super) struct ProseSpan {
    pub(super) code: bool,
    pub(super) text: String,
}

pub(super) struct KindPart {
    /// Whether the text is the name of an object.
    pub(super) object: bool,
    pub(super) text: String,
}

impl Reference {
    pub(super) fn read(document: &Value) -> Self {
        let tags = document["tags"].as_array().cloned().unwrap_or_default();
        let groups = tags.iter().map(|tag| Group {
            about: text(&tag["description"]).trim_end_matches('.').to_owned(),
            operations: operations(document, &tag["name"]),
        });
        let schemas = entries(&document["components"]["schemas"]);
        Self {
            openapi: text(&document["openapi"]),
            about: prose(&document["info"]["description"]),
            groups: groups.collect(),
            objects: schemas
                .map(|(name, schema)| (name.clone(), object(name, schema)))
                .collect(),
        }
    }

    pub(super) fn operation(&self, id: &str) -> Option<&Operation> {
        let mut operations = self.groups.iter().flat_map(|group| &group.operations);
        operations.find(|operation| operation.id == id)
    }

    /// What the operation is asked and answers with, and what that consists of, by name.
    pub(super) fn objects_of(&self, operation: &Operation) -> Vec<&Object> {
        let mut names = BTreeSet::new();
        let mut new = operation.object_names();
        while let Some(name) = new.pop() {
            if let Some(object) = self.objects.get(name)
                && names.insert(name)
            {
                new.extend(object.object_names());
            }
        }
        names
            .into_iter()
            .filter_map(|name| self.objects.get(name))
            .collect()
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
        Some(Body {
            object: object_name(unwrap_optional(&content["schema"]))?,
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
    let schema = unwrap_optional(schema);
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

/// What the schema is where it may also be null.
fn unwrap_optional(schema: &Value) -> &Value {
    let mut forms = list(&schema["oneOf"]);
    forms.find(|form| form["type"] != "null").unwrap_or(schema)
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

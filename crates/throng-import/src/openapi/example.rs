//! A value that matches a schema (the subset of JSON Schema that descriptions use): its example, or
//! else the simplest one. Schemas may be circular: infinite parts are left out.

use super::document::Document;
use crate::json::Json;

const DEPTH_MAX: usize = 8;
/// The maximum number of values per example.
const VALUES_MAX: usize = 400;
/// The maximum number of optional fields per map.
const OPTIONAL_MAX: usize = 12;

pub(super) struct Example<'d> {
    document: &'d Document,
    left: usize,
}

impl<'d> Example<'d> {
    pub(super) fn new(document: &'d Document) -> Example<'d> {
        Example { document, left: VALUES_MAX }
    }

    pub(super) fn of(&mut self, schema: &'d Json) -> Json {
        self.value(schema, "", 0).unwrap_or_default()
    }

    /// `None`: it would be infinite.
    fn value(&mut self, schema: &'d Json, name: &str, depth: usize) -> Option<Json> {
        if depth > DEPTH_MAX || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let schema = self.document.resolved(schema);
        let given = ["example", "const", "default"].iter().find_map(|key| schema.get(key));
        if let Some(given) = given.or_else(|| schema.list("examples").first()) {
            return Some(given.clone());
        }
        if let Some(one) = schema.list("enum").first() {
            return Some(one.clone());
        }
        if let Some(all) = schema.get("allOf") {
            let mut entries = self.map(schema, depth);
            for part in all.items().iter().take(50) {
                match self.value(part, name, depth + 1) {
                    Some(Json::Map(more)) => more.into_iter().for_each(|(key, value)| {
                        if !entries.iter().any(|(known, _)| *known == key) {
                            entries.push((key, value));
                        }
                    }),
                    Some(other) if entries.is_empty() => return Some(other),
                    _ => {}
                }
            }
            return Some(Json::Map(entries));
        }
        for key in ["oneOf", "anyOf"] {
            let mut parts = schema.list(key).iter().take(50);
            let is_null = |part: &&Json| part.str("type") == Some("null");
            if let Some(part) = parts.find(|part| !is_null(part)) {
                return self.value(part, name, depth + 1);
            }
        }
        Some(match kind(schema) {
            "object" => Json::Map(self.map(schema, depth)),
            "array" => {
                let items = schema.get("items").unwrap_or(&Json::Null);
                Json::List(self.value(items, name, depth + 1).into_iter().collect())
            }
            "integer" => Json::Number(number(schema, true)),
            "number" => Json::Number(number(schema, false)),
            "boolean" => Json::Bool(true),
            "null" => Json::Null,
            _ => Json::text(&word(schema, name)),
        })
    }

    fn map(&mut self, schema: &'d Json, depth: usize) -> Vec<(String, Json)> {
        let required: Vec<&str> = schema.list("required").iter().filter_map(Json::as_str).collect();
        let properties = schema.entries_of("properties");
        let mut optional = 0;
        let mut entries = Vec::new();
        for (name, property) in properties {
            let is_required = required.contains(&name.as_str());
            // Fields that only the service sets are not sent.
            if self.document.resolved(property).is_true("readOnly") {
                continue;
            }
            if !is_required {
                optional += 1;
                if optional > OPTIONAL_MAX || depth > 2 {
                    continue;
                }
            }
            if let Some(value) = self.value(property, name, depth + 1) {
                entries.push((name.clone(), value));
            }
        }
        entries
    }
}

/// OpenAPI 3.1 has lists of types; without any, the type is inferred from the keywords.
fn kind(schema: &Json) -> &str {
    let of_list = || {
        let mut types = schema.list("type").iter().filter_map(Json::as_str);
        types.find(|kind| *kind != "null")
    };
    match schema.str("type").or_else(of_list) {
        Some(kind) => kind,
        None if schema.get("properties").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None if schema.entries().is_empty() => "object",
        None if schema.get("additionalProperties").is_some() => "object",
        None => "string",
    }
}

fn number(schema: &Json, is_whole: bool) -> String {
    let of = |key: &str| schema.str(key).and_then(|text| text.parse::<f64>().ok());
    let low = of("minimum").or_else(|| of("exclusiveMinimum").map(|low| low + 1.0));
    let high = of("maximum").unwrap_or(f64::MAX);
    let value = low.unwrap_or(1.0).max(f64::MIN).min(high);
    match is_whole || value.fract() == 0.0 {
        true if value.abs() < 1e15 => format!("{}", value.round() as i64),
        _ => serde_json::Number::from_f64(value).map_or("1".into(), |number| number.to_string()),
    }
}

/// A text with the format and the length that a schema requires.
fn word(schema: &Json, name: &str) -> String {
    let format = schema.word("format");
    let of_format = match format {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "time" => "12:00:00",
        "email" => "ann@example.com",
        "uuid" => "00000000-0000-4000-8000-000000000001",
        "uri" | "url" => "https://example.com/",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "byte" => "YQ==",
        "password" => "replace-me",
        "binary" => "",
        _ => match name.to_ascii_lowercase().as_str() {
            "email" => "ann@example.com",
            "name" | "username" => "ann",
            _ => "text",
        },
    };
    let length = |key: &str| schema.str(key).and_then(|text| text.parse::<usize>().ok());
    let mut out = of_format.to_string();
    if format.is_empty() {
        let low = length("minLength").unwrap_or(0).min(1000);
        while out.len() < low {
            out.push('x');
        }
        out.truncate(length("maxLength").unwrap_or(usize::MAX).max(low));
    }
    out
}

#[cfg(test)]
mod tests {
    use throng_base::Source;

    use super::*;
    use crate::openapi::document;

    fn example(schema: &str) -> String {
        let text = format!(
            "s: {schema}\nnode: {{type: object, properties: {{id: {{type: integer}}, \
                            next: {{$ref: '#/node'}}, all: {{type: array, items: {{$ref: '#/node'}}}}}}}}"
        );
        let document = document::read(&Source::new("a.yaml", text)).ok().unwrap();
        Example::new(&document).of(document.root.get("s").unwrap()).compact().to_string()
    }

    #[test]
    fn a_value_matches_its_schema() {
        let cases = [
            ("{type: integer, minimum: 5}", "5"),
            ("{type: [string, 'null'], format: date}", "\"2026-01-31\""),
            ("{enum: [red, blue]}", "\"red\""),
            ("{type: array, items: {type: number}}", "[1]"),
            ("{oneOf: [{type: 'null'}, {type: boolean}]}", "true"),
            ("{type: string, minLength: 6, maxLength: 8}", "\"textxx\""),
            (
                "{allOf: [{properties: {a: {type: integer}}}, {properties: {b: {const: 7}}}]}",
                "{\"a\":1,\"b\":7}",
            ),
            ("{properties: {id: {readOnly: true}, name: {type: string}}}", "{\"name\":\"ann\"}"),
            ("{}", "{}"),
        ];
        for (schema, want) in cases {
            assert_eq!(example(schema), want, "{schema}");
        }
    }

    #[test]
    fn a_circular_schema_ends() {
        let text = example("{$ref: '#/node'}");
        assert!(text.starts_with("{\"id\":1,") && text.len() < 4000, "{text}");
    }
}

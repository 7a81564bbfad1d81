//! Resources for clients: the page that teaches the language, and the schema of scenarios.

use std::sync::LazyLock;

use serde_json::{Value, json};
use throng_base::{Said, clean, packed};

use super::message::Mistake;

pub(super) const LANGUAGE_URI: &str = "throng://docs/language";
const SCHEMA_URI: &str = "throng://schema/scenario";

static LANGUAGE: LazyLock<String> =
    LazyLock::new(|| packed::text(packed!("../../docs/language.md")));

struct Page {
    uri: &'static str,
    name: &'static str,
    about: Said,
    media_type: &'static str,
    text: fn() -> String,
}

static PAGES: [Page; 2] = [
    Page {
        uri: LANGUAGE_URI,
        name: "language",
        about: say!("the language of scenarios on one page"),
        media_type: "text/markdown",
        text: language,
    },
    Page {
        uri: SCHEMA_URI,
        name: "schema",
        about: say!("the JSON Schema of scenarios"),
        media_type: "application/schema+json",
        text: schema,
    },
];

pub(super) fn language() -> String {
    LANGUAGE.clone()
}

fn schema() -> String {
    throng_scenario::schema::json_schema()
}

pub(super) fn list() -> Value {
    let described = |page: &Page| {
        json!({
            "uri": page.uri,
            "name": page.name,
            "description": page.about.spoken(),
            "mimeType": page.media_type,
        })
    };
    json!({"resources": PAGES.iter().map(described).collect::<Value>()})
}

pub(super) fn read(uri: &str) -> Result<Value, Mistake> {
    let page = PAGES.iter().find(|page| page.uri == uri).ok_or_else(|| {
        let known: Vec<&str> = PAGES.iter().map(|page| page.uri).collect();
        let uri = clean(uri);
        Mistake::parameters(say!("there is no resource `{uri}`; resources: {}", known.join(", ")))
    })?;
    let content = json!({"uri": uri, "mimeType": page.media_type, "text": (page.text)()});
    Ok(json!({"contents": [content]}))
}

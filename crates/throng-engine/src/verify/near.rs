//! Suggestions for a selector that finds nothing.

use throng_base::diagnostic::did_you_mean;
use throng_extract::{Beginning, Document, JsonPart, JsonPath, JsonReach, JsonThere};
use throng_program::Pick;

use throng_base::Said;

use super::Looked;
use crate::scope::UserScope;
use crate::trace::{What, Who};

/// Keys that are listed if none resembles the missing one.
const KEYS_MAX: usize = 8;

/// Reports suggestions to the observer.
pub(super) fn tell(pick: &Pick, looked: &Looked<'_>, scope: &UserScope<'_>) {
    if !scope.shard.is_traced() {
        return;
    }
    let Some(words) = near(pick, &looked.document) else { return };
    let who = Who { user: scope.id, session: scope.session, iteration: scope.iterations };
    scope.shard.tell(who, scope.now, || What::Near(words));
}

/// `None` if nothing more is known than that it is missing.
fn near(pick: &Pick, document: &Document<'_>) -> Option<Said> {
    if document.refusal().is_some() {
        return None;
    }
    let (selector, beginning) = match pick {
        Pick::Json(path) => return path.reach(document).map(|reach| near_json(path, reach)),
        Pick::Css(css) => (css.to_string(), css.beginning(document.page())),
        Pick::XPath(path) => (path.to_string(), path.beginning(document.page())),
        Pick::Pattern(pattern) => (pattern.to_string(), None),
        _ => return None,
    };
    let bytes = document.bytes().len();
    Some(match beginning {
        Some(Beginning { text, count: 0 }) => {
            say!("neither `{selector}` nor `{text}` has a match")
        }
        Some(Beginning { text, count }) => {
            say!("`{selector}` has no match; matches of `{text}`: {count}")
        }
        None => say!("`{selector}` has no match in {bytes} bytes"),
    })
}

fn near_json(path: &JsonPath, reach: JsonReach) -> Said {
    let (selector, there) = (written(path), written(&reach.path));
    let keys = match reach.there {
        JsonThere::Keys(keys) => keys,
        JsonThere::List(count) => {
            return say!("`{selector}` has no match; `{there}` is a list of length {count}");
        }
        JsonThere::Text => return say!("`{selector}` has no match; `{there}` is text"),
        JsonThere::Number => return say!("`{selector}` has no match; `{there}` is a number"),
        JsonThere::Bool => return say!("`{selector}` has no match; `{there}` is a boolean"),
        JsonThere::Null => return say!("`{selector}` has no match; `{there}` is null"),
    };
    if let Some(near) = with_dots(path, &reach.path, &keys) {
        return say!("`{selector}` has no match; did you mean `{near}`?");
    }
    let missing = reach.missing.as_deref().unwrap_or_default();
    if let Some(near) = did_you_mean(missing, keys.iter().map(String::as_str)) {
        let near = reach.path.join(&JsonPath::from(vec![JsonPart::Name(near.to_string())]));
        return say!("`{selector}` has no match; did you mean `{}`?", written(&near));
    }
    if keys.is_empty() {
        return say!("`{selector}` has no match; `{there}` is empty");
    }
    let mut list: Vec<String> = keys.iter().take(KEYS_MAX).map(|key| format!("`{key}`")).collect();
    if keys.len() > KEYS_MAX {
        list.push("…".into());
    }
    say!("`{selector}` has no match; `{there}` contains {}", list.join(", "))
}

/// A path whose names are parts of a key that contains dots, with this key in brackets.
fn with_dots(path: &JsonPath, there: &JsonPath, keys: &[String]) -> Option<String> {
    let plain = |parts: &[JsonPart]| {
        let dot = if matches!(parts.first(), Some(JsonPart::Name(_))) { "." } else { "" };
        format!("{dot}{}", JsonPath::from(parts.to_vec()))
    };
    let (before, rest) = path.parts()?.split_at_checked(there.parts()?.len())?;
    let name = |part: &JsonPart| match part {
        JsonPart::Name(name) => Some(name.clone()),
        JsonPart::Index(_) => None,
    };
    (2..=rest.len()).find_map(|count| {
        let (names, behind) = rest.split_at(count);
        let key = names.iter().map(name).collect::<Option<Vec<String>>>()?.join(".");
        let is_key = keys.contains(&key) && !key.contains(['\'', '\\']);
        is_key.then(|| format!("json.${}['{key}']{}", plain(before), plain(behind)))
    })
}

/// A path in the scenario's syntax.
fn written(path: &JsonPath) -> String {
    match *path == JsonPath::default() {
        true => "json".into(),
        false => format!("json.{path}"),
    }
}

#[cfg(test)]
mod tests {
    use throng_extract::{Css, Pattern, XPath};

    use super::*;

    fn check(pick: &Pick, body: &str, want: &str) {
        assert_eq!(near(pick, &Document::new(body.as_bytes())).unwrap_or_default(), want);
    }

    #[test]
    fn a_json_path_suggests_existing_keys() {
        let body = r#"{"data":{"token":"t","n":1},"items":[1,2],"none":{},
            "v":{"1.0.0":{"dist":1}}}"#;
        for (path, want) in [
            ("data.tokn", "`json.data.tokn` has no match; did you mean `json.data.token`?"),
            ("$.data.tokn", "`json.data.tokn` has no match; did you mean `json.data.token`?"),
            ("dtaa.token", "`json.dtaa.token` has no match; did you mean `json.data`?"),
            ("user", "`json.user` has no match; `json` contains `data`, `items`, `none`, `v`"),
            (
                "v.1.0.0.dst",
                "`json.v.1.0.0.dst` has no match; did you mean `json.$.v['1.0.0'].dst`?",
            ),
            ("items[5]", "`json.items[5]` has no match; `json.items` is a list of length 2"),
            ("data.n.x", "`json.data.n.x` has no match; `json.data.n` is a number"),
            ("none.x", "`json.none.x` has no match; `json.none` is empty"),
        ] {
            check(&Pick::Json(JsonPath::parse(path).unwrap()), body, want);
        }
        let many: Vec<String> = (0..9).map(|key| format!(r#""key{key}":{key}"#)).collect();
        let pick = Pick::Json(JsonPath::parse("x").unwrap());
        let words = near(&pick, &Document::new(format!("{{{}}}", many.join(",")).as_bytes()));
        assert_eq!(words.unwrap().english().matches("`key").count(), KEYS_MAX);
        check(&pick, "no JSON", "");
    }

    #[test]
    fn other_selectors_report_how_much_of_them_matches() {
        let page = "<form><input name=csrf></form>";
        let css = |text| Pick::Css(Css::parse(text).unwrap());
        check(
            &css("form input[name=crsf]"),
            page,
            "`form input[name=crsf]` has no match; matches of `form input`: 1",
        );
        check(&css("table td"), page, "neither `table td` nor `table` has a match");
        check(&css("td"), page, "`td` has no match in 30 bytes");
        let path = Pick::XPath(XPath::parse("//form/a").unwrap());
        check(&path, page, "`//form/a` has no match; matches of `//form`: 1");
        let pattern = Pick::Pattern(Pattern::parse("id=(.*)").unwrap());
        check(&pattern, page, "`id=(.*)` has no match in 30 bytes");
    }
}

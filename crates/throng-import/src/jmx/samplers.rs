//! HTTP samplers, and the elements that apply to them: defaults, timers, assertions and extractors.

use std::time::Duration;

use throng_extract::JsonPath;

use super::elements::Element;
use super::{JmxReader, Scope};
use crate::json::Json;
use crate::model::{Auth, Body, BodyPart, Check, Exchange, LeftOut, Save, Think, name_of};
use crate::text::Text;

/// The values of HTTP Request Defaults.
#[derive(Clone, Default)]
pub(super) struct Defaults {
    protocol: Text,
    domain: Text,
    port: Text,
    path: Text,
}

pub(super) fn defaults(
    reader: &mut JmxReader<'_>,
    element: &Element<'_, '_>,
    defaults: &mut Defaults,
) {
    let fields = [
        ("HTTPSampler.protocol", &mut defaults.protocol),
        ("HTTPSampler.domain", &mut defaults.domain),
        ("HTTPSampler.port", &mut defaults.port),
        ("HTTPSampler.path", &mut defaults.path),
    ];
    for (name, field) in fields {
        if let Some(text) = element.given(name) {
            *field = reader.text(&text);
        }
    }
}

pub(super) fn exchange(
    reader: &mut JmxReader<'_>,
    element: &Element<'_, '_>,
    scope: &Scope,
) -> Exchange {
    let mut exchange = Exchange { name: Some(element.name()), ..Exchange::default() };
    let method = element.prop("HTTPSampler.method").unwrap_or_default();
    exchange.method = match method.bytes().all(|b| b.is_ascii_alphabetic()) && !method.is_empty() {
        true => method.to_ascii_uppercase(),
        false => "GET".into(),
    };
    exchange.url = url(reader, element, &scope.defaults);
    exchange.headers = scope.headers.clone();
    exchange.checks = scope.assertions.clone();
    exchange.saves = scope.saves.clone();
    exchange.auth = scope.auth.clone();
    exchange.follow_redirects = element.is_on("HTTPSampler.follow_redirects")
        || element.is_on("HTTPSampler.auto_redirects");
    let timeout = element.number("HTTPSampler.response_timeout");
    exchange.timeout = timeout.filter(|ms| *ms > 0).map(Duration::from_millis);
    body(reader, element, &mut exchange);
    if element.is_on("HTTPSampler.image_parser") {
        let what = say!("embedded resources of the page; see `parallel`");
        exchange.left_out.push(LeftOut::new(element.place(), what));
    }
    exchange
}

fn url(reader: &mut JmxReader<'_>, element: &Element<'_, '_>, defaults: &Defaults) -> Text {
    let mut of = |name: &str, default: &Text| {
        element.given(name).map_or_else(|| default.clone(), |text| reader.text(&text))
    };
    let path = of("HTTPSampler.path", &defaults.path);
    if path.to_string().contains("://") {
        return path;
    }
    let (protocol, domain) = (
        of("HTTPSampler.protocol", &defaults.protocol),
        of("HTTPSampler.domain", &defaults.domain),
    );
    let port = of("HTTPSampler.port", &defaults.port);
    if domain.is_empty() {
        return path;
    }
    let mut url = Text::default();
    let has_scheme = domain.to_string().contains("://");
    if !has_scheme {
        match protocol.is_empty() {
            true if port.as_literal() == Some("443") => url.push("https"),
            true => url.push("http"),
            false => {
                url.append(&protocol.map_literals(|text| Text::literal(text.to_ascii_lowercase())));
            }
        }
        url.push("://");
    }
    url.append(&domain.map_literals(|text| Text::literal(text.trim_end_matches('/'))));
    let is_default = matches!(port.as_literal(), Some("" | "0"));
    if !is_default {
        url.push(":");
        url.append(&port);
    }
    let has_slash = path.to_string().starts_with(['/', '?']) || path.is_empty();
    url.push(if has_slash { "" } else { "/" });
    url.append(&path);
    url
}

fn body(reader: &mut JmxReader<'_>, element: &Element<'_, '_>, exchange: &mut Exchange) {
    if element.is_on("HTTPSampler.postBodyRaw") {
        let raw: String = element
            .items("Arguments.arguments")
            .iter()
            .filter_map(|one| one.prop("Argument.value"))
            .collect();
        let text = reader.text(&raw);
        exchange.body = Body::of_text("json", text);
        return;
    }
    let files: Vec<BodyPart> = element
        .items("HTTPFileArgs.files")
        .iter()
        .filter_map(|one| {
            let name = one.prop("File.paramname").unwrap_or_default();
            let part = BodyPart::file(name, one.given("File.path")?);
            Some(BodyPart { content_type: one.given("File.mimetype"), ..part })
        })
        .collect();
    let arguments = element.arguments().into_iter();
    let pairs: Vec<_> = arguments.map(|(name, value)| (name, reader.text(&value))).collect();
    let has_body = matches!(exchange.method.as_str(), "POST" | "PUT" | "PATCH");
    if !files.is_empty()
        || has_body && element.is_on("HTTPSampler.DO_MULTIPART_POST") && !pairs.is_empty()
    {
        let parts = pairs.into_iter().map(|(name, text)| BodyPart::text(name, text));
        exchange.body = Body::Multipart(parts.chain(files).collect());
    } else if has_body && !pairs.is_empty() {
        exchange.body = Body::Form(pairs);
    } else {
        exchange.query.extend(pairs);
    }
}

pub(super) fn auth(reader: &mut JmxReader<'_>, element: &Element<'_, '_>) -> Option<Auth> {
    let first = element.items("AuthManager.auth_list");
    let first = first.first()?;
    let user = reader.text(&first.prop("Authorization.username")?);
    let password = reader.text(&first.prop("Authorization.password").unwrap_or_default());
    let is_digest = first.prop("Authorization.mechanism").as_deref() == Some("DIGEST");
    Some(Auth { user, password, is_digest })
}

/// A pause before each sampler of the scope.
pub(super) fn timer(reader: &mut JmxReader<'_>, element: &Element<'_, '_>) -> Option<Think> {
    let mut ms = |name: &str| {
        let text = element.prop(name)?;
        let text = reader.text(&text);
        let number = reader.constant(&text)?.parse::<f64>().ok()?;
        Some(Duration::from_millis(number.clamp(0.0, 86_400_000.0) as u64))
    };
    let delay = ms("ConstantTimer.delay").unwrap_or_default();
    let range = ms("RandomTimer.range").unwrap_or_default();
    let think = match element.class() {
        "ConstantTimer" => Think::Fixed(delay),
        "UniformRandomTimer" => Think::Range(delay, delay + range),
        "GaussianRandomTimer" => Think::Normal(delay, range),
        "PoissonRandomTimer" => Think::Exponential(delay + range),
        "ConstantThroughputTimer" | "PreciseThroughputTimer" => {
            let what = say!("the throughput of a timer; see `iterations` of the scenario");
            reader.recording.left_out.push(LeftOut::new(element.place(), what));
            return None;
        }
        _ => {
            reader.recording.left_out.push(element.left_out());
            return None;
        }
    };
    let is_nothing =
        matches!(&think, Think::Fixed(time) | Think::Exponential(time) if time.is_zero());
    (!is_nothing).then_some(think)
}

pub(super) fn assertion(
    reader: &mut JmxReader<'_>,
    element: &Element<'_, '_>,
    checks: &mut Vec<Check>,
) {
    let before = checks.len();
    match element.class() {
        "ResponseAssertion" => response_assertion(reader, element, checks),
        "JSONPathAssertion" => {
            let path = element.prop("JSON_PATH").and_then(|path| json_path(&path));
            let is_compared = element.is_on("JSONVALIDATION");
            let want = element.prop("EXPECTED_VALUE").unwrap_or_default();
            if let Some(path) = path {
                let want = reader.text(&want);
                let json = want.as_literal().and_then(|text| Json::parse(text).ok());
                let json = json.filter(|json| !matches!(json, Json::Map(_) | Json::List(_)));
                checks
                    .push(Check::Json(path, is_compared.then(|| json.unwrap_or(Json::Text(want)))));
            }
        }
        "DurationAssertion" => {
            let ms = element.number("DurationAssertion.duration").filter(|ms| *ms > 0);
            checks.extend(ms.map(|ms| Check::TimeBelow(Duration::from_millis(ms))));
        }
        "SizeAssertion" => {
            let size: Option<u64> = element.number("SizeAssertion.size");
            let sign = match element.prop("SizeAssertion.operator").as_deref() {
                Some("3") => "> ",
                Some("4") => "< ",
                Some("5") => ">= ",
                Some("6") => "<= ",
                _ => "",
            };
            checks.extend(size.map(|size| Check::Size(format!("{sign}{size}B"))));
        }
        _ => {}
    }
    if checks.len() == before {
        reader.recording.left_out.push(element.left_out());
    }
}

fn response_assertion(
    reader: &mut JmxReader<'_>,
    element: &Element<'_, '_>,
    checks: &mut Vec<Check>,
) {
    let field = element.prop("Assertion.test_field").unwrap_or_default();
    let kind: u32 = element.number("Assertion.test_type").unwrap_or(16);
    let is_not = kind & 4 != 0;
    let strings = element.items("Asserion.test_strings");
    let strings =
        if strings.is_empty() { element.items("Assertion.test_strings") } else { strings };
    for one in &strings {
        let text = one.text();
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        match field.as_str() {
            "Assertion.response_code" if !is_not => {
                let is_code = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
                if is_code {
                    checks.push(Check::Status(vec![text.into()]));
                }
            }
            "Assertion.response_data" | "Assertion.response_data_as_document" => {
                let text = reader.text(text);
                // Contains and Matches are regular expressions, the others are plain text.
                let is_pattern = kind & 3 != 0;
                let literal = text.to_string();
                let is_plain =
                    !literal.contains(['\\', '.', '*', '+', '?', '(', '[', '{', '|', '^', '$']);
                match (is_pattern && !is_plain, is_not) {
                    (false, false) => checks.push(Check::Contains(text)),
                    (false, true) => checks.push(Check::Lacks(text)),
                    (true, false) if regex::Regex::new(&literal).is_ok() && !text.has_values() => {
                        checks.push(Check::Matches(literal));
                    }
                    (true, _) => {}
                }
            }
            _ => {}
        }
    }
}

/// The saves of an extractor, by the name of its variable.
pub(super) fn extractor(
    reader: &mut JmxReader<'_>,
    element: &Element<'_, '_>,
) -> Option<(String, Save)> {
    let prop = |key: &str| element.prop(key);
    let (key, save) = match element.class() {
        "JSONPostProcessor" => {
            let paths = prop("JSONPostProcessor.jsonPathExprs")?;
            let save = paths.split(';').next().and_then(|path| json_save(path.trim()));
            ("JSONPostProcessor.referenceNames", save)
        }
        class if class.contains("jsonpathextractor") => {
            ("VAR", json_save(prop("JSONPATH")?.trim()))
        }
        "RegexExtractor" => {
            let pattern = prop("RegexExtractor.regex")?;
            let is_header = prop("RegexExtractor.useHeaders")
                .is_some_and(|it| it == "true" || it == "response_headers");
            let is_good = regex::Regex::new(&pattern).is_ok() && !is_header && !pattern.is_empty();
            ("RegexExtractor.refname", is_good.then_some(Save::Regex(pattern)))
        }
        "XPathExtractor" => {
            ("XPathExtractor.refname", prop("XPathExtractor.xpathQuery").map(Save::XPath))
        }
        "XPath2Extractor" => {
            ("XPathExtractor2.refname", prop("XPathExtractor2.xpathQuery").map(Save::XPath))
        }
        "HtmlExtractor" => {
            let attribute = element.given("HtmlExtractor.attribute");
            let attribute = attribute.map_or(String::new(), |name| format!("@{name}"));
            let css = prop("HtmlExtractor.expr")? + &attribute;
            ("HtmlExtractor.refname", Some(Save::Css(css)))
        }
        "BoundaryExtractor" => {
            let (left, right) =
                (prop("BoundaryExtractor.lboundary")?, prop("BoundaryExtractor.rboundary")?);
            let pattern = format!("{}(.*?){}", regex::escape(&left), regex::escape(&right));
            ("BoundaryExtractor.refname", Some(Save::Regex(pattern)))
        }
        _ => return None,
    };
    let names = prop(key).unwrap_or_default();
    let name = names.split(';').next().map(str::trim).filter(|name| !name.is_empty());
    let saved = name.map(name_of).zip(save);
    if saved.is_none() {
        reader.recording.left_out.push(element.left_out());
    }
    saved
}

/// A JSON path, if it conforms to RFC 9535: JMeter supports others, too.
fn json_save(path: &str) -> Option<Save> {
    let query = || JsonPath::parse(path).is_ok() && path.starts_with('$');
    json_path(path).map(Save::Json).or_else(|| query().then(|| Save::JsonPath(path.into())))
}

/// `$.data.items[0].id` in the scenario language; `None` if it needs a query.
fn json_path(path: &str) -> Option<String> {
    let plain = path.strip_prefix("$.").or_else(|| path.strip_prefix('$'))?;
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let is_good = !plain.contains("..")
        && !plain.starts_with('.')
        && plain.chars().all(good)
        && !plain.is_empty();
    let has_number = |part: &str| {
        part.split(']')
            .next()
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_good = is_good && plain.split('[').skip(1).all(has_number);
    (is_good && JsonPath::parse(plain).is_ok()).then(|| plain.to_string())
}

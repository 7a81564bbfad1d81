//! OpenAPI 3.0 and 3.1, and Swagger 2.0, from JSON or YAML: each operation becomes a request, with
//! the examples of the description, or values that match its schemas.

mod document;
mod example;

use std::sync::Arc;

use throng_base::{Diagnostic, Source};

use crate::json::Json;
use crate::model::{
    Auth, Body, BodyPart, Check, Exchange, Item, LeftOut, Recording, Session, Variable, name_of,
    unique,
};
use crate::text::Text;
use crate::{Options, Refusal};
use document::Document;
use example::Example;

/// The methods of a path, in the order create, read, update, delete.
const METHODS: [&str; 8] = ["post", "get", "head", "put", "patch", "options", "trace", "delete"];
/// The name of a file whose content is unknown.
const UPLOAD: &str = "upload.bin";
/// The maximum number of operations per description.
const OPERATIONS_MAX: usize = 5_000;

pub(crate) fn read(source: &Arc<Source>, options: &Options) -> Result<Recording, Vec<Diagnostic>> {
    let document = document::read(source).map_err(|error| vec![*error])?;
    let refuse = |reason| vec![*Refusal::new(&source.name, reason).of_format("openapi")];
    let version = document.root.str("openapi").or_else(|| document.root.str("swagger"));
    let is_old = match version {
        Some(version) if version.starts_with("3.") => false,
        Some(version) if version.starts_with("2.") => true,
        Some(version) => {
            let version: String = version.chars().take(20).collect();
            return Err(refuse(say!("version `{version}` of OpenAPI is not supported")));
        }
        None => return Err(refuse(say!("it has neither `openapi` nor `swagger`"))),
    };
    let mut reader = OpenApiReader {
        document: &document,
        is_old,
        recording: Recording { name: options.stem.clone(), ..Recording::default() },
        count: 0,
    };
    if let Some(title) = document.root.get("info").and_then(|info| info.str("title")) {
        reader.recording.name = title.chars().filter(|c| !c.is_control()).take(100).collect();
    }
    reader.recording.base = reader.base(options);
    let steps = reader.steps();
    if reader.count == 0 {
        return Err(refuse(say!("it has no operations in `paths`")));
    }
    let session = Session { name: "user".into(), steps, ..Session::default() };
    reader.recording.sessions.push(session);
    Ok(reader.recording)
}

struct OpenApiReader<'d> {
    document: &'d Document,
    is_old: bool,
    recording: Recording,
    count: usize,
}

/// An operation and its place.
struct Operation<'d> {
    method: &'static str,
    path: &'d str,
    node: &'d Json,
    shared: &'d Json,
}

impl<'d> OpenApiReader<'d> {
    /// The first server; its variables have defaults.
    fn base(&mut self, options: &Options) -> Option<Text> {
        let root = &self.document.root;
        let text = match self.is_old {
            true => {
                let path = root.word("basePath").trim_end_matches('/');
                let schemes = root.list("schemes");
                let has = |word: &str| schemes.iter().any(|one| one.as_str() == Some(word));
                let scheme = if has("https") || !has("http") { "https" } else { "http" };
                match root.str("host").filter(|host| !host.is_empty()) {
                    Some(host) => format!("{scheme}://{host}{path}"),
                    None => path.to_string(),
                }
            }
            false => {
                let servers = root.list("servers");
                if servers.len() > 1 {
                    let what = say!("other servers in the description");
                    self.recording.left_out.push(LeftOut::of_all(servers.len() - 1, what));
                }
                let server = servers.first();
                server.map(server_url).unwrap_or_default()
            }
        };
        let text = text.trim_end_matches('/');
        if text.contains("://") {
            return Some(Text::literal(text));
        }
        let origin = options.origin.clone().or_else(|| options.target.clone());
        let origin = origin.map(|origin| origin.trim_end_matches('/').to_string());
        match (origin, text.is_empty()) {
            (Some(origin), _) => Some(Text::literal(format!("{origin}{text}"))),
            (None, true) => None,
            (None, false) => {
                let what =
                    say!("the service's address, which the file does not contain; set `target`");
                self.recording.left_out.push(LeftOut::of_all(1, what));
                Some(Text::literal(format!("http://127.0.0.1:8080{text}")))
            }
        }
    }

    fn steps(&mut self) -> Vec<Item> {
        let mut tags: Vec<(String, Vec<Operation<'d>>)> = Vec::new();
        let mut beyond = 0;
        let paths = self.document.root.entries_of("paths");
        for (path, item) in paths {
            let item = self.document.resolved(item);
            for method in METHODS {
                let Some(node) = item.get(method) else { continue };
                self.count += 1;
                if self.count > OPERATIONS_MAX {
                    beyond += 1;
                    continue;
                }
                let tag = node.list("tags").first().and_then(Json::as_str).unwrap_or_default();
                let operation = Operation { method, path, node, shared: item };
                match tags.iter_mut().find(|(known, _)| known == tag) {
                    Some((_, list)) => list.push(operation),
                    None => tags.push((tag.to_string(), vec![operation])),
                }
            }
        }
        if beyond > 0 {
            let what = say!("operations after the first {OPERATIONS_MAX}");
            self.recording.left_out.push(LeftOut::of_all(beyond, what));
        }
        self.tell_unsent();
        let mut items = Vec::new();
        for (tag, mut operations) in tags {
            if !tag.is_empty() {
                items.push(Item::Note(tag.chars().take(80).collect()));
            }
            // Deletions are last, or other requests would not find the resource.
            operations.sort_by_key(|operation| operation.method == "delete");
            for operation in operations {
                items.push(Item::Http(Box::new(self.exchange(&operation))));
            }
        }
        items
    }

    fn tell_unsent(&mut self) {
        let root = &self.document.root;
        let webhooks = root.entries_of("webhooks").len();
        if webhooks > 0 {
            let what = say!("webhooks: the service sends them");
            self.recording.left_out.push(LeftOut::of_all(webhooks, what));
        }
    }

    fn exchange(&mut self, operation: &Operation<'d>) -> Exchange {
        let mut exchange =
            Exchange { method: operation.method.to_ascii_uppercase(), ..Exchange::default() };
        let parameters = self.parameters(operation);
        exchange.url = self.path(operation, &parameters, &mut exchange);
        for parameter in &parameters {
            self.parameter(parameter, &mut exchange);
        }
        if !self.is_old {
            self.request_body(operation, &mut exchange);
        }
        let checks = self.status(operation);
        exchange.checks.extend(checks);
        self.security(operation, &mut exchange);
        if !operation.node.entries_of("callbacks").is_empty() {
            let place = say!("{} {}", &exchange.method, operation.path);
            exchange.left_out.push(LeftOut::new(place, say!("callbacks: the service sends them")));
        }
        exchange
    }

    /// The parameters of the path and of the operation, which take precedence.
    fn parameters(&self, operation: &Operation<'d>) -> Vec<&'d Json> {
        let mut all: Vec<&Json> = Vec::new();
        let lists = [operation.shared.list("parameters"), operation.node.list("parameters")];
        for parameter in lists.into_iter().flatten().take(500) {
            let parameter = self.document.resolved(parameter);
            let key = |one: &Json| {
                (one.str("name").map(str::to_string), one.str("in").map(str::to_string))
            };
            all.retain(|known| key(known) != key(parameter));
            all.push(parameter);
        }
        all
    }

    /// The path with its parameters as variables.
    fn path(
        &mut self,
        operation: &Operation<'d>,
        parameters: &[&'d Json],
        exchange: &mut Exchange,
    ) -> Text {
        let mut url = Text::default();
        let mut rest = operation.path;
        let server = [operation.node, operation.shared]
            .into_iter()
            .find_map(|node| node.list("servers").first());
        if let Some(server) = server.map(server_url).filter(|server| server.contains("://")) {
            url.push(server.trim_end_matches('/'));
        }
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, after)) = behind.split_once('}') else { break };
            url.push(before);
            let declared = parameters
                .iter()
                .find(|one| one.str("in") == Some("path") && one.str("name") == Some(name));
            if declared.is_none() {
                let place = say!("{} {}", &exchange.method, operation.path);
                let what = say!("the parameter `{name}` is not described");
                exchange.left_out.push(LeftOut::new(place, what));
            }
            let value = declared.map(|parameter| self.value_of(parameter));
            let value = value.unwrap_or_else(|| Json::Number("1".into()));
            let value = value.as_str().filter(|value| !value.is_empty()).unwrap_or("1").to_string();
            url.push_value(self.variable(name, &value));
            rest = after;
        }
        url.push(rest);
        url
    }

    /// A variable for a part of a path; a name means the same in all paths.
    fn variable(&mut self, name: &str, value: &str) -> String {
        let value = crate::form::path_encoded(value).replace(['/', '?'], "-");
        let (base, value) = (name_of(name), Some(Text::literal(value)));
        let known = self.recording.variables.iter();
        // A plain `id` means something else in each path.
        let is_other = |known: &Variable| base == "id" && known.value != value;
        let name = unique(&base, "_", |name| {
            known.clone().any(|known| known.name == name && is_other(known))
        });
        self.recording.declare(Variable { value, ..Variable::unknown(&name) });
        format!("vars.{name}")
    }

    fn value_of(&self, parameter: &Json) -> Json {
        let given =
            parameter.get("example").cloned().or_else(|| first_example(parameter, self.document));
        given.unwrap_or_else(|| {
            let content = parameter.get("content").and_then(|map| map.entries().first());
            let schema =
                parameter.get("schema").or_else(|| content.and_then(|(_, one)| one.get("schema")));
            // In Swagger 2, the parameter itself is the schema.
            Example::new(self.document).of(schema.unwrap_or(parameter))
        })
    }

    fn parameter(&mut self, parameter: &Json, exchange: &mut Exchange) {
        let Some(name) = parameter.str("name").filter(|name| !name.is_empty()) else { return };
        let place = parameter.word("in");
        let has_example = parameter.get("example").is_some() || parameter.get("examples").is_some();
        if !parameter.is_true("required") && !has_example && !matches!(place, "body") {
            return;
        }
        let text = |value: &Json| match value {
            Json::List(items) => {
                let words: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
                Text::literal(words.join(","))
            }
            other => other.as_text(),
        };
        match place {
            "query" => match self.value_of(parameter) {
                Json::List(items) => {
                    exchange.query.extend(items.iter().map(|item| (name.to_string(), text(item))));
                }
                value => exchange.query.push((name.to_string(), text(&value))),
            },
            "header" => {
                let own = ["accept", "content-type", "authorization"];
                if !own.contains(&name.to_ascii_lowercase().as_str()) {
                    exchange.headers.push((name.to_string(), text(&self.value_of(parameter))));
                }
            }
            "cookie" => exchange.cookies.push((name.to_string(), text(&self.value_of(parameter)))),
            "body" => {
                let schema = parameter.get("schema").unwrap_or(&Json::Null);
                exchange.body = Body::Json(Example::new(self.document).of(schema));
            }
            "formData" => self.form_field(name, parameter, exchange),
            _ => {}
        }
    }

    fn form_field(&mut self, name: &str, parameter: &Json, exchange: &mut Exchange) {
        let is_file = parameter.str("type") == Some("file");
        let value = self.value_of(parameter);
        let text = Text::literal(value.as_str().unwrap_or_default());
        if is_file && !matches!(exchange.body, Body::Multipart(_)) {
            let pairs = match std::mem::take(&mut exchange.body) {
                Body::Form(pairs) => pairs,
                _ => Vec::new(),
            };
            let parts = pairs.into_iter().map(|(name, text)| BodyPart::text(name, text));
            exchange.body = Body::Multipart(parts.collect());
        }
        match &mut exchange.body {
            Body::Multipart(parts) => {
                parts.push(if is_file {
                    BodyPart::file(name, UPLOAD)
                } else {
                    BodyPart::text(name, text)
                });
            }
            Body::Form(pairs) => pairs.push((name.into(), text)),
            body => *body = Body::Form(vec![(name.into(), text)]),
        }
    }

    fn request_body(&mut self, operation: &Operation<'d>, exchange: &mut Exchange) {
        let Some(body) = operation.node.get("requestBody") else { return };
        let content = self.document.resolved(body).entries_of("content");
        let is_json =
            |kind: &str| kind.split(';').next().is_some_and(|kind| kind.ends_with("json"));
        let kinds = ["urlencoded", "multipart", "text/", "*/*", ""];
        let chosen = content.iter().find(|(kind, _)| is_json(kind)).or_else(|| {
            kinds.iter().find_map(|word| content.iter().find(|(kind, _)| kind.contains(word)))
        });
        let Some((kind, media)) = chosen else { return };
        let given = media.get("example").cloned().or_else(|| first_example(media, self.document));
        let schema = media.get("schema").unwrap_or(&Json::Null);
        let value = given.unwrap_or_else(|| Example::new(self.document).of(schema));
        if is_json(kind) || kind == "*/*" {
            // A text example may contain the JSON itself.
            let inner = value.as_str().and_then(|text| Json::of_body(&text.into()));
            exchange.body = Body::Json(inner.unwrap_or(value));
            if !kind.starts_with("application/json") && kind != "*/*" {
                exchange.headers.push(("Content-Type".into(), kind.as_str().into()));
            }
        } else if kind.contains("urlencoded") {
            exchange.body = Body::Form(value.pairs());
        } else if kind.contains("multipart") {
            let schema = self.document.resolved(schema);
            let parts = value.entries().iter().map(|(name, value)| {
                let property = schema.get("properties").and_then(|map| map.get(name));
                let property = property.map(|one| self.document.resolved(one));
                let is_file = property.is_some_and(|one| one.str("format") == Some("binary"));
                match is_file {
                    true => BodyPart::file(name, UPLOAD),
                    false => BodyPart::text(name, value.as_text()),
                }
            });
            exchange.body = Body::Multipart(parts.collect());
        } else {
            exchange.headers.push(("Content-Type".into(), kind.as_str().into()));
            exchange.body = Body::Text(value.as_text());
        }
        if content.len() > 1 {
            let others = content.iter().filter(|(other, _)| other != kind);
            let list = others.map(|(kind, _)| kind.as_str()).take(5).collect::<Vec<_>>().join(", ");
            let place = say!("{} {}", &exchange.method, operation.path);
            exchange.left_out.push(LeftOut::new(place, say!("other body types: {list}")));
        }
    }

    /// The statuses that mean success.
    fn status(&self, operation: &Operation<'d>) -> Option<Check> {
        let responses = operation.node.entries_of("responses");
        let good = responses.iter().map(|(status, _)| status.to_ascii_lowercase());
        let good: Vec<String> = good
            .filter(|status| {
                let is_number = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
                status.starts_with(['2', '3']) && (is_number || status.ends_with("xx"))
            })
            .collect();
        (!good.is_empty()).then_some(Check::Status(good))
    }

    /// The first security scheme.
    fn security(&mut self, operation: &Operation<'d>, exchange: &mut Exchange) {
        let root = &self.document.root;
        let Some(security) = operation.node.get("security").or_else(|| root.get("security")) else {
            return;
        };
        let schemes = match self.is_old {
            true => root.get("securityDefinitions"),
            false => root.get("components").and_then(|one| one.get("securitySchemes")),
        };
        // An empty one means that no authentication is required.
        let Some(first) = security.items().iter().find(|one| !one.entries().is_empty()) else {
            return;
        };
        for (name, _) in first.entries() {
            let scheme = schemes.and_then(|schemes| schemes.get(name));
            let Some(scheme) = scheme.map(|one| self.document.resolved(one)) else { continue };
            self.scheme(name, scheme, exchange, operation);
        }
    }

    fn scheme(
        &mut self,
        name: &str,
        scheme: &Json,
        exchange: &mut Exchange,
        operation: &Operation<'d>,
    ) {
        let mut secret = |name: &str| {
            let name = name_of(name);
            self.recording.declare(Variable::secret(&name));
            Text::value(format!("vars.{name}"))
        };
        let kind = scheme.word("type");
        let http = scheme.word("scheme").to_ascii_lowercase();
        let is_basic =
            kind == "basic" || kind == "http" && matches!(http.as_str(), "basic" | "digest");
        if is_basic {
            let user = Variable::plain("api_user", Text::literal("user"));
            let password = secret("api_password");
            self.recording.declare(user);
            let (user, is_digest) = (Text::value("vars.api_user"), http == "digest");
            exchange.auth = Some(Auth { user, password, is_digest });
            return;
        }
        match (kind, scheme.word("in"), scheme.str("name")) {
            ("apiKey", "header", Some(header)) => {
                exchange.headers.push((header.to_string(), secret(header)));
            }
            ("apiKey", "query", Some(query)) => exchange.query.push((query.into(), secret(query))),
            ("apiKey", "cookie", Some(cookie)) => {
                exchange.cookies.push((cookie.into(), secret(cookie)));
            }
            ("oauth2" | "openIdConnect", ..) | ("http", ..) => {
                let mut value = Text::literal("Bearer ");
                value.append(&secret("token"));
                exchange.headers.push(("Authorization".into(), value));
            }
            _ => {
                let place = say!("{} {}", &exchange.method, operation.path);
                let what = say!("the security scheme `{name}`");
                exchange.left_out.push(LeftOut::new(place, what));
            }
        }
    }
}

/// The URL of a server, with the defaults of its variables.
fn server_url(server: &Json) -> String {
    let mut url = server.word("url").to_string();
    let variables = server.entries_of("variables");
    for (name, variable) in variables.iter().take(50) {
        url = url.replace(&format!("{{{name}}}"), variable.word("default"));
    }
    url
}

fn first_example(node: &Json, document: &Document) -> Option<Json> {
    match node.get("examples")? {
        Json::Map(entries) => {
            let (_, first) = entries.first()?;
            let first = document.resolved(first);
            // In Swagger 2, the example itself is here.
            Some(first.get("value").unwrap_or(first).clone())
        }
        Json::List(items) => items.first().cloned(),
        _ => None,
    }
}

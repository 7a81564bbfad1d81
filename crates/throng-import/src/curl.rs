//! cURL commands: `throng-scenario` parses them, as for `throng bench --curl`; this module turns
//! them into consecutive requests.

use std::sync::Arc;

use throng_base::{Diagnostic, Source};
use throng_scenario::{Bench, BenchBody, BenchRoute, FormContent, FormPart, curl};

use crate::Options;
use crate::model::{
    Auth, Body, BodyPart, Exchange, Item, LeftOut, Recording, Session, Socket, Talk,
};
use crate::text::Text;

pub(crate) fn read(
    source: &Arc<Source>,
    options: &Options,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Recording, Vec<Diagnostic>> {
    let requests = curl::parse_all(source)?;
    let mut recording = Recording { name: options.stem.clone(), ..Recording::default() };
    let mut session = Session { name: "user".into(), ..Session::default() };
    for request in &requests {
        warnings.extend(request.warnings.iter().cloned());
        let bench = &request.bench;
        session.steps.push(item(bench));
        recording.is_insecure |= bench.verify_tls == Some(false);
        left_out(bench, &mut recording.left_out);
    }
    recording.sessions.push(session);
    Ok(recording)
}

fn item(bench: &Bench) -> Item {
    let headers: Vec<(String, Text)> = bench
        .headers
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.clone(), Text::literal(value.as_str())))
        .collect();
    if bench.url.starts_with("ws://") || bench.url.starts_with("wss://") {
        let talk = vec![Talk::Stay(std::time::Duration::from_secs(10))];
        let (url, protocols) = (Text::literal(bench.url.as_str()), bench.protocols.clone());
        return Item::Socket(Box::new(Socket {
            url,
            headers,
            protocols,
            talk,
            ..Socket::default()
        }));
    }
    let body = body(bench);
    let method = bench
        .method
        .clone()
        .unwrap_or_else(|| if body == Body::None { "GET" } else { "POST" }.to_string());
    Item::Http(Box::new(Exchange {
        method,
        url: Text::literal(bench.url.as_str()),
        headers,
        body,
        auth: bench.basic_auth.as_ref().map(|(user, password)| Auth {
            user: Text::literal(user.as_str()),
            password: Text::literal(password.as_str()),
            is_digest: bench.digest,
        }),
        follow_redirects: bench.follow_redirects,
        timeout: bench.timeout,
        ..Exchange::default()
    }))
}

fn body(bench: &Bench) -> Body {
    let mime = bench.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let mime = mime.map_or(String::new(), |(_, value)| value.to_ascii_lowercase());
    match &bench.body {
        BenchBody::None => Body::None,
        BenchBody::Bytes(bytes) => Body::Bytes(bytes.clone()),
        BenchBody::File(path) => Body::File(path.to_string_lossy().into_owned()),
        BenchBody::Text(text) => Body::of_text(&mime, text.as_str().into()),
        BenchBody::Form(parts) => Body::Multipart(parts.iter().map(part).collect()),
    }
}

fn part(part: &FormPart) -> BodyPart {
    let name = part.name.as_str();
    let made = match &part.content {
        FormContent::Text(text) => BodyPart::text(name, text.as_str().into()),
        FormContent::File(path) => BodyPart::file(name, path.to_string_lossy()),
    };
    BodyPart { content_type: part.content_type.clone(), ..made }
}

/// Options of a command that apply to one connection; a scenario sets them for all.
fn left_out(bench: &Bench, left_out: &mut Vec<LeftOut>) {
    let options = [
        (bench.route != BenchRoute::default(), "--resolve, --connect-to, --proxy, --unix-socket"),
        (bench.ca.is_some(), "--cacert"),
        (bench.certificate.is_some(), "--cert"),
        (bench.connect_timeout.is_some(), "--connect-timeout"),
        (bench.family.is_some(), "-4, -6"),
        (!bench.sources.is_empty(), "--interface"),
        (bench.keep_alive == Some(false), "--no-keepalive"),
    ];
    for (_, option) in options.into_iter().filter(|(is_given, _)| *is_given) {
        let what = say!("the curl option `{option}`; see `connection` and `tls` of the scenario");
        left_out.push(LeftOut::of_all(1, what));
    }
}

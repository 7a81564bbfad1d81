//! `throng bench`: a command line becomes a scenario, and the scenario is run like any other.

use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Exit, Said, Source, plain};
use throng_program::{Family, HttpVersion, Program, Scheme};
use throng_run::{Conduct, capacity, reflect};
use throng_scenario::bench::{
    Bench, BenchBody, BenchRoute, BenchShape, BenchUntil, read_urls, schemes_with, unescape,
    without_effect, write,
};
use throng_scenario::{
    Recorded, RunOptions, Url, abstract_socket_of_curl, curl, parse_hex, parse_json_expectation,
    read_disk, read_variable, unix_socket_of_curl,
};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{BenchArguments, Verify};
use crate::run::{command, with_program};
use crate::scenario::compile_run;

/// `throng bench`.
pub(crate) fn bench(arguments: &BenchArguments) -> Ended {
    with_bench(arguments, |conduct| match arguments.capacity.is_empty() {
        true => conduct.run(),
        false => capacity::search(conduct, &arguments.searched()),
    })
}

/// With the run of a command line, what is told of it.
pub(crate) fn with_bench(
    arguments: &BenchArguments,
    then: impl FnOnce(Conduct<'_>) -> Exit,
) -> Ended {
    let errors = Screen::errors(arguments.output.shown.no_color);
    let compiled = compiled(arguments, arguments.url.as_deref(), errors)?;
    Ok(with_program(compiled, (&arguments.output, &arguments.limits), command(), then))
}

/// The scenario of a command line, for this URL. Mistakes have been told; with `--print-scenario`
/// there is nothing left to do.
pub(crate) fn compiled(
    arguments: &BenchArguments,
    url: Option<&str>,
    errors: Screen,
) -> Result<(Program, Recorded), Exit> {
    let mut warnings = Vec::new();
    let mut bench =
        assemble(arguments, url, &mut warnings).map_err(|told| errors.refused_all(&told))?;
    let reflected = reflected(arguments, &mut bench, errors)?;
    let text = write(&bench);
    if arguments.print_scenario {
        Screen::output(true).document(&text);
        return Err(Exit::Success);
    }
    let source = Source::new(tell!("the scenario of this command line"), text);
    let read = |path: &Path, bytes_max: usize| match &reflected {
        Some(set) if path == Path::new(reflect::FILE) => Ok(set.clone()),
        _ if is_given(arguments, path) => plain::read_given(path, bytes_max),
        _ => read_disk(path, bytes_max),
    };
    let run =
        RunOptions { labels: arguments.output.settings.labels.clone(), ..RunOptions::fresh(None) };
    match compile_run(&source, Vec::new(), (PathBuf::new(), &read_variable), run, &read) {
        Ok((program, more, recorded)) => {
            warnings.extend(more);
            errors.diagnostics(&warnings);
            Ok((program, recorded))
        }
        Err(told) => {
            errors.diagnostics(&told);
            errors.say(say!("use --print-scenario to see the whole scenario of this command line"));
            Err(Exit::Usage)
        }
    }
}

/// Asks the target of a gRPC call for its services where no file tells them. A scenario that is
/// only printed names the file that `throng protocol --reflect` writes.
fn reflected(
    arguments: &BenchArguments,
    bench: &mut Bench,
    errors: Screen,
) -> Result<Option<Vec<u8>>, Exit> {
    if !bench.calls() || bench.given("--proto").next().is_some() {
        return Ok(None);
    }
    bench.flags.push(("--proto", reflect::FILE.into()));
    if arguments.print_scenario {
        return Ok(None);
    }
    let method = Url::parse(&bench.url).map(|url| url.path).unwrap_or_default();
    let service = method.trim_start_matches('/').rsplit_once(['/', '.']).map(|(name, _)| name);
    let services: Vec<String> = service.map(str::to_string).into_iter().collect();
    reflect::reflect(bench, &services, &errors).map(Some)
}

/// A mistake of the command line.
fn mistake(code: &'static str, message: Said, help: Said) -> Diagnostic {
    Diagnostic::error(code, message).help(help)
}

/// Whether the command line itself names what is no plain file, such as the pipe of
/// `--body-file /dev/stdin`; what a cURL file names is of somebody else.
fn is_given(arguments: &BenchArguments, path: &Path) -> bool {
    let request = &arguments.request;
    let is_own = request.curl.is_none() || request.body_file.as_deref() == Some(path);
    is_own && !path.is_file()
}

/// What the command line asks for; all mistakes at once.
fn assemble(
    arguments: &BenchArguments,
    url: Option<&str>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Bench, Vec<Diagnostic>> {
    let copied = match &arguments.request.curl {
        Some(path) => curl::read(path).and_then(|source| curl::parse(&source))?,
        None => curl::CurlRequest::default(),
    };
    warnings.extend(copied.warnings);
    let mut bench = Bench {
        users: arguments.concurrency,
        iterations: arguments.requests,
        time: arguments.duration,
        rate: arguments.rate.map(|rate| rate.to),
        shape: shape(arguments),
        hold: arguments.hold,
        heartbeat: arguments.heartbeat,
        heartbeat_message: arguments.heartbeat_body.clone(),
        think: arguments.think,
        precision: arguments.precision,
        warm_up: arguments.warm_up,
        seed: arguments.seed,
        thresholds: [&arguments.expectation.thresholds[..], &arguments.capacity].concat(),
        abort_when: arguments.expectation.abort_when.clone(),
        ..copied.bench
    };
    let mut errors = Vec::new();
    let listed = arguments.urls.as_deref().map(|path| read_urls(path, url.unwrap_or_default()));
    match listed.transpose() {
        Ok(listed) => bench.urls = listed.unwrap_or_default(),
        Err(found) => return Err(found),
    }
    // The first of a list stands for all: they go to one target.
    let first = bench.urls.first().map(|one| one.url.clone());
    address(arguments, first.as_deref().or(url), &mut bench, &mut errors);
    request(arguments, &mut bench, &mut errors);
    expectations(arguments, &mut bench, &mut errors);
    connection(arguments, &mut bench);
    route(arguments, &mut bench);
    fitting(arguments, &bench, &mut errors);
    ranged(arguments, &mut errors);
    if errors.is_empty() { Ok(bench) } else { Err(errors) }
}

fn shape(arguments: &BenchArguments) -> BenchShape {
    let from = arguments.rate.and_then(|rate| rate.from);
    match (from, arguments.steps) {
        _ if !arguments.stages.is_empty() => BenchShape::Stages(arguments.stages.clone()),
        (Some(from), Some(count)) => BenchShape::Steps { from, count },
        (Some(from), None) => BenchShape::Ramp { from },
        (None, _) => BenchShape::Constant,
    }
}

/// A range of rates takes a time, and steps take a range.
fn ranged(arguments: &BenchArguments, errors: &mut Vec<Diagnostic>) {
    let is_range = arguments.rate.is_some_and(|rate| rate.from.is_some());
    if arguments.steps.is_some() && !is_range {
        let message = say!("--steps requires a range of rates");
        let help = say!("write `--rate 100..5000 --steps 8 --for 10s`");
        errors.push(mistake("flag-without-effect", message, help));
    }
    let others = [
        ("--requests", arguments.requests.is_some()),
        ("--hold", arguments.hold.is_some()),
        ("--capacity", !arguments.capacity.is_empty()),
    ];
    for (flag, _) in others.iter().filter(|(_, given)| is_range && *given) {
        let message = say!("{flag} does not apply to a range of rates");
        errors.push(mistake("flag-without-effect", message, say!("give one rate, or omit {flag}")));
    }
}

/// The URL may stand alone, in `-u`, or in the cURL file.
fn address(
    arguments: &BenchArguments,
    url: Option<&str>,
    bench: &mut Bench,
    errors: &mut Vec<Diagnostic>,
) {
    let auth = arguments.request.auth.as_deref();
    let (url_of_u, auth) = match auth {
        Some(text) if text.contains("://") => (Some(text), None),
        other => (None, other),
    };
    let given: Vec<&str> = url.into_iter().chain(url_of_u).collect();
    match given.as_slice() {
        [] => {}
        [url] => bench.url = (*url).to_string(),
        _ => errors.push(mistake("two-urls", say!("two URLs are given"), say!("give only one"))),
    }
    if bench.url.is_empty() && given.is_empty() {
        let help = say!("write `throng bench http://127.0.0.1:8080/`, or --curl FILE");
        errors.push(mistake(
            "url-missing",
            say!("there is nothing to load: the URL is missing"),
            help,
        ));
    }
    if !bench.url.is_empty() && !bench.url.contains("://") {
        // As curl and ab do it.
        bench.url = format!("http://{}", bench.url);
    }
    if let Some(text) = auth {
        match text.split_once(':') {
            Some((user, password)) => bench.basic_auth = Some((user.into(), password.into())),
            None => {
                let message = say!("`{text}` is neither a URL nor `user:password`");
                errors.push(mistake("bad-auth", message, say!("write --auth user:password")));
            }
        }
    }
}

fn request(arguments: &BenchArguments, bench: &mut Bench, errors: &mut Vec<Diagnostic>) {
    let request = &arguments.request;
    if request.method.is_some() {
        bench.method.clone_from(&request.method);
    }
    headers(arguments, bench, errors);
    let bodies = [request.body.is_some(), request.body_file.is_some(), request.hex.is_some()];
    if bodies.iter().filter(|given| **given).count() > 1 {
        let help = say!("give only one of --body, --body-file and --hex");
        errors.push(mistake("two-bodies", say!("more than one body is given"), help));
    }
    if let Some(text) = &request.body {
        bench.body = match text.strip_prefix('@') {
            Some(path) => BenchBody::File(path.into()),
            None if bench.is_raw() => BenchBody::Bytes(unescape(text)),
            None => BenchBody::Text(text.clone()),
        };
    }
    if let Some(path) = &request.body_file {
        bench.body = BenchBody::File(path.clone());
    }
    if let Some(hex) = &request.hex {
        match parse_hex(hex) {
            Some(bytes) => bench.hex_message = Some(bytes),
            None => {
                let message = say!("`{hex}` is not hex");
                errors.push(mistake(
                    "bad-hex",
                    message,
                    say!("write pairs of 0-9a-f: `de ad be ef`"),
                ));
            }
        }
    }
    bench.follow_redirects |= request.follow;
    bench.digest |= request.digest;
    let has_user = bench.basic_auth.is_some() || bench.url.contains('@');
    if request.digest && !has_user {
        let help = say!("give the user with --auth user:password");
        errors.push(mistake("flag-without-effect", say!("--digest requires a user"), help));
    }
    bench.deflate = request.deflate;
    let version = request.http_version.or(request.http2.then_some(HttpVersion::Http2));
    bench.http_version = version.unwrap_or(bench.http_version);
    bench.streams = request.streams;
    bench.flags = arguments.of_scheme.given();
    if bench.calls() {
        errors.extend(bench.read_message());
    }
    bench.protocols.extend(request.subprotocols.iter().cloned());
}

/// What the command line says replaces what a cURL file says, whatever it is called by: a header by
/// its name, `-T`, `--cookie` or `--auth`. A header replaces `-T`.
fn headers(arguments: &BenchArguments, bench: &mut Bench, errors: &mut Vec<Diagnostic>) {
    let request = &arguments.request;
    let mut given = Vec::new();
    if let Some(kind) = &request.content_type {
        given.push(("Content-Type".to_string(), kind.clone()));
    }
    if !request.cookies.is_empty() {
        given.push(("Cookie".to_string(), request.cookies.join("; ")));
    }
    match metadata(&request.headers) {
        Ok(headers) => given.extend(headers),
        Err(error) => errors.push(*error),
    }
    errors.extend(bench.replace_headers(given, request.auth.as_deref(), request.curl.is_some()));
}

/// Headers, or metadata of calls, as the command line has them.
pub(crate) fn metadata(given: &[String]) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
    let pair = |header: &String| match header.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => {
            let message = say!("`{header}` is not a header");
            let error = Diagnostic::error("bad-header", message);
            Err(error.help(say!("write -H 'Name: value'")).into())
        }
    };
    given.iter().map(pair).collect()
}

fn expectations(arguments: &BenchArguments, bench: &mut Bench, errors: &mut Vec<Diagnostic>) {
    let wanted = &arguments.expectation;
    bench.expect_status.clone_from(&wanted.expect_status);
    bench.expect_text.clone_from(&wanted.expect_text);
    let mut fields: Vec<&str> = wanted.expect_json.iter().map(String::as_str).collect();
    match wanted.verify {
        Some(Verify::StatusCode) => {
            bench.expect_status.get_or_insert_with(|| "200".into());
        }
        Some(Verify::Json) => fields.push("code=200"),
        None => {}
    }
    for field in fields {
        match parse_json_expectation(field) {
            Ok(expectation) => bench.expect_json.push(expectation),
            Err(error) => {
                let message = say!("`{field}`: {error}");
                errors.push(mistake("bad-expectation", message, say!("write `data.code=200`")));
            }
        }
    }
    bench.until = match (&wanted.delimiter, wanted.length, &wanted.pattern) {
        (Some(text), _, _) => {
            BenchUntil::Delimiter(String::from_utf8_lossy(&unescape(text)).into_owned())
        }
        (_, Some(bytes), _) => BenchUntil::Length(bytes),
        (_, _, Some(pattern)) => BenchUntil::Pattern(pattern.clone()),
        _ => BenchUntil::Any,
    };
}

/// Flags that mean nothing for the scheme of the URL: better refused than silently without effect.
fn fitting(arguments: &BenchArguments, bench: &Bench, errors: &mut Vec<Diagnostic>) {
    // If throng does not know the scheme, the scenario has an error for it.
    let Some(scheme) = bench.scheme() else { return };
    let given = narrow(arguments).filter(|(_, given)| *given);
    errors.extend(given.filter_map(|(flag, _)| without_effect(flag, scheme)));
    together(arguments, bench, scheme, errors);
}

/// The flags that do not apply to all schemes, and whether they are given.
fn narrow(arguments: &BenchArguments) -> impl Iterator<Item = (&'static str, bool)> {
    let (request, wanted) = (&arguments.request, &arguments.expectation);
    let flags = [
        ("--delimiter", wanted.delimiter.is_some()),
        ("--length", wanted.length.is_some()),
        ("--pattern", wanted.pattern.is_some()),
        ("--hex", request.hex.is_some()),
        ("--subprotocol", !request.subprotocols.is_empty()),
        ("--deflate", request.deflate),
        ("--http2", request.http2),
        ("--http-version", request.http_version.is_some()),
        ("--streams", request.streams.is_some()),
        ("--heartbeat-body", arguments.heartbeat_body.is_some()),
        ("--expect-text", wanted.expect_text.is_some()),
        ("--expect-json", !wanted.expect_json.is_empty()),
        ("--follow", request.follow),
        ("--digest", request.digest),
        ("--method", request.method.is_some()),
        ("--content-type", request.content_type.is_some()),
        ("--expect-status", wanted.expect_status.is_some()),
        ("--heartbeat", arguments.heartbeat.is_some()),
        ("--header", !request.headers.is_empty()),
        ("--auth", request.auth.as_deref().is_some_and(|user| !user.contains("://"))),
    ];
    let own = arguments.of_scheme.given();
    flags.into_iter().chain(own.into_iter().map(|(flag, _)| (flag, true)))
}

/// Flags that need or exclude each other with this scheme.
fn together(
    arguments: &BenchArguments,
    bench: &Bench,
    scheme: Scheme,
    errors: &mut Vec<Diagnostic>,
) {
    let applies = |flag: &str| schemes_with(flag).contains(&scheme);
    if bench.is_raw() && arguments.heartbeat.is_some() && arguments.heartbeat_body.is_none() {
        let message = say!("--heartbeat sends a ping, which only WebSocket supports");
        let help = say!("set the heartbeat message with --heartbeat-body TEXT");
        errors.push(mistake("flag-without-effect", message, help));
    }
    errors.extend(bench.without_topic());
    errors.extend(bench.without_body());
    if applies("--streams") && arguments.request.streams.is_some() {
        streaming(arguments, bench, errors);
    }
    if applies("--heartbeat") && (arguments.heartbeat.is_some() || arguments.hold.is_some()) {
        staying(arguments, errors);
    }
}

/// Streams are those of a connection of HTTP/2 that is kept, and each goes on at once.
fn streaming(arguments: &BenchArguments, bench: &Bench, errors: &mut Vec<Diagnostic>) {
    if bench.http_version != HttpVersion::Http2 && !bench.calls() {
        let message = say!("--streams requires HTTP/2");
        errors.push(mistake("flag-without-effect", message, say!("add --http2")));
    }
    let flags = [
        ("--think", arguments.think.is_some()),
        ("--no-keepalive", arguments.connection.no_keepalive),
    ];
    for (flag, _) in flags.iter().filter(|(_, given)| *given) {
        let message = say!("{flag} does not apply to streams");
        errors.push(mistake(
            "flag-without-effect",
            message,
            say!("remove it, or remove --streams"),
        ));
    }
}

/// Users who stay do so until they are told to leave: what asks for iterations goes with none.
fn staying(arguments: &BenchArguments, errors: &mut Vec<Diagnostic>) {
    let flags = [
        ("--requests", arguments.requests.is_some()),
        ("--rate", arguments.rate.is_some() && arguments.hold.is_none()),
        ("--think", arguments.think.is_some()),
        ("--no-keepalive", arguments.connection.no_keepalive),
    ];
    for (flag, _) in flags.iter().filter(|(_, given)| *given) {
        let message = say!("{flag} does not apply to users that stay connected");
        errors.push(mistake("flag-without-effect", message, say!("omit it")));
    }
}

fn connection(arguments: &BenchArguments, bench: &mut Bench) {
    let given = &arguments.connection;
    if given.no_keepalive {
        bench.keep_alive = Some(false);
    }
    if given.no_resend {
        bench.resend = Some(false);
    }
    bench.timeout = given.timeout.or(bench.timeout);
    bench.connect_timeout = given.connect_timeout.or(bench.connect_timeout);
    if given.insecure {
        bench.verify_tls = Some(false);
    }
    bench.ca = given.cacert.clone().or(bench.ca.take());
    let certificate = given.cert.as_deref().map(curl::certificate_of_curl);
    bench.certificate = certificate.or(bench.certificate.take());
    bench.key = given.key.clone().or(bench.key.take());
    bench.server_name.clone_from(&given.server_name);
    bench.resumption = given.resume.then_some(true);
    bench.family = match (given.ipv4, given.ipv6) {
        (true, _) => Some(Family::V4),
        (_, true) => Some(Family::V6),
        _ => bench.family,
    };
    bench.sources.extend(given.sources.iter().cloned());
    if given.no_cookies {
        bench.cookies = Some(false);
    }
}

/// What the command line says goes before what a cURL file says.
fn route(arguments: &BenchArguments, bench: &mut Bench) {
    let mut route = BenchRoute::default();
    arguments.route.resolve.iter().cloned().for_each(|given| route.add_resolve(given));
    arguments.route.connect_to.iter().cloned().for_each(|given| route.add_connect_to(given));
    let of_path = arguments.route.unix_socket.as_deref().map(unix_socket_of_curl);
    let of_name = arguments.route.abstract_unix_socket.as_deref().map(abstract_socket_of_curl);
    route.unix_socket = of_path.or(of_name);
    route.proxy.clone_from(&arguments.route.proxy);
    route.extend(&bench.route);
    if let (Some(user), Some(proxy)) = (&arguments.route.proxy_user, &mut route.proxy) {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        proxy.user = Some((name.to_string(), password.to_string()));
    }
    bench.route = route;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};

    #[test]
    fn each_narrow_flag_applies_to_some_schemes() {
        let words = ["throng", "bench", "http://a"];
        let parsed = <Arguments as clap::Parser>::try_parse_from(words).expect("it is valid");
        let Command::Bench(arguments) = parsed.command else { panic!("it is `bench`") };
        for (flag, _) in narrow(&arguments) {
            assert!(!schemes_with(flag).is_empty(), "{flag}");
        }
    }
}

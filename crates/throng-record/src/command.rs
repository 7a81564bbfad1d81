//! `throng record`: records the traffic through the proxy, and converts it to a scenario like
//! `throng import har`. Everything that can fail is checked before the browser is started.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use throng_base::private::user_folder;
use throng_base::{Diagnostic, Exit, Said, system::EEXIST};
use throng_engine::{AllowList, certificate_words, tls_config};
use throng_import::file::{scenario_stem, unwritable, write, written};
use throng_import::{Format, Options};
use throng_program::Tls;
use throng_run::guard::{self, Guard};
use throng_run::live::link;
use throng_run::{Operator, StopRequests};
use throng_scenario::whole;

use crate::{Authority, BODY_BYTES_MAX, Event, Har, Setup, Verdict};

/// The options of a recording.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng record --out shop.yaml          shows how to start a browser; Ctrl-C ends it\n\
     \x20 throng record --out shop.yaml --host shop.test,*.shop.test\n\
     \x20 throng record --out shop.yaml --har shop.har --insecure")]
pub struct RecordOptions {
    /// Scenario file to write
    #[arg(long, short, value_name = "FILE", default_value = "recording.yaml")]
    pub out: PathBuf,
    /// Address that the proxy listens on; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888")]
    pub listen: String,
    /// Keep the recording as a HAR file, which contains passwords and cookies
    #[arg(long, value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// Record only this host: a name, an address or a network, as in docs/limits.md; traffic to
    /// other hosts is forwarded and not recorded; may be given more than once
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Let the browser reach only this host, written as for `--host`; may be given more than once
    #[arg(long, value_name = "HOST")]
    pub allow: Vec<String>,
    /// Keep images, scripts, styles and fonts, as `parallel` requests
    #[arg(long)]
    pub assets: bool,
    /// Accept any certificate of the service
    #[arg(long, short = 'k')]
    pub insecure: bool,
    /// Trust the certificates in this file (PEM) instead of the system certificates
    #[arg(long, visible_alias = "ca", value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Do not print a line for each request
    #[arg(long)]
    pub quiet: bool,
}

/// Prints lines about requests, from any thread.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Records until the operator stops it, then writes the scenario. `output` gets the list of written
/// files, `errors` everything else; `tell` prints a line next to `errors`.
///
/// # Errors The exit code; the operator was informed of the reason.
pub fn run(
    options: &RecordOptions,
    output: &dyn Operator,
    errors: &dyn Operator,
    tell: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(), Exit> {
    let guard = Guard::read(errors)?;
    let recorded = recorded(options, guard.lists, (output, errors), Box::new(tell));
    recorded.map_err(|told| {
        told.iter().for_each(|diagnostic| errors.diagnostic(diagnostic));
        Exit::Usage
    })
}

fn recorded(
    options: &RecordOptions,
    lists: Vec<AllowList>,
    (output, errors): (&dyn Operator, &dyn Operator),
    tell: Tell,
) -> Result<(), Vec<Diagnostic>> {
    let scenario = &options.out;
    let path = options.har.clone().unwrap_or_else(|| scenario.with_extension("har"));
    let (listener, har, setup, greeting) =
        prepared(options, &path, lists, tell).map_err(|error| vec![*error])?;
    // Listen first: the user may stop it as soon as the instructions are printed.
    let stop = async {
        let requests = errors.stop_requests();
        greeting.into_iter().for_each(|said| errors.say(said));
        requests.unwrap_or_else(|_| StopRequests::none()).next().await;
    };
    let recorded = crate::record(listener, Arc::clone(&har), setup, stop);
    recorded.map_err(|error| vec![not_started(&Said::of_error(&error))])?;
    errors.line("");
    let kept = || say!("the recording is in {}", path.display());
    let written = har.written();
    if let Some(error) = &written.failed {
        errors.diagnostic(&unwritable(&path, error));
    }
    if written.cut > 0 {
        let (count, limit) = (written.cut, BODY_BYTES_MAX >> 20);
        errors.say(say!("bodies truncated to {limit} MiB: {count}"));
    }
    if written.requests == 0 {
        let _ = std::fs::remove_file(&path);
        let help = say!("set the proxy in the browser, or start it as shown; see docs/record.md");
        let message = say!("nothing was recorded");
        return Err(vec![Diagnostic::error("recording-failed", message).help(help)]);
    }
    let saved = save(options, &path, output);
    match (&saved, &options.har) {
        (Ok(()), None) => drop(std::fs::remove_file(&path)),
        _ => errors.say(kept()),
    }
    saved
}

/// Writes the scenario, like `throng import har`.
fn save(given: &RecordOptions, har: &Path, output: &dyn Operator) -> Result<(), Vec<Diagnostic>> {
    let scenario = &given.out;
    let name = har.display().to_string();
    let file = File::open(har).map_err(|error| vec![*unwritable(har, &error)])?;
    // The user has named the hosts.
    let hosts = if given.host.is_empty() { Vec::new() } else { vec!["all".into()] };
    let beside = scenario.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let options = Options {
        stem: scenario_stem(scenario),
        assets: given.assets,
        hosts,
        takes_insecure: given.insecure,
        authorities: given.cacert.as_ref().map(|file| match beside {
            true => file.clone(),
            false => whole(file),
        }),
        is_recorded: true,
        ..Options::default()
    };
    let imported = throng_import::import(Format::Har, file, &name, &options)?;
    write(scenario, &imported, given.force).map_err(|error| vec![*error])?;
    written(scenario, &imported, &mut |said| output.say(said));
    Ok(())
}

/// The listener, the recording, the setup, and the initial messages.
type Prepared = (TcpListener, Arc<Har>, Setup, Vec<Said>);

fn prepared(
    options: &RecordOptions,
    har: &Path,
    mut lists: Vec<AllowList>,
    tell: Tell,
) -> Result<Prepared, Box<Diagnostic>> {
    let list = |flag: &'static str, words: &[String]| match words.is_empty() {
        true => Ok(None),
        false => guard::list(flag, &words.join(",")).map(Some),
    };
    lists.extend(list("--allow", &options.allow)?);
    let hosts = list("--host", &options.host)?;
    if !options.force && options.out.exists() {
        let exists = io::Error::from_raw_os_error(EEXIST);
        return Err(unwritable(&options.out, &exists));
    }
    let ca = options.cacert.clone();
    let tls = Tls { verify: !options.insecure, ca, ..Tls::default() };
    let tls = tls_config(&tls).map_err(|error| Box::new(not_started(&error)))?;
    let authority = user_folder("XDG_DATA_HOME", ".local/share")
        .ok_or_else(|| say!("neither XDG_DATA_HOME nor HOME is set"))
        .and_then(|folder| Authority::open(&folder.join("throng/record")));
    let authority = authority.map_err(|error| Box::new(not_started(&error)))?;
    let listener = listening(&options.listen)?;
    let har = Har::create(har, options.force).map_err(|error| unwritable(har, &error))?;
    let address =
        listener.local_addr().map_err(|error| Box::new(not_started(&Said::of_error(&error))))?;
    let greeting = greeting(&authority, address, options);
    let is_quiet = options.quiet;
    let setup = Setup {
        authority,
        tls,
        certificate_words,
        judge: Box::new(move |host, addresses| judged(&lists, hosts.as_ref(), host, addresses)),
        tell: Box::new(move |event| {
            if let Some(line) = line_of(event, is_quiet) {
                tell(&line);
            }
        }),
    };
    Ok((listener, Arc::new(har), setup, greeting))
}

fn not_started(cause: &Said) -> Diagnostic {
    let told = Diagnostic::error("recording-failed", say!("the recording cannot start"));
    told.note(say!("cause: {cause}")).help(say!("fix the cause, then start it again"))
}

fn listening(address: &str) -> Result<TcpListener, Box<Diagnostic>> {
    TcpListener::bind(link::whole(address)).map_err(|error| {
        let message = say!("the proxy cannot listen on `{address}`");
        let help =
            say!("set --listen to an address of this host and a free port; port 0 selects one");
        let told = Diagnostic::error("recording-failed", message);
        Box::new(told.note(say!("cause: {}", Said::of_error(&error))).help(help))
    })
}

/// Each list must allow a host; `hosts` are those to record, if not all are.
fn judged(
    lists: &[AllowList],
    hosts: Option<&AllowList>,
    host: &str,
    addresses: &[SocketAddr],
) -> Verdict {
    // A name without an address is checked by itself.
    let none = [SocketAddr::from(([0, 0, 0, 0], 0))];
    let addresses = if addresses.is_empty() { &none } else { addresses };
    let is_stranger = |list: &&AllowList| list.stranger(Some(host), addresses).is_some();
    match lists.iter().find(is_stranger) {
        Some(list) => Verdict::Refuse(list.origin.clone()),
        None if hosts.as_ref().is_some_and(is_stranger) => Verdict::Pass,
        None => Verdict::Record,
    }
}

/// Instructions for starting a browser for the recording.
fn greeting(authority: &Authority, address: SocketAddr, options: &RecordOptions) -> Vec<Said> {
    let (out, file) = (options.out.display(), authority.file().display().to_string());
    let mut lines = vec![say!("recording on http://{address} · Ctrl-C ends it and writes {out}")];
    if !address.ip().is_loopback() {
        lines.push(say!(
            "warning: {} is not a loopback address: anyone on the network can use this proxy",
            address.ip().to_string()
        ));
    }
    lines.push(say!("Chromium, in a profile that trusts this recording:"));
    let hash = authority.key_hash();
    lines.push(Said::of_others(format!(
        "  chromium --user-data-dir=\"$(mktemp -d)\" --no-first-run \\\n    \
         --disable-background-networking \\\n    \
         --proxy-server={address} --proxy-bypass-list='<-loopback>' \\\n    \
         --ignore-certificate-errors-spki-list={hash}"
    )));
    lines.push(say!("Firefox: set the proxy, and import {file} as an authority (docs/record.md)"));
    lines.push(say!("curl: curl --proxy http://{address} --cacert {file} URL"));
    if authority.is_new() {
        lines.push(say!("{file} is new: only clients that import it will trust it"));
    }
    lines
}

/// The line for an event.
fn line_of(event: &Event, is_quiet: bool) -> Option<String> {
    let said = match event {
        Event::Request(_) if is_quiet => return None,
        Event::Request(passed) => {
            let millis = passed.took.as_millis();
            let error = passed.error.as_ref().map(|error| format!(" · {error}"));
            let error = error.unwrap_or_default();
            let (method, status, url) = (&passed.method, passed.status, &passed.url);
            return Some(format!("{method:<6} {status} {millis:>6} ms  {url}{error}"));
        }
        Event::Refused { host, list } => say!("{host} is not allowed by {list}"),
        Event::Tunnelled(host) => say!("{host}: forwarded, not recorded"),
        Event::Untrusted(host) => say!(
            "{host}: the client does not trust the recording's certificate; import it, or leave \
             the host out with --host"
        ),
    };
    Some(said.spoken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_checked_against_all_lists() {
        let list = |text| AllowList::parse("--allow", text).unwrap();
        let (allow, hosts) = (list("*.shop.test, 10.0.0.0/8"), list("api.shop.test"));
        let at = |host, addresses: &[&str]| {
            let addresses: Vec<SocketAddr> =
                addresses.iter().map(|address| address.parse().unwrap()).collect();
            judged(std::slice::from_ref(&allow), Some(&hosts), host, &addresses)
        };
        assert_eq!(at("api.shop.test", &["192.0.2.1:443"]), Verdict::Record);
        assert_eq!(at("api.shop.test", &[]), Verdict::Record);
        assert_eq!(at("cdn.shop.test", &["192.0.2.1:443"]), Verdict::Pass);
        assert_eq!(at("x.test", &["10.1.1.1:443"]), Verdict::Pass);
        for addresses in [&["192.0.2.1:443"][..], &[]] {
            assert_eq!(at("x.test", addresses), Verdict::Refuse("--allow".into()));
        }
    }
}

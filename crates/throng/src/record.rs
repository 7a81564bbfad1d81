//! `throng record`: a browser goes through a proxy, and what it did becomes a scenario, as
//! `throng import har` makes it. All that can fail is tried before the browser is started.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng_base::{Diagnostic, Exit, Said, system::EEXIST};
use throng_engine::{AllowList, certificate_words, tls_config};
use throng_import::{Format, Options};
use throng_program::Tls;
use throng_record::{Authority, BODY_BYTES_MAX, Event, Har, Setup, Verdict};
use throng_run::guard::{self, Guard};
use throng_run::live::link;
use throng_scenario::whole;
use throng_terminal::Screen;
use throng_terminal::signals::Signals;

use crate::Ended;
use crate::arguments::RecordArguments;
use crate::import::{scenario_stem, tell, unwritable, write};

pub(crate) fn record(arguments: &RecordArguments) -> Ended {
    let errors = Screen::errors(false);
    let guard = Guard::read(&errors)?;
    run(arguments, guard.lists, errors).map_err(|told| {
        told.iter().for_each(|diagnostic| errors.diagnostic(diagnostic));
        Exit::Usage
    })?;
    Ok(Exit::Success)
}

fn run(
    arguments: &RecordArguments,
    lists: Vec<AllowList>,
    errors: Screen,
) -> Result<(), Vec<Diagnostic>> {
    let scenario = &arguments.out;
    let path = arguments.har.clone().unwrap_or_else(|| scenario.with_extension("har"));
    let (listener, har, setup, greeting) =
        prepared(arguments, &path, lists, errors).map_err(|error| vec![*error])?;
    // Who is told how it ends may end it at once.
    let stop = async {
        let signals = Signals::new();
        greeting.into_iter().for_each(|said| errors.say(said));
        match signals {
            Ok(mut signals) => signals.next().await,
            Err(_) => std::future::pending().await,
        }
    };
    let recorded = throng_record::record(listener, Arc::clone(&har), setup, stop);
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
    let saved = save(arguments, &path);
    match (&saved, &arguments.har) {
        (Ok(()), None) => drop(std::fs::remove_file(&path)),
        _ => errors.say(kept()),
    }
    saved
}

/// Makes the scenario, as `throng import har` does.
fn save(arguments: &RecordArguments, har: &Path) -> Result<(), Vec<Diagnostic>> {
    let scenario = &arguments.out;
    let name = har.display().to_string();
    let file = File::open(har).map_err(|error| vec![*unwritable(har, &error)])?;
    // The user has named the hosts.
    let hosts = if arguments.host.is_empty() { Vec::new() } else { vec!["all".into()] };
    let beside = scenario.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let options = Options {
        stem: scenario_stem(scenario),
        assets: arguments.assets,
        hosts,
        takes_insecure: arguments.insecure,
        authorities: arguments.cacert.as_ref().map(|file| match beside {
            true => file.clone(),
            false => whole(file),
        }),
        is_recorded: true,
        ..Options::default()
    };
    let imported = throng_import::import(Format::Har, file, &name, &options)?;
    write(scenario, &imported, arguments.force).map_err(|error| vec![*error])?;
    tell(scenario, &imported);
    Ok(())
}

/// Where the proxy listens, what it keeps, how it works, and what to tell when it begins.
type Prepared = (TcpListener, Arc<Har>, Setup, Vec<Said>);

fn prepared(
    arguments: &RecordArguments,
    har: &Path,
    mut lists: Vec<AllowList>,
    errors: Screen,
) -> Result<Prepared, Box<Diagnostic>> {
    let list = |flag: &'static str, words: &[String]| match words.is_empty() {
        true => Ok(None),
        false => guard::list(flag, &words.join(",")).map(Some),
    };
    lists.extend(list("--allow", &arguments.allow)?);
    let hosts = list("--host", &arguments.host)?;
    if !arguments.force && arguments.out.exists() {
        let exists = io::Error::from_raw_os_error(EEXIST);
        return Err(unwritable(&arguments.out, &exists));
    }
    let ca = arguments.cacert.clone();
    let tls = Tls { verify: !arguments.insecure, ca, ..Tls::default() };
    let tls = tls_config(&tls).map_err(|error| Box::new(not_started(&error)))?;
    let authority = data_folder().and_then(|folder| Authority::open(&folder));
    let authority = authority.map_err(|error| Box::new(not_started(&error)))?;
    let listener = listening(&arguments.listen)?;
    let har = Har::create(har, arguments.force).map_err(|error| unwritable(har, &error))?;
    let address =
        listener.local_addr().map_err(|error| Box::new(not_started(&Said::of_error(&error))))?;
    let greeting = greeting(&authority, address, arguments);
    let is_quiet = arguments.quiet;
    let setup = Setup {
        authority,
        tls,
        certificate_words,
        judge: Box::new(move |host, addresses| judged(&lists, hosts.as_ref(), host, addresses)),
        tell: Box::new(move |event| tell_event(event, is_quiet, errors)),
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

/// Of this user, as the XDG Base Directory Specification has it.
fn data_folder() -> Result<PathBuf, Said> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let given = folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = given.or_else(|| folder("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| say!("neither XDG_DATA_HOME nor HOME is set"))?;
    Ok(data.join("throng/record"))
}

/// Each list has to allow a host; `hosts` are those that are recorded, if not all are.
fn judged(
    lists: &[AllowList],
    hosts: Option<&AllowList>,
    host: &str,
    addresses: &[SocketAddr],
) -> Verdict {
    // A name that is not found is judged by itself.
    let none = [SocketAddr::from(([0, 0, 0, 0], 0))];
    let addresses = if addresses.is_empty() { &none } else { addresses };
    let is_stranger = |list: &&AllowList| list.stranger(Some(host), addresses).is_some();
    match lists.iter().find(is_stranger) {
        Some(list) => Verdict::Refuse(list.origin.clone()),
        None if hosts.as_ref().is_some_and(is_stranger) => Verdict::Pass,
        None => Verdict::Record,
    }
}

/// How to start a browser that can be recorded.
fn greeting(authority: &Authority, address: SocketAddr, arguments: &RecordArguments) -> Vec<Said> {
    let (out, file) = (arguments.out.display(), authority.file().display().to_string());
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

fn tell_event(event: &Event, is_quiet: bool, errors: Screen) {
    match event {
        Event::Request(_) if is_quiet => {}
        Event::Request(passed) => {
            let millis = passed.took.as_millis();
            let error = passed.error.as_ref().map(|error| format!(" · {error}"));
            let error = error.unwrap_or_default();
            let (method, status, url) = (&passed.method, passed.status, &passed.url);
            errors.line(&format!("{method:<6} {status} {millis:>6} ms  {url}{error}"));
        }
        Event::Refused { host, list } => errors.say(say!("{host} is not allowed by {list}")),
        Event::Tunnelled(host) => errors.say(say!("{host}: forwarded, not recorded")),
        Event::Untrusted(host) => errors.say(say!(
            "{host}: the client does not trust the recording's certificate; import it, or leave \
             the host out with --host"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_judged_by_all_lists() {
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

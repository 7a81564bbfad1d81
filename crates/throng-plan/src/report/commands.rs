//! The next commands: to prepare each machine, to run the load, and to measure the cost of a user
//! if no run has.

use std::path::Path;

use crate::USERS_MIN;
use crate::needs::needs;
use throng_base::units::format_count;
use throng_base::{Said, Source, plain};
use throng_program::Scheme;
use throng_results::terminal::Style;
use throng_scenario::{CompileOptions, SOURCE_BYTES_MAX, compile};

use super::Planned;
use super::page::{head, sentence};

/// The number of users of a run that measures the cost of one.
const MEASURED_USERS: u64 = 10_000;
/// Up to this many addresses are added one by one; more are routed as a block.
const ADDED_MAX: u64 = 200;
/// The largest suggested block of the benchmark range (RFC 2544).
const BLOCK_BITS_MIN: u32 = 15;

pub(super) fn commands(planned: &Planned, style: &Style) -> String {
    let text = match planned.plan.reckoned.machines_with_addresses {
        u64::MAX => return String::new(),
        1 => say!("what to do"),
        _ => say!("what to do on each machine"),
    };
    let mut out = head(text, style);
    out += &measuring(planned, style);
    out += &ready(planned, style);
    out += &addresses(planned, style);
    out += &running(planned, style);
    out
}

/// A command and its purpose.
pub(super) fn command(text: Said, command: &str, style: &Style) -> String {
    format!("{}    {command}\n", sentence(text, style))
}

/// A run that is small enough for any host, to measure the cost of a user.
fn measuring(planned: &Planned, style: &Style) -> String {
    let is_known = planned.plan.measured.as_ref().is_some_and(|it| it.user_bytes.is_some());
    let Some(file) = planned.file.as_deref().filter(|_| !is_known) else { return String::new() };
    if planned.plan.wish.users < USERS_MIN {
        return String::new();
    }
    let users = MEASURED_USERS.min(planned.plan.wish.users);
    if let Some(set) = with_users(planned, file, users) {
        let text = say!("measure the cost per user, then plan again:");
        return command(text, &run(file, &set), style);
    }
    let users = format_count(users);
    let text = say!(
        "set the load to {users} users, measure the cost per user, then plan again (`users: \
         ${{vars.users}}` allows `--set users=N`):"
    );
    command(text, &run(file, ""), style)
}

fn ready(planned: &Planned, style: &Style) -> String {
    let each = &planned.plan.reckoned.each;
    let name = planned.file.as_deref().map(|file| format!(" {}", quoted(file)));
    let (name, users) = (name.unwrap_or_default(), each.users);
    let text = say!("check what is missing and how to fix it:");
    let mut out = command(text, &format!("throng doctor{name} --users {users}"), style);
    if each.tables > 1 && planned.plan.machine.is_this_host {
        let text =
            say!("only if you want a single descriptor table (throng creates more automatically):");
        let descriptors = users + throng_host::costs::DESCRIPTORS_RESERVED;
        out += &command(text, &format!("ulimit -n {descriptors}"), style);
    }
    out
}

/// Suggestions for missing addresses, from the benchmark range.
fn addresses(planned: &Planned, style: &Style) -> String {
    let wanted = planned.plan.reckoned.each.addresses;
    let missing = wanted.saturating_sub(planned.plan.machine.addresses);
    if missing == 0 {
        return String::new();
    }
    let text = say!(
        "add source addresses (replace these with free ones from your network), and list them in \
         the scenario:"
    );
    let (add, named) = if missing <= ADDED_MAX {
        let last = missing + 9;
        let add =
            format!("for i in $(seq 10 {last}); do ip addr add 198.18.0.$i/24 dev eth0; done");
        (add, format!("198.18.0.10..198.18.0.{last}"))
    } else {
        let bits = (32 - (missing + 2).next_power_of_two().ilog2()).max(BLOCK_BITS_MIN);
        let block = format!("198.18.0.0/{bits}");
        (format!("ip route add local {block} dev lo"), block)
    };
    command(text, &add, style) + &format!("    source: {{addresses: {named}}}\n")
}

fn running(planned: &Planned, style: &Style) -> String {
    let (each, wish) = (&planned.plan.reckoned.each, &planned.plan.wish);
    let text = say!("run it:");
    let Some(file) = planned.file.as_deref() else {
        return command(text, &bench(planned), style);
    };
    let is_whole = planned.plan.reckoned.machines_with_addresses == 1
        && wish.users == needs(&planned.plan.program).users;
    let set = match is_whole {
        true => Some(planned.set.iter().map(|set| format!(" --set {set}")).collect()),
        false => with_users(planned, file, each.users),
    };
    if let Some(set) = set {
        return command(text, &run(file, &set), style);
    }
    let users = format_count(each.users);
    let text = say!(
        "set the load to {users} users, then run it (`users: ${{vars.users}}` allows `--set \
         users=N`):"
    );
    command(text, &run(file, ""), style)
}

fn run(file: &Path, set: &str) -> String {
    format!("throng run {}{set}", quoted(file))
}

/// The load without a scenario.
fn bench(planned: &Planned) -> String {
    let each = &planned.plan.reckoned.each;
    let users = each.users;
    match planned.plan.program.targets.iter().any(|it| it.scheme == Scheme::Http) {
        true => {
            let rate = each.requests_per_s.ceil();
            format!("throng bench http://HOST/ -c {users} --rate {rate}/s -d 10m")
        }
        false => format!("throng bench ws://HOST/ -c {users} --hold 10m"),
    }
}

/// The option that sets the users of this scenario, if it has a variable for them.
fn with_users(planned: &Planned, file: &Path, users: u64) -> Option<String> {
    let text = plain::read_text(file, SOURCE_BYTES_MAX).ok()?;
    let source = Source::new(file.display().to_string(), text);
    let mut set: Vec<String> = planned.set.clone();
    set.retain(|it| !it.starts_with("users="));
    set.push(format!("users={users}"));
    let pairs = set.iter().filter_map(|it| it.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let base = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let (program, _) = compile(&source, &CompileOptions::of_process(pairs, base)).ok()?;
    let fits = program.staying_max() == users;
    fits.then(|| set.iter().map(|it| format!(" --set {it}")).collect())
}

/// A path, quoted for the shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

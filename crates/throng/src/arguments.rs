//! The command line. Only this module and its submodules define flags, and the help is generated
//! from them. Each file has related commands; `values` parses values.

mod bench;
mod capacity;
mod choice;
mod control;
mod duel;
mod files;
mod fleet;
mod host;
mod import;
mod mcp;
mod pages;
mod records;
mod route;
mod run;
mod scheme;
mod target;
mod values;

use clap::{Parser, Subcommand};
use throng_base::Language;
use throng_packets::command::ProtocolOptions;
use throng_record::command::RecordOptions;
use throng_run::agent::work::AgentOptions;
use throng_run::monitor::MonitorOptions;

use crate::version;
pub(crate) use bench::{BenchArguments, Verify};
pub(crate) use capacity::CapacityArguments;
pub(crate) use control::{ControlArguments, What};
pub(crate) use duel::DuelArguments;
pub(crate) use files::{ExplainArguments, InitArguments, InitKind, SchemaArguments, SchemaKind};
pub(crate) use fleet::{CollectArguments, FleetArguments, FleetWhat, ResumeArguments};
pub(crate) use host::{DoctorArguments, PlanArguments};
pub(crate) use import::ImportArguments;
pub(crate) use mcp::McpArguments;
pub(crate) use pages::{CompletionsArguments, ManArguments, ShellKind};
pub(crate) use records::{
    CompareArguments, HistoryArguments, MergeArguments, ReportArguments, ServeArguments,
    WhyArguments,
};
pub(crate) use run::{
    CheckArguments, DemoArguments, OutputArguments, RerunArguments, RunArguments,
    ScenarioArguments, TryArguments,
};
pub(crate) use target::TargetArguments;
use throng_base::flags::language;

#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version = version::short(),
    long_version = version::long(),
    about = "Simulates a million concurrent users from one small machine, and shows what happened \
         and why.",
    after_help = "Exit codes: 0 thresholds met, 1 thresholds not met, 2 usage or scenario error (nothing \
         was sent), 3 host does not meet the requirements, 4 target unreachable, 5 result \
         invalid, 70 bug in throng, 130 interrupted.\n\
         \n\
         Load only services you own."
)]
pub(crate) struct Arguments {
    /// Output language, `en` or `zh`; by default from the locale
    #[arg(long, global = true, value_name = "LANGUAGE", value_parser = language)]
    pub(crate) lang: Option<Language>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Loads one URL: http, https, ws, wss, tcp, tls or udp
    Bench(Box<BenchArguments>),
    /// Writes a commented scenario as a starting point
    Init(InitArguments),
    /// Converts a recording, an API description or another tool's test to a scenario
    Import(ImportArguments),
    /// Records what a browser does and writes a scenario: a proxy for HTTP and HTTPS
    Record(RecordOptions),
    /// Shows what a scenario will do, without sending anything
    Check(CheckArguments),
    /// Runs a scenario with one user, step by step, and shows what is sent and received
    Try(TryArguments),
    /// Calculates how many machines a load needs, and shows how to set up each one
    Plan(PlanArguments),
    /// Runs a scenario file
    Run(RunArguments),
    /// Finds the highest load at which a service meets the thresholds of a scenario
    Capacity(Box<CapacityArguments>),
    /// Compares two targets: loads them alternately and shows which one is faster, and by how much
    Duel(Box<DuelArguments>),
    /// Runs one process of a run; `throng run --processes` starts it
    #[command(hide = true)]
    Post,
    /// Manages a fleet of machines: its keys, its bus and its agents
    Fleet(FleetArguments),
    /// Takes part in a fleet's runs: waits for a run, then generates its share of the load
    Agent(AgentOptions),
    /// Takes over a fleet run whose controller is gone
    Resume(ResumeArguments),
    /// Rebuilds a run from the files of its agents, if the bus has lost it
    Collect(CollectArguments),
    /// Reruns a recorded run, using only its run directory
    Rerun(RerunArguments),
    /// Checks whether this host can run a load, and shows how to fix each problem
    Doctor(DoctorArguments),
    /// Measures this host while a service on it is tested: CPU, memory, network, listening sockets
    Monitor(MonitorOptions),
    /// Shows the packet layouts of a declared protocol, decodes bytes and captures, and encodes
    /// messages
    Protocol(ProtocolOptions),
    /// Explains the code of a message, such as `unknown-key`
    Explain(ExplainArguments),
    /// Prints the JSON Schema of scenarios or of protocol files, for editors
    Schema(SchemaArguments),
    /// Changes the load of a running test: more, less, pause, mark, stop
    Control(ControlArguments),
    /// Prints the summary of a recorded run
    Report(ReportArguments),
    /// Shows what went wrong in a recorded run and why: findings with evidence
    Why(WhyArguments),
    /// Merges the runs of several machines that shared one load
    Merge(MergeArguments),
    /// Compares runs with a baseline run and reports changes beyond noise
    Compare(CompareArguments),
    /// Lists the runs in a folder with their trend and reports lasting changes
    History(HistoryArguments),
    /// Serves the runs in a folder as a web page with a list, trends, comparisons and reports; can
    /// also start runs if allowed
    Serve(ServeArguments),
    /// Lets an AI assistant check, try, run and explain scenarios: a server of the Model Context
    /// Protocol on standard input and output
    Mcp(McpArguments),
    /// Demonstrates throng: starts a reference target and loads it for a few seconds
    Demo(DemoArguments),
    /// Starts a reference server with known behavior, to test against
    Target(Box<TargetArguments>),
    /// Prints the completion script for a shell: bash, fish or zsh
    Completions(CompletionsArguments),
    /// Prints the manual page, or writes the pages of all commands to a directory
    Man(ManArguments),
}

impl Command {
    /// True if it generates load or measures this host.
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    pub(crate) fn needs_linux(&self) -> bool {
        let own = matches!(
            self,
            Command::Fleet(_)
                | Command::Agent(_)
                | Command::Resume(_)
                | Command::Doctor(_)
                | Command::Monitor(_)
        );
        own || self.has_users()
    }

    /// True if it runs or serves users, possibly a million.
    pub(crate) fn has_users(&self) -> bool {
        matches!(
            self,
            Command::Bench(_)
                | Command::Try(_)
                | Command::Run(_)
                | Command::Capacity(_)
                | Command::Duel(_)
                | Command::Post
                | Command::Rerun(_)
                | Command::Demo(_)
                | Command::Target(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::values::Rates;
    use super::*;

    #[test]
    fn definitions_are_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn commands_that_only_read_do_not_need_linux() {
        let needs = |line: &str| {
            let arguments = Arguments::try_parse_from(line.split(' ')).expect(line);
            arguments.command.needs_linux()
        };
        for line in ["check a", "import har a", "report", "compare a b", "why", "serve a", "mcp"] {
            assert!(!needs(&format!("throng {line}")), "{line}");
        }
        for line in ["run a", "bench http://a", "try a", "doctor", "demo", "capacity a"] {
            assert!(needs(&format!("throng {line}")), "{line}");
        }
    }

    #[test]
    fn habits_from_other_tools_are_understood() {
        let parse = |line: &str| {
            let words = line.split(' ').map(Into::into).collect();
            let words = crate::speech::fingers::understood(words).expect("understood");
            match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
                Ok(Command::Bench(bench)) => bench,
                other => panic!("{line}: {other:?}"),
            }
        };
        let wrk = parse("throng bench -c64 -d30s http://127.0.0.1/");
        assert_eq!((wrk.concurrency, wrk.duration), (64, Some(Duration::from_secs(30))));
        let ab = parse("throng bench -k -c 10 -n 1000 http://127.0.0.1/");
        assert_eq!((ab.requests, ab.connection.keepalive), (Some(1000), true));
        let hey = parse("throng bench -z 5s -q 100 -disable-keepalive -m POST -T a/b u");
        let constant = |to: f64| Some(Rates { from: None, to });
        assert_eq!((hey.rate, hey.connection.no_keepalive), (constant(100.0), true));
        let vegeta = parse("throng bench -rate=900/s -duration=10s u");
        assert_eq!(
            (vegeta.rate, vegeta.duration),
            (constant(900.0), Some(Duration::from_secs(10)))
        );
        let go = parse("throng bench -c 1 -n 100 -u http://127.0.0.1/ -v json -data {}");
        assert_eq!(go.request.auth.as_deref(), Some("http://127.0.0.1/"));
        assert_eq!(go.expectation.verify, Some(Verify::Json));
        assert_eq!(go.request.body.as_deref(), Some("{}"));
    }

    #[test]
    fn impossible_values_are_refused() {
        for line in [
            "-c 0",
            "-c x",
            "-d 0s",
            "-d soon",
            "-q 0",
            "-q -1",
            "--shards 0",
            "-n 1.5",
            "--source 1.2.3.4/8",
        ] {
            let words = ["throng", "bench", "u"].into_iter().chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{line}");
        }
    }
}

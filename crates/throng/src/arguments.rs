//! The command line. Every flag is defined here and below, and nowhere else; the help is made of
//! this. A file for the commands that belong together; `values` reads what a person writes.

mod bench;
mod control;
mod files;
mod fleet;
mod host;
mod pages;
mod protocol;
mod records;
mod route;
mod run;
mod target;
mod values;

use clap::{Parser, Subcommand};
use throng_base::Language;

use crate::version;
pub(crate) use bench::{BenchArguments, Verify};
pub(crate) use control::{ControlArguments, What};
pub(crate) use files::{ExplainArguments, InitArguments, InitKind, SchemaArguments, SchemaKind};
pub(crate) use fleet::{
    AgentArguments, CollectArguments, FleetArguments, FleetWhat, ResumeArguments,
};
pub(crate) use host::{DoctorArguments, PlanArguments};
pub(crate) use pages::{CompletionsArguments, ManArguments, ShellKind};
pub(crate) use protocol::{ProtocolArguments, ReflectionArguments, metadata};
pub(crate) use records::{
    CompareArguments, HistoryArguments, MergeArguments, ReportArguments, ServeArguments,
};
pub(crate) use run::{
    CheckArguments, DemoArguments, LimitArguments, OutputArguments, RerunArguments, RunArguments,
    ScenarioArguments, TryArguments,
};
pub(crate) use target::{DeliveryArguments, PushArguments, TargetArguments, TargetKind};
use values::language;
pub(crate) use values::{FLEET, LoadPart};

#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version = version::short(),
    long_version = version::long(),
    about = "Puts a million live users on a service from one small machine, tells the truth about \
             what happened, and says why.",
    after_help = "Exit codes: 0 thresholds met, 1 thresholds not met, 2 usage or scenario wrong (nothing \
                  was sent), 3 host not fit, 4 target unreachable, 5 result invalid, 70 a bug, \
                  130 interrupted.\n\nLoad only services that are your own."
)]
pub(crate) struct Arguments {
    /// The language of the output, `en` or `zh`; by default that of the locale
    #[arg(long, global = true, value_name = "LANGUAGE", value_parser = language)]
    pub(crate) lang: Option<Language>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Loads one URL: http, https, ws, wss, tcp, tls or udp
    Bench(Box<BenchArguments>),
    /// Writes a commented scenario to begin with
    Init(InitArguments),
    /// Says what a scenario will do, without sending anything
    Check(CheckArguments),
    /// Runs a scenario with one user, step by step, and shows what is sent and received
    Try(TryArguments),
    /// Says how many machines a load needs, and what to set on each of them
    Plan(PlanArguments),
    /// Runs a scenario file
    Run(RunArguments),
    /// One of the processes of a run: `throng run --processes` starts it
    #[command(hide = true)]
    Post,
    /// The keys of a fleet of machines, its bus, and who is there
    Fleet(FleetArguments),
    /// Takes part in the runs of a fleet: waits for one, and makes its part of the load
    Agent(AgentArguments),
    /// Takes over a run of a fleet whose controller is gone
    Resume(ResumeArguments),
    /// Makes a run of what its agents have kept on their disks, when the bus has lost it
    Collect(CollectArguments),
    /// Repeats a recorded run, from its directory alone
    Rerun(RerunArguments),
    /// Checks whether this host can carry a load, and says how to fix what it lacks
    Doctor(DoctorArguments),
    /// Draws the packets of a private protocol, decodes bytes and captures, encodes messages
    Protocol(ProtocolArguments),
    /// Explains the code of a message, such as `unknown-key`
    Explain(ExplainArguments),
    /// Prints the JSON Schema of scenarios or of protocol files, for editors
    Schema(SchemaArguments),
    /// Changes the load of a running test: more, less, pause, mark, stop
    Control(ControlArguments),
    /// Prints the summary of a recorded run again
    Report(ReportArguments),
    /// Merges the records of one load that several machines have made
    Merge(MergeArguments),
    /// Compares recorded runs with the first of them, and names changes beyond noise
    Compare(CompareArguments),
    /// Lists the runs of a folder with their trend, and names lasting changes
    History(HistoryArguments),
    /// Shows the runs of a folder as a page: list, trends, comparisons, reports; and starts runs
    /// where that is allowed
    Serve(ServeArguments),
    /// Shows what throng does: starts its own reference target and loads it for a few seconds
    Demo(DemoArguments),
    /// A reference server with known behaviour, to test against
    Target(Box<TargetArguments>),
    /// Prints the completion script of a shell: bash, fish or zsh
    Completions(CompletionsArguments),
    /// Prints the manual page, or writes those of all commands into a directory
    Man(ManArguments),
}

impl Command {
    /// Whether it has users or serves them, perhaps a million.
    pub(crate) fn has_users(&self) -> bool {
        matches!(
            self,
            Command::Bench(_)
                | Command::Try(_)
                | Command::Run(_)
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

    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn fingers_of_other_tools_are_understood() {
        let parse = |line: &str| {
            let words = line.split(' ').map(Into::into).collect();
            let words = crate::fingers::understood(words).expect("understood");
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
        assert_eq!((hey.rate, hey.connection.no_keepalive), (Some(100.0), true));
        let vegeta = parse("throng bench -rate=900/s -duration=10s u");
        assert_eq!((vegeta.rate, vegeta.duration), (Some(900.0), Some(Duration::from_secs(10))));
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

//! The arguments of commands on one or several recorded runs.

use std::path::PathBuf;

use clap::Args;
use throng_base::flags::{count, label};

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// The run directory; by default the latest in ./throng-runs
    pub(crate) run: Option<PathBuf>,
    /// Print the summary as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all metrics instead of the short summary, and the data sent and received in the first
    /// failures of each kind
    #[arg(long)]
    pub(crate) details: bool,
    /// Label for the run, shown in reports; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Write the verdict as JUnit XML to this file, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the run's report as one self-contained HTML file; by default `report.html` in the
    /// run directory
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) html: Option<Option<PathBuf>>,
    /// Write the summary as Markdown to this file, for pull requests
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a row for each second and step to this CSV file or, without a file, to standard output
    /// instead of the summary; see docs/ci.md
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng why                      the latest run in ./throng-runs\n  \
                        throng why throng-runs/A --json\n  throng why --slowest\n  \
                        throng explain plateau-residence"
)]
pub(crate) struct WhyArguments {
    /// The run directory; by default the latest in ./throng-runs
    pub(crate) run: Option<PathBuf>,
    /// Show where the time of the slowest attempts went, stage by stage
    #[arg(long)]
    pub(crate) slowest: bool,
    /// Print the result as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArguments {
    /// The run directories
    #[arg(num_args = 2.., required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Record the merged run in this new directory
    #[arg(short = 'o', long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print the summary as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all metrics instead of the short summary, and the data sent and received in the first
    /// failures of each kind
    #[arg(long)]
    pub(crate) details: bool,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng compare throng-runs/A throng-runs/B\n  throng compare A B \
                        --fail-if 'http p99 > +10%' --fail-if 'rate < -5%'\n  throng compare A B \
                        --markdown >> \"$GITHUB_STEP_SUMMARY\""
)]
pub(crate) struct CompareArguments {
    /// Run directory of the baseline
    pub(crate) baseline: PathBuf,
    /// Run directories to compare with the baseline
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Exit with code 1 if a metric changes by more than this limit and the change is beyond noise.
    /// Examples: `http p99 > +10%`, `rate < -5%`, `failed > +0.5%`. May be given more than once
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// Print the comparison as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the comparison as Markdown, for pull requests
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Write the runs side by side as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
         \x20 throng history                      list the runs in ./throng-runs\n\
         \x20 throng history ci/runs --label branch=main --last 20\n\
         \x20 throng history --step 'GET /cart' --baseline 20261121-120301-shop\n\
         \x20 throng history --last 2 --fail-if 'http p99 > +10%' --markdown")]
pub(crate) struct HistoryArguments {
    /// Folder that contains the run directories; ./throng-runs by default
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Compare every run of the scenario with this run, instead of with the previous run
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<PathBuf>,
    /// Show the metrics of a step, a step kind such as `http`, or `connect`; by default, of all
    /// attempts
    #[arg(long, value_name = "NAME")]
    pub(crate) step: Option<String>,
    /// Include only runs with this label; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// List at most this many of the newest runs of each scenario
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) last: Option<u64>,
    /// Exit with code 1 if the newest run changes by more than this limit and the change is beyond
    /// noise. Examples: `http p99 > +10%`, `rate < -5%`, `failed > +0.5%`. May be given more than
    /// once
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// Print the history as JSON; see docs/compare.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the history as Markdown, for pull requests
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng serve throng-runs\n  throng serve throng-runs --listen 8080 \
                        --allow-run scenarios"
)]
pub(crate) struct ServeArguments {
    /// Folder that contains the run directories, such as ./throng-runs
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Serve the page on this address, to anyone with the printed link; by default on a free port
    /// of this host
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", hide_default_value = true)]
    pub(crate) listen: String,
    /// Let anyone with the link run the scenarios in this folder (*.yaml) and set their variables
    /// and their load
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_run: Option<PathBuf>,
    /// Maximum number of concurrent runs started from the page
    #[arg(long, value_name = "N", value_parser = count, default_value = "1", requires = "allow_run")]
    pub(crate) runs_max: u64,
    /// Do not use colors
    #[arg(long)]
    pub(crate) no_color: bool,
}

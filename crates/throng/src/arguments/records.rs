//! The commands that look at several records.

use std::path::PathBuf;

use clap::Args;

use super::{count, label};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng compare throng-runs/A throng-runs/B\n  throng compare A B \
                        --fail-if 'http p99 > +10%' --fail-if 'rate < -5%'\n  throng compare A B \
                        --markdown >> \"$GITHUB_STEP_SUMMARY\""
)]
pub(crate) struct CompareArguments {
    /// The directory of the run that the others are held against
    pub(crate) baseline: PathBuf,
    /// The directories of the other runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Exit with 1 where a figure has changed so and it is beyond noise, such as
    /// `http p99 > +10%`, `rate < -5%` or `failed > +0.5%`; may be given more than once
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// The comparison as JSON; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// The comparison as Markdown, for pull requests
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// No colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng history                      the runs below ./throng-runs\n  \
                  throng history ci/runs --label branch=main --last 20\n  throng history --step \
                  'GET /cart' --baseline 20261121-120301-shop\n  throng history --last 2 \
                  --fail-if 'http p99 > +10%' --markdown"
)]
pub(crate) struct HistoryArguments {
    /// The folder that holds the directories of the runs; ./throng-runs if left out
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Hold all runs of its scenario against this one, instead of each against the run before
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<PathBuf>,
    /// The figures of a step, of a kind of steps such as `http`, or of `connect`; those of all
    /// attempts if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) step: Option<String>,
    /// Only runs with this label; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only so many of the newest runs of each scenario
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) last: Option<u64>,
    /// Exit with 1 where the newest run has changed so and it is beyond noise, such as
    /// `http p99 > +10%`, `rate < -5%` or `failed > +0.5%`; may be given more than once
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub(crate) conditions: Vec<String>,
    /// The history as JSON; see docs/compare.md
    #[arg(long)]
    pub(crate) json: bool,
    /// The history as Markdown, for pull requests
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// No colours
    #[arg(long)]
    pub(crate) no_color: bool,
}

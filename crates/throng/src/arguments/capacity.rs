//! The flags of a search for the capacity of a service.

use clap::Args;
use throng_run::SearchOptions;

use super::run::RunArguments;

#[derive(Args, Debug)]
pub(crate) struct CapacityArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) search: SearchOptions,
}

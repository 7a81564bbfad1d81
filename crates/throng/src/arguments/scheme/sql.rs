//! Flags of `throng bench` for SQL.

use clap::Args;
use throng_scenario::bench::Bench;

use super::OfScheme;

#[derive(Args, Debug)]
#[command(next_help_heading = "SQL")]
pub(super) struct SqlArguments {
    /// The statement to execute; several statements are separated by `;` [default: select 1]
    #[arg(long, value_name = "TEXT")]
    sql: Option<String>,
}

impl OfScheme for SqlArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.sql.clone_from(&self.sql);
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("--sql", self.sql.is_some())].into_iter()
    }
}

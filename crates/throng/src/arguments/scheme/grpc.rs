//! Flags of `throng bench` for gRPC calls.

use std::path::PathBuf;

use clap::Args;
use throng_scenario::bench::Bench;

use super::OfScheme;

#[derive(Args, Debug)]
#[command(next_help_heading = "gRPC")]
pub(super) struct CallArguments {
    /// A `.proto` file or descriptor set of the service; without one, throng uses the target's
    /// server reflection; may be given more than once
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Directory to search for imported `.proto` files; may be given more than once
    #[arg(long, value_name = "DIR", requires = "proto")]
    proto_path: Vec<PathBuf>,
}

impl OfScheme for CallArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.proto.clone_from(&self.proto);
        bench.proto_path.clone_from(&self.proto_path);
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("--proto", !self.proto.is_empty())].into_iter()
    }
}

//! The flags of `throng bench` that only one protocol has.

use clap::Args;
use throng_scenario::bench::Bench;

mod grpc;
mod mqtt;
mod redis;
mod sql;

/// The flags of one protocol.
trait OfScheme {
    fn apply(&self, bench: &mut Bench);

    /// Which of them are given.
    fn given(&self) -> impl Iterator<Item = (&'static str, bool)>;
}

macro_rules! protocols {
    ($($module:ident $arguments:ident,)*) => {
        #[derive(Args, Debug)]
        pub(crate) struct SchemeArguments {
            $(#[command(flatten)]
            $module: $module::$arguments,)*
        }

        impl SchemeArguments {
            pub(crate) fn apply(&self, bench: &mut Bench) {
                $(self.$module.apply(bench);)*
            }

            /// Which of them are given.
            pub(crate) fn given(&self) -> Vec<(&'static str, bool)> {
                let mut given = Vec::new();
                $(given.extend(self.$module.given());)*
                given
            }
        }
    };
}

// In the order of the help.
protocols! {
    grpc CallArguments,
    mqtt MqttArguments,
    redis RedisArguments,
    sql SqlArguments,
}

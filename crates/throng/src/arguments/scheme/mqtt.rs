//! Flags of `throng bench` for MQTT.

use clap::Args;
use throng_scenario::bench::{Bench, BenchMqtt};

use super::OfScheme;

#[derive(Args, Debug)]
#[command(next_help_heading = "MQTT")]
pub(super) struct MqttArguments {
    /// Quality of service for the published messages or the subscription: 0, 1 or 2
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=2))]
    qos: Option<u8>,
    /// Ask the broker to retain the published message for later subscribers
    #[arg(long)]
    retain: bool,
    /// Prefix of the client IDs: `dev` gives dev-1, dev-2, ...; by default, the broker assigns them
    #[arg(long, value_name = "PREFIX")]
    client_id: Option<String>,
    /// Use MQTT 3.1.1 instead of 5
    #[arg(long = "mqtt-3")]
    old: bool,
}

impl OfScheme for MqttArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.mqtt = BenchMqtt {
            qos: self.qos,
            retain: self.retain,
            client_id: self.client_id.clone(),
            is_old: self.old,
        };
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [
            ("--qos", self.qos.is_some()),
            ("--retain", self.retain),
            ("--client-id", self.client_id.is_some()),
            ("--mqtt-3", self.old),
        ]
        .into_iter()
    }
}

//! Opens MQTT connections: from CONNECT to CONNACK, and before it the upgrade to WebSocket if MQTT
//! runs over it (MQTT 5, 6.0).

use std::cell::Cell;

use throng_metrics::Cause;
use throng_protocol::machine::{Answered, Event, Machine};
use throng_protocol::mqtt::{MqttAnswer, PacketType};

use throng_base::Said;

use super::{FirstBytes, Missing, Opens, Upgrade};
use crate::connector::{Ask, Opened, Order, Progress, Pulled, pull};
use crate::failure::{Failure, Finding, shown};
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::transport::Transport;

/// The first packet of a client.
pub(crate) struct Greeting {
    /// CONNECT.
    pub(crate) hello: Vec<u8>,
    pub(crate) upgrade: Option<Upgrade>,
    /// The machine that sends it, until the connection starts to open.
    pub(crate) machine: Cell<Option<Machine>>,
}

/// A client that is lent to an opening connection as its machine. It is always given back, because
/// its session may continue on another connection.
struct Loan<'o> {
    machine: Option<Machine>,
    progress: &'o Progress,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.progress.machine.set(self.machine.take());
    }
}

impl Opens for Greeting {
    fn missing(&self) -> Missing {
        |waited| say!("no CONNACK arrived within {waited}")
    }

    fn ask(&self) -> Option<&Ask> {
        self.upgrade.as_ref().map(|upgrade| &upgrade.ask)
    }

    fn take_machine(&self) -> Option<Machine> {
        self.machine.take()
    }

    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        transport: Transport,
        _: &[u8],
    ) -> Result<Opened, Failure> {
        let lost = || Failure::new(Cause::GeneratorFailed, say!("the session has no protocol"));
        let mut loan = Loan { machine: order.progress.machine.take(), progress: &order.progress };
        let Some(Machine::Mqtt(client)) = &mut loan.machine else { return Err(lost()) };
        let mut opened = Opened::by(None, transport, Pulled::default());
        if let Some(ask) = &self.upgrade {
            opened = Box::pin(ask.open(shard, order, opened.transport, &[])).await?;
            opened.pulled.nothing_more()?;
            if let Some(Machine::WebSocket(reader)) = opened.machine.take() {
                client.is_carried(reader);
            }
        }
        let mut hello = Vec::new();
        client.frame(&self.hello, [0x6d, 0x71, 0x74, 0x74], &mut hello);
        shard.tell(order.who, shard.clock.now(), || What::Sent(Shown::of(&self.hello)));
        let Some(machine) = &mut loan.machine else { return Err(lost()) };
        let first = FirstBytes::default();
        let came = |bytes: &[u8]| {
            shard.tell(order.who, shard.clock.now(), || What::Received(Shown::of(bytes)));
            first.note(bytes);
        };
        let pulled = pull(shard, &mut opened.transport, machine, hello, came, verdict).await;
        let (said, pulled) =
            pulled.map_err(|failure| first.explain(failure, SPEAKS_HTTP, SPEAKS_TLS))?;
        opened.status = said.ok_or_else(|| Failure::new(Cause::ClosedEarly, CLOSED))??;
        opened.machine = loan.machine.take();
        opened.pulled.surplus = pulled.surplus;
        opened.pulled.bytes_in += pulled.bytes_in;
        opened.pulled.bytes_out += pulled.bytes_out;
        Ok(opened)
    }
}

/// The server's response to a CONNECT.
fn verdict(event: &Event<'_>) -> Option<Result<u16, Failure>> {
    match event {
        Event::Answered(Answered::Mqtt(answer)) if answer.packet == PacketType::Connack => {
            let status = answer.reason.status();
            Some(match answer.reason.is_error() {
                false => Ok(status),
                true => Err(Failure { status, ..refusal(answer).into() }),
            })
        }
        Event::Closed { reason, .. } => {
            let detail = match reason {
                &"" => CLOSED,
                reason => {
                    say!("the connection was closed before CONNACK: {}", shown(reason.as_bytes()))
                }
            };
            Some(Err(Failure::new(Cause::ClosedEarly, detail)))
        }
        _ => None,
    }
}

/// The error of a packet that a server acknowledges with an error code.
pub(crate) fn refusal(answer: &MqttAnswer<'_>) -> Finding {
    let (packet, name, code) = (answer.packet.name(), answer.reason.name, answer.reason.code);
    let detail = match answer.text {
        "" => say!("{packet}: {name} (0x{code:02x})"),
        text => say!("{packet}: {name} (0x{code:02x}): {}", shown(text.as_bytes())),
    };
    (Cause::of_status(answer.reason.status()), detail)
}

const CLOSED: Said = say!("the connection was closed before CONNACK");
const SPEAKS_HTTP: Said =
    say!("the server on this port uses HTTP: write `ws://` with `protocol: mqtt`");
const SPEAKS_TLS: Said = say!("the server on this port uses TLS: write `mqtts://`");

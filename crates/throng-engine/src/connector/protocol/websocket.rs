//! The upgrade to WebSocket.

use throng_base::Said;
use throng_metrics::Cause;
use throng_protocol::http1::{Head, RequestKind};
use throng_protocol::machine::Machine;
use throng_protocol::websocket::{FrameReader, Key, Role, check_upgrade, write_upgrade};

use super::{Missing, Opens};
use crate::connector::{Ask, Opened, Order, ask_once, refused_by_target};
use crate::failure::Failure;
use crate::shard::Lane;
use crate::trace::What;
use crate::transport::Transport;

pub(crate) struct Upgrade {
    pub(crate) ask: Ask,
    pub(crate) protocols: Vec<String>,
    pub(crate) key: Key,
}

impl Opens for Upgrade {
    fn missing(&self) -> Missing {
        |waited| say!("no response to the WebSocket upgrade within {waited}")
    }

    fn ask(&self) -> Option<&Ask> {
        Some(&self.ask)
    }

    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        mut transport: Transport,
        _: &[u8],
    ) -> Result<Opened, Failure> {
        let Upgrade { ask, protocols, key } = self;
        let target = &shard.prepared.targets[usize::from(order.target)];
        let offer = shard.prepared.program.connection.deflate;
        let mut request = Vec::with_capacity(512);
        let headers = ask.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let cookies = ask.cookies.strip_prefix(b"Cookie: ").map(<[u8]>::trim_ascii_end);
        let headers = headers.chain(cookies.map(|cookies| ("Cookie", cookies)));
        let host = ask.own_host().unwrap_or(&target.authority);
        write_upgrade(&mut request, host, &ask.path, key, headers, protocols, offer).map_err(
            |error| Failure::new(Cause::ScenarioFailed, Said::of_others(error.to_string())),
        )?;
        let accept = key.expected_accept();
        let check = |head: &Head<'_>| {
            order.note_cookies(shard, head);
            check_upgrade(head.status, head.headers.iter(), &accept, protocols, offer)
        };
        let kind = RequestKind::Upgrade;
        let answer = ask_once(shard, order, &mut transport, kind, request, check).await?;
        let told = (answer.status, answer.retry_after_s);
        let accepted = answer.verdict.map_err(|error| refused_by_target(&error, told))?;
        if accepted.protocol.is_none() && !protocols.is_empty() {
            // As the RFC allows; a browser would fail the connection (WHATWG, WebSockets).
            let told = || {
                say!(
                    "the target selected none of the offered subprotocols: {}",
                    protocols.join(", ")
                )
            };
            shard.tell(order.who, shard.clock.now(), || What::Note(told()));
        }
        let machine = Machine::WebSocket(FrameReader::new(Role::Client, accepted.deflate));
        Ok(Opened { status: answer.status, ..Opened::by(machine, transport, answer.pulled) })
    }
}

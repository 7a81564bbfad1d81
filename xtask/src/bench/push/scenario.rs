//! The scenario of `bench push`: the devices of the example, and one user more who tells the
//! service to push when the time has come.

use std::fmt::Write as _;
use std::time::Duration;

use super::EXAMPLE;

/// Users more than devices are needed. Of all some 16 become senders by chance, of whom one sends:
/// so there are as many devices as were asked for, and a few more.
const SPARE: u64 = 40;
const SENDERS: u64 = 16;
/// Longer than a message needs to be settled.
const SETTLE: Duration = Duration::from_secs(20);

/// How the load goes and what the sender does.
pub(super) struct Plan {
    users: u64,
    push_rate: u64,
    fill: [(u64, u64); 2],
    /// From when all are there to the end, without the settling.
    pub(super) lost_after: Duration,
    hold: Duration,
    /// Devices fall out and come back after the hold, this many a second for so long.
    churn: Option<(u64, Duration)>,
    /// When the sender sends, once all are there.
    sends: Sends,
}

enum Sends {
    /// Once, after a pause.
    Once(Duration),
    /// At once, when Redis is dead, and when it is back.
    ByRedis,
}

impl Plan {
    /// Devices that are held and get a push.
    pub(super) fn devices(users: u64, fill_rate: u64, push_rate: u64, hold: Duration) -> Plan {
        let pushing = Duration::from_secs(users.div_ceil(push_rate));
        let lost_after = pushing * 3 / 2 + SETTLE;
        Plan {
            users,
            push_rate,
            fill: [(users * 6 / 10, fill_rate), (users + SPARE, fill_rate.div_ceil(2))],
            lost_after,
            hold: hold + SETTLE / 2 + lost_after,
            churn: None,
            sends: Sends::Once(hold),
        }
    }

    /// Devices of whom some fall out and bind again, while Redis dies and comes back.
    pub(super) fn outage(users: u64, push_rate: u64, hold: Duration, churn: Duration) -> Plan {
        let rate = users.div_ceil(10).clamp(1, 2_000);
        let pushing = Duration::from_secs(users.div_ceil(push_rate));
        Plan {
            users,
            push_rate,
            fill: [(users / 2, rate), (users + SPARE, rate)],
            lost_after: pushing + SETTLE / 2,
            hold,
            churn: Some((users.div_ceil(100), churn)),
            sends: Sends::ByRedis,
        }
    }

    /// When all have come.
    pub(super) fn filled(&self) -> Duration {
        let [(half, first), (all, second)] = self.fill;
        let seconds = half as f64 / first as f64 + (all - half) as f64 / second as f64;
        Duration::from_secs_f64(seconds)
    }

    /// When the hold is over.
    pub(super) fn held(&self) -> Duration {
        self.filled() + self.hold
    }

    fn settle(&self) -> Duration {
        self.lost_after + SETTLE
    }

    /// How long it takes at most, when all goes as slowly as can be.
    pub(super) fn limit(&self) -> Duration {
        let churn = self.churn.map_or(Duration::ZERO, |(_, time)| time);
        self.held() + self.filled() * 2 + churn + self.settle() + SETTLE * 3
    }

    pub(super) fn text(&self, example: &str, port: u16, admin: u16) -> Result<String, String> {
        let device = device(example)?;
        let device = match self.sends {
            Sends::Once(_) => device,
            // A bind that Redis did not confirm is tried again.
            Sends::ByRedis => device.replace(
                "        check: {code: 0}\n",
                "        check: {code: 0}\n        retry: {times: forever, wait: 1s..2s}\n",
            ),
        };
        Ok(format!(
            "name: push\ntarget: {{addresses: [\"127.0.0.1:{port}\"]}}\n\
             protocol: miop.protocol.yaml\nsource: {{addresses: 127.1.0.0/16}}\n\
             data: {{turns: {{generate: {{n: 1..1_000_000}}, take: unique}}}}\n\
             sessions:\n  device:\n    weight: {}\n{device}\
             \x20 sender:\n    weight: {SENDERS}\n    target: http://127.0.0.1:{admin}\n    \
             protocol: none\n    steps:\n{}\
             deliveries:\n  pushes: {{sent: push to all, received: push, match: \
             {{sent: json.id, received: id}}, stamp: sent_ns, audience: everyone, \
             lost_after: {}ms}}\n{}",
            self.users,
            self.sender(),
            self.lost_after.as_millis(),
            self.load(),
        ))
    }

    fn sender(&self) -> String {
        let tries = self.filled().as_secs() + 10;
        let looking = |saved: &str, path: &str| {
            format!(
                "        steps:\n          \
                 - {{http: GET /stats, name: look, save: {{{saved}: json.{path}}}}}\n          \
                 - think: 1s\n          - set: {{tries: \"${{saved.tries + 1}}\"}}\n"
            )
        };
        let push = |id: u64| {
            format!(
                "      - http: POST /push\n        name: push to all\n        \
                 json: {{to: all, id: {id}, data: {{text: hello}}, rate: {}}}\n        \
                 check: {{status: 202}}\n",
                self.push_rate
            )
        };
        let mut text = format!(
            "      - if: data.turns.n > 1\n        then: [leave]\n      \
             - set: {{online: 0, tries: 0, redis: true}}\n      \
             - while: saved.online < {} && saved.tries < {tries}\n{}",
            self.users,
            looking("online", "online"),
        );
        match self.sends {
            Sends::Once(pause) => {
                let _ = write!(text, "      - think: {}ms\n{}", pause.as_millis(), push(1));
            }
            Sends::ByRedis => {
                let look = looking("redis", "redis.connected");
                let _ = write!(
                    text,
                    "{}      - while: saved.redis\n{look}{}      \
                     - while: \"!saved.redis\"\n{look}      - think: 5s\n{}",
                    push(1),
                    push(2),
                    push(3)
                );
            }
        }
        text + "      - leave\n"
    }

    fn load(&self) -> String {
        let [(half, first), (all, second)] = self.fill;
        let ms = Duration::as_millis;
        let mut text = format!(
            "load:\n  - {{name: fill, users: {{to: {half}, rate: {first}/s}}}}\n  \
             - {{name: fill 2, users: {{to: {all}, rate: {second}/s}}}}\n  \
             - {{name: hold, for: {}ms}}\n",
            ms(&self.hold)
        );
        if let Some((rate, time)) = self.churn {
            let _ = write!(
                text,
                "  - {{name: churn, churn: {{rate: {rate}/s, how: reset}}, for: {}ms}}\n  \
                 - {{name: settle, for: {}ms}}\n",
                ms(&time),
                ms(&self.settle())
            );
        }
        let _ = writeln!(text, "  - {{name: drain, users: {{to: 0, rate: {}/s}}}}", first * 3 / 2);
        text
    }
}

/// The steps of the example's device, without the reports that it makes now and then.
fn device(example: &str) -> Result<String, String> {
    let lines = example.lines().skip_while(|line| *line != "  device:").skip(1);
    let own = lines.take_while(|line| line.starts_with("    "));
    let kept = own.filter(|line| !line.contains("every:") && !line.contains("{time:"));
    let text: String = kept.map(|line| format!("{line}\n")).collect();
    let wanted = ["        check: {code: 0}\n", "- stay: forever\n", "{message: push, do:"];
    match wanted.iter().find(|wanted| !text.contains(**wanted)) {
        Some(missing) => Err(format!("the device of {EXAMPLE} has no `{}`", missing.trim())),
        None => Ok(text),
    }
}

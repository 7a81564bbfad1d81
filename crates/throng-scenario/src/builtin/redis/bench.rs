//! The command line: users send a command repeatedly, alone or in pipelines.

use std::iter::repeat_n;

use crate::quote::{quoted, scalar, text};
use crate::writer::Writer;

/// The default command.
const COMMAND: &str = "PING";

pub(super) fn write_session(writer: &mut Writer<'_>) {
    writer.keep(connect, step);
}

fn connect(writer: &mut Writer<'_>) {
    writer.line("      - connect");
    if let Some((user, password)) = &writer.bench.basic_auth {
        let line = format!("      - redis: [AUTH, {}, {}]", text(user), text(password));
        writer.line(&line);
    }
}

fn step(writer: &mut Writer<'_>) {
    let mut pipeline = writer.bench.given("--pipeline");
    let count = pipeline.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let command = writer.bench.given("--command").next().unwrap_or(COMMAND).trim();
    let is_line = !command.contains(|c: char| c.is_control());
    let commands: Vec<&str> = repeat_n(command, count).collect();
    match commands.as_slice() {
        [one] => writer.line(&format!("      - redis: {}", scalar(one))),
        // A block scalar preserves the text.
        many if is_line && !command.is_empty() => {
            writer.line("      - redis: |");
            many.iter().for_each(|one| writer.line(&format!("          {one}")));
        }
        many => writer.line(&format!("      - redis: {}", quoted(&many.join("\n")))),
    }
    writer.timeout();
    writer.checks();
}

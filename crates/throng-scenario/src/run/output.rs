//! Receivers of the figures of each second: `outputs: [{statsd: 127.0.0.1:8125}]`.

use throng_base::Said;
use throng_program::{Output, OutputKind};

use crate::ast;
use crate::read::Context;
use crate::syntax::Node;
use crate::words::shorten;

/// Each output has a thread and a queue.
const OUTPUTS_MAX: usize = 16;
const HELP: Said = say!("write `outputs: [{{statsd: \"127.0.0.1:8125\"}}]`");

pub(crate) fn read_outputs(cx: &mut Context<'_>, fields: &ast::Scenario<'_>) -> Vec<Output> {
    let Some(node) = fields.outputs.node() else { return Vec::new() };
    let items = cx.items(node, say!("a list of outputs"), HELP).unwrap_or_default();
    if let Some(one) = items.get(OUTPUTS_MAX) {
        let help = say!("send the metrics to one collector that forwards them");
        cx.too_many(one.place, say!("more than 16 outputs"), help);
    }
    items.iter().take(OUTPUTS_MAX).flat_map(|item| read_output(cx, item)).collect()
}

fn read_output(cx: &mut Context<'_>, node: &Node) -> Vec<Output> {
    let Some(fields) = ast::Output::read(cx, node) else { return Vec::new() };
    let given = [
        (OutputKind::Prometheus, fields.prometheus),
        (OutputKind::PrometheusRw, fields.prometheus_rw),
        (OutputKind::PrometheusRwNative, fields.prometheus_rw_native),
        (OutputKind::Otlp, fields.otlp),
        (OutputKind::Statsd, fields.statsd),
        (OutputKind::Influx, fields.influx),
        (OutputKind::Csv, fields.csv),
        (OutputKind::Jsonl, fields.jsonl),
        (OutputKind::Hdr, fields.hdr),
    ];
    let given = given.into_iter().filter_map(|(kind, field)| Some((kind, field.node()?)));
    let given: Vec<(OutputKind, &Node)> = given.collect();
    if given.is_empty() {
        let label = say!("no destination");
        cx.report("missing-key", node.place, say!("an output requires a destination"), label, HELP);
    }
    given.into_iter().filter_map(|(kind, node)| read_place(cx, kind, node)).collect()
}

fn read_place(cx: &mut Context<'_>, kind: OutputKind, node: &Node) -> Option<Output> {
    let text = cx.text(node, say!("a URL, an address or a file"))?;
    match Output::new(kind.word(), &text) {
        Ok(output) => Some(output),
        Err(reason) => {
            let message = say!("`{}` is not a valid output destination", shorten(&text));
            cx.refuse("bad-value", node.place, message, reason, HELP)
        }
    }
}

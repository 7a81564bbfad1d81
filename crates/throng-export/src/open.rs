//! Creates the outputs before the run begins.

use throng_base::{Diagnostic, Said};
use throng_program::{Output, OutputKind};
use throng_results::RunInfo;

use crate::Export;
use crate::hdr::HdrLog;
use crate::influx::influx;
use crate::otlp::otlp;
use crate::prometheus::Scraped;
use crate::remote_write::{Histograms, RemoteWrite};
use crate::sender::Sender;
use crate::statsd::Statsd;
use crate::text::Lines;

/// Creates an output: its file is created and its port bound before anything is sent.
pub(crate) fn open(output: &Output, info: &RunInfo) -> Result<Box<dyn Export>, Box<Diagnostic>> {
    let place = &output.place;
    let failed = |error: std::io::Error| {
        let message = say!("`--export {}` cannot be opened", output.to_string());
        let told = Diagnostic::error("export-failed", message)
            .note(say!("cause: {error}", error = Said::of_error(&error)))
            .help(say!("give a writable file, or an unused address"));
        Box::new(told)
    };
    Ok(match output.kind {
        OutputKind::Prometheus => Box::new(Scraped::listen(place).map_err(failed)?),
        OutputKind::PrometheusRw => {
            Box::new(RemoteWrite::new(Sender::new(place), Histograms::Classic))
        }
        OutputKind::PrometheusRwNative => {
            Box::new(RemoteWrite::new(Sender::new(place), Histograms::Native))
        }
        OutputKind::Otlp => Box::new(otlp(Sender::new(place))),
        OutputKind::Statsd => Box::new(Statsd::new(place).map_err(failed)?),
        OutputKind::Influx => Box::new(influx(Sender::new(place))),
        OutputKind::Csv => Box::new(Lines::csv(place).map_err(failed)?),
        OutputKind::Jsonl => Box::new(Lines::json(place).map_err(failed)?),
        OutputKind::Hdr => Box::new(HdrLog::create(place, info).map_err(failed)?),
    })
}

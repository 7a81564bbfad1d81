//! A run as CSV (RFC 4180) for spreadsheets and data frames: for each second, one row for all
//! attempts and one for each active step. `docs/ci.md` names the columns.

use std::collections::BTreeMap;

use throng_base::{Diagnostic, clean};
use throng_metrics::{
    Gauge, Gauges, Interval, Merge as _, Output, Percentile, StepInterval, StepKind,
};

use crate::directory::RunInfo;
use crate::gauges::AllGauges;
use crate::read::Run;
use crate::summary::Latency;

/// The columns before the percentiles, which the maximum and the gauges follow.
const COLUMNS: &str = "second,unix_s,phase,measured,kind,step,begun,count,ok,failed,interrupted,\
    ok_in_time,received_bytes,sent_bytes,mean_ns";
/// Maximum number of open seconds, because several machines do not report at the same time.
const OPEN_SECONDS_MAX: usize = 60;
const SECOND_NS: u64 = 1_000_000_000;

/// The results of a second.
#[derive(Debug, Default)]
struct Second {
    phases: Vec<u16>,
    steps: BTreeMap<u16, StepInterval>,
    gauges: Gauges,
    /// All bytes, including those of no step.
    bytes_in: u64,
    bytes_out: u64,
}

/// Writes the header and all rows, in the order of time, in pieces.
pub fn seconds_csv(run: &Run, mut write: impl FnMut(&str)) -> Result<(), Box<Diagnostic>> {
    let percentiles: Vec<&str> = Percentile::MAIN.iter().map(|it| it.word_ns()).collect();
    let gauge_names: String = columns().map(|gauge| format!(",{}", gauge.field)).collect();
    write(&format!("{COLUMNS},{},max_ns{gauge_names}\r\n", percentiles.join(",")));
    // Measured and unmeasured results are separate, so that sums match the summary.
    let mut open: BTreeMap<(u64, bool), Second> = BTreeMap::new();
    let mut gauges = AllGauges::default();
    run.summed(1, |interval| {
        let phase = run.info.tables.phases.get(usize::from(interval.phase));
        let load = phase.map_or(0, |phase| usize::from(phase.load));
        let measured = phase.is_none_or(|phase| phase.measured);
        let second = open.entry((interval.second, measured)).or_default();
        second.gauges = gauges.add(load, &interval);
        second.add(&interval);
        while open.len() > OPEN_SECONDS_MAX {
            let Some((number, second)) = open.pop_first() else { return };
            write(&second.rows(number, &run.info));
        }
    })?;
    open.iter().for_each(|(number, second)| write(&second.rows(*number, &run.info)));
    Ok(())
}

fn columns() -> impl Iterator<Item = &'static Gauge<Gauges>> {
    Gauges::gauges().filter(|gauge| gauge.is_in(Output::Csv))
}

impl Second {
    fn add(&mut self, interval: &Interval) {
        if !self.phases.contains(&interval.phase) {
            self.phases.push(interval.phase);
        }
        interval.steps.iter().for_each(|step| self.steps.entry(step.step).or_default().merge(step));
        self.bytes_in += interval.traffic.bytes_in;
        self.bytes_out += interval.traffic.bytes_out;
    }

    fn rows(&self, (number, measured): (u64, bool), info: &RunInfo) -> String {
        let phases: Vec<_> =
            self.phases.iter().filter_map(|at| info.tables.phases.get(usize::from(*at))).collect();
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        let unix = match info.time.zero_unix_ns {
            0 => String::new(),
            zero => (zero / SECOND_NS + number).to_string(),
        };
        let head = format!("{number},{unix},{},{measured}", field(&names.join(" + ")));
        let kind = |at: u16| {
            info.tables.steps.get(usize::from(at)).map_or(StepKind::NONE, |step| step.kind)
        };
        let mut all = StepInterval::default();
        let attempts = self.steps.iter().filter(|(at, _)| kind(**at).is_attempt());
        attempts.for_each(|(_, row)| all.merge(row));
        (all.bytes_in, all.bytes_out) = (self.bytes_in, self.bytes_out);
        let value = |gauge: &Gauge<Gauges>| (gauge.of)(&self.gauges).number().unwrap_or_default();
        let gauges: String = columns().map(|gauge| format!(",{}", value(gauge))).collect();
        let none = ",".repeat(columns().count());
        let mut out = format!("{head},total,,{}{gauges}\r\n", figures(&all));
        for (at, row) in &self.steps {
            let (kind, name) = (field(kind(*at).word()), field(&info.step_name(*at)));
            out += &format!("{head},{kind},{name},{}{none}\r\n", figures(row));
        }
        out
    }
}

fn figures(row: &StepInterval) -> String {
    let latency = Latency::of(&row.latency);
    let known = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let some = !latency.is_empty();
    let plain = [row.begun, row.count, row.ok, row.failed(), row.interrupted, row.ok_in_time()];
    let plain = plain.into_iter().chain([row.bytes_in, row.bytes_out]);
    let mut fields: Vec<String> = plain.map(|count| count.to_string()).collect();
    fields.push(known(some.then(|| latency.mean_ns.round() as u64)));
    let told = Percentile::MAIN.iter().map(|percentile| known(latency.percentile(*percentile)));
    fields.extend(told);
    fields.push(known(latency.max()));
    fields.join(",")
}

/// Quotes foreign text. Text that a spreadsheet would interpret as a formula starts with `'`
/// (OWASP: "CSV Injection").
fn field(text: &str) -> String {
    let text = clean(text);
    let mark = if text.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    match text.contains([',', '"', '\'']) || !mark.is_empty() {
        true => format!("\"{mark}{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use crate::tests::sample;

    #[test]
    fn foreign_text_is_one_field_and_never_a_formula() {
        assert_eq!(field("GET /a"), "GET /a");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("=1+2"), "\"'=1+2\"");
        assert_eq!(field("  @SUM(A1)"), "\"'  @SUM(A1)\"");
        assert!(!field("a\r\nb\u{1b}[31m\0").contains(['\r', '\n', '\u{1b}', '\0']));
    }

    #[test]
    fn each_second_has_a_total_row_and_a_row_per_step() {
        let directory = tempfile::tempdir().unwrap();
        let mut info = sample::info();
        info.tables.steps[1].name = "=cmd|' /C calc'!\n\"x\"".into();
        let mut recorder = Recorder::create(directory.path(), &info, "").unwrap();
        sample::intervals().iter().for_each(|interval| recorder.interval(interval).unwrap());
        recorder.finish(&info).unwrap();
        let run = Run::open(directory.path()).unwrap();
        let mut text = String::new();
        seconds_csv(&run, |piece| text += piece).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 1 + 12 * 3);
        assert_eq!(lines[0].split(',').count(), 25);
        assert!(lines[1].starts_with("0,,warm-up,false,total,,"), "{}", lines[1]);
        assert!(lines[2].contains(",http,GET /,0,10000,9990,10,0,9990,8230000,452000,"));
        assert!(lines[3].contains(",request,\"'=cmd|' /C calc'!\\n\"\"x\"\"\","), "{}", lines[3]);
        let figure = |line: &str, at: usize| line.rsplit(',').nth(at).unwrap().to_string();
        let latency = Latency::of(&sample::intervals()[0].steps[0].latency);
        assert_eq!(figure(lines[2], 4), latency.max_ns.to_string());
        assert_eq!(figure(lines[2], 6), latency.at(Percentile::P99).to_string());
        assert_eq!(figure(lines[1], 2), "64");
    }
}

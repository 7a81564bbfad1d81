//! Generates load from another program, and prints the results of each second:
//! `cargo run -p throng-run --example embedded http://127.0.0.1:8080`.

use throng_base::{Exit, Source};
use throng_run::{Line, Settings, run};
use throng_scenario::{CompileOptions, RunOptions, compile_recorded};

pub(crate) fn load(target: &str, mut print: impl FnMut(String)) -> Exit {
    let text = format!(
        "name: embedded\ntarget: {target}\nload: [{{users: 5, for: 2s}}]\n\
         sessions: {{reader: {{steps: [{{http: GET /}}, {{think: 50ms}}]}}}}\n"
    );
    let options = CompileOptions::of_process(Vec::new(), ".".into());
    let options = CompileOptions { run: RunOptions::fresh(None), ..options };
    let (program, _, recorded) =
        match compile_recorded(&Source::new("embedded.yaml", text), &options) {
            Ok(compiled) => compiled,
            Err(mistakes) => {
                mistakes.iter().for_each(|mistake| print(mistake.render(false)));
                return Exit::Usage;
            }
        };
    let settings = Settings { no_record: true, ..Settings::default() };
    let mut lines = run(program, recorded, settings);
    for line in &mut lines {
        match line {
            Line::Interval { interval, .. } => {
                let ok: u64 = interval.steps.iter().map(|step| step.ok).sum();
                print(format!("second {}: {ok} responses", interval.second));
            }
            Line::Diagnostic(diagnostic) => print(diagnostic.render(false)),
            _ => {}
        }
    }
    lines.exit()
}

#[allow(clippy::print_stdout)]
fn main() {
    let target = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".into());
    load(&target, |line| println!("{line}"));
}

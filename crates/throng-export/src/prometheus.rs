//! An address on which Prometheus scrapes: text exposition format 0.0.4.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_base::Said;

use crate::totals::{Family, Labels, Total, Totals};
use crate::{Export, Second};

/// How long a scraper may take with its request and with the answer.
const SCRAPE_MAX: Duration = Duration::from_secs(5);
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// What is scraped; it is there until the run has ended.
pub(crate) struct Scraped {
    totals: Arc<Mutex<Totals>>,
}

impl Scraped {
    pub(crate) fn listen(address: &str) -> io::Result<Scraped> {
        let listener = TcpListener::bind(address)?;
        let totals = Arc::new(Mutex::new(Totals::default()));
        let shared = Arc::downgrade(&totals);
        std::thread::Builder::new().name("scraped".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(totals) = shared.upgrade() else { return };
                // Whoever does not want the answer has to ask again.
                let _ =
                    answer(stream, || text(&totals.lock().unwrap_or_else(PoisonError::into_inner)));
            }
        })?;
        Ok(Scraped { totals })
    }
}

impl Export for Scraped {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(second);
        Ok(())
    }
}

fn answer(mut stream: TcpStream, text: impl FnOnce() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(SCRAPE_MAX))?;
    stream.set_write_timeout(Some(SCRAPE_MAX))?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count if request.len() + count > REQUEST_BYTES_MAX => return Ok(()),
            count => request.extend(&buffer[..count]),
        }
    }
    let path = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (status, body) = match path {
        b"/metrics" | b"/" => ("200 OK", text()),
        _ => ("404 Not Found", "the metrics are at /metrics\n".to_string()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// All that is known.
pub(crate) fn text(totals: &Totals) -> String {
    let mut text = String::new();
    for (name, family) in &totals.families {
        family_text(&mut text, name, family);
    }
    text
}

fn family_text(text: &mut String, name: &str, family: &Family) {
    let kind = match family.series.values().next() {
        Some(Total::Counter(_)) => "counter",
        Some(Total::Gauge(_)) => "gauge",
        Some(Total::Times(_)) | None => "histogram",
    };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    for (labels, total) in &family.series {
        let shown = labels_text(labels, None);
        match total {
            Total::Counter(value) | Total::Gauge(value) => {
                let _ = writeln!(text, "{name}{shown} {value}");
            }
            Total::Times(times) => {
                for (bound, count) in times.cumulative() {
                    let bound = bound.map_or("+Inf".to_string(), |bound| bound.to_string());
                    let shown = labels_text(labels, Some(&bound));
                    let _ = writeln!(text, "{name}_bucket{shown} {count}");
                }
                let _ = writeln!(text, "{name}_sum{shown} {}", times.sum_s);
                let _ = writeln!(text, "{name}_count{shown} {}", times.count);
            }
        }
    }
}

fn labels_text(labels: &Labels, bound: Option<&str>) -> String {
    let own = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = own.chain(bound.map(|bound| ("le", bound)));
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let shown: Vec<String> =
        all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", shown.join(","))
}

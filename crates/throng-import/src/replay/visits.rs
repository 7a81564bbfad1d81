//! The requests of a log, grouped by visitor. A visit ends when its visitor has sent no request for
//! half an hour, as in web analytics.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use serde_json::json;
use throng_data::access_log::LogRequest;

use super::sorter::Sorter;

/// Rows of the report. The first are for the pages that are seen first, the others for all other
/// pages of a method.
pub(super) const ROWS: usize = 40;
/// Methods in addition to those with a separate row.
const METHODS: usize = 10;
const IDLE_S: f64 = 1_800.0;
/// The interval of checks for complete visits, in the time of the log.
const LOOK_EVERY_S: f64 = 60.0;
/// Per visit: its row may have one mebibyte.
const REQUESTS_MAX: usize = 2_000;
const PATHS_BYTES_MAX: usize = 256 << 10;
/// For all visits in progress.
const HELD_BYTES_MAX: usize = 512 << 20;
/// The memory of a request in addition to its path.
const REQUEST_BYTES: usize = 48;
/// Keys of the sorter are in microseconds.
const KEYS_PER_S: f64 = 1e6;

pub(super) struct Visits {
    sorter: Sorter,
    open: HashMap<u64, Visit>,
    held_bytes: usize,
    looked_s: f64,
    first_s: Option<f64>,
    last_s: f64,
    rows: Vec<(String, String)>,
    requests: u64,
    split: u64,
    /// Visits by the second of their start, before the first is known.
    starts: BTreeMap<i64, u64>,
    failed: Option<io::Error>,
}

struct Visit {
    begin_s: f64,
    last_s: f64,
    bytes: usize,
    requests: Vec<Request>,
}

struct Request {
    wait_s: f64,
    row: usize,
    path: String,
}

/// The summary of a log.
pub(super) struct Found {
    pub(super) requests: u64,
    pub(super) visits: u64,
    pub(super) split: u64,
    /// Method and page of each row of the report.
    pub(super) rows: Vec<(String, String)>,
    /// The number of visits that start in each second, counted from the first.
    pub(super) starts: Vec<(u64, u64)>,
    /// From the last start to the last request.
    pub(super) tail_s: f64,
    pub(super) has_bodies: bool,
}

impl Visits {
    pub(super) fn new(folder: &Path) -> Visits {
        Visits {
            sorter: Sorter::new(folder),
            open: HashMap::new(),
            held_bytes: 0,
            looked_s: f64::NEG_INFINITY,
            first_s: None,
            last_s: f64::NEG_INFINITY,
            rows: Vec::new(),
            requests: 0,
            split: 0,
            starts: BTreeMap::new(),
            failed: None,
        }
    }

    pub(super) fn add(&mut self, request: LogRequest) {
        let LogRequest { at_s, visitor, method, path } = request;
        self.requests += 1;
        self.first_s = Some(self.first_s.map_or(at_s, |first| first.min(at_s)));
        self.last_s = self.last_s.max(at_s);
        let row = self.row(&method, &path);
        let known = self.open.get(&visitor);
        let is_long = |visit: &Visit| {
            visit.requests.len() >= REQUESTS_MAX || visit.bytes + path.len() > PATHS_BYTES_MAX
        };
        let is_idle = |visit: &Visit| at_s - visit.last_s > IDLE_S;
        let (too_long, idle) = (known.is_some_and(is_long), known.is_some_and(is_idle));
        if too_long || idle {
            self.split += u64::from(!idle);
            self.close(visitor);
        }
        let visit = self.open.entry(visitor).or_insert_with(|| Visit {
            begin_s: at_s,
            last_s: at_s,
            bytes: 0,
            requests: Vec::new(),
        });
        // Lines may be slightly out of order.
        let wait_s = (at_s - visit.last_s).max(0.0);
        visit.last_s = visit.last_s.max(at_s);
        let bytes = path.len() + REQUEST_BYTES;
        visit.bytes += bytes;
        visit.requests.push(Request { wait_s, row, path });
        self.held_bytes += bytes;
        if at_s > self.looked_s + LOOK_EVERY_S || self.held_bytes > HELD_BYTES_MAX {
            self.close_idle(at_s);
        }
    }

    /// The row of a page; for a page that is seen late, that of its method.
    fn row(&mut self, method: &str, path: &str) -> usize {
        let page = page(path);
        let find = |rows: &[(String, String)], page: &str| {
            rows.iter().position(|(other, known)| other == method && known == page)
        };
        if let Some(row) = find(&self.rows, &page) {
            return row;
        }
        let page = if self.rows.len() < ROWS - METHODS { page } else { "(other)".into() };
        if let Some(row) = find(&self.rows, &page) {
            return row;
        }
        // Surplus methods share the last row.
        if self.rows.len() < ROWS {
            self.rows.push((method.to_string(), page));
        }
        self.rows.len() - 1
    }

    fn close_idle(&mut self, now_s: f64) {
        self.looked_s = now_s;
        let is_over = |visit: &Visit| now_s - visit.last_s > IDLE_S;
        let over = self.open.iter().filter(|(_, visit)| is_over(visit));
        let over: Vec<u64> = over.map(|(visitor, _)| *visitor).collect();
        over.into_iter().for_each(|visitor| self.close(visitor));
        if self.held_bytes > HELD_BYTES_MAX {
            self.split += self.open.len() as u64;
            self.close_all();
        }
    }

    fn close_all(&mut self) {
        let all: Vec<u64> = self.open.keys().copied().collect();
        all.into_iter().for_each(|visitor| self.close(visitor));
    }

    fn close(&mut self, visitor: u64) {
        let Some(visit) = self.open.remove(&visitor) else { return };
        self.held_bytes = self.held_bytes.saturating_sub(visit.bytes);
        *self.starts.entry(visit.begin_s.floor() as i64).or_default() += 1;
        let requests: Vec<_> = visit
            .requests
            .iter()
            .map(|one| json!({"wait": one.wait_s, "row": one.row, "path": one.path}))
            .collect();
        let key = (visit.begin_s.max(0.0) * KEYS_PER_S) as u64;
        // The first failure is reported at the end.
        if let Err(error) = self.sorter.add(key, json!({"requests": requests}).to_string()) {
            self.failed.get_or_insert(error);
        }
    }

    /// Writes the rows, in the order of the visits' start.
    pub(super) fn finish(mut self, path: &Path) -> io::Result<Found> {
        self.close_all();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let first = self.starts.keys().next().copied().unwrap_or(0);
        let last = self.starts.keys().next_back().copied().unwrap_or(0);
        let since = |(second, count): (&i64, &u64)| ((second - first) as u64, *count);
        let has_body =
            |(method, _): &(String, String)| ["POST", "PUT", "PATCH"].contains(&method.as_str());
        Ok(Found {
            requests: self.requests,
            split: self.split,
            has_bodies: self.rows.iter().any(has_body),
            rows: self.rows,
            starts: self.starts.iter().map(since).collect(),
            tail_s: (self.last_s - last as f64).max(0.0),
            visits: self.sorter.finish(path)?,
        })
    }
}

/// The path without its query, with a star for each segment that is a number or an ID.
fn page(path: &str) -> String {
    let plain = path.split(['?', '#']).next().unwrap_or_default();
    let is_id = |part: &str| {
        let digits = part.chars().filter(char::is_ascii_digit).count();
        digits > 0 && (digits * 2 >= part.len() || part.len() >= 16)
    };
    let parts = plain.split('/').map(|part| if is_id(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn request(at_s: f64, visitor: u64, path: &str) -> LogRequest {
        LogRequest { at_s, visitor, method: "GET".into(), path: path.into() }
    }

    fn made(requests: Vec<LogRequest>) -> (Found, Vec<Value>) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut visits = Visits::new(folder.path());
        requests.into_iter().for_each(|request| visits.add(request));
        let path = folder.path().join("visits.jsonl");
        let found = visits.finish(&path).expect("written");
        let text = std::fs::read_to_string(path).expect("readable");
        let rows = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        (found, rows.collect())
    }

    #[test]
    fn visits_keep_their_order_and_their_pauses() {
        let (found, rows) = made(vec![
            request(100.0, 1, "/a"),
            request(101.0, 2, "/b?q=1"),
            request(103.5, 1, "/c"),
            request(103.0, 1, "/late"),
            request(104.0, 2, "/d"),
            request(104.0 + IDLE_S + 1.0, 2, "/again"),
        ]);
        assert_eq!((found.requests, found.visits, found.split), (6, 3, 0));
        assert_eq!(found.starts, [(0, 1), (1, 1), (1805, 1)]);
        let paths = |row: &Value| {
            let requests = row["requests"].as_array().expect("a list").iter();
            let path = |one: &Value| {
                (one["path"].as_str().unwrap().to_string(), one["wait"].as_f64().unwrap())
            };
            requests.map(path).collect::<Vec<_>>()
        };
        let one = |path: &str, wait: f64| (path.to_string(), wait);
        assert_eq!(paths(&rows[0]), [one("/a", 0.0), one("/c", 3.5), one("/late", 0.0)]);
        assert_eq!(paths(&rows[1]), [one("/b?q=1", 0.0), one("/d", 3.0)]);
        assert_eq!(paths(&rows[2]), [one("/again", 0.0)], "half an hour later it is another visit");
    }

    #[test]
    fn report_rows_are_limited() {
        let many = (0..10_000).map(|n| request(f64::from(n), 1, &format!("/page{}x/{n}", n / 100)));
        let mut many: Vec<LogRequest> = many.collect();
        many.push(LogRequest { method: "POST".into(), ..request(10_000.0, 1, "/buy") });
        let (found, rows) = made(many);
        assert!(found.rows.len() <= ROWS, "{:?}", found.rows);
        assert!(found.rows.contains(&("GET".into(), "(other)".into())), "{:?}", found.rows);
        assert!(found.rows.contains(&("POST".into(), "(other)".into())), "{:?}", found.rows);
        assert!(found.has_bodies);
        assert_eq!((rows.len(), found.split), (6, 5), "a visit has at most 2,000 requests");
    }

    #[test]
    fn page_names_contain_no_ids() {
        for (path, want) in [
            ("/", "/"),
            ("/products/4711?x=1", "/products/*"),
            ("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/cart", "/u/*/cart"),
            ("/version2/items", "/version2/items"),
            ("/a#b", "/a"),
        ] {
            assert_eq!(page(path), want, "{path}");
        }
    }
}

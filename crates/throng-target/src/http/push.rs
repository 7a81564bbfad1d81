//! The admin interface of a push service over HTTP: pushes, online devices, counters, faults.
//!
//! `POST /push {"to": "d17", "id": 17, "data": …}` · `"to": ["d1", "d2"]` · `"to": "all"`; the last
//! two accept a `rate` per second · `GET /online?from=0&to=999` · `GET /device/d17` · `GET /stats`
//! · `GET /faults` · `POST /faults {"lose_every": 1000}`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::pairs;
use crate::faults::FaultOptions;
use crate::mail::Stamped;
use crate::presence::Device;
use crate::push::Service;
use crate::push::TooMany;
use crate::push::codec::{PUSH_DATA_BYTES_MAX, push_frame};
use crate::setup::Setup;

/// Maximum length of a request body.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of devices in one push.
const NAMES_MAX: usize = 10_000;
/// Maximum number of devices on a page.
const PAGE_MAX: u64 = 2_000_000;
/// Default number of devices on a page.
const PAGE: u64 = 1000;
/// Maximum delay of a push: an hour.
const LATE_BY_MS_MAX: u64 = 3_600_000;

/// The status and JSON of a response.
type Said = (u16, String);

/// Why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
struct Refused(u16, String);

fn bad<T>(reason: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(400, reason.into()))
}

/// Handles a request; `None` for an unknown path. Runs on the admin's thread.
pub(crate) fn route(setup: &Setup, method: &str, target: &str, body: &[u8]) -> Option<Said> {
    let service = setup.push.as_ref()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let answered = match (path, method) {
        ("/push", "POST") => push(setup, service, body),
        ("/faults", "POST") => set_faults(setup, body),
        ("/push", _) => Err(Refused(405, "a push must be a POST with a JSON body".into())),
        ("/faults", "GET") => Ok((200, faults(setup.faults.options()))),
        ("/online", "GET") => page(query).map(|(from, to)| (200, online(service, from, to))),
        ("/stats", "GET") => Ok((200, stats(setup, service))),
        ("/online" | "/stats" | "/faults", _) => Err(Refused(405, format!("use GET for `{path}`"))),
        _ => Ok(device(service, path.strip_prefix("/device/")?)),
    };
    Some(match answered {
        Ok((status, value)) => (status, value.to_string()),
        Err(Refused(status, reason)) => (status, json!({ "error": reason }).to_string()),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    to: To,
    id: u64,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    rate: Option<f64>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "`to` must be a device name, a list of names, or `all`")]
enum To {
    One(String),
    Many(Vec<String>),
}

/// A parsed push.
#[derive(Debug, PartialEq)]
struct Order {
    to: To,
    id: u64,
    frame: Stamped,
    rate: Option<f64>,
}

fn order(body: &[u8]) -> Result<Order, Refused> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Refused(413, format!("a push can have at most {BODY_BYTES_MAX} bytes")));
    }
    let request: Request<'_> = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return bad(format!("the body is not a valid push: {error}")),
    };
    let Request { to, id, data, rate } = request;
    if rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return bad("`rate` must be the devices per second, more than 0");
    }
    if matches!(&to, To::Many(names) if names.len() > NAMES_MAX) {
        return bad(format!("a push can name at most {NAMES_MAX} devices"));
    }
    let Some(frame) = push_frame(id, data.map_or("null", RawValue::get).as_bytes()) else {
        return bad(format!("`data` can have at most {PUSH_DATA_BYTES_MAX} bytes"));
    };
    Ok(Order { to, id, frame, rate })
}

fn push(setup: &Setup, service: &Service, body: &[u8]) -> Result<(u16, Value), Refused> {
    let Order { to, id, frame, rate } = order(body)?;
    let behind = |_: TooMany| Refused(503, "too many pushes in progress; try again".into());
    let begun = |addressed, offline| match offline {
        None => json!({ "id": id, "addressed": addressed }),
        Some(offline) => json!({ "id": id, "addressed": addressed, "offline": offline }),
    };
    match to {
        To::One(name) if name == "all" => {
            let addresses = service.presence.addresses();
            let addressed = addresses.len();
            service.pusher.push(frame, addresses, rate).map_err(behind)?;
            Ok((202, begun(addressed, None)))
        }
        To::One(name) => {
            let Some(address) = service.presence.find(&Device::new(&name)) else {
                return Err(Refused(404, format!("`{name}` is not online")));
            };
            if !service.pusher.push_one(&setup.mailboxes, frame, address) {
                return Err(behind(TooMany));
            }
            Ok((202, begun(1, None)))
        }
        To::Many(names) => {
            let found = names.iter().filter_map(|name| service.presence.find(&Device::new(name)));
            let addresses: Vec<_> = found.collect();
            let (addressed, offline) = (addresses.len(), names.len() - addresses.len());
            service.pusher.push(frame, addresses, rate).map_err(behind)?;
            Ok((202, begun(addressed, Some(offline))))
        }
    }
}

/// The numbers of the first and the last device on a page.
fn page(query: &str) -> Result<(u64, u64), Refused> {
    let (mut from, mut to) = (0, None);
    for (name, value) in pairs(query) {
        let Ok(number) = value.parse::<u64>() else {
            return bad(format!("`{name}={value}` is not of the form `from=0`"));
        };
        match name {
            "from" => from = number,
            "to" => to = Some(number),
            _ => return bad(format!("`{name}` is neither `from` nor `to`")),
        }
    }
    let to = to.unwrap_or(from.saturating_add(PAGE - 1));
    match to.checked_sub(from) {
        None => bad("a page ends before it starts"),
        Some(more) if more >= PAGE_MAX => {
            bad(format!("a page can have at most {PAGE_MAX} devices"))
        }
        Some(_) => Ok((from, to)),
    }
}

fn online(service: &Service, from: u64, to: u64) -> Value {
    let is_online = |number: &u64| service.presence.find(&Device::Number(*number)).is_some();
    let names = (from..=to).filter(is_online).map(|number| format!("d{number}"));
    json!({ "online": names.collect::<Vec<String>>() })
}

fn device(service: &Service, name: &str) -> (u16, Value) {
    match service.presence.find(&Device::new(name)) {
        None => (404, json!({ "device": name, "online": false })),
        Some(address) => (200, json!({ "device": name, "online": true, "worker": address.worker })),
    }
}

fn stats(setup: &Setup, service: &Service) -> Value {
    let server = setup.stats();
    let mut stats = service.stats();
    stats["connections"] = json!(server.connections);
    stats["deliveries"] = json!(server.deliveries);
    stats
}

fn faults(mut options: FaultOptions) -> Value {
    let late_by = ("late_by_ms", json!(options.late_by.as_millis() as u64));
    let intervals = options.intervals().map(|(name, every)| (name, json!(every)));
    intervals.into_iter().chain([late_by]).collect()
}

fn set_faults(setup: &Setup, body: &[u8]) -> Result<(u16, Value), Refused> {
    let changed = changed_faults(setup.faults.options(), body)?;
    setup.faults.set(changed);
    Ok((200, faults(changed)))
}

/// Applies the body to the faults. Omitted faults stay; `null` and 0 disable a fault.
fn changed_faults(mut options: FaultOptions, body: &[u8]) -> Result<FaultOptions, Refused> {
    let changes: Map<String, Value> = match serde_json::from_slice(body) {
        Ok(changes) => changes,
        Err(error) => return bad(format!("the body is not a JSON object of faults: {error}")),
    };
    for (name, value) in changes {
        let number = if value.is_null() { Some(0) } else { value.as_u64() };
        let Some(number) = number else {
            return bad(format!("`{name}` must be a number, or `null` to switch it off"));
        };
        let interval = options.intervals().into_iter().find(|(own, _)| *own == name);
        match interval {
            Some((_, every)) => *every = (number > 0).then_some(number),
            None if name != "late_by_ms" => return bad(format!("`{name}` is not a known fault")),
            None if number > LATE_BY_MS_MAX => {
                return bad("a push can be late by at most one hour");
            }
            None => options.late_by = Duration::from_millis(number),
        }
    }
    match options.fault() {
        Some(fault) => bad(fault.english()),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T: std::fmt::Debug>(result: Result<T, Refused>) -> String {
        let Refused(_, reason) = result.unwrap_err();
        reason
    }

    #[test]
    fn pushes_are_parsed_or_rejected_with_a_reason() {
        let one = order(br#"{"to": "d17", "id": 17, "data": {"a": [1]}}"#).unwrap();
        let frame = push_frame(17, br#"{"a": [1]}"#).unwrap();
        assert_eq!(one, Order { to: To::One("d17".into()), id: 17, frame, rate: None });
        let many = order(br#"{"to": ["d1", "d2"], "id": 1, "rate": 0.5}"#).unwrap();
        assert_eq!(many.to, To::Many(vec!["d1".into(), "d2".into()]));
        assert_eq!((many.rate, many.frame), (Some(0.5), push_frame(1, b"null").unwrap()));
        let names = vec!["d"; NAMES_MAX + 1];
        let crowd = json!({ "to": names, "id": 1 }).to_string();
        let long = json!({ "to": "d", "id": 1, "data": "x".repeat(PUSH_DATA_BYTES_MAX) });
        for (body, part) in [
            ("", "is not a valid push"),
            ("[]", "is not a valid push"),
            (r#"{"to": 7, "id": 1}"#, "`to` must be a device name"),
            (r#"{"to": "d1"}"#, "`id`"),
            (r#"{"to": "d1", "id": -1}"#, "is not a valid push"),
            (r#"{"to": "d1", "id": 1, "rat": 1}"#, "`rat`"),
            (r#"{"to": "all", "id": 1, "rate": 0}"#, "`rate`"),
            (&crowd, "at most 10000"),
            (&long.to_string(), "at most 16363 bytes"),
            (&" ".repeat(BODY_BYTES_MAX + 1), "1048576"),
        ] {
            let reason = reason(order(body.as_bytes()));
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn pages_are_ranges_of_numbers() {
        assert_eq!(page("from=5&to=9"), Ok((5, 9)));
        assert_eq!(page("from=5"), Ok((5, 1004)));
        assert_eq!(page(""), Ok((0, 999)));
        assert_eq!(page("to=99999"), Ok((0, 99_999)));
        for (query, part) in [
            ("from=x", "`from=x`"),
            ("form=1", "`form`"),
            ("from=2&to=1", "ends before"),
            ("to=2000000", "at most 2000000"),
            ("to=18446744073709551616", "is not of the form"),
        ] {
            let reason = reason(page(query));
            assert!(reason.contains(part), "{reason}");
        }
        assert!(page(&format!("from={0}&to={0}", u64::MAX)).is_ok());
    }

    #[test]
    fn faults_are_changed_by_name() {
        let before = FaultOptions { twice_every: Some(5), ..FaultOptions::default() };
        let body = br#"{"lose_every": 10, "twice_every": null, "late_by_ms": 50}"#;
        let after = changed_faults(before, body).unwrap();
        assert_eq!((after.lose_every, after.twice_every), (Some(10), None));
        assert_eq!(after.late_by, Duration::from_millis(50));
        for wrong in [
            "7",
            r#"{"lose": 1}"#,
            r#"{"lose_every": "x"}"#,
            r#"{"late_by_ms": 3600001}"#,
            r#"{"late_every": 1, "late_by_ms": 0}"#,
        ] {
            assert!(changed_faults(before, wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fuzz_admin_bodies() {
        let corpus: [&[u8]; 3] = [
            br#"{"to": "d17", "id": 17, "data": {"a": [1]}, "rate": 1.5}"#,
            br#"{"to": ["d1", "d2"], "id": 1}"#,
            br#"{"lose_every": 10, "twice_every": null, "late_by_ms": 50}"#,
        ];
        throng_fuzz::mutations(&corpus, |input, _| {
            let _ = order(input);
            let _ = changed_faults(FaultOptions::default(), input);
            let _ = page(&String::from_utf8_lossy(input));
        });
    }
}

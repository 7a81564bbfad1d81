//! The queue in simulated time: requests and their departures.

use std::time::Duration;

use super::*;
use crate::queue::speed::WarmUp;

const MS: u64 = 1_000_000;

fn shape(servers: u32) -> Shape {
    Shape { servers: Some(servers), waiting_max: None, usl: None, speed: Speed::default() }
}

/// A queue and its departures, in milliseconds.
struct Bench {
    machine: Machine,
    departed: Vec<(u64, f64)>,
}

impl Bench {
    fn new(shape: Shape) -> Bench {
        Bench { machine: Machine::new(shape), departed: Vec::new() }
    }

    fn enter(&mut self, at_ms: u64, service_ms: f64) -> Result<u64, Full> {
        let departed = &mut self.departed;
        let note = |ticket: Ticket, at: Time| departed.push((ticket.number, at.0 as f64 / 1e6));
        let entered = self.machine.enter(Time(at_ms * MS), 0, service_ms * 1e6, note);
        entered.map(|ticket| ticket.number)
    }

    fn leave(&mut self, number: u64, at_ms: u64) -> bool {
        let departed = &mut self.departed;
        let note = |ticket: Ticket, at: Time| departed.push((ticket.number, at.0 as f64 / 1e6));
        self.machine.leave(number, Time(at_ms * MS), note)
    }

    /// All later departures.
    fn rest(mut self) -> Vec<(u64, f64)> {
        let departed = &mut self.departed;
        self.machine.advance(Time::NEVER, |ticket, at| {
            departed.push((ticket.number, at.0 as f64 / 1e6));
        });
        assert_eq!((self.machine.in_service(), self.machine.waiting()), (0, 0));
        assert_eq!(self.machine.next_departure(), Time::NEVER);
        self.departed
    }
}

#[test]
fn one_server_serves_in_order() {
    let mut bench = Bench::new(shape(1));
    for (at, service) in [(0, 10.0), (1, 1.0), (2, 5.0), (100, 3.0)] {
        bench.enter(at, service).unwrap();
    }
    assert_eq!(bench.rest(), [(0, 10.0), (1, 11.0), (2, 16.0), (3, 103.0)]);
}

#[test]
fn a_short_request_overtakes_a_long_one_on_another_server() {
    let mut bench = Bench::new(shape(2));
    for (at, service) in [(0, 10.0), (0, 2.0), (1, 1.0), (1, 8.0)] {
        bench.enter(at, service).unwrap();
    }
    assert_eq!((bench.machine.in_service(), bench.machine.waiting()), (2, 2));
    assert_eq!(bench.rest(), [(1, 2.0), (2, 3.0), (0, 10.0), (3, 11.0)]);
}

#[test]
fn a_full_queue_refuses_until_a_request_departs() {
    let mut bench = Bench::new(Shape { waiting_max: Some(1), ..shape(1) });
    assert_eq!([bench.enter(0, 10.0), bench.enter(0, 10.0)], [Ok(0), Ok(1)]);
    assert_eq!(bench.enter(9, 10.0), Err(Full));
    assert_eq!([bench.enter(10, 1.0), bench.enter(10, 1.0)], [Ok(2), Err(Full)]);
    assert_eq!(bench.rest(), [(0, 10.0), (1, 20.0), (2, 21.0)]);
    let mut without_places = Bench::new(Shape { waiting_max: Some(0), ..shape(1) });
    assert_eq!([without_places.enter(0, 5.0), without_places.enter(1, 5.0)], [Ok(0), Err(Full)]);
    assert_eq!(without_places.enter(5, 5.0), Ok(1));
}

#[test]
fn a_leaving_request_frees_its_place_waiting_or_in_service() {
    let mut bench = Bench::new(Shape { waiting_max: Some(2), ..shape(1) });
    for _ in 0..3 {
        bench.enter(0, 10.0).unwrap();
    }
    assert!(bench.leave(1, 1));
    assert!(!bench.leave(1, 1), "it has left");
    assert_eq!(bench.machine.waiting(), 1);
    assert_eq!(bench.enter(2, 10.0), Ok(3));
    assert!(bench.leave(0, 4));
    assert!(!bench.leave(2, 14), "it has just been served");
    assert!(!bench.leave(99, 14), "it was never there");
    assert_eq!(bench.rest(), [(2, 14.0), (3, 24.0)]);
}

#[test]
fn requests_in_service_together_slow_each_other() {
    // Two at a time run at half the speed of one: contention 1 is one shared server.
    let usl = Usl { contention: 1.0, crosstalk: 0.0 };
    let all = Shape { servers: None, usl: Some(usl), ..shape(1) };
    let mut bench = Bench::new(all);
    bench.enter(0, 10.0).unwrap();
    bench.enter(4, 3.0).unwrap();
    // From 4 ms on, each runs at 1/2: the second departs at 10 ms, when the first has 3 ms left.
    assert_eq!(bench.rest(), [(1, 10.0), (0, 13.0)]);
    let mut limited = Bench::new(Shape { servers: Some(1), ..all });
    limited.enter(0, 10.0).unwrap();
    limited.enter(4, 3.0).unwrap();
    assert_eq!(limited.rest(), [(0, 10.0), (1, 13.0)]);
}

#[test]
fn the_scalability_law_has_a_peak() {
    let usl = Usl { contention: 0.02, crosstalk: 0.0005 };
    let throughput = |n: u32| f64::from(n) * usl.speed_of_each(f64::from(n));
    assert_eq!(throughput(1), 1.0);
    let peak = (1..200).max_by(|a, b| throughput(*a).total_cmp(&throughput(*b))).unwrap();
    assert_eq!(peak, 44);
}

#[test]
fn a_warm_up_slows_the_queue() {
    let warm_up = WarmUp { time: Duration::from_millis(10), speed: 0.5 };
    let speed = Speed { warm_up: Some(warm_up), spells: None };
    let mut bench = Bench::new(Shape { speed, ..shape(1) });
    for at in [0, 0, 50] {
        bench.enter(at, 4.0).unwrap();
    }
    assert_eq!(bench.rest(), [(0, 8.0), (1, 13.0), (2, 54.0)]);
}

#[test]
fn a_request_that_is_read_late_is_served_from_its_arrival() {
    let mut bench = Bench::new(shape(1));
    bench.enter(10, 1.0).unwrap();
    // A thread that slept checks for departures, and then reads.
    bench.machine.advance(Time(20 * MS), |_, _| ());
    bench.enter(15, 1.0).unwrap();
    assert_eq!(bench.rest(), [(1, 16.0)]);
}

#[test]
fn a_request_from_before_the_last_event_arrives_with_it() {
    let mut bench = Bench::new(shape(1));
    bench.enter(20, 1.0).unwrap();
    bench.enter(15, 1.0).unwrap();
    assert_eq!(bench.rest(), [(0, 21.0), (1, 22.0)]);
}

//! What is recorded of responses besides their times, and of users that pause.

use throng_metrics::{SAMPLED_OF, SampleInterval};

use super::values::request;
use super::*;

const COUNT: u64 = 1000;

/// One user, whose requests differ or are all the same, and which pauses after each.
fn sampled(path: &str, answer: impl Fn(&mut Random) -> Vec<(Duration, Deed)> + 'static) -> Outcome {
    let steps = vec![request("GET", path, |_| {}), pause(2 * MS)];
    let drive = Drive::Iterations(Iterations::new(1, None, Some(COUNT)));
    let program = program(Scheme::Http, vec![session(steps, 0)], HTTP, phase(drive, None));
    let outcome = run(program, 9, |world| world, http_server(answer));
    outcome.is_sound(9);
    assert_eq!(outcome.sum.total().ok, COUNT);
    outcome
}

fn answer(head: &str, body: &str) -> Vec<(Duration, Deed)> {
    let length = body.len();
    let (first, rest) = body.split_at(length / 3);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{head}\r\n{first}");
    vec![(MS, say(head.as_bytes())), (MS, say(rest.as_bytes()))]
}

fn looked_at(same: bool, cached: bool) -> Vec<SampleInterval> {
    let sampled = COUNT.div_ceil(u64::from(SAMPLED_OF));
    let of = |is: bool, least| if is { sampled } else { least };
    vec![SampleInterval {
        step: 0,
        sampled,
        same: of(same, 1),
        cached: of(cached, 0),
        ..SampleInterval::default()
    }]
}

#[test]
fn one_response_in_64_is_sampled_if_requests_differ() {
    let same = sampled("/item/${user.id + random.int(1, 9)}", |_| answer("", "the same body"));
    assert_eq!(same.sum.samples, looked_at(true, false));
    let differing =
        |random: &mut Random| answer("", &format!("body {:016x}", random.below(u64::MAX)));
    let differs = sampled("/item/${user.id + random.int(1, 9)}", differing);
    assert_eq!(differs.sum.samples, looked_at(false, false));
    assert_eq!(sampled("/item", |_| answer("", "the same body")).sum.samples, []);
}

#[test]
fn responses_from_a_cache_are_recognized() {
    for (head, cached) in [
        ("Age: 7\r\n", true),
        ("X-Cache: Hit from cloudfront\r\n", true),
        ("CF-Cache-Status: HIT\r\n", true),
        ("Age: 0\r\n", false),
        ("X-Cache: MISS\r\n", false),
    ] {
        let outcome = sampled("/item/${user.id + random.int(1, 9)}", move |_| answer(head, "body"));
        assert_eq!(outcome.sum.samples, looked_at(true, cached), "{head}");
    }
}

#[test]
fn the_time_that_users_pause_is_recorded() {
    let outcome = sampled("/item", |_| answer("", "body"));
    let paused = outcome.sum.population.paused_us;
    assert!((COUNT * 2000..COUNT * 2300).contains(&paused), "{paused}");
}

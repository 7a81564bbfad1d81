//! Forecasts compared with results: loads and sessions of many shapes. Known values are equal;
//! values that depend on pauses and the target are within the bounds.

use throng_data::{AtEnd, Take};
use throng_load::{Assumed, Bound, Forecast, comers};
use throng_program::{Amount, Beat, BeatFault, Churn, Points, Rate, Sine, Spacing, Start, Way};

use super::*;

mod shapes;

const KINDS: &[StepKind] =
    &[StepKind::Http, StepKind::Request, StepKind::Stay, StepKind::Heartbeat];
/// The server answers after this time; the simulated network takes less than one more.
const ANSWER: Duration = Duration::from_millis(10);
const ANSWER_SECONDS: (f64, f64) = (0.010, 0.011);
/// A user that is told to leave finishes its step; for a WebSocket, that waits a tenth of a second
/// for the target's close, which never arrives.
const LEAVING_SECONDS: f64 = 0.12;

fn to_users(to: u64, coming: Coming, time: Option<u64>) -> Phase {
    phase(Drive::Users(Users { to, coming }), time.map(Duration::from_secs))
}

fn users(to: u64, seconds: u64) -> Phase {
    to_users(to, Coming::AtOnce, Some(seconds))
}

fn arrivals(rate: f64, to: f64, seconds: u64) -> Phase {
    phase(Drive::Arrivals(Arrivals::ramp(rate, to)), Some(Duration::from_secs(seconds)))
}

fn iterations(users: u64, rate: Option<f64>, total: Option<u64>, time: Option<u64>) -> Phase {
    let drive = Drive::Iterations(Iterations::new(users, rate, total));
    phase(drive, time.map(Duration::from_secs))
}

fn churning(phase: Phase, amount: Amount) -> Phase {
    Phase { churn: Some(Churn { amount, ways: vec![CloseMode::Reset] }), ..phase }
}

fn ask() -> Statement {
    get(Vec::new())
}

fn think(low: u64, high: u64) -> Statement {
    Statement::Think(Pause::Uniform { low: low as u32 * MS, high: high as u32 * MS })
}

fn of(sessions: Vec<Session>, phases: Vec<Phase>) -> Program {
    let mut program = program(Scheme::Http, sessions, KINDS, users(0, 0));
    program.loads[0].phases = phases;
    program
}

/// One session over HTTP.
fn http(code: Block, phases: Vec<Phase>) -> Program {
    of(vec![session(code, 0)], phases)
}

/// Connects and stays.
fn staying(heartbeat: Option<Heartbeat>, phases: Vec<Phase>) -> Program {
    let code = vec![connect(), stay(2, heartbeat)];
    let mut program = of(vec![session(code, 0)], phases);
    program.targets[0].scheme = Scheme::Ws;
    program.steps[0] = StepInfo::new("connect", StepKind::Connect);
    program
}

/// Of some value: the minimum, the result, the maximum.
#[track_caller]
fn between(name: &str, figure: &str, (least, came, most): (f64, f64, f64)) {
    let near = 1e-6;
    let holds = least - near <= came && came <= most + near;
    assert!(holds, "{name}: {figure} are {came}, not {least} to {most}");
}

/// Runs it, and checks the forecast.
#[track_caller]
fn holds(name: &str, program: Program) -> (Program, Outcome) {
    holds_nearly(name, program, 0.0)
}

/// Random choices are only near the expected values: a part may be missing or extra.
#[track_caller]
fn holds_nearly(name: &str, program: Program, drawn: f64) -> (Program, Outcome) {
    let is_http = program.targets[0].scheme == Scheme::Http;
    let server = match is_http {
        true => http_server(|_| vec![(ANSWER, say(HELLO))]),
        false => chat_server(0),
    };
    let outcome = run(program.clone(), 3, |world| world, server);
    outcome.is_sound(3);
    let forecast = Forecast::new(&program);
    let (least, most) =
        (forecast.course(Assumed::least(ANSWER_SECONDS.1)), forecast.course(Assumed::most()));
    let mean = forecast.course(Assumed::mean(ANSWER_SECONDS.0));
    let sum = &outcome.sum;
    let (stay, arrive) = forecast.users();
    let started = sum.population.started;
    match program.loads.iter().any(is_left_to_chance) {
        false => assert_eq!(started, stay + arrive, "{name}: users"),
        true => assert!(started <= program.loads.iter().map(comers).sum(), "{name}: users"),
    }
    let all = |figures: &[f64]| figures.iter().sum::<f64>();
    let near =
        |least: f64, came: f64, most: f64| (least * (1.0 - drawn), came, most * (1.0 + drawn));
    let begun = sum.population.iterations_started as f64;
    between(name, "iterations", near(all(&least.iterations), begun, all(&most.iterations)));
    let asked = if is_http { sum.total().count } else { sum.traffic.messages.sent } as f64;
    between(name, "requests", near(least.requests(), asked, most.requests()));
    between(name, "requests expected", (least.requests(), mean.requests(), most.requests()));
    let opened = sum.connections.counts.opened as f64;
    between(name, "connections", (least.connections, opened, most.connections));
    let seconds = outcome.end.as_nanos() as f64 / 1e9;
    between(name, "seconds", (most.seconds, seconds, least.seconds + LEAVING_SECONDS));
    let most_users = forecast.users_at_once(Bound::Most, ANSWER_SECONDS.1).ceil() + 1.0;
    let at_once = outcome.most_open as f64;
    between(
        name,
        "users at once",
        (forecast.users_at_once(Bound::Least, 0.0).floor(), at_once, most_users),
    );
    (program, outcome)
}

/// The number of arrivals is not known in advance.
fn is_left_to_chance(load: &Load) -> bool {
    load.phases.iter().any(|phase| match &phase.drive {
        Drive::Arrivals(it) => it.spacing == Spacing::Poisson || it.max.is_some(),
        Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => false,
    })
}

/// The forecast is exact: minimum, average and maximum are the same.
#[track_caller]
fn is_exact(name: &str, program: Program) {
    let (program, outcome) = holds(name, program);
    let forecast = Forecast::new(&program);
    let mean = forecast.course(Assumed::mean(ANSWER_SECONDS.0));
    let begun = outcome.sum.population.iterations_started as f64;
    assert_eq!(mean.iterations.iter().sum::<f64>(), begun, "{name}: iterations");
    assert_eq!(mean.requests(), outcome.sum.total().count as f64, "{name}: requests");
    assert_eq!(
        mean.connections, outcome.sum.connections.counts.opened as f64,
        "{name}: connections"
    );
}

#[test]
fn the_forecast_of_a_schedule_is_exact() {
    let one = || vec![ask()];
    is_exact("arrivals", http(one(), vec![arrivals(50.0, 50.0, 4)]));
    is_exact("rising arrivals", http(one(), vec![arrivals(0.0, 33.0, 7), arrivals(33.0, 5.0, 3)]));
    is_exact("two requests", http(vec![ask(), ask()], vec![arrivals(7.3, 7.3, 3), users(0, 1)]));
    let rated = iterations(5, Some(20.0), None, Some(3));
    is_exact("iterations at a rate", http(one(), vec![rated]));
    is_exact("so many at a rate", http(one(), vec![iterations(5, Some(20.0), Some(33), None)]));
    is_exact("so many", http(one(), vec![iterations(5, None, Some(203), None)]));
    let loops = vec![repeat(3, vec![ask(), repeat(2, vec![ask()])])];
    is_exact("loops", http(loops, vec![iterations(4, None, Some(50), None)]));
}

#[test]
fn a_closed_model_stays_within_the_bounds() {
    let thinks = || vec![ask(), think(200, 600)];
    holds("at once", http(thinks(), vec![users(20, 10)]));
    holds("pauses that are known", http(vec![ask(), think(700, 700)], vec![users(20, 10)]));
    holds("pause first", http(vec![think(700, 700), ask()], vec![users(20, 10)]));
    let ramp = to_users(50, Coming::Rate(10.0), None);
    let down = to_users(0, Coming::Rate(20.0), None);
    holds("ramp", http(thinks(), vec![ramp.clone(), users(50, 3), down]));
    holds("ramp that is cut", http(thinks(), vec![to_users(50, Coming::Rate(10.0), Some(2))]));
    let stairs = Coming::Steps { size: 8, every: 2 * S };
    holds("stairs", http(thinks(), vec![to_users(30, stairs, None)]));
    holds("more and fewer", http(thinks(), vec![users(10, 3), users(4, 2), users(20, 3)]));
    holds("arrivals beside", http(thinks(), vec![users(10, 4), arrivals(5.0, 5.0, 4)]));
    holds("iterations", http(thinks(), vec![iterations(7, None, None, Some(5))]));
    holds("so many", http(thinks(), vec![iterations(7, None, Some(40), None)]));
    holds("too few users", http(thinks(), vec![iterations(3, Some(50.0), None, Some(5))]));
    holds("in time", http(thinks(), vec![iterations(7, None, Some(40), Some(60))]));
    holds("no time", http(thinks(), vec![iterations(7, None, Some(4_000), Some(6))]));
    let forever = vec![ask(), Statement::Forever(vec![think(100, 200), ask()])];
    holds("without end", http(forever, vec![users(10, 5)]));
}

#[test]
fn arriving_users_stay_for_their_pauses() {
    let visit = || vec![ask(), think(1500, 2500), ask()];
    holds("visits", http(visit(), vec![arrivals(20.0, 20.0, 10)]));
    holds("fewer and fewer", http(visit(), vec![arrivals(40.0, 0.0, 10)]));
    holds("with a pause", http(visit(), vec![arrivals(30.0, 30.0, 3), users(0, 5)]));
    let known = vec![ask(), think(2000, 2000), ask(), think(1000, 1000)];
    let (program, outcome) = holds("known", http(known, vec![arrivals(20.0, 20.0, 10)]));
    // Of 200 users, the last 40 were told to leave before their second request.
    let mean = Forecast::new(&program).course(Assumed::mean(ANSWER_SECONDS.0));
    assert_eq!(outcome.sum.total().count, 360);
    assert!((mean.requests() - 360.0).abs() < 25.0, "{}", mean.requests());
    assert_eq!(Forecast::new(&program).users_at_once(Bound::Mean, 0.0), 60.0);
    assert_eq!(outcome.most_open, 61, "an answer takes a moment");
}

#[test]
fn choices_and_conditions_stay_within_the_bounds() {
    let way = |(weight, steps): (u32, Block)| Way { weight, steps };
    let choice = Statement::Choose([(3, vec![think(300, 400)]), (1, vec![])].map(way).into());
    let chosen = |phase: Phase| http(vec![ask(), choice.clone()], vec![phase]);
    holds("choice", chosen(users(20, 5)));
    holds("choice of arrivals", chosen(arrivals(20.0, 20.0, 5)));
    let during = Statement::During { time: S, steps: vec![ask(), think(290, 310)] };
    holds("for a time", http(vec![during], vec![arrivals(5.0, 5.0, 5), users(0, 3)]));
    let condition = Arc::new(expression("user.id == 1"));
    let leaves = Statement::If { condition, then: vec![Statement::Leave], otherwise: Vec::new() };
    holds("some leave", http(vec![ask(), leaves, think(900, 900)], vec![arrivals(9.0, 9.0, 5)]));
}

#[test]
fn sessions_share_the_users() {
    let weighted = |weight: u32, code: Block| Session { weight, ..session(code, 0) };
    let both = || {
        vec![weighted(1, vec![ask(), think(100, 100)]), weighted(3, vec![ask(), think(900, 900)])]
    };
    // Four standard deviations of 2,000 samples, of which a quarter is 8 times as fast.
    holds_nearly("weights", of(both(), vec![users(2_000, 5)]), 0.1);
    let mut counted = both();
    counted[0].count = Some(6);
    holds("a number", of(counted.clone(), vec![users(40, 5)]));
    let ramp = to_users(40, Coming::Rate(10.0), None);
    holds("a number in a ramp", of(counted, vec![ramp]));
}

#[test]
fn parallel_loads_add_up() {
    let sessions =
        || vec![session(vec![ask(), think(300, 500)], 0), session(vec![ask(), think(900, 900)], 0)];
    let load = |name: &str, number: u16, start: Start, phase: Phase| Load {
        name: name.into(),
        sessions: Some([number].into()),
        start,
        ..Load::alone(vec![phase])
    };
    let mut program = of(sessions(), Vec::new());
    program.loads = vec![
        load("stay", 0, Start::At(Duration::ZERO), users(20, 6)),
        load("visit", 1, Start::At(2 * S), arrivals(10.0, 10.0, 3)),
        load("again", 1, Start::After(1), arrivals(5.0, 20.0, 4)),
    ];
    let (program, _) = holds("loads", program);
    // Users that are there at the end of the second load leave with it; the last one is alone then.
    let at_once = Forecast::new(&program).users_at_once(Bound::Mean, 0.0);
    assert!((29.0..=31.0).contains(&at_once), "{at_once}");
}

#[test]
fn staying_users_send_heartbeats_and_disconnect() {
    let beat = Heartbeat {
        step: StepId(3),
        beat: Beat::Message(Message::plain(MessageKind::Text, Text::literal("hb"))),
        every: 400 * MS,
        answer: Which::default(),
        lost_after: None,
        fault: BeatFault::default(),
    };
    holds("stays", staying(None, vec![users(20, 3)]));
    holds("beats", staying(Some(beat.clone()), vec![users(20, 6)]));
    holds("beats of those who arrive", staying(Some(beat.clone()), vec![arrivals(9.0, 9.0, 6)]));
    let rate = churning(users(20, 5), Amount::Rate(7.0));
    holds("falls out", staying(None, vec![rate.clone()]));
    let share = Amount::Share { share: 0.3, every: 2 * S };
    holds("a share falls out", staying(Some(beat), vec![rate, churning(users(20, 5), share)]));
    let reopened = churning(users(20, 5), Amount::Rate(7.0));
    holds("falls out of HTTP", http(vec![ask(), think(100, 100)], vec![reopened]));
}

#[test]
fn each_request_may_open_a_connection() {
    let mut program = http(vec![ask(), ask(), think(100, 100)], vec![arrivals(9.0, 9.0, 3)]);
    program.connection.keep_alive = false;
    holds("no keep-alive", program);
}

#[test]
fn there_are_enough_rows_for_all_users_that_take_one() {
    let taking = |phases: Vec<Phase>| {
        let code = vec![values::request("GET", "/${data.rows.n}", |_| {}), think(600, 600)];
        let mut program = http(code, phases);
        program.data = vec![values::rows(Take::Unique, AtEnd::Wrap)];
        program
    };
    let phases = vec![to_users(9, Coming::Rate(3.0), None), users(9, 2), arrivals(3.0, 3.0, 2)];
    let (program, outcome) = holds("rows", taking(phases));
    let forecast = Forecast::new(&program);
    let rows = forecast.rows(0, &forecast.course(Assumed::most())).unwrap();
    let taken = outcome.sum.population.iterations_started;
    // Nine users and six more have at most one unfinished iteration each.
    assert!((taken..=taken + 15).contains(&rows), "{taken} rows were taken, not up to {rows}");

    let mut program = taking(vec![users(4, 5)]);
    program.data = vec![values::rows(Take::Unique, AtEnd::Stop)];
    let outcome =
        run(program.clone(), 3, |world| world, http_server(|_| vec![(ANSWER, say(HELLO))]));
    let course = Forecast::new(&program).course(Assumed::mean(ANSWER_SECONDS.0));
    assert_eq!(course.capped(&[true], 5.0).requests().round(), outcome.sum.total().ok as f64);
}

#[test]
fn a_counted_phase_runs_the_exact_number_of_iterations() {
    let drive = Drive::Iterations(Iterations::new(50, None, Some(10_001)));
    let program = program(
        Scheme::Http,
        vec![session(vec![get(Vec::new())], 0)],
        &[StepKind::Http],
        phase(drive, None),
    );
    let outcome = run(program, 1, |world| world, http_server(|_| vec![(MS, say(HELLO))]));
    outcome.is_sound(1);
    let total = outcome.sum.total();
    assert_eq!((total.count, total.ok), (10_001, 10_001));
    assert_eq!(outcome.sum.population.iterations_finished, 10_001);
    // Keep-alive: one connection per user, no more.
    assert_eq!(outcome.sum.connections.counts.opened, 50);
    let p50 = total.latency.value_at(0.5);
    assert!((1_040_000..1_200_000).contains(&p50), "{p50}");
}

//! The judge against a simulated target: users log in and disconnect in all ways, and the target
//! keeps its own state and makes errors on purpose. The judge must find exactly these errors, user
//! by user.

use std::collections::{BTreeMap, BTreeSet};

use throng_base::Random;
use throng_metrics::audit::Round;
use throng_metrics::presence::{Change, Packed};

use super::*;

const WITHIN: Duration = Duration::from_secs(10);
const USERS: u64 = 400;

fn seconds(seconds: f64) -> Time {
    Time((seconds * 1e9) as u64)
}

fn known(change: Change, at: f64, node: Node) -> Known {
    Known { change, at: seconds(at), node }
}

fn snapshot(users: &[(u64, Known)]) -> Snapshot {
    Snapshot { users: users.iter().map(|(user, known)| (*user, Packed::new(*known))).collect() }
}

fn reading(at: f64, online: &[(u64, Node)]) -> Reading {
    let (from, to) = (seconds(at), seconds(at + 0.1));
    Reading { from, to, online: online.to_vec(), ..Reading::default() }
}

#[test]
fn only_an_old_contradiction_is_an_error_and_only_at_the_second_reading() {
    let mut judge = Judge::new(WITHIN);
    let users = [
        (1, known(Change::Login, 1.0, 1)),
        (2, known(Change::Login, 1.0, 1)),
        (3, known(Change::Vanished, 95.0, 1)),
        (4, known(Change::Left, 1.0, 1)),
        (5, known(Change::Moved, 1.0, 2)),
    ];
    let known_now = snapshot(&users);
    let said = [(1, 0), (3, 1), (4, 1), (5, 1), (9, 0)];
    judge.begin(&reading(100.0, &said), &known_now);
    assert_eq!(judge.pending(), [2, 3, 4, 5, 9]);
    judge.again(&reading(101.2, &said), &known_now);
    assert_eq!(judge.pending(), [3, 9], "changed 6 s ago, and not known for 10 s");
    judge.again(&reading(106.0, &said), &known_now);
    assert_eq!(judge.pending(), [9]);
    let round = judge.end();
    assert_eq!((round.compared, round.agree, round.undecided), (5, 2, 1));
    assert_eq!((round.false_online, round.false_offline, round.wrong_node), (2, 1, 1));
    let wrong: Vec<_> = round.wrong.iter().map(|it| (it.user, it.what, it.last)).collect();
    let all = [
        (2, WrongKind::FalseOffline, Change::Login),
        (3, WrongKind::FalseOnline, Change::Vanished),
        (4, WrongKind::FalseOnline, Change::Left),
        (5, WrongKind::WrongNode, Change::Moved),
    ];
    assert_eq!(wrong, all);
    judge.begin(&reading(120.0, &said), &known_now);
    let round = judge.end();
    assert_eq!((round.strangers, round.undecided), (1, 0), "who was wrong is so at once");
}

#[test]
fn a_login_with_a_response_in_transit_is_not_an_error() {
    let mut judge = Judge::new(WITHIN);
    let before = snapshot(&[(1, known(Change::Left, 1.0, 1))]);
    judge.begin(&reading(100.0, &[(1, 0), (2, 0)]), &before);
    assert_eq!(judge.pending(), [1, 2]);
    let after =
        snapshot(&[(1, known(Change::Back, 100.2, 1)), (2, known(Change::Login, 100.2, 1))]);
    judge.again(&reading(101.2, &[(1, 0), (2, 0)]), &after);
    let round = judge.end();
    assert_eq!((round.agree, round.wrong_users(), round.strangers), (2, 0, 0));
}

#[test]
fn the_time_to_agree_is_measured_on_contradicted_users() {
    let mut judge = Judge::new(WITHIN);
    let users =
        snapshot(&[(1, known(Change::Vanished, 97.0, 1)), (2, known(Change::Login, 2.0, 1))]);
    judge.begin(&reading(100.0, &[(1, 0), (2, 0)]), &users);
    judge.again(&reading(103.0, &[(1, 0)]), &users);
    assert_eq!(judge.pending(), [1]);
    judge.again(&reading(105.0, &[]), &users);
    let round = judge.end();
    let times: Vec<_> = round.times.iter().map(|(kind, times)| (*kind, times.max())).collect();
    assert_eq!(times.len(), 1);
    assert_eq!(times[0].0, Change::Vanished);
    assert!((8.0e9..8.4e9).contains(&(times[0].1 as f64)), "{times:?}");
}

/// A target with two views: its memory, and a delayed mirror of it.
struct Target {
    memory: BTreeMap<u64, Node>,
    mirror: BTreeMap<u64, Node>,
    /// Future events: users time out, and the mirror gets changes.
    later: Vec<(Time, u64, Later)>,
    /// Users that it has forgotten, and users that it does not clear.
    wrong: BTreeSet<u64>,
}

#[derive(Clone, Copy)]
enum Later {
    Gone,
    Mirror,
}

/// One run: all events until `until`, in steps of 50 ms.
struct Simulation {
    random: Random,
    now: Time,
    known: BTreeMap<u64, Known>,
    target: Target,
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let target = Target {
            memory: BTreeMap::new(),
            mirror: BTreeMap::new(),
            later: Vec::new(),
            wrong: BTreeSet::new(),
        };
        let random = Random::new(seed);
        Simulation { random, now: Time::ZERO, known: BTreeMap::new(), target }
    }

    fn go_on(&mut self, until: Time, churns: bool) {
        while self.now < until {
            self.now = self.now.saturating_add(Duration::from_millis(50));
            let due: Vec<_> =
                self.target.later.extract_if(.., |(at, ..)| *at <= self.now).collect();
            for (_, user, what) in due {
                self.happens(user, what);
            }
            for _ in 0..if churns { 1 + self.random.below(3) } else { 0 } {
                let user = 1 + self.random.below(USERS);
                self.change(user);
            }
        }
    }

    fn happens(&mut self, user: u64, what: Later) {
        match what {
            // It may be online again by then.
            Later::Gone if self.known[&user].is_online() => {}
            Later::Gone => {
                self.target.memory.remove(&user);
                self.mirror_later(user);
            }
            Later::Mirror if self.target.wrong.contains(&user) => {}
            Later::Mirror => {
                match self.target.memory.get(&user) {
                    Some(node) => self.target.mirror.insert(user, *node),
                    None => self.target.mirror.remove(&user),
                };
            }
        }
    }

    fn mirror_later(&mut self, user: u64) {
        let delay = Duration::from_millis(self.random.below(2_000));
        self.target.later.push((self.now.saturating_add(delay), user, Later::Mirror));
    }

    /// A user connects or disconnects in one of all ways.
    fn change(&mut self, user: u64) {
        let before = self.known.get(&user).copied().unwrap_or(Known::NEVER);
        let (change, node) = match before.is_online() {
            true => {
                let ways = [
                    Change::Left,
                    Change::ResetByUs,
                    Change::Vanished,
                    Change::ClosedByTarget,
                    Change::Reset,
                ];
                (ways[self.random.below(ways.len() as u64) as usize], before.node)
            }
            false => {
                let node = 1 + self.random.below(3) as Node;
                match before.change {
                    Change::Never => (Change::Login, node),
                    _ if node == before.node => (Change::Back, node),
                    _ => (Change::Moved, node),
                }
            }
        };
        self.known.insert(user, Known { change, at: self.now, node });
        match change {
            Change::Vanished => {
                let delay = Duration::from_millis(1_000 + self.random.below(6_000));
                self.target.later.push((self.now.saturating_add(delay), user, Later::Gone));
            }
            _ if change.is_online() => {
                self.target.memory.insert(user, node);
                self.mirror_later(user);
            }
            _ => {
                self.target.memory.remove(&user);
                self.mirror_later(user);
            }
        }
        // The mirror no longer gets changes of one percent of the users.
        if self.random.below(100) == 0 {
            self.target.wrong.insert(user);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let users: Vec<_> = self.known.iter().map(|(user, known)| (*user, *known)).collect();
        snapshot(&users)
    }

    /// A reading takes a second, in which users connect and disconnect; each is read at a random
    /// moment of it.
    fn read(&mut self, of: fn(&Target) -> &BTreeMap<u64, Node>, asked: Option<&[u64]>) -> Reading {
        let from = self.now;
        let mut online = BTreeMap::new();
        for part in 0..4 {
            self.go_on(self.now.saturating_add(Duration::from_millis(250)), true);
            let own = of(&self.target).iter().filter(|(user, _)| *user % 4 == part);
            online.extend(own.map(|(user, node)| (*user, *node)));
        }
        let wanted = |user: &u64| asked.is_none_or(|asked| asked.contains(user));
        let online = online.into_iter().filter(|(user, _)| wanted(user)).collect();
        let asked = asked.map(<[u64]>::to_vec);
        Reading { from, to: self.now, online, asked, ..Reading::default() }
    }

    /// The expected errors, once nothing changes.
    fn errors(&self) -> (u64, u64, u64) {
        let (mut false_online, mut false_offline, mut wrong_node) = (0, 0, 0);
        for (user, known) in &self.known {
            match (known.is_online(), self.target.mirror.get(user)) {
                (true, None) => false_offline += 1,
                (false, Some(_)) => false_online += 1,
                (true, Some(node)) if *node != known.node => wrong_node += 1,
                _ => {}
            }
        }
        (false_online, false_offline, wrong_node)
    }
}

fn counts(round: &ViewRound) -> (u64, u64, u64) {
    (round.false_online, round.false_offline, round.wrong_node)
}

#[test]
fn the_expected_errors_are_found_in_twenty_runs() {
    let mut all_wrong = 0;
    for seed in 0..20 {
        let mut it = Simulation::new(seed);
        let mut judges = [Judge::new(WITHIN), Judge::new(WITHIN)];
        it.go_on(Time::from_secs(60), true);
        // While users connect and disconnect, memory is never found wrong.
        for _ in 0..3 {
            let memory = it.read(|target| &target.memory, None);
            let mirror = it.read(|target| &target.mirror, None);
            let now = it.snapshot();
            judges[0].begin(&memory, &now);
            judges[1].begin(&mirror, &now);
            for _ in 0..6 {
                it.go_on(it.now.saturating_add(Duration::from_secs(2)), true);
                let pending = judges[0].pending().to_vec();
                let memory = it.read(|target| &target.memory, Some(&pending));
                let pending = judges[1].pending().to_vec();
                let mirror = it.read(|target| &target.mirror, Some(&pending));
                let now = it.snapshot();
                judges[0].again(&memory, &now);
                judges[1].again(&mirror, &now);
            }
            let [memory, mirror] = judges.each_mut().map(Judge::end);
            assert_eq!(counts(&memory), (0, 0, 0), "seed {seed}");
            let wrong_now: BTreeSet<u64> = mirror.wrong.iter().map(|wrong| wrong.user).collect();
            assert!(wrong_now.is_subset(&it.target.wrong), "seed {seed}: {wrong_now:?}");
        }
        // Once nothing changes, the counts are exact.
        it.go_on(it.now.saturating_add(Duration::from_secs(20)), false);
        let quiet = |it: &Simulation, of: &BTreeMap<u64, Node>| {
            let online = of.iter().map(|(user, node)| (*user, *node)).collect();
            Reading { from: it.now, to: it.now, online, ..Reading::default() }
        };
        let now = it.snapshot();
        let [first, second] = &mut judges;
        first.begin(&quiet(&it, &it.target.memory), &now);
        second.begin(&quiet(&it, &it.target.mirror), &now);
        it.go_on(it.now.saturating_add(Duration::from_secs(2)), false);
        first.again(&quiet(&it, &it.target.memory), &now);
        second.again(&quiet(&it, &it.target.mirror), &now);
        let [memory, mirror] = judges.each_mut().map(Judge::end);
        assert_eq!((counts(&memory), memory.undecided), ((0, 0, 0), 0), "seed {seed}");
        assert_eq!((counts(&mirror), mirror.undecided), (it.errors(), 0), "seed {seed}");
        assert_eq!(memory.compared, it.known.len() as u64);
        check_pairs(&judges, &mirror);
        all_wrong += mirror.wrong_users();
    }
    assert!(all_wrong > 100, "the books had errors to find: {all_wrong}");
}

/// The mirror is the wrong view, as the table of the pair shows.
fn check_pairs(judges: &[Judge], mirror: &ViewRound) {
    let pair = pairs(judges)[0];
    let [off_none, off_mirror, off_memory, off_both, on_none, on_mirror, on_memory, on_both] =
        pair.counts;
    assert_eq!((off_memory, off_both, on_none, on_mirror), (0, 0, 0, 0));
    assert_eq!((off_mirror, on_memory), (mirror.false_online, mirror.false_offline));
    assert_eq!(off_none + off_mirror + on_memory + on_both, mirror.compared);
}

/// A restarted Redis is empty. Online users count as false offline until it is filled again, but
/// only once `within` has passed since their last change.
#[test]
fn an_empty_view_is_wrong_about_all_online_users() {
    let mut judge = Judge::new(WITHIN);
    let users: Vec<_> = (1..=1000).map(|user| (user, known(Change::Login, 5.0, 1))).collect();
    let now = snapshot(&users);
    judge.begin(&reading(60.0, &[]), &now);
    judge.again(&reading(61.5, &[]), &now);
    let round = judge.end();
    assert_eq!((round.false_offline, round.agree), (1000, 0));
    assert_eq!((round.wrong.len(), round.wrong[0].user), (WRONG_MAX, 1));
    let all: Vec<(u64, Node)> = (1..=1000).map(|user| (user, 0)).collect();
    judge.begin(&reading(70.0, &all), &now);
    let round = judge.end();
    assert_eq!((round.false_offline, round.agree), (0, 1000));
    assert_eq!(round.times[&Change::Login].count(), 1000, "the time until it was filled");
}

/// In a fleet, each of three generators has every third user; together they find what a single
/// generator with all users finds.
#[test]
fn several_generators_find_the_same_as_one() {
    const GENERATORS: u64 = 3;
    let own = |generator: u64, reading: &Reading| {
        let is_own = |user: &u64| *user % GENERATORS == generator;
        let online = reading.online.iter().filter(|(user, _)| is_own(user)).copied();
        let asked = reading.asked.as_ref();
        let asked = asked.map(|asked| asked.iter().copied().filter(is_own).collect());
        Reading { online: online.collect(), asked, ..reading.clone() }
    };
    for seed in 0..10 {
        let mut it = Simulation::new(seed);
        let judges = || [Judge::new(WITHIN), Judge::new(WITHIN)];
        let (mut whole, mut parts) = (judges(), [judges(), judges(), judges()]);
        it.go_on(Time::from_secs(60), true);
        for round in 0..4 {
            for look in 0..6 {
                let mut memory = it.read(|target| &target.memory, None);
                let mut mirror = it.read(|target| &target.mirror, None);
                // Users that no generator has.
                mirror.online.extend([(USERS + 1, 0), (USERS + 2, 0)]);
                memory.online.push((USERS + 3, 0));
                let now = it.snapshot();
                let readings = [memory, mirror];
                let judge = |judge: &mut Judge, reading: &Reading, now: &Snapshot| match look {
                    0 => judge.begin(reading, now),
                    _ => judge.again(reading, now),
                };
                for (of, reading) in whole.iter_mut().zip(&readings) {
                    judge(of, reading, &now);
                }
                for (number, part) in (0..).zip(&mut parts) {
                    let users = now.users.iter().filter(|(user, _)| user % GENERATORS == number);
                    let now = Snapshot { users: users.copied().collect() };
                    for (of, reading) in part.iter_mut().zip(&readings) {
                        judge(of, &own(number, reading), &now);
                    }
                }
                it.go_on(it.now.saturating_add(Duration::from_secs(2)), round < 2);
            }
            let end = |judges: &mut [Judge; 2]| {
                let views = judges.iter_mut().map(Judge::end).collect();
                Round { took_ns: 0, views, pairs: pairs(judges) }
            };
            let (one, all) = (end(&mut whole), Round::sum(parts.iter_mut().map(end)));
            assert_eq!(one, all, "seed {seed}, round {round}");
            assert!(one.views[1].strangers > 0 || round == 0, "seed {seed}");
        }
    }
}

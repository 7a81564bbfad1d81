//! Lookups with a function as name server, and shards that follow them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;

use throng_program::Lookup;

use super::*;
use crate::network::routes::Routes;
use crate::prepared::Prepared;

fn program(lookup: Lookup) -> Program {
    let idle = crate::run::tests::program(Vec::new(), 1, Duration::ZERO);
    let mut program = Program::clone(&idle);
    let shop = Target { host: "shop.example".into(), lookup, ..program.targets[0].clone() };
    let fixed = Target { host: "127.0.0.9".into(), ..shop.clone() };
    program.targets = vec![shop.clone(), fixed, shop];
    program
}

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn at_start() -> Vec<Vec<SocketAddr>> {
    let shop = addresses(&["10.0.0.1:80", "10.0.0.2:80"]);
    vec![shop.clone(), addresses(&["127.0.0.9:80"]), shop]
}

#[test]
fn only_names_are_looked_up_and_each_by_one_thread() {
    assert!(Lookups::new(&program(Lookup::Once), &at_start()).is_none());
    let (lookups, watches) = Lookups::new(&program(Lookup::OnFailure), &at_start()).unwrap();
    assert_eq!((watches.len(), &*lookups.names), (1, &[Some(0), None, Some(0)][..]));
    let mut mixed = program(Lookup::OnFailure);
    mixed.targets[2].lookup = Lookup::Every(Duration::from_secs(9));
    let (_, watches) = Lookups::new(&mixed, &at_start()).unwrap();
    assert_eq!(
        watches.iter().map(|it| it.every).collect::<Vec<_>>(),
        [Some(Duration::from_secs(9))]
    );
    mixed.targets.truncate(2);
    mixed.targets[0].lookup = Lookup::Once;
    assert!(Lookups::new(&mixed, &at_start()).is_none(), "an address is not looked up");
}

#[test]
fn shards_follow_a_change_and_keep_the_rows_of_addresses() {
    let program = program(Lookup::OnFailure);
    let (lookups, _watches) = Lookups::new(&program, &at_start()).unwrap();
    let prepared = Prepared::new(Arc::new(program), &at_start());
    let routes = Routes::new(&prepared, Some(Arc::clone(&lookups)));
    let before = routes.to(0);
    assert_eq!((before.place(0), before.place(1), routes.to(1).place(7)), (0, 1, 2));
    // The same addresses in a different order are not a change.
    assert_eq!(lookups.found(0, &addresses(&["10.0.0.2:80", "10.0.0.1:80"])), None);
    assert!(Rc::ptr_eq(&before, &routes.to(0)));
    let moved = addresses(&["10.0.0.3:80", "10.0.0.2:80"]);
    assert_eq!(lookups.found(0, &moved), Some(addresses(&["10.0.0.1:80", "10.0.0.2:80"])));
    let after = routes.to(0);
    assert_eq!(*after.addresses, *moved);
    // The address that stays keeps its row; the new one gets a row after all others.
    assert_eq!((after.place(0), after.place(1)), (5, 1));
    assert_eq!(*routes.to(2).addresses, *moved);
    assert_eq!(*routes.to(1).addresses, *addresses(&["127.0.0.9:80"]));
    // An opening connection keeps its route.
    assert_eq!(*before.addresses, *addresses(&["10.0.0.1:80", "10.0.0.2:80"]));
    let places = RefCell::borrow(routes.places());
    assert_eq!((places.len(), places[5].address), (6 + 1, Some(moved[0])), "{places:?}");
}

/// What a watch reports while connections keep failing, until it has done this many lookups.
fn watched(every: Option<Duration>, answers: Vec<Result<Vec<SocketAddr>, Said>>) -> Vec<NameNews> {
    let lookup = every.map_or(Lookup::OnFailure, Lookup::Every);
    let (lookups, mut watches) = Lookups::new(&program(lookup), &at_start()).unwrap();
    let watch = watches.pop().unwrap();
    let (sender, mut news) = tokio::sync::mpsc::unbounded_channel();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, last) = (Arc::clone(&asked), answers.len());
    let thread = std::thread::spawn(move || {
        let look_up = |host: &str, port: u16| {
            assert_eq!((host, port), ("shop.example", 1));
            let nth = count.fetch_add(1, Ordering::SeqCst);
            answers[nth.min(answers.len() - 1)].clone()
        };
        watch.work(&Clock::start(), look_up, &sender);
    });
    while asked.load(Ordering::SeqCst) < last {
        if every.is_none() {
            lookups.failed(0);
        }
        std::thread::yield_now();
    }
    drop(lookups);
    thread.join().unwrap();
    std::iter::from_fn(|| news.try_recv().ok()).collect()
}

#[test]
fn a_change_is_reported_once_and_so_is_a_name_without_addresses() {
    let moved = || Ok(addresses(&["10.0.0.7:80"]));
    let nowhere = || Err(Said::of_others("no such name"));
    let news = watched(
        Some(Duration::from_millis(5)),
        vec![
            Ok(addresses(&["10.0.0.1:80", "10.0.0.2:80"])),
            moved(),
            moved(),
            nowhere(),
            nowhere(),
            moved(),
            nowhere(),
        ],
    );
    let told: Vec<&str> = news
        .iter()
        .map(|news| match news {
            NameNews::Moved { before, after, .. } => {
                assert_eq!((before.len(), after.len()), (2, 1));
                "moved"
            }
            NameNews::Kept { .. } => "kept",
        })
        .collect();
    assert_eq!(told, ["moved", "kept", "kept"]);
}

#[test]
fn a_failed_connection_triggers_a_lookup() {
    let news = watched(None, vec![Ok(addresses(&["10.0.0.7:80"]))]);
    assert!(matches!(&news[..], [NameNews::Moved { host, .. }] if host == "shop.example"));
}

//! Lists of addresses, how many are taken, and real sockets from them.

use std::net::{TcpListener, UdpSocket};

use throng_base::{Said, Share, Time};
use throng_metrics::Cause;
use throng_program::{Scheme, Target};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::connector::begin_all;
use crate::network::Network;
use crate::prepared::common;

fn range(first: &str, last: &str) -> SourceBlock {
    SourceBlock::Range { first: first.parse().unwrap(), last: last.parse().unwrap() }
}

fn given(blocks: &[SourceBlock]) -> Sources {
    Sources { blocks: blocks.to_vec(), ..Sources::default() }
}

/// A plan with these source addresses.
pub(crate) fn plan_of(blocks: &[SourceBlock]) -> Plan {
    Plan::looked_up(&given(blocks)).unwrap()
}

fn target(address: &str) -> Vec<Vec<SocketAddr>> {
    vec![vec![address.parse().unwrap()]]
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

/// The first addresses that a shard takes for this many users of the run.
fn taken(
    sources: &Sources,
    users: u64,
    address: &str,
    (shard, shards): (u64, u64),
) -> Vec<Option<IpAddr>> {
    taken_by(sources, users, address, Share::WHOLE.thread(shard, shards))
}

fn taken_by(sources: &Sources, users: u64, address: &str, share: Share) -> Vec<Option<IpAddr>> {
    let plan = Arc::new(Plan::looked_up(sources).unwrap());
    let addresses = &target(address)[0];
    let pool = plan.pools(users, &target(address), share).to(0, addresses[0], addresses);
    let mut taken = Vec::new();
    loop {
        let chosen = pool.next(Time::ZERO).unwrap();
        if taken.contains(&chosen.source.address) {
            return taken;
        }
        taken.push(chosen.source.address);
        chosen.used();
    }
}

/// Processes and agents on one host do not try ports where others have taken all: for a full
/// address, the kernel tries all ports for every connection.
#[test]
fn machines_of_a_run_start_with_their_own_addresses() {
    let sources = given(&[SourceBlock::Range {
        first: "127.1.0.0".parse().unwrap(),
        last: "127.1.255.255".parse().unwrap(),
    }]);
    let mut all = Vec::new();
    for machine in 0..10 {
        for thread in 0..6 {
            let share = Share::of_machine(machine, 1, 10).thread(thread, 6);
            let own = taken_by(&sources, 200_000, "127.0.0.1:80", share);
            assert_eq!(own.len(), 2, "33,333 users");
            all.extend(own);
        }
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 120);
}

#[test]
fn a_large_subnet_takes_as_much_memory_as_one_address() {
    let mut list = AddressList::default();
    list.push("10.0.0.0".parse().unwrap(), "10.255.255.255".parse().unwrap());
    list.push("203.0.113.7".parse().unwrap(), "203.0.113.7".parse().unwrap());
    list.push("172.16.0.1".parse().unwrap(), "172.16.0.9".parse().unwrap());
    assert_eq!((list.count, list.spans.len()), ((1 << 24) + 10, 3));
    let at = |index| list.get(index).map(|it| it.to_string());
    assert_eq!(at(0).as_deref(), Some("10.0.0.0"));
    assert_eq!(at((1 << 24) - 1).as_deref(), Some("10.255.255.255"));
    assert_eq!(at(1 << 24).as_deref(), Some("203.0.113.7"));
    assert_eq!(at((1 << 24) + 9).as_deref(), Some("172.16.0.9"));
    assert_eq!(at((1 << 24) + 10), None);
    let mut list = AddressList::default();
    list.push("2001:db8::".parse().unwrap(), "2001:db8:ffff::".parse().unwrap());
    assert_eq!(list.count, ADDRESSES_MAX);
    assert_eq!(list.get(65_536).unwrap().to_string(), "2001:db8::1:0");
}

#[test]
fn addresses_are_taken_as_users_need_them() {
    let mut sources = given(&[range("127.9.0.0", "127.9.255.255")]);
    sources.ports = Some((10_000, 10_999));
    let address = |last: u8| Some(IpAddr::from([127, 9, 0, last]));
    assert_eq!(taken(&sources, 1, "127.0.0.1:80", (0, 1)), [address(0)]);
    let mut three = taken(&sources, 2000, "127.0.0.1:80", (0, 1));
    three.sort_unstable();
    assert_eq!(three, [address(0), address(1), address(2)]);
    assert_eq!(taken(&sources, 2000, "127.0.0.1:80", (1, 3)), [address(1)]);
    // An address has its ports once per address of the target.
    let plan = Plan::looked_up(&sources).unwrap();
    let both = ["127.0.0.1:80", "127.0.0.1:81"].map(|it| it.parse().unwrap());
    assert_eq!(plan.needed(2000.0, &[both.to_vec()], (0, &both[0])), 2);
}

/// Three of four users use one target, the others two: the socket type of each target.
fn plan_for(kinds: [SourceKind; 3], ports: (u16, u16)) -> Plan {
    let mut plan = plan_of(&[range("127.9.0.0", "127.9.255.255")]);
    plan.ports = Ports::InTurn(Range::new(ports));
    plan.ports_count = u64::from(ports.1 - ports.0) + 1;
    plan.routes = kinds.into_iter().zip([0.75, 0.125, 0.125]).collect();
    plan
}

#[test]
fn users_of_one_target_need_no_ports_of_another() {
    use SourceKind::{Datagram, Stream};
    let all: Vec<Vec<SocketAddr>> =
        [80, 81, 82].map(|port| vec![SocketAddr::from(([127, 0, 0, 1], port))]).to_vec();
    let needed = |kinds: [SourceKind; 3]| {
        let plan = plan_for(kinds, (10_000, 10_999));
        [0, 1, 2].map(|target| plan.needed(8_000.0, &all, (target, &all[target][0])))
    };
    // 900 ports of an address are used before the next one.
    assert_eq!(needed([Stream; 3]), [7, 2, 2]);
    // UDP sockets share their ports, whatever the target.
    assert_eq!(needed([Stream, Datagram, Datagram]), [7, 3, 3]);
    assert_eq!(needed([Datagram; 3]), [9, 9, 9]);
}

#[test]
fn shares_of_targets_follow_sessions_and_weights() {
    let mut program = crate::run::tests::program(Vec::new(), 10, std::time::Duration::ZERO);
    let inner = Arc::get_mut(&mut program).unwrap();
    let target = |scheme, weight| Target { weight, ..Target::new(scheme, "127.0.0.1", 1) };
    inner.targets = vec![target(Scheme::Ws, 3), target(Scheme::Ws, 1), target(Scheme::Http, 1)];
    let mut second = inner.sessions[0].clone();
    (inner.sessions[0].weight, inner.sessions[0].links[0].targets) = (4, [0, 1].into());
    (second.weight, second.links[0].targets) = (1, [2].into());
    inner.sessions.push(second);
    let shares = target_shares(inner);
    for (share, wanted) in shares.iter().zip([0.6, 0.2, 0.2]) {
        assert!((share - wanted).abs() < 1e-9, "{shares:?}");
    }
    // Users without a target need no address.
    inner.sessions[1].links[0].targets = [9].into();
    assert_eq!(target_shares(inner)[2], 0.0);
}

#[test]
fn the_loopback_interface_has_enough_addresses() {
    let nothing = Sources::default();
    assert_eq!(taken(&nothing, 1000, "127.0.0.1:80", (0, 2)), [None]);
    let many = taken(&nothing, 1_000_000, "127.0.0.1:80", (0, 2));
    assert!(many.len() > 5 && many.contains(&Some([127, 1, 0, 1].into())), "{many:?}");
    assert_eq!(taken(&nothing, 1_000_000, "[::1]:80", (0, 2)), [None]);
    assert_eq!(taken(&nothing, 1_000_000, "10.1.2.3:80", (0, 2)), [None]);
    let plan = Plan::looked_up(&nothing).unwrap();
    let count = |target: IpAddr| plan.addresses(target).map_or(1, |list| list.count);
    assert_eq!(count([127, 0, 0, 1].into()), 65_534);
    assert_eq!(count([10, 0, 0, 1].into()), 1);
}

#[test]
fn the_kernel_chooses_ports_only_inside_the_range_of_the_host() {
    let host = (32_768, 60_999);
    assert_eq!(ports((1024, 65_535), host), Ports::InTurn(Range::new((1024, 65_535))));
    let inside = ports((40_000, 41_000), host);
    let turn = Ports::InTurn(Range::new((40_000, 41_000)));
    assert!(inside == Ports::Among(41_000 << 16 | 40_000) || inside == turn, "{inside:?}");
}

#[test]
fn every_port_is_tried() {
    for count in [1, 2, 3, 4, 6, 1000, 28_232, 64_512] {
        let range = Range::new((1024, 1023 + count as u16));
        assert_eq!((range.count, common(range.stride.into(), range.count.into())), (count, 1));
    }
}

/// Why a run with these sources does not start.
fn refused(blocks: &[SourceBlock], address: &str) -> Said {
    let mut program = crate::run::tests::program(Vec::new(), 10, std::time::Duration::ZERO);
    let inner = Arc::get_mut(&mut program).unwrap();
    inner.connection.sources = given(blocks);
    inner.targets = vec![Target::new(Scheme::Tcp, address, 80)];
    let address: SocketAddr = SocketAddr::new(address.parse().unwrap(), 80);
    Plan::new(&program, 10, &mut [vec![address]]).unwrap_err()
}

#[test]
fn impossible_sources_are_reported_before_the_first_packet() {
    let message = refused(&[range("203.0.113.1", "203.0.113.9")], "127.0.0.1");
    assert!(
        message.english().contains("the source address `203.0.113.1` is not configured"),
        "{message:?}"
    );
    assert!(message.english().contains("ip addr add 203.0.113.1 dev lo"), "{message:?}");
    let message = refused(&[range("127.0.0.1", "127.0.0.1")], "::1");
    assert!(message.english().contains("the address family of `::1`"), "{message:?}");
    let message = refused(&[SourceBlock::Interface("none0".into())], "127.0.0.1");
    assert!(message.english().contains("no interface `none0`"), "{message:?}");
    assert!(of_interface("lo").unwrap().contains(&[127, 0, 0, 1].into()));
}

/// Opens connections from all four ports of some addresses, and one more.
fn exhaust(listen: &str, block: SourceBlock, ports: Ports, kind: SourceKind) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let (listener, datagrams) =
        (TcpListener::bind(listen).unwrap(), UdpSocket::bind(listen).unwrap());
    let address = match kind {
        SourceKind::Stream => listener.local_addr().unwrap(),
        SourceKind::Datagram => datagrams.local_addr().unwrap(),
    };
    let mut plan = plan_of(&[block]);
    (plan.ports, plan.ports_count) = (ports, 4);
    plan.routes = vec![(kind, 1.0)];
    let plan = Arc::new(plan);
    let count = plan.addresses(address.ip()).unwrap().count;
    let network = Network::plain(plan.pools(1, &[vec![address]], Share::WHOLE));
    let (streams, failure) = begin_all(&network, address, kind, 100);
    let mut from: Vec<SocketAddr> =
        streams.iter().map(|it| it.local_addr().unwrap().as_socket().unwrap()).collect();
    from.sort_unstable();
    from.dedup();
    assert_eq!(from.len() as u64, 4 * count, "every port of all addresses is used once");
    assert!(from.iter().all(|it| (50_001..=50_004).contains(&it.port())), "{from:?}");
    let failure = failure.unwrap();
    assert_eq!(failure.cause, Cause::PortsExhausted);
    let words = format!("all 4 source ports on each of {count} source addresses are in use");
    assert!(failure.detail.english().contains(&words), "{:?}", failure.detail);
    // None of them is tried again so soon.
    let (none, _) = begin_all(&network, address, kind, 1);
    assert!(none.is_empty());
}

#[test]
fn an_exhausted_address_gives_way_to_the_next() {
    let turn = Ports::InTurn(Range::new((50_001, 50_004)));
    exhaust("127.0.0.1:0", range("127.9.1.1", "127.9.1.3"), turn, SourceKind::Stream);
    exhaust("127.0.0.1:0", range("127.9.1.1", "127.9.1.3"), turn, SourceKind::Datagram);
    let among = 50_004 << 16 | 50_001;
    if !knows_port_range(among) || host_ports() != PORTS_USUAL {
        return;
    }
    for kind in [SourceKind::Stream, SourceKind::Datagram] {
        exhaust("127.0.0.1:0", range("127.9.1.5", "127.9.1.7"), Ports::Among(among), kind);
        if TcpListener::bind("[::1]:0").is_ok() {
            exhaust("[::1]:0", range("::1", "::1"), Ports::Among(among), kind);
        }
    }
}

#[test]
fn an_address_that_the_host_lacks_is_skipped() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let blocks = [range("203.0.113.1", "203.0.113.3"), range("127.9.2.1", "127.9.2.1")];
    let plan = Arc::new(Plan::looked_up(&given(&blocks)).unwrap());
    let network = Network::plain(plan.pools(1, &[vec![address]], Share::WHOLE));
    let (streams, failure) = begin_all(&network, address, SourceKind::Stream, 3);
    assert!(failure.is_none() && streams.len() == 3, "{failure:?}");
    let plan = Arc::new(Plan::looked_up(&given(&blocks[..1])).unwrap());
    let network = Network::plain(plan.pools(1, &[vec![address]], Share::WHOLE));
    let (_, failure) = begin_all(&network, address, SourceKind::Stream, 1);
    let words = failure.unwrap().detail;
    assert!(words.english().contains("none of the source addresses is configured"), "{words:?}");
}

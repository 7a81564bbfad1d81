//! The addresses of targets, looked up before the first packet, and whether they are allowed.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use throng_program::{Program, Target};

use throng_base::Said;

use crate::connector;
use crate::connector::allowed::AllowList;
use crate::start_error::StartError;

/// The addresses of every target.
pub(crate) fn all(program: &Program) -> Result<Vec<Vec<SocketAddr>>, StartError> {
    program.targets.iter().map(|target| addresses(program, target)).collect()
}

/// The addresses of connections to a target: those of its name, or of its proxy, or the ones that
/// the scenario gives. A unix socket has no address.
pub fn addresses(program: &Program, target: &Target) -> Result<Vec<SocketAddr>, StartError> {
    if target.unix_socket.is_some() {
        return Ok(Vec::new());
    }
    let (host, port) = program.connection.routing.next_hop(target);
    lookup(program, host, port)
}

fn lookup(program: &Program, host: &str, port: u16) -> Result<Vec<SocketAddr>, StartError> {
    let connection = &program.connection;
    let failed = |reason: Said| StartError::Resolve { host: host.to_string(), reason };
    let found: Vec<SocketAddr> = match connection.routing.addresses(host, port) {
        Some(given) => given.iter().map(|address| SocketAddr::new(*address, port)).collect(),
        None => {
            let found = (host, port).to_socket_addrs();
            found.map_err(|error| failed(Said::of_error(&error)))?.collect()
        }
    };
    let mut addresses = Vec::new();
    for address in found {
        if connector::is_of_family(&address, connection.family) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // A name may have addresses that this host has no route to, such as `localhost` without IPv6
    // (RFC 6724, section 5, rule 1).
    if addresses.iter().any(|address| connector::has_way(*address)) {
        addresses.retain(|address| connector::has_way(*address));
    }
    match addresses.is_empty() {
        true => Err(failed(say!("it has no address of the required family"))),
        false => Ok(addresses),
    }
}

/// The addresses of a host that is looked up during a run: every one must be allowed.
pub(crate) fn again(
    program: &Program,
    (host, port): (&str, u16),
    lists: &[AllowList],
) -> Result<Vec<SocketAddr>, Said> {
    let addresses = lookup(program, host, port).map_err(|error| match error {
        StartError::Resolve { reason, .. } => reason,
        _ => say!("it has no address of the required family"),
    })?;
    for list in lists {
        if let Err(StartError::NotAllowed { address, list, .. }) =
            judge(program, (host, port), &addresses, list)
        {
            return Err(say!("{address} is not in the list of allowed targets {list}"));
        }
    }
    Ok(addresses)
}

/// Every destination of a connection, including redirects, is a target of the program or its proxy:
/// both are checked. A unix socket counts as local to this host.
pub(crate) fn check_allowed(
    program: &Program,
    addresses: &[Vec<SocketAddr>],
    lists: &[AllowList],
) -> Result<(), StartError> {
    let routing = &program.connection.routing;
    for (target, addresses) in program.targets.iter().zip(addresses) {
        for list in lists {
            match &target.unix_socket {
                Some(socket) if !list.allows_this_host() => {
                    let (socket, list) = (socket.to_string(), list.origin.clone());
                    return Err(StartError::NotAllowedSocket { socket, list });
                }
                Some(_) => {}
                None => judge(program, routing.next_hop(target), addresses, list)?,
            }
        }
        if routing.proxy_of(target).is_some() && !lists.is_empty() {
            check_behind_proxy(program, target, lists)?;
        }
    }
    Ok(())
}

/// A proxy resolves the name of the target itself, so its address can only be guessed: if it does
/// not resolve here, the name must be allowed.
fn check_behind_proxy(
    program: &Program,
    target: &Target,
    lists: &[AllowList],
) -> Result<(), StartError> {
    let (host, port) = program.connection.routing.endpoint(&target.host, target.port);
    let found = (host, port).to_socket_addrs().map(Iterator::collect);
    let unknown = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let addresses: Vec<SocketAddr> = found.unwrap_or_else(|_| vec![unknown]);
    let judge_by = |list| stranger(list, host, Some(host), &addresses);
    lists.iter().try_for_each(judge_by)
}

/// An allowed name does not allow addresses that belong to another name.
fn judge(
    program: &Program,
    (host, port): (&str, u16),
    addresses: &[SocketAddr],
    list: &AllowList,
) -> Result<(), StartError> {
    let is_given = program.connection.routing.addresses(host, port).is_some();
    stranger(list, host, (!is_given).then_some(host), addresses)
}

fn stranger(
    list: &AllowList,
    host: &str,
    named: Option<&str>,
    addresses: &[SocketAddr],
) -> Result<(), StartError> {
    match list.stranger(named, addresses) {
        None => Ok(()),
        Some(address) => {
            let (host, list) = (host.to_string(), list.origin.clone());
            Err(StartError::NotAllowed { host, address, list })
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_program::{ConnectTo, Endpoints, Family, Proxy, Resolve};

    use super::*;

    fn program(host: &str, port: u16) -> Program {
        let idle = crate::run::tests::program(Vec::new(), 1, std::time::Duration::ZERO);
        let mut program = Program::clone(&idle);
        let target = &mut program.targets[0];
        (target.host, target.port) = (host.to_string(), port);
        program
    }

    fn endpoints(host: &str, port: u16) -> Endpoints {
        Endpoints { host: Some(host.to_string()), port: Some(port) }
    }

    fn resolve(program: &mut Program, host: &str, port: u16, addresses: &[&str]) {
        let addresses = addresses.iter().map(|one| one.parse().unwrap()).collect();
        let one = Resolve { of: endpoints(host, port), addresses };
        program.connection.routing.resolve.push(one);
    }

    fn found(program: &Program) -> Result<Vec<String>, StartError> {
        let found = addresses(program, &program.targets[0])?;
        Ok(found.iter().map(SocketAddr::to_string).collect())
    }

    #[test]
    fn names_are_redirected_and_given_addresses() {
        let mut program = program("shop.example", 443);
        resolve(&mut program, "shop.example", 443, &["127.0.0.2", "::1", "127.0.0.3", "127.0.0.2"]);
        program.connection.family = Family::V4;
        assert_eq!(found(&program).unwrap(), ["127.0.0.2:443", "127.0.0.3:443"]);
        let connect_to = ConnectTo {
            from: endpoints("shop.example", 443),
            to: Endpoints { host: None, port: Some(8443) },
        };
        program.connection.routing.connect_to.push(connect_to.clone());
        resolve(&mut program, "shop.example", 8443, &["127.0.0.4"]);
        assert_eq!(found(&program).unwrap(), ["127.0.0.4:8443"]);
        let other = ConnectTo { to: endpoints("127.0.0.5", 80), ..connect_to };
        program.connection.routing.connect_to[0] = other;
        assert_eq!(found(&program).unwrap(), ["127.0.0.5:80"]);
        assert_eq!(program.targets[0].authority(), "shop.example:443");
        program.connection.family = Family::V6;
        let StartError::Resolve { host, .. } = found(&program).unwrap_err() else { panic!() };
        assert_eq!(host, "127.0.0.5");
    }

    #[test]
    fn a_proxy_and_its_target_are_both_checked() {
        let list = |text| vec![AllowList::parse("test", text).unwrap()];
        let mut program = program("127.0.0.9", 443);
        let proxy = Proxy { host: "127.0.0.2".into(), port: 3128, user: None };
        program.connection.routing.proxy = Some(proxy);
        assert_eq!(found(&program).unwrap(), ["127.0.0.2:3128"]);
        let judged = |program: &Program, text| {
            check_allowed(program, &[addresses(program, &program.targets[0]).unwrap()], &list(text))
        };
        assert_eq!(judged(&program, "127.0.0.2 127.0.0.9"), Ok(()));
        assert!(judged(&program, "127.0.0.2").is_err());
        assert!(judged(&program, "127.0.0.9").is_err());
        // A target without an address here must be allowed by its name.
        program.targets[0].host = "nowhere.invalid".into();
        assert_eq!(judged(&program, "127.0.0.2 nowhere.invalid"), Ok(()));
        assert!(judged(&program, "127.0.0.0/8").is_err());
    }

    #[test]
    fn an_allowed_name_does_not_allow_other_addresses() {
        let list = |text| vec![AllowList::parse("test", text).unwrap()];
        let mut program = program("shop.example", 80);
        let judged = |program: &Program, text| {
            check_allowed(program, &[addresses(program, &program.targets[0]).unwrap()], &list(text))
        };
        resolve(&mut program, "shop.example", 80, &["127.0.0.2"]);
        assert_eq!(judged(&program, "127.0.0.2"), Ok(()));
        let StartError::NotAllowed { host, address, .. } =
            judged(&program, "shop.example").unwrap_err()
        else {
            panic!()
        };
        assert_eq!((host.as_str(), address.to_string().as_str()), ("shop.example", "127.0.0.2"));
        program.connection.routing.resolve.clear();
        let to = endpoints("127.0.0.3", 80);
        let from = endpoints("shop.example", 80);
        program.connection.routing.connect_to.push(ConnectTo { from, to });
        assert!(judged(&program, "shop.example").is_err());
        assert_eq!(judged(&program, "127.0.0.3"), Ok(()));
    }
}

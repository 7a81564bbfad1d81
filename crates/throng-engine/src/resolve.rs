//! Which addresses the connections to a target go to, looked up before the first packet; and
//! whether they may.

use std::net::{SocketAddr, ToSocketAddrs as _};

use throng_program::{Program, Target};

use crate::allowed::AllowList;
use crate::connector;
use crate::run::StartError;

/// The addresses of every target.
pub(crate) fn all(program: &Program) -> Result<Vec<Vec<SocketAddr>>, StartError> {
    program.targets.iter().map(|target| addresses(program, target)).collect()
}

/// Where connections to a target go: what its name resolves to, or what the scenario says instead.
/// A unix socket has no address.
pub fn addresses(program: &Program, target: &Target) -> Result<Vec<SocketAddr>, StartError> {
    if target.unix_socket.is_some() {
        return Ok(Vec::new());
    }
    let connection = &program.connection;
    let (host, port) = connection.routing.endpoint(&target.host, target.port);
    let failed = |reason: String| StartError::Resolve { host: host.to_string(), reason };
    let found: Vec<SocketAddr> = match connection.routing.addresses(host, port) {
        Some(given) => given.iter().map(|address| SocketAddr::new(*address, port)).collect(),
        None => {
            let found = (host, port).to_socket_addrs();
            found.map_err(|error| failed(error.to_string()))?.collect()
        }
    };
    let mut addresses = Vec::new();
    for address in found {
        if connector::is_of_family(&address, connection.family) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // A name may have addresses to which this host has no way, such as `localhost` where there is
    // no IPv6 (RFC 6724, section 5, rule 1).
    if addresses.iter().any(|address| connector::has_way(*address)) {
        addresses.retain(|address| connector::has_way(*address));
    }
    // sentences
    match addresses.is_empty() {
        true => Err(failed("it has no address of the wanted family".into())),
        false => Ok(addresses),
    }
}

/// All that may be connected to, redirects too, is a target of the program. A name that a list
/// allows says nothing about addresses that are not its own. A unix socket is judged as what it is,
/// a place of this host.
pub(crate) fn check_allowed(
    program: &Program,
    addresses: &[Vec<SocketAddr>],
    lists: &[AllowList],
) -> Result<(), StartError> {
    let routing = &program.connection.routing;
    for (target, addresses) in program.targets.iter().zip(addresses) {
        let (host, port) = routing.endpoint(&target.host, target.port);
        let named = Some(host).filter(|_| routing.addresses(host, port).is_none());
        if let Some(socket) = &target.unix_socket {
            let not_allowed = |list: &&AllowList| !list.allows_this_host();
            match lists.iter().find(not_allowed) {
                None => continue,
                Some(list) => {
                    return Err(StartError::NotAllowedSocket {
                        socket: socket.to_string(),
                        list: list.origin.clone(),
                    });
                }
            }
        }
        for list in lists {
            if let Some(address) = list.stranger(named, addresses) {
                let (host, list) = (host.to_string(), list.origin.clone());
                return Err(StartError::NotAllowed { host, address, list });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use throng_program::{ConnectTo, Endpoints, Family, Resolve};

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
    fn names_are_led_elsewhere_and_given_addresses() {
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
    fn an_allowed_name_allows_no_other_address() {
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

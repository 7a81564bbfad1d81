//! Names of WebSockets, if a session has several connections: those that are open at the same time,
//! or have different targets. The name of a closed connection is reused.

use crate::model::{Item, LeftOut, Recording, Socket};

/// Connections per session; throng supports 16, including those of HTTP.
const CONNECTIONS_MAX: usize = 8;

/// A connection of the scenario: its target, and its current connection in the recording.
struct Connection {
    target: Option<String>,
    open: Option<usize>,
}

pub(super) fn name(recording: &mut Recording) {
    let mut left_out = 0;
    for session in &mut recording.sessions {
        let mut connections: Vec<Connection> = Vec::new();
        let mut numbers = Vec::new();
        session.steps.retain(|item| {
            let Item::Socket(socket) = item else { return true };
            let number = connection_of(socket, &mut connections);
            left_out += usize::from(number.is_none() && !socket.continues);
            numbers.extend(number);
            number.is_some()
        });
        if connections.len() < 2 {
            continue;
        }
        let sockets = session.steps.iter_mut().filter_map(|item| match item {
            Item::Socket(socket) => Some(socket),
            _ => None,
        });
        for (socket, number) in sockets.zip(numbers) {
            socket.name = Some(format!("socket_{}", number + 1));
        }
    }
    if left_out > 0 {
        let what = say!("WebSockets beyond {CONNECTIONS_MAX} at the same time");
        recording.left_out.push(LeftOut::of_all(left_out, what));
    }
}

fn connection_of(socket: &Socket, connections: &mut Vec<Connection>) -> Option<usize> {
    let mut all = connections.iter();
    let number = match socket.continues {
        true => all.position(|it| it.open == Some(socket.number))?,
        false => match all.position(|it| it.open.is_none() && it.target == socket.target) {
            Some(number) => number,
            None if connections.len() >= CONNECTIONS_MAX => return None,
            None => {
                connections.push(Connection { target: socket.target.clone(), open: None });
                connections.len() - 1
            }
        },
    };
    connections[number].open = socket.stays_open.then_some(socket.number);
    Some(number)
}

//! One of several processes of a run (`throng post`). It hears on its standard input what part it
//! has and when to begin, then orders; it tells on its standard output what happens, a line each.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_base::{Clock, Diagnostic, Exit, clock::wall_now};
use throng_engine::{Options, prepare};
use throng_program::Program;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::post::Post;
use super::wire::{Message, Order, Part, Start, share_of};
use super::{Conduct, not_started};
use crate::guard::Guard;
use crate::screen::Screen;

/// What part this process is told to be; nothing where no desk has started it.
pub(crate) fn told() -> Option<Part> {
    read()
}

/// Is a part of the run until its load is over.
pub(crate) fn be(mut conduct: Conduct<'_>, part: &Part) -> Exit {
    let errors = Screen::errors(false);
    if conduct.recorded.text(&[]) != part.scenario {
        let message = say!("the scenario has changed while the run began");
        errors
            .diagnostic(&Diagnostic::error("scenario-changed", message).help(say!("run it again")));
        return Exit::Usage;
    }
    conduct.program = Arc::new(Program {
        seed: part.seed,
        run_id: part.run_id.clone(),
        setup_values: part.values.iter().cloned().map(Into::into).collect(),
        ..(*conduct.program).clone()
    });
    let guard = match Guard::read(errors) {
        Ok(guard) => guard,
        Err(exit) => return exit,
    };
    let Some(runtime) = super::runtime(errors) else { return Exit::HostUnfit };
    let options = conduct.options(&guard, part.machine.of);
    let options = Options { share: share_of(&part.machine), ..options };
    let ready = match prepare(&conduct.program, &options) {
        Ok(ready) => ready,
        Err(error) => return not_started(&error, None, errors),
    };
    tell(&Message::Ready { shards: ready.shards as u64, users_spare: ready.users_spare });
    // Where there is no start, the desk is gone: nothing was sent.
    let Some(Start { unix_ns }) = read() else { return Exit::GoalsMet };
    let ahead = std::time::Duration::from_nanos(unix_ns).saturating_sub(wall_now());
    let run = ready.begin(Clock::start_in(ahead));
    let (lines, told) = unbounded_channel();
    let orders = hear();
    let teller = std::thread::spawn(move || tell_all(told));
    let post = Post::new(&conduct.program, run, conduct.limits, (0, lines));
    runtime.block_on(post.work(orders));
    let _ = teller.join();
    Exit::GoalsMet
}

/// The orders that come; nobody gives any when the desk is gone.
fn hear() -> UnboundedReceiver<Order> {
    let (sender, orders) = unbounded_channel();
    std::thread::spawn(move || {
        while let Some(order) = read() {
            if sender.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

fn tell_all(mut told: UnboundedReceiver<(u16, Message)>) {
    while let Some((_, message)) = told.blocking_recv() {
        tell(&message);
    }
}

/// What nobody hears any more is lost: the run ends in order, as there are no orders either.
fn tell(line: &impl Serialize) {
    let Ok(mut line) = serde_json::to_vec(line) else { return };
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

fn read<T: DeserializeOwned>() -> Option<T> {
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

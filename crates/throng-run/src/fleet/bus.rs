//! The operator's access to the bus of a fleet: keys, connection and errors.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::{Diagnostic, Exit, Said, clock::wall_now, random};
use throng_bus::keys::{Keys, Signer};
use throng_bus::nats::{Nats, Room};
use throng_bus::{Bus as _, BusError, Link};
use throng_fleet::controller::{self, Controller, Input, Output};
use throng_fleet::orphan::Patience;
use throng_fleet::wire::{Plan, Signed, to_json};
use throng_results::BuildInfo;
use tokio::sync::mpsc::{Receiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::timeout;

const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The name of a build on the bus. All machines of a fleet must have the same build.
pub fn build_name(build: &BuildInfo) -> String {
    match build.commit.as_str() {
        "" => build.version.clone(),
        commit => format!("{} ({commit})", build.version),
    }
}

/// Converts an error of the bus to a message.
pub fn told(error: &BusError) -> Said {
    match error {
        BusError::Cut => say!("the bus does not respond"),
        BusError::Conflict => say!("another process wrote at the same time"),
        BusError::Full => say!("its disk is full"),
        BusError::Refused(why) => why.clone(),
    }
}

/// Reads the keys in this directory.
///
/// # Errors
/// The keys are missing, unreadable or invalid.
pub fn opened(directory: &Path) -> Result<Keys, Box<Diagnostic>> {
    Keys::open(&absolute(directory)).map_err(|why| {
        let help = say!("set --fleet to the directory that `throng fleet init` created");
        Box::new(Diagnostic::error("fleet-keys", why).help(help))
    })
}

/// The server resolves relative paths in its file against its own working directory.
pub fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf())
}

pub fn wrong_keys(why: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("fleet-keys", why))
}

pub fn bus_failed(address: SocketAddr, why: &Said) -> Box<Diagnostic> {
    let message = say!("the fleet's bus at {address}: {why}");
    let help =
        say!("check that `throng fleet serve` is running, and that its address has not changed");
    Box::new(Diagnostic::error("fleet-unfit", message).help(help))
}

/// Connects as the controller.
///
/// # Errors
/// The bus does not respond, or rejects the keys.
pub async fn connected(keys: &Keys) -> Result<Nats, Box<Diagnostic>> {
    let address = keys.address();
    let identity = keys.controller().map_err(wrong_keys)?;
    let bus = Nats::connect(identity).map_err(|why| bus_failed(address, &why))?;
    let mut link = bus.link();
    let up = link.wait_for(|link| matches!(link, Link::Up | Link::Refused(_)));
    let link = timeout(CONNECT_TIME, up).await.ok().and_then(Result::ok).map(|link| link.clone());
    match link {
        Some(Link::Up) => Ok(bus),
        Some(Link::Refused(why)) => Err(bus_failed(address, &why)),
        _ => {
            let seconds = CONNECT_TIME.as_secs();
            Err(bus_failed(address, &say!("no response within {seconds} s")))
        }
    }
}

/// The exit code of an error of this module: keys are an argument of the command.
pub(crate) fn exit_of(told: &Diagnostic) -> Exit {
    if told.code == "fleet-keys" { Exit::Usage } else { Exit::HostUnfit }
}

/// A connection to the bus, and the controller of its agents, which runs in a separate thread.
pub(crate) struct Access {
    pub(super) keys: Keys,
    pub(super) bus: Nats,
    pub(super) inputs: UnboundedSender<Input>,
    pub(super) outputs: Receiver<Output>,
}

impl Access {
    pub(super) async fn open(directory: &Path) -> Result<Access, Box<Diagnostic>> {
        let keys = opened(directory)?;
        let bus = connected(&keys).await?;
        let furnished = bus.furnish(Room::default()).await;
        furnished.map_err(|error| bus_failed(keys.address(), &told(&error)))?;
        let (inputs, outputs) = control(&bus, keys.signer().map_err(wrong_keys)?);
        Ok(Access { keys, bus, inputs, outputs })
    }

    pub(super) fn failed(&self, error: &BusError) -> Box<Diagnostic> {
        bus_failed(self.keys.address(), &told(error))
    }

    pub(super) fn gone(&self) -> Box<Diagnostic> {
        bus_failed(self.keys.address(), &say!("the connection to the bus is permanently lost"))
    }

    /// The next output of the controller; an error if it cannot continue.
    pub(super) async fn next(&mut self) -> Result<Output, Box<Diagnostic>> {
        match self.outputs.recv().await {
            Some(Output::Failed(why)) => Err(bus_failed(self.keys.address(), &why)),
            Some(output) => Ok(output),
            None => Err(self.gone()),
        }
    }

    /// Signs a plan as the operator.
    pub(super) fn signed(&self, plan: &Plan) -> Result<Signed, Box<Diagnostic>> {
        let plan = String::from_utf8_lossy(&to_json(plan)).into_owned();
        let signature = self.keys.signer().and_then(|signer| signer.sign(plan.as_bytes()));
        let failed = |why| bus_failed(self.keys.address(), &why);
        Ok(Signed { signature: signature.map_err(failed)?, plan })
    }

    /// Cancels the start of a run.
    pub(super) async fn call_off(&mut self) {
        let _ = self.inputs.send(Input::Over);
        let _ = self.inputs.send(Input::Close);
        let closed = async {
            while let Some(output) = self.outputs.recv().await {
                if output == Output::Closed {
                    return;
                }
            }
        };
        let _ = timeout(Duration::from_secs(3), closed).await;
    }
}

/// Starts a controller on a separate thread.
fn control(bus: &Nats, signer: Signer) -> (UnboundedSender<Input>, Receiver<Output>) {
    let (inputs, given) = unbounded_channel();
    let (tell, outputs) = controller::outputs();
    let bus = bus.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let unix_ns = Box::new(|| u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX));
        // Agents reject an unsigned order.
        let sign = Box::new(move |text: &str| signer.sign(text.as_bytes()).unwrap_or_default());
        let (own, patience) = (random::fresh(), Patience::default());
        let controller = Controller::new((bus, sign), own, patience, unix_ns, tell);
        LocalSet::new().block_on(&runtime, controller.work(given));
    });
    (inputs, outputs)
}

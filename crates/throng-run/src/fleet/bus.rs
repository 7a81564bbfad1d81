//! The operator's access to the bus of a fleet: keys, connection and errors.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_base::{Diagnostic, Said};
use throng_bus::keys::Keys;
use throng_bus::nats::Nats;
use throng_bus::{Bus as _, BusError, Link};
use throng_fleet::wire::{Plan, Signed, to_json};
use throng_results::BuildInfo;
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

/// Signs a plan.
///
/// # Errors
/// The operator's key cannot sign.
pub fn signed(keys: &Keys, plan: &Plan) -> Result<Signed, Said> {
    let plan = String::from_utf8_lossy(&to_json(plan)).into_owned();
    Ok(Signed { signature: keys.signer()?.sign(plan.as_bytes())?, plan })
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

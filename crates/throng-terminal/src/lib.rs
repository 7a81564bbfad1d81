//! The user interface in a terminal: all output, and the operator of a run. It does not depend on
//! the command line.
//!
//! - [`screen`]: the destination, width, language and colors of text.
//! - [`terminal`]: the display and the controls of a run.
//! - [`bug`]: defects of throng. [`signals`]: requests to stop the process.
//! - `system`: functions that need Linux; `elsewhere`: the same for other systems.

#[macro_use]
extern crate throng_base;

pub mod bug;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod screen;
pub mod signals;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
pub mod terminal;

pub use screen::Screen;
pub use terminal::{Output, Terminal};

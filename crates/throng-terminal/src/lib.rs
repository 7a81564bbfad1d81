//! What throng is at a terminal: everything that is printed, and the operator of a run whom a user
//! sees. Knows no command line.
//!
//! - [`screen`]: where text goes, in which width and language, with or without colours.
//! - [`terminal`]: a run as a user sees it and commands it.
//! - [`bug`]: defects of throng. [`signals`]: requests to stop the process.
//! - `system`: what only Linux does; `elsewhere`: the same for other systems.

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

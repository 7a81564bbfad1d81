//! Users on transports other than a single TCP stream.

use super::*;

mod datagrams;
mod secured;

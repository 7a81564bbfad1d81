//! Users over what is not one stream of TCP from beginning to end.

use super::*;

mod datagrams;
mod secured;

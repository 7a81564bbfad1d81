//! Users of protocols that have their own steps.

use super::*;

mod mqtt;
mod redis;

//! Users of HTTP.

use super::*;

mod keeping;
mod resending;
mod samples;
mod several;
mod streams;
mod uploads;

//! Tests the rules on simulated runs.

mod simulation;

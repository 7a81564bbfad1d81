//! The rules on simulated runs.

mod simulation;

//! What a session does: steps, data, variables, checks, users who wait for each other.

mod abnormal;
mod data;
mod edges;
mod flow;
mod labels;
mod language;
mod meeting;
mod networks;
mod once;
mod own_metrics;
mod rooms;
mod secrets;
mod several;
mod verify;

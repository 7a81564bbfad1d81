//! Writing a scenario: what helps, what is refused, and what other tools hand over.

mod attempt;
mod check;
mod chinese;
mod command_line;
mod curl;
mod explain;
mod import;
mod init;
mod mcp;
mod mistakes;
mod protocol;
mod recorder;
mod schema;

//! The program: nothing but its beginning. All else is a library beside it, which what is handed
//! out has small where this has what links it fast (`[profile.dist]`).

use std::process::ExitCode;

fn main() -> ExitCode {
    throng::main()
}

//! The program: only its entry point. Everything else is in a library, which keeps release builds
//! small and test builds fast to link (`[profile.dist]`).

use std::process::ExitCode;

fn main() -> ExitCode {
    throng::main()
}

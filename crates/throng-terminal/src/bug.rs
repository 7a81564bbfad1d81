//! Defects of throng: a panic, or a user that would have waited forever.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_base::{Diagnostic, Said};

use crate::screen::Screen;

/// Whatever the result of the run, this is a bug.
static HAS_BUG: AtomicBool = AtomicBool::new(false);

/// True if a bug was reported.
pub fn is_told() -> bool {
    HAS_BUG.load(Ordering::Relaxed)
}

/// Reports the first panic, after `restore` has restored the terminal.
pub fn report_panics(restore: fn()) {
    std::panic::set_hook(Box::new(move |panic| {
        if !HAS_BUG.swap(true, Ordering::Relaxed) {
            restore();
            tell_panic(panic);
        }
    }));
}

/// Reports a user that would have waited forever. A recorded run shows it in its verdict; this is
/// for everything else.
pub fn tell(reason: &Said) {
    HAS_BUG.store(true, Ordering::Relaxed);
    let diagnostic = Diagnostic::error("bug", say!("throng has a bug: {reason}"))
        .help(say!("please report this line with the command and the scenario"));
    Screen::errors(false).diagnostic(&diagnostic);
}

fn tell_panic(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("–");
    let message = match panic.location() {
        Some(place) => say!("throng has a bug: {what} at {place}"),
        None => say!("throng has a bug: {what}"),
    };
    let diagnostic = Diagnostic::error("bug", message)
        .note(say!("the run continues if possible; all measured data is recorded"))
        .help(say!("please report this line with the command and the scenario"));
    Screen::errors(false).diagnostic(&diagnostic);
}

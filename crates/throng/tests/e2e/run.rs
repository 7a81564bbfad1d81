//! Children of a test: started, waited for with patience, ended by their process id. Whatever
//! fails, everything that the child was told and has said is printed.

use std::ffi::OsStr;
use std::fmt;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use throng_base::{Clock, Time};

/// Nothing that a test waits for takes longer on a machine that is merely busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// How often a condition is looked at that nobody announces.
const GLANCE: Duration = Duration::from_millis(20);
/// What is kept of one output.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    match std::env::var_os("THRONG_BIN") {
        Some(path) => path.into(),
        None => env!("CARGO_BIN_EXE_throng").into(),
    }
}

/// A throng command that is to be: its words are split at blanks.
pub(crate) fn throng(line: &str) -> Throng {
    let mut command = Command::new(binary());
    command.args(line.split_whitespace());
    Throng::new(command)
}

/// The same, and whatever else this machine does has to wait for it (sched(7)), where we may ask
/// for that.
pub(crate) fn throng_first(line: &str) -> Throng {
    match FIRST.is_empty() {
        true => throng(line),
        false => Throng::under(&FIRST, line),
    }
}

/// What a command begins with to be first; nothing where we may not ask for that.
pub(crate) static FIRST: LazyLock<&str> = LazyLock::new(|| {
    let asked = Command::new("chrt").args(["--rr", "1", "true"]).output();
    let may = asked.is_ok_and(|asked| asked.status.success());
    if may { "chrt --rr 1" } else { "" }
});

/// A command in a folder of its own.
pub(crate) struct Throng {
    command: Command,
    folder: TempDir,
    listens: bool,
}

impl Throng {
    pub(crate) fn new(mut command: Command) -> Throng {
        let folder = tempfile::tempdir().expect("a temporary folder");
        command.current_dir(folder.path()).env_remove("NO_COLOR").env("LC_ALL", "C");
        Throng { command, folder, listens: false }
    }

    /// Under another program, as `prlimit --nofile=64:64`.
    pub(crate) fn under(words: &str, line: &str) -> Throng {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg(binary()).args(line.split_whitespace());
        Throng::new(command)
    }

    /// One more argument, as it is.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Throng {
        self.command.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Throng {
        self.command.env(name, value);
        self
    }

    /// A file in the folder where the command runs, or in one below it.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Throng {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
        self
    }

    /// Somebody sits before it: [`Child::types`] and [`Child::types_no_more`].
    pub(crate) fn listens(mut self) -> Throng {
        self.listens = true;
        self
    }

    /// In a sandbox that forbids unshare(2), as containers have it by default (seccomp(2)).
    pub(crate) fn without_unshare(mut self) -> Throng {
        let word =
            |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let number = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let (end, forbidden) = (libc::BPF_RET | libc::BPF_K, libc::EPERM as u32);
        let program = [
            word(number, 0, 0),
            word(equal, 1, libc::SYS_unshare as u32),
            word(end, 0, libc::SECCOMP_RET_ERRNO | forbidden),
            word(end, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = move || {
            let mut program = program;
            let filter =
                libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
            let (on, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
            let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
            // SAFETY: the filter and its program live through the calls, which copy them.
            let set = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, unused, unused, unused) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) == 0
            };
            if set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec it makes system calls on values of its own stack.
        unsafe { self.command.pre_exec(filter) };
        self
    }

    /// Where it will run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn start(self) -> Child {
        let stdin = if self.listens { Stdio::piped() } else { Stdio::null() };
        let mut child = Child::spawn(self.command, stdin);
        child.folder = Some(self.folder);
        child
    }

    /// Runs to the end.
    #[track_caller]
    pub(crate) fn run(self) -> Run {
        self.start().wait()
    }
}

/// A child that lives. Dropped, it is killed.
pub(crate) struct Child {
    child: std::process::Child,
    command: String,
    said: Arc<(Mutex<Said>, Condvar)>,
    started: Time,
    clock: Clock,
    status: Option<ExitStatus>,
    stdin: Option<ChildStdin>,
    folder: Option<TempDir>,
}

/// What a child has said so far, and how many of its outputs are open.
#[derive(Default)]
struct Said {
    out: Vec<u8>,
    err: Vec<u8>,
    open: u8,
}

impl Child {
    #[track_caller]
    pub(crate) fn start(command: Command) -> Child {
        Child::spawn(command, Stdio::null())
    }

    #[track_caller]
    fn spawn(mut command: Command, stdin: Stdio) -> Child {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: a Ctrl-C in the terminal of the tests is the tests' own.
        command.process_group(0);
        // SAFETY: between fork and exec one system call is made, on no memory.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let clock = Clock::start();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                panic!("{}: {error}; `cargo xtask ci` installs what is missing", words[0])
            }
        };
        let said = Arc::new((Mutex::new(Said { open: 2, ..Said::default() }), Condvar::new()));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let stdin = child.stdin.take();
        hear(out.expect("a pipe"), Arc::clone(&said), |said| &mut said.out);
        hear(err.expect("a pipe"), Arc::clone(&said), |said| &mut said.err);
        Child {
            child,
            command: words.join(" "),
            said,
            started: clock.now(),
            clock,
            status: None,
            stdin,
            folder: None,
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("somebody who listens");
        stdin.write_all(text.as_bytes()).expect("the child reads");
    }

    pub(crate) fn types_no_more(&mut self) {
        self.stdin = None;
    }

    /// Waits until `found` finds what it looks for in the two outputs.
    #[track_caller]
    pub(crate) fn hears<T>(&self, what: &str, found: impl Fn(&str, &str) -> Option<T>) -> T {
        let begun = self.clock.now();
        let mut said = self.said();
        loop {
            let (out, err) = (text(&said.out), text(&said.err));
            if let Some(found) = found(&out, &err) {
                return found;
            }
            if said.open == 0 || self.clock.now().since(begun) > PATIENCE {
                drop(said);
                panic!("waited in vain for {what}\n{}", self.so_far(None));
            }
            let waited = self.said.1.wait_timeout(said, GLANCE);
            said = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until something outside is so, as long as the child lives.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        self.hears(what, |_, _| is_so().then_some(()));
    }

    /// Waits for the next line of the output that begins so; returns the rest of it.
    #[track_caller]
    pub(crate) fn line(&self, begin: &str) -> String {
        self.hears(begin, |out, _| {
            let complete = &out[..out.rfind('\n')?];
            complete.lines().find_map(|line| line.strip_prefix(begin)).map(String::from)
        })
    }

    /// Where it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().expect("a folder").path()
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.said().open > 0
    }

    pub(crate) fn output(&self) -> String {
        text(&self.said().out)
    }

    pub(crate) fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        if self.status.is_none() {
            // SAFETY: the child is not reaped yet, so the id is its own.
            unsafe { libc::kill(pid, signal) };
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Run {
        let begun = self.clock.now();
        let mut said = self.said();
        while said.open > 0 {
            if self.clock.now().since(begun) > PATIENCE * 2 {
                drop(said);
                panic!("it does not end\n{}", self.so_far(None));
            }
            let waited = self.said.1.wait_timeout(said, GLANCE);
            said = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (out, err) = (text(&said.out), text(&said.err));
        drop(said);
        let status = self.child.wait().expect("an exit status");
        self.status = Some(status);
        let took = self.clock.now().since(self.started);
        let told = self.so_far(Some(status));
        Run { status, out, err, took, told, folder: self.folder.take() }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything about the child, for a person.
    fn so_far(&self, status: Option<ExitStatus>) -> String {
        let said = self.said();
        let (out, err) = (text(&said.out), text(&said.err));
        let status = status.map_or("still runs".to_string(), |status| status.to_string());
        let took = self.clock.now().since(self.started);
        format!(
            "== command: {}\n== {status}, after {took:?}\n== stdout:\n{out}\n== stderr:\n{err}\n",
            self.command
        )
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Collects one output to its end.
fn hear(
    mut pipe: impl Read + Send + 'static,
    said: Arc<(Mutex<Said>, Condvar)>,
    which: fn(&mut Said) -> &mut Vec<u8>,
) {
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            let n = pipe.read(&mut buffer).unwrap_or(0);
            let mut all = said.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = which(&mut all);
            if kept.len() < OUTPUT_BYTES_MAX {
                kept.extend_from_slice(&buffer[..n]);
            }
            all.open -= u8::from(n == 0);
            said.1.notify_all();
            if n == 0 {
                return;
            }
        }
    });
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command that has ended.
pub(crate) struct Run {
    status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
    told: String,
    folder: Option<TempDir>,
}

impl Run {
    /// Where the command ran.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().expect("a folder").path()
    }

    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 1000 + self.status.signal().unwrap_or(0))
    }

    /// It ended with this exit code. A run that was to be valid may be invalid for the one reason
    /// that this machine was too busy to keep its schedule: what it counted is right all the same.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Run {
        let got = self.code();
        let is_late = got == 5 && matches!(code, 0 | 1 | 4) && self.is_only_late();
        self.check(got == code || is_late, &format!("exit code {got} instead of {code}"));
        self
    }

    /// Nothing but the schedule that was not kept makes the result invalid.
    fn is_only_late(&self) -> bool {
        let Ok(json) = serde_json::from_str::<Value>(&self.out) else {
            let invalid = self.out.matches("error[").count() + self.err.matches("error[").count();
            let late = |text: &str| text.contains("generator-late");
            return invalid <= 1 && (late(&self.out) || late(&self.err));
        };
        let of_late = |it: &Value| {
            let text = it["text"].as_str().unwrap_or_default();
            let is_late = matches!(it["reason"].as_str(), Some("late" | "time-lost"));
            is_late || text.ends_with("%) never happened while the generator was behind schedule")
        };
        let reasons = json["outcome"]["invalid_reasons"].as_array();
        reasons.is_some_and(|all| all.iter().all(of_late))
    }

    #[track_caller]
    pub(crate) fn check(&self, holds: bool, fault: &str) {
        assert!(holds, "{fault}\n{self}");
    }

    /// Every one of the texts stands in one of the outputs.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) {
        for text in texts {
            let said = self.out.contains(text) || self.err.contains(text);
            self.check(said, &format!("it does not say `{text}`"));
        }
    }

    /// The standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.out) {
            Ok(value) => value,
            Err(error) => panic!("the output is no JSON: {error}\n{self}"),
        }
    }

    /// A figure of the JSON summary by its pointer, such as `/total/ok`.
    #[track_caller]
    pub(crate) fn figure(&self, pointer: &str) -> f64 {
        let json = self.json();
        match json.pointer(pointer).and_then(Value::as_f64) {
            Some(figure) => figure,
            None => panic!("there is no figure {pointer}\n{self}"),
        }
    }

    /// A figure of the JSON summary is this one.
    #[track_caller]
    pub(crate) fn has(&self, pointer: &str, wanted: u64) {
        let got = self.figure(pointer);
        self.check(got == wanted as f64, &format!("{pointer} is {got} instead of {wanted}"));
    }

    /// A figure of the JSON summary lies between two, both included.
    #[track_caller]
    pub(crate) fn within(&self, pointer: &str, low: f64, high: f64) {
        let got = self.figure(pointer);
        let fault = format!("{pointer} is {got}, not between {low} and {high}");
        self.check((low..=high).contains(&got), &fault);
    }

    /// So many starts were wanted, and of each it is known what became of it.
    #[track_caller]
    pub(crate) fn wanted(&self) -> u64 {
        let of = |what: &str| self.figure(&format!("/users/starts_{what}")) as u64;
        let known = of("begun") + of("unmet") + of("dropped") + of("withdrawn");
        self.check(of("wanted") == known, &format!("{known} starts are known"));
        known
    }

    /// All attempts were good, and so many of them were requests.
    #[track_caller]
    pub(crate) fn succeeds(self, count: u64) -> Run {
        let json = self.json();
        let rows = json["steps"].as_array().cloned().unwrap_or_default();
        let asks = |row: &&Value| row["kind"] == "http" || row["kind"] == "request";
        let ok: u64 = rows.iter().filter(asks).filter_map(|row| row["ok"].as_u64()).sum();
        self.check(ok == count, &format!("{ok} good requests instead of {count}"));
        self.has("/total/failed", 0);
        self.exits(0)
    }

    /// The failures are all of this cause and blame, and so many. `None` counts any number but 0.
    #[track_caller]
    pub(crate) fn fails(&self, cause: &str, blame: &str, count: Option<u64>) {
        let json = self.json();
        let rows = json["errors"].as_array().cloned().unwrap_or_default();
        self.check(!rows.is_empty(), "there is no failure");
        for row in &rows {
            let fault = format!("a failure is not {cause} by {blame}: {row}");
            self.check(row["cause"] == cause && row["blame"] == blame, &fault);
        }
        let failed: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
        self.has("/total/failed", failed);
        if let Some(count) = count {
            self.check(failed == count, &format!("{failed} failures instead of {count}"));
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

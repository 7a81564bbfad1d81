//! The exit codes of the binary. Each has a single meaning.

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Everything succeeded, and every threshold was met.
    Success = 0,
    /// The run is valid, but a threshold was not met.
    ThresholdsNotMet = 1,
    /// The command line or the scenario is wrong; nothing was sent.
    Usage = 2,
    /// This host does not meet the requirements; nothing was sent.
    HostUnfit = 3,
    /// The target was unreachable, or a rule stopped the run.
    TargetUnreachable = 4,
    /// The generator could not keep the schedule, or results could not be recorded: the result is
    /// invalid.
    ResultInvalid = 5,
    /// A machine of the fleet was lost.
    MachineLost = 6,
    /// A bug in throng.
    Bug = 70,
    /// Interrupted; the results so far are saved.
    Interrupted = 130,
}

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }
}

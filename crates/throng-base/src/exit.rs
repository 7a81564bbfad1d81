//! The exit codes of the binary. One enum, so that no code means two things.

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done and every threshold was met.
    Success = 0,
    /// The run was good, but a threshold was not met.
    ThresholdsNotMet = 1,
    /// The command line or the scenario is wrong; nothing was sent.
    Usage = 2,
    /// This host cannot carry the run; nothing was sent.
    HostUnfit = 3,
    /// The target could not be reached at all, or a rule aborted the run.
    TargetUnreachable = 4,
    /// The generator could not hold the schedule, or results could not be recorded:
    /// the result is invalid.
    ResultInvalid = 5,
    /// A machine of the fleet was lost.
    MachineLost = 6,
    /// A bug in throng.
    Bug = 70,
    /// Interrupted; what was measured until then is saved.
    Interrupted = 130,
}

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }
}

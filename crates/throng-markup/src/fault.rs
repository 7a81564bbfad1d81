//! Errors in a path, and responses that exceed a limit.

use throng_base::Said;

/// An error in a path, selector or pattern, and its position: `start..end` are bytes of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    pub start: usize,
    pub end: usize,
    pub message: Said,
    pub help: Said,
}

impl PathError {
    pub fn new((start, end): (usize, usize), message: Said, help: Said) -> PathError {
        PathError { start, end, message, help }
    }
}

/// Why a response was not searched completely. Nothing is found in it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than the limit, such as [`crate::PAGE_BYTES_MAX`].
    TooLarge,
    /// It has too many elements, attributes and texts.
    TooManyNodes,
    /// Its JSON is nested deeper than 127 levels.
    TooDeep,
    /// The search took too many steps: a path with several `..` or `//` on a large body.
    TooMuchWork,
}

impl Refusal {
    pub fn said(&self) -> Said {
        match self {
            Refusal::TooLarge => say!("the body is too large to search"),
            Refusal::TooManyNodes => say!("the body has too many elements to search"),
            Refusal::TooDeep => say!("the body is nested too deeply to search"),
            Refusal::TooMuchWork => say!("searching this body takes too many steps"),
        }
    }
}

/// The remaining steps of a search.
#[derive(Debug)]
pub struct Work {
    left: u64,
}

impl Work {
    pub fn new(steps_max: u64) -> Work {
        Work { left: steps_max }
    }

    #[inline]
    pub fn spend(&mut self, steps: usize) -> Result<(), Refusal> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Refusal::TooMuchWork)
            }
        }
    }
}

//! What can be wrong: with a path as it was written, and with an answer that asks for too much.

use throng_base::Said;

/// What is wrong with a path, selector or pattern, and where: `start..end` are bytes of its text.
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

/// Why an answer was not looked at to the end. Nothing is found in it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has more bytes than are looked into, such as [`crate::PAGE_BYTES_MAX`].
    TooLarge,
    /// It has more elements, attributes and texts than a page has.
    TooManyNodes,
    /// Its JSON is nested deeper than 127 levels.
    TooDeep,
    /// Finding the answer took too many steps: a path with several `..` or `//` and a large body.
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

/// How many steps looking for one path may still take.
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

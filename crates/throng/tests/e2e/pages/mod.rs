//! Pages in a browser: the report, the live page, a folder of runs.

mod live;
pub(crate) mod page;
mod pictures;
mod population;
mod serve;

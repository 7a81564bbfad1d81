//! How the users of a run are spread over shards: one per processor, and more if their connections
//! need more file descriptor tables.

use throng_load::{Bound, Forecast, comers};
use throng_program::Program;

use throng_base::Said;

use crate::network::vanished::KEPT_COUNT_MAX;

/// File descriptors of a table that are not for connections: the runtime's own, files, pipes. Of a
/// small table, half of that is enough.
const DESCRIPTORS_RESERVED: u64 = 100;
/// A smaller table cannot be used.
const DESCRIPTORS_MIN: u64 = 48;
/// A run has one thread per shard; shard numbers have 16 bits.
const SHARDS_MAX: u64 = 4096;
/// One in this many entries of a table is for silent and half-closed connections.
const KEPT_SHARE: u64 = 8;

/// Estimate of how long a user waits for a response.
const ANSWER_SECONDS: f64 = 0.1;

/// The number of shards, and the resources of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) shards: usize,
    /// All connections together do not fit into one table.
    pub(crate) needs_own_tables: bool,
    /// Silent and half-closed connections that a shard may keep.
    pub(crate) kept_max: usize,
}

/// Spreads this many users with this many connections each, if a table has `descriptors` entries;
/// at least `wanted` shards.
pub(crate) fn spread(
    users: u64,
    connections_per_user: f64,
    leaves_behind: bool,
    descriptors: u64,
    wanted: usize,
) -> Result<Spread, Said> {
    if descriptors < DESCRIPTORS_MIN {
        return Err(say!(
            "this process can open {descriptors} files but needs at least {DESCRIPTORS_MIN}; \
             raise the limit with `ulimit -Hn 20000` as root, or `LimitNOFILE=` in the systemd \
             unit"
        ));
    }
    let usable = descriptors - DESCRIPTORS_RESERVED.min(descriptors / 2);
    let kept_max = match leaves_behind {
        true => (usable / KEPT_SHARE).min(KEPT_COUNT_MAX as u64),
        false => 0,
    };
    let usable = usable - kept_max;
    let tables = ((users as f64 * connections_per_user).ceil() as u64).div_ceil(usable);
    if tables > SHARDS_MAX {
        return Err(say!(
            "{users} users need {tables} tables of {descriptors} descriptors, but a run can have \
             at most {SHARDS_MAX}; enlarge the tables with `ulimit -Hn 20000` as root"
        ));
    }
    // A shard without a user would only cost.
    let most = users.clamp(1, SHARDS_MAX);
    let shards = (wanted as u64).max(tables).clamp(1, most);
    Ok(Spread {
        shards: shards as usize,
        needs_own_tables: tables > 1,
        kept_max: kept_max as usize,
    })
}

/// How many users beyond the plan the run can have at a time, and the limiting resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spare {
    pub users: u64,
    pub limit: SpareLimit,
}

impl Spare {
    pub const NONE: Spare = Spare { users: 0, limit: SpareLimit::Descriptors };
}

/// The limit of users beyond the plan.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum SpareLimit {
    /// Each user needs its own data row, and all rows are taken.
    Rows,
    /// Source addresses and ports were divided among the planned users.
    Sources,
    /// The file descriptor tables are full.
    #[default]
    Descriptors,
}

/// As many users as fit into the file descriptor tables and have a data row of their own, if they
/// need one. None beyond the plan if source addresses and ports were divided. `users_with_rows` is
/// how many users have a row.
pub(crate) fn users_spare(
    program: &Program,
    spread: &Spread,
    descriptors: u64,
    users_with_rows: Option<u64>,
) -> Spare {
    let sources = &program.connection.sources;
    if !sources.blocks.is_empty() || sources.ports.is_some() {
        return Spare { users: 0, limit: SpareLimit::Sources };
    }
    // Numbers after those of the plan are free only with a single load.
    let beyond = |rows: u64| match program.loads.as_slice() {
        [load] => rows.saturating_sub(comers(load)),
        _ => 0,
    };
    let rows = users_with_rows.map(|rows| Spare { users: beyond(rows), limit: SpareLimit::Rows });
    let reserved = DESCRIPTORS_RESERVED.min(descriptors / 2) + spread.kept_max as u64;
    let tables = if spread.needs_own_tables { spread.shards as u64 } else { 1 };
    let each = Forecast::new(program).connections_per_user().max(1.0);
    let possible = (descriptors.saturating_sub(reserved) * tables) as f64 / each;
    let users = (possible as u64).saturating_sub(users_max(program));
    let open = Spare { users, limit: SpareLimit::Descriptors };
    rows.map_or(open, |rows| rows.min(open))
}

/// The maximum number of users at a time, as far as the load determines it. The speed of the target
/// is not known in advance: arriving users are counted for their pauses, and for at least a second.
pub(crate) fn users_max(program: &Program) -> u64 {
    let forecast = Forecast::new(program);
    let second = forecast.arrivals_per_second().unwrap_or_default().ceil() as u64;
    let present = forecast.users_at_once(Bound::Mean, ANSWER_SECONDS).ceil() as u64;
    present.max(program.staying_max().saturating_add(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(users: u64, vanishes: bool, descriptors: u64, wanted: usize) -> usize {
        spread(users, 1.0, vanishes, descriptors, wanted).unwrap().shards
    }

    #[test]
    fn users_are_spread_over_as_many_descriptor_tables_as_needed() {
        assert_eq!(shards(10_000, false, 20_000, 2), 2);
        assert_eq!(shards(10_000, false, 1024, 2), 11);
        assert_eq!(shards(2_000_000, false, 20_000, 2), 101);
        assert_eq!(shards(100, false, 64, 2), 4);
        assert_eq!(shards(1, false, 20_000, 8), 1);
        assert_eq!(shards(0, false, 20_000, 8), 1);
        let vanishing = spread(10_000, 1.0, true, 1024, 2).unwrap();
        assert_eq!((vanishing.shards, vanishing.kept_max), (13, 115));
        assert!(vanishing.needs_own_tables);
        assert!(!spread(10_000, 1.0, false, 20_000, 2).unwrap().needs_own_tables);
        let several = spread(10_000, 2.5, false, 20_000, 1).unwrap();
        assert_eq!((several.shards, several.needs_own_tables), (2, true));
    }

    #[test]
    fn a_limit_that_is_too_low_is_reported_with_a_fix() {
        let message = spread(1, 1.0, false, 47, 2).unwrap_err();
        assert!(
            message.english().contains("can open 47 files")
                && message.english().contains("ulimit -Hn"),
            "{message:?}"
        );
        let message = spread(u64::MAX, 1.0, false, 1024, 2).unwrap_err();
        assert!(message.english().contains("tables of 1024 descriptors"), "{message:?}");
    }
}

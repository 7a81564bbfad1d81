//! Which steps are attempts at something with the target. The one place that decides it, for sums
//! of all steps, shares, thresholds without a subject, and what stands in which table.

/// The steps inside are attempts of their own: counted together they would count twice.
pub const TRANSACTION: &str = "transaction";
/// Users wait for each other: nothing is asked of the target.
pub const RENDEZVOUS: &str = "rendezvous";

/// A message that the target sends and nobody has asked for: it is counted, and nothing more.
pub const MESSAGE: &str = "message";

/// A message of the ledger at one of its receivers: what was sent is a step of its own.
pub const DELIVERY: &str = "delivery";

/// Bytes that break the declared protocol: whose they were is not known.
pub const BROKEN: &str = "broken";

/// Expressions of no step that had no value. There is a row of them only when one had none.
pub const EXPRESSION: &str = "expression";

/// What a scenario counts of its own.
pub const COUNTER: &str = "counter";

/// What a scenario measures of its own.
pub const TREND: &str = "trend";

/// Whether something is asked in a step of the kind and answered, so that it has a service time
/// beside its response time.
pub fn is_asked(kind: &str) -> bool {
    ["http", "connect", "request"].contains(&kind)
}

/// Whether each doing of a step of the kind (the word of the language), with all its tries, is an
/// attempt. The one rule for the row of all attempts, shares of failures, thresholds without a
/// subject, phases and the live line. What is none has rows of its own and is in no such sum.
pub fn is_attempt(kind: &str) -> bool {
    ![TRANSACTION, RENDEZVOUS, MESSAGE, DELIVERY, BROKEN, COUNTER, TREND].contains(&kind)
}

//! Which steps are attempts at something with the target. The one place that decides it, for sums
//! of all steps, goals without a subject, and what stands in which table.

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

/// Whether a step of the kind (the word of the language) is an attempt of its own. What is none
/// has rows of its own and is in no sum of requests, failures or bytes.
pub fn is_attempt(kind: &str) -> bool {
    ![TRANSACTION, RENDEZVOUS, MESSAGE, DELIVERY, BROKEN].contains(&kind)
}

//! Steps selected by labels: `http{region:east,tier:gold}`; without a name, all attempts.

/// A subject followed by a selector.
pub(super) struct Chosen<'t> {
    /// A step or a kind of steps; empty for all.
    pub(super) name: &'t str,
    /// All of them are required.
    pub(super) labels: Vec<(&'t str, &'t str)>,
}

impl<'t> Chosen<'t> {
    /// None without a selector. An invalid selector selects by a label without a name, which no
    /// step has.
    pub(super) fn of(subject: &'t str) -> Option<Chosen<'t>> {
        let (name, rest) = subject.split_once('{')?;
        let inside = rest.trim_end().strip_suffix('}')?;
        let labels = inside.split(',').map(|label| {
            let (name, value) = label.split_once([':', '=']).unwrap_or(("", label));
            (name.trim(), value.trim())
        });
        Some(Chosen { name: name.trim(), labels: labels.collect() })
    }
}

//! Steps that are chosen by their labels: `http{region:east,tier:gold}`; without a name all that
//! are attempts.

/// A subject with a selector behind it.
pub(super) struct Chosen<'t> {
    /// A step or a kind of them; empty: all.
    pub(super) name: &'t str,
    /// Each has to be there.
    pub(super) labels: Vec<(&'t str, &'t str)>,
}

impl<'t> Chosen<'t> {
    /// None where there is no selector. One that is not understood chooses by a label without a
    /// name, which no step has.
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

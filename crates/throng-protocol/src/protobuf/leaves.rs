//! The leaves of a message, and what is written around them once for all users.

/// One thing to write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    Bytes {
        from: u32,
        until: u32,
    },
    /// Start and end of a part with a length prefix.
    Open,
    Close,
    Leaf {
        leaf: u16,
        target: Target,
        /// The number of its path.
        path: u16,
    },
}

/// A message and the index of its field.
pub(super) type FieldPlace = (u32, u16);

/// The type that a leaf is written as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// A field with all its items.
    Field(FieldPlace),
    /// One item, or the value of an entry of a map.
    Item(FieldPlace),
    /// One number of a packed field.
    Number(FieldPlace),
    /// A whole message, without a tag.
    Message(u32),
}

#[derive(Default)]
pub(super) struct Leaves {
    pub(super) ops: Vec<Op>,
    pub(super) paths: Vec<Box<str>>,
    /// The path to the current field.
    pub(super) here: Vec<String>,
    /// Where the content of each open part begins that has no leaf so far. The byte before it is
    /// reserved for its length.
    open: Vec<usize>,
    /// The end of the bytes that operations refer to.
    flushed: usize,
}

impl Leaves {
    /// Bytes up to `end` are the same for all users.
    pub(super) fn flush(&mut self, end: usize) {
        if self.flushed < end {
            self.ops.push(Op::Bytes { from: self.flushed as u32, until: end as u32 });
        }
        self.flushed = end;
    }

    /// Adds a leaf after what was `written`: the length of a part with a leaf is not known yet.
    pub(super) fn add(&mut self, leaf: u16, target: Target, written: usize) {
        for begin in std::mem::take(&mut self.open) {
            self.flush(begin - 1);
            self.flushed = begin;
            self.ops.push(Op::Open);
        }
        self.flush(written);
        let path = self.paths.len() as u16;
        self.paths.push(self.here.join(".").into());
        self.ops.push(Op::Leaf { leaf, target, path });
    }

    pub(super) fn open(&mut self, begin: usize) {
        self.open.push(begin);
    }

    /// Ends a part; false if it has no leaf.
    pub(super) fn close(&mut self, begin: usize, written: usize) -> bool {
        let has_leaf = self.open.pop_if(|open| *open == begin).is_none();
        if has_leaf {
            self.flush(written);
            self.ops.push(Op::Close);
        }
        has_leaf
    }
}

//! The layout of a tree in plain data, for tests that pin it and for people who look at it.

use crate::node::inner::{self, Child};
use crate::node::leaf;
use crate::tree::Tree;
use resolver_types::Version;

/// A leaf, or a vacant slot, as it stands in its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafLayout {
    /// The least key of its routing range; none for the first.
    pub lower: Option<Vec<u8>>,
    /// The least key beyond it; none for the last.
    pub upper: Option<Vec<u8>>,
    /// Inner nodes above it.
    pub depth: u32,
    /// How many bytes the bounds share: none of its keys stores them. None for a vacant slot.
    pub prefix: Option<usize>,
    /// Whether some of its keys have bytes outside the leaf.
    pub long: bool,
    /// The version of its first keys; none for a gap, or for what has expired.
    pub carry: Option<Version>,
    /// What lives in it, in key order.
    pub entries: Vec<EntryLayout>,
    /// Entries that have expired and are still there.
    pub dead: usize,
}

/// An entry of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryLayout {
    /// The whole key.
    pub key: Vec<u8>,
    /// Whether it starts a segment; else it is a point.
    pub boundary: bool,
    /// Its version; none for a gap, or for a segment that has expired.
    pub version: Option<Version>,
}

/// Nodes and what hangs in them, without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outline {
    /// A leaf; a vacant slot counts as one without entries.
    Leaf {
        /// Its entries, expired ones included.
        entries: usize,
    },
    /// An inner node: what hangs in its slots, in key order.
    Inner(Vec<Outline>),
}

impl Tree {
    /// The tree without its keys. Takes time and memory linear in its nodes.
    pub fn outline(&self) -> Outline {
        self.outline_of(self.root)
    }

    fn outline_of(&self, child: Child) -> Outline {
        if child.is_vacant() {
            Outline::Leaf { entries: 0 }
        } else if child.leaf {
            Outline::Leaf { entries: leaf::view(&self.pool, child.block).len() }
        } else {
            let node = inner::node(&self.pool, child.block);
            Outline::Inner((0..node.len()).map(|slot| self.outline_of(node.child(slot))).collect())
        }
    }

    /// All leaves and vacant slots, in key order. Takes time and memory linear in the history.
    pub fn layout(&self) -> Vec<LeafLayout> {
        let mut leaves = Vec::new();
        self.layout_of(self.root, (None, None), 0, &mut leaves);
        leaves
    }

    fn layout_of(
        &self,
        child: Child,
        (lower, upper): (Option<Vec<u8>>, Option<Vec<u8>>),
        depth: u32,
        leaves: &mut Vec<LeafLayout>,
    ) {
        if !child.leaf && !child.is_vacant() {
            let node = inner::node(&self.pool, child.block);
            let prefix = lower.as_deref().unwrap_or_default()[..node.prefix()].to_vec();
            let bound = |slot: usize| match slot {
                0 => lower.clone(),
                slot if slot == node.len() => upper.clone(),
                slot => {
                    let mut key = prefix.clone();
                    node.copy_separator(&self.pool, slot, &mut key);
                    Some(key)
                }
            };
            for slot in 0..node.len() {
                self.layout_of(node.child(slot), (bound(slot), bound(slot + 1)), depth + 1, leaves);
            }
            return;
        }
        let mut layout = LeafLayout {
            lower,
            upper,
            depth,
            prefix: None,
            long: false,
            carry: self.version_of(child.greatest),
            entries: Vec::new(),
            dead: 0,
        };
        if child.leaf {
            let view = leaf::view(&self.pool, child.block);
            layout.prefix = Some(view.prefix);
            layout.long = !view.tails.is_empty();
            layout.carry = self.version_of(view.carry);
            let mut segment = layout.carry;
            for at in 0..view.len() {
                let (boundary, version) = (view.is_boundary(at), self.version_of(view.stamps[at]));
                let before = segment;
                if boundary {
                    segment = version;
                }
                if version.is_none() && (!boundary || before.is_none()) {
                    // Its bytes may be gone.
                    layout.dead += 1;
                    continue;
                }
                let mut key = layout.lower.as_deref().unwrap_or_default()[..view.prefix].to_vec();
                leaf::copy_key(&self.pool, view.place(at), view.tail(at), &mut key);
                layout.entries.push(EntryLayout { key, boundary, version });
            }
        }
        leaves.push(layout);
    }

    /// The version of a stamp; none for a gap and for what has expired.
    fn version_of(&self, stamp: u32) -> Option<Version> {
        (stamp > self.expired).then(|| self.versions.version(&self.pool, stamp))
    }
}

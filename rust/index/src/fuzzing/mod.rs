//! A door to what is private: scripts over key blocks and nodes alone, each beside a plain model.
//!
//! The fuzz targets draw the scripts; unit tests run some of their own, also under Miri. A script that is
//! legal for no reason is bent until it is, so that every operation does something; what is checked panics.

use crate::batch::{Endpoint, EndpointKind, Probes};
use crate::node::leaf::Query;
use resolver_types::KeyRange;

mod inner;
mod keys;
mod leaf;

pub use inner::{InnerSlot, inner};
pub use keys::{KeyOp, keys};
pub use leaf::{LeafOp, leaf};

/// A key after a node's prefix, in few bytes: many of them share heads, and some have long tails.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "fuzzing", derive(arbitrary::Arbitrary))]
pub struct ShortKey {
    /// Which byte is repeated, and how often.
    pub stem: u8,
    /// The bytes that follow.
    pub rest: [u8; 2],
}

/// Around the ends of a head, of an inline separator and of a key block.
const STEM_LENGTHS: [usize; 16] = [0, 1, 2, 6, 7, 8, 9, 10, 15, 16, 39, 40, 41, 100, 2_100, 5];

impl ShortKey {
    /// The key's bytes: the stem, and up to two more.
    fn bytes(self) -> Vec<u8> {
        let mut key = vec![b'a' + (self.stem >> 4 & 1); STEM_LENGTHS[usize::from(self.stem & 15)]];
        let [first, second] = self.rest;
        match self.stem >> 5 {
            0 => {}
            1 => key.push(0),
            2..=4 => key.push(first),
            _ => key.extend([first, second]),
        }
        key
    }
}

/// Asks for a key, as a node without a prefix is asked.
fn asked<T>(key: &[u8], ask: impl FnOnce(&Query<'_>) -> T) -> T {
    let endpoints = [Endpoint::new(key, 0, EndpointKind::WriteBegin, 0)];
    let ranges = [KeyRange { begin: key, end: key }];
    let probes =
        Probes { endpoints: &endpoints, behind: &[], ends: &[0], prefix: &[], suffix: &[], ranges: &ranges };
    ask(&Query::new(&probes, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::Planted;

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            self.0 >> 32
        }

        fn byte(&mut self) -> u8 {
            self.next() as u8
        }

        fn key(&mut self) -> ShortKey {
            ShortKey { stem: self.byte(), rest: [self.byte() & 3, self.byte() & 3] }
        }
    }

    const SCRIPTS: u64 = if cfg!(miri) { 3 } else { 300 };
    const OPERATIONS: u64 = if cfg!(miri) { 60 } else { 400 };

    #[test]
    fn scripts_over_key_blocks_do_as_the_model() {
        for seed in 0..SCRIPTS {
            let mut numbers = Numbers(seed);
            let script: Vec<KeyOp> = (0..OPERATIONS)
                .map(|_| {
                    let (which, other, byte) = (numbers.byte(), numbers.byte(), numbers.byte());
                    match numbers.next() % 12 {
                        0..=4 => KeyOp::Append {
                            length: numbers.next() as u16 & 0xfff,
                            byte,
                            cut: numbers.next() as u16,
                        },
                        5 => KeyOp::Stamp,
                        6 => KeyOp::Expire { stamps: which & 3 },
                        7 => KeyOp::Advance { which, by: numbers.next() as u16 & 0x7ff },
                        8 => KeyOp::Compare { which, other },
                        9 => KeyOp::Store { length: numbers.next() as u16 & 0x1fff, byte },
                        10 => KeyOp::Drop { which },
                        _ => KeyOp::Renumber,
                    }
                })
                .collect();
            assert!(keys(&script, Planted::default()) > 0, "seed {seed}");
        }
    }

    #[test]
    fn scripts_over_a_leaf_do_as_the_model() {
        for seed in 0..SCRIPTS {
            let mut numbers = Numbers(seed);
            let script: Vec<LeafOp> = (0..OPERATIONS)
                .map(|_| {
                    let key = numbers.key();
                    match numbers.next() % 16 {
                        0..=5 => LeafOp::Insert { key, boundary: numbers.next() & 1 == 0 },
                        6 => {
                            LeafOp::Remove { key, count: numbers.byte() & 7, carry: numbers.byte() & 1 == 0 }
                        }
                        7..=10 => LeafOp::Search { key, from: numbers.byte(), expire: numbers.byte() & 7 },
                        11 => LeafOp::Split { at: numbers.byte() },
                        12 => LeafOp::Compact { expire: numbers.byte() & 3 },
                        13 => LeafOp::Renumber,
                        _ => LeafOp::Stamp,
                    }
                })
                .collect();
            assert!(leaf(&script, Planted::default()) > 0, "seed {seed}");
        }
    }

    #[test]
    fn slots_of_an_inner_node_are_found_as_in_the_model() {
        for seed in 0..SCRIPTS {
            let mut numbers = Numbers(seed);
            let slots: Vec<InnerSlot> = (0..OPERATIONS / 4)
                .map(|_| InnerSlot {
                    separator: numbers.key(),
                    greatest: numbers.byte(),
                    oldest: numbers.byte(),
                    leaf: numbers.next() & 1 == 0,
                })
                .collect();
            let queries: Vec<ShortKey> = (0..OPERATIONS / 2).map(|_| numbers.key()).collect();
            assert!(inner(&slots, &queries) > 0, "seed {seed}");
        }
    }
}

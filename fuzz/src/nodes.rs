//! Target `nodes`: a leaf, or the slots of inner nodes, beside sorted lists. Strategy and invariants:
//! [`resolver_index::fuzzing::leaf`], [`resolver_index::fuzzing::inner`].

use crate::script::operations;
use crate::target::{Target, planted_in_tree};
use arbitrary::Unstructured;
use resolver_index::fuzzing::{self, InnerSlot, LeafOp, ShortKey};

/// The target.
pub const TARGET: Target = Target { name: "nodes", body, canary: "split-forgets-to-shift" };

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    let Some((kind, input)) = input.split_first() else { return false };
    if kind & 1 == 0 {
        return fuzzing::leaf(&operations::<LeafOp>(input), planted_in_tree(bug)) > 0;
    }
    let mut bytes = Unstructured::new(input);
    let (mut slots, mut queries) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        slots.extend(bytes.arbitrary::<InnerSlot>());
        if slots.len().is_multiple_of(4) {
            queries.extend(bytes.arbitrary::<ShortKey>());
        }
    }
    fuzzing::inner(&slots, &queries) > 0
}

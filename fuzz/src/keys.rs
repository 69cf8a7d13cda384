//! Target `keys`: the log of key blocks and the chains of separators, beside a list of byte strings. Strategy and
//! invariants: [`resolver_index::fuzzing::keys`].

use crate::target::{Target, planted_in_tree};
use arbitrary::Unstructured;
use resolver_index::fuzzing::{self, KeyOp};

/// The target.
pub const TARGET: Target = Target { name: "keys", body, canary: "key-blocks-released-early" };

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    let mut bytes = Unstructured::new(input);
    let mut script = Vec::new();
    while !bytes.is_empty() {
        script.extend(bytes.arbitrary::<KeyOp>());
    }
    fuzzing::keys(&script, planted_in_tree(bug)) > 0
}

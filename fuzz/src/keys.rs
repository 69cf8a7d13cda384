//! Target `keys`: the log of key blocks and the chains of separators, beside a list of byte strings. Strategy and
//! invariants: [`resolver_index::fuzzing::keys`].

use crate::script::operations;
use crate::target::{Target, planted_in_tree};
use resolver_index::fuzzing::{self, KeyOp};

/// The target.
pub const TARGET: Target = Target { name: "keys", body, canary: "key-blocks-released-early" };

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    fuzzing::keys(&operations::<KeyOp>(input), planted_in_tree(bug)) > 0
}

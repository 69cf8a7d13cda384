//! Nodes: leaves hold the history, inner nodes route to them.

pub(crate) mod inner;
pub(crate) mod leaf;

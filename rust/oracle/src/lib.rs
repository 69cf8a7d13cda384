//! Skip list and model.

mod model;
mod skiplist;

pub use model::Model;
pub use skiplist::SkipList;

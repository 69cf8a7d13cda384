//! Skip list and model.

mod model;

pub use model::Model;

//! Skip list and model.

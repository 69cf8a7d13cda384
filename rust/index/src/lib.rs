//! The temporal tree.

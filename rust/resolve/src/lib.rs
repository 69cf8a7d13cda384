//! A batch over the tree.

//! The temporal tree for C++: what a C++ resolver needs of a conflict set, as one call a batch.
//!
//! # What crosses
//! | way | what |
//! | --- | --- |
//! | in | a row of [transactions](bridge) and a row of ranges, as views: nothing is copied, no key is touched on the way |
//! | out | an outcome by value; verdicts and reported reads as views of arrays that are kept from batch to batch |
//! | errors | a status in the outcome, and a message to ask for; nothing is thrown |
//! | a panic | is caught here, and is the status `Broken`; it never unwinds into C++ |
//!
//! Both sides compute a [layout number](layout) from the sizes and places of everything that crosses; a
//! history is only made if they are equal.
//!
//! # Files
//! | file | holds |
//! | --- | --- |
//! | `bridge.rs` | the boundary: every type and function that C++ sees |
//! | `views.rs` | rows of views as a batch |
//! | `layout.rs` | the layout number |
//! | `history.rs` | one resolver's tree behind the boundary: guard against panics, fallback, figures |
//! | `shadow.rs` | the tree beside another history that answers |
//! | `settings.rs` | the environment variables |
//! | `planted.rs` | a bug on purpose |
//!
//! The C++ side stands in `cpp/`, its tests in `tests/`.

mod bridge;
mod history;
mod layout;
pub mod planted;
mod settings;
mod shadow;
mod views;

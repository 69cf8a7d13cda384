//! Which conflict set a name on the command line means.

use crate::error::Error;
use resolver_oracle::{Model, SkipList};
use resolver_types::{ConflictSet, Retention};

/// A conflict set that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    SkipList,
    Model,
}

impl Index {
    /// The names that [`Index::parse`] knows.
    pub(crate) const NAMES: [&str; 2] = ["skiplist", "model"];

    pub(crate) fn parse(name: &str) -> Result<Index, Error> {
        match name {
            "skiplist" => Ok(Index::SkipList),
            "model" => Ok(Index::Model),
            "tree" => Err(Error::NoTreeYet),
            _ => Err(Error::UnknownIndex(name.to_owned())),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Index::SkipList => "skiplist",
            Index::Model => "model",
        }
    }

    /// A fresh conflict set as a server would use it.
    pub(crate) fn make(self) -> Box<dyn ConflictSet> {
        match self {
            Index::SkipList => Box::new(SkipList::new(Retention::Window)),
            Index::Model => Box::new(Model::new(Retention::Window)),
        }
    }
}

/// A fresh reference that a replay follows by where its own history parts from the recorded one.
pub(crate) fn make_follower() -> Box<dyn ConflictSet> {
    Index::SkipList.make()
}

/// A fresh history that never forgets.
pub(crate) fn make_witness() -> Box<dyn ConflictSet> {
    Box::new(Model::new(Retention::Budget))
}

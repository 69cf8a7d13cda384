//! Which conflict set a name on the command line means, and how it is made.

use crate::error::Error;
use crate::output;
#[cfg(feature = "planted-bugs")]
use resolver_index::Bug;
use resolver_index::{Backing, Config, Planted, Strategy, Tasks};
use resolver_oracle::{Model, SkipList};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention};
use resolver_workloads::input::Unmade;

/// A conflict set that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    Tree,
    SkipList,
    Model,
}

impl Index {
    /// Every conflict set.
    const ALL: [Index; 3] = [Index::Tree, Index::SkipList, Index::Model];

    /// The names that [`Index::parse`] knows, to be read.
    pub(crate) fn names() -> String {
        Index::ALL.map(Index::name).join(", ")
    }

    pub(crate) fn parse(name: &str) -> Result<Index, Error> {
        let named = Index::ALL.into_iter().find(|index| index.name() == name);
        named.ok_or_else(|| Error::UnknownIndex(name.to_owned()))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Index::Tree => "tree",
            Index::SkipList => "skiplist",
            Index::Model => "model",
        }
    }
}

/// How histories are made.
#[derive(Default, clap::Args)]
pub(crate) struct HistoryArgs {
    /// The most that the tree may hold: bytes, or a number of KiB, MiB, GiB or TiB [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    budget: Option<String>,
    /// Where the tree's memory comes from: heap, 4k, thp or hugetlb [default: thp where the machine has it, else heap]
    #[arg(long, value_name = "BACKING")]
    pages: Option<String>,
    /// What a history may forget: window (what lies at or below the batches' oldest) or budget (only what does not fit; for
    /// research) [default: window]
    #[arg(long)]
    retention: Option<String>,
    #[command(flatten)]
    strategy: StrategyArgs,
    /// A bug to plant in the tree, by name
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME")]
    tree_bug: Option<String>,
}

/// How the tree hides the latency of memory.
#[derive(Default, clap::Args)]
pub(crate) struct StrategyArgs {
    /// How the tree hides the latency of memory: pipelined, or cooperative, with the tasks of the posts; the decisions are the
    /// same [default: pipelined]
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<String>,
    /// Resident read tasks of the cooperative strategy [default: 16]
    #[arg(long, value_name = "N")]
    read_tasks: Option<String>,
    /// Groups of write tasks of the cooperative strategy, and tasks of a group [default: 2x8]
    #[arg(long, value_name = "AxB")]
    write_groups: Option<String>,
}

impl StrategyArgs {
    /// The strategy that was asked for.
    pub(crate) fn strategy(&self) -> Result<Strategy, Error> {
        let asked = [&self.read_tasks, &self.write_groups].into_iter().any(Option::is_some);
        match self.strategy.as_deref().unwrap_or("pipelined") {
            "pipelined" if asked => Err(Error::TasksOfPipelined),
            "pipelined" => Ok(Strategy::Pipelined),
            "cooperative" => {
                let mut tasks = Tasks::default();
                if let Some(text) = &self.read_tasks {
                    tasks.reads = parse_reads(text)?;
                }
                if let Some(text) = &self.write_groups {
                    (tasks.groups, tasks.group_size) = parse_groups(text)?;
                }
                Ok(Strategy::Cooperative(tasks.checked()?))
            }
            unknown => Err(Error::UnknownStrategy(unknown.to_owned())),
        }
    }

    /// The arguments as they were given.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in [
            ("strategy", &self.strategy),
            ("read-tasks", &self.read_tasks),
            ("write-groups", &self.write_groups),
        ] {
            if let Some(value) = value {
                text += &format!(" --{name} {value}");
            }
        }
        text
    }
}

/// Reads a number of read tasks.
pub(crate) fn parse_reads(text: &str) -> Result<usize, Error> {
    text.parse().map_err(|_| Error::NoReadTasks(text.to_owned()))
}

/// Reads write groups, as 2x8.
pub(crate) fn parse_groups(text: &str) -> Result<(usize, usize), Error> {
    let parts =
        text.split_once('x').and_then(|(groups, size)| Some((groups.parse().ok()?, size.parse().ok()?)));
    parts.ok_or_else(|| Error::NoWriteGroups(text.to_owned()))
}

impl HistoryArgs {
    /// How to make histories, with the defaults for what was not asked for.
    pub(crate) fn histories(&self) -> Result<Histories, Error> {
        let default = Config::default();
        let backing = self.pages.as_ref().map(|name| name.parse::<Backing>()).transpose()?;
        Ok(Histories {
            retention: self.retention()?.unwrap_or_default(),
            tree: Config {
                budget_bytes: self.budget()?.unwrap_or(default.budget_bytes),
                backing: backing.unwrap_or(default.backing),
                strategy: self.strategy.strategy()?,
                planted: self.planted()?,
                ..default
            },
        })
    }

    #[cfg(feature = "planted-bugs")]
    fn planted(&self) -> Result<Planted, Error> {
        let Some(name) = &self.tree_bug else { return Ok(Planted::default()) };
        Bug::by_name(name).map(Planted::new).ok_or_else(|| Error::UnknownBug(name.clone()))
    }

    #[cfg(not(feature = "planted-bugs"))]
    fn planted(&self) -> Result<Planted, Error> {
        Ok(Planted::default())
    }

    /// The budget that was asked for, if any.
    pub(crate) fn budget(&self) -> Result<Option<u64>, Error> {
        let parse = |size: &String| output::parse_size(size).ok_or_else(|| Error::NoSize(size.clone()));
        self.budget.as_ref().map(parse).transpose()
    }

    /// The retention that was asked for, if any.
    pub(crate) fn retention(&self) -> Result<Option<Retention>, Error> {
        let parse = |name: &String| {
            let named = [Retention::Window, Retention::Budget]
                .into_iter()
                .find(|&known| retention_name(known) == name);
            named.ok_or_else(|| Error::UnknownRetention(name.clone()))
        };
        self.retention.as_ref().map(parse).transpose()
    }
}

/// A retention's name on the command line.
pub(crate) fn retention_name(retention: Retention) -> &'static str {
    match retention {
        Retention::Window => "window",
        Retention::Budget => "budget",
    }
}

/// Makes histories as the command line wants them. Skip list and model have no budget.
#[derive(Clone, Copy, Default)]
pub(crate) struct Histories {
    pub(crate) retention: Retention,
    pub(crate) tree: Config,
}

impl Histories {
    /// Histories that forget only what does not fit a budget.
    pub(crate) fn under_budget(budget_bytes: u64) -> Histories {
        Histories { retention: Retention::Budget, tree: Config { budget_bytes, ..Config::default() } }
    }

    /// How the tree is made.
    pub(crate) fn tree_config(&self) -> TreeConfig {
        TreeConfig { retention: self.retention, index: self.tree }
    }

    /// A fresh conflict set.
    pub(crate) fn make(&self, index: Index) -> Result<Box<dyn ConflictSet>, Unmade> {
        Ok(match index {
            Index::Tree => {
                let made = TreeSet::new(self.tree_config());
                Box::new(made.map_err(|error| Unmade(format!("the tree: {error}")))?)
            }
            Index::SkipList => Box::new(SkipList::new(self.retention)),
            Index::Model => Box::new(Model::new(self.retention)),
        })
    }
}

/// A fresh history that never forgets.
pub(crate) fn make_witness() -> Box<dyn ConflictSet> {
    Box::new(Model::new(Retention::Budget))
}

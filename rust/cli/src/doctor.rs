//! `resolver doctor`: what this machine can give, and the settings to recommend.

use crate::Outcome;
use crate::error::Error;
use crate::output::{self, Table};
use resolver_workloads::machine::Machine;
use serde::Serialize;

/// Say what this machine can give a history, and which settings that recommends
///
/// Recommended are a budget, half of the memory that can be had, and the pages to take it from.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
pub(crate) struct Document {
    pub(crate) machine: Machine,
    /// Nothing where the memory is unknown.
    recommended_budget_bytes: Option<u64>,
    recommended_pages: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let document = Document::here();
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(document.table())?;
    }
    Ok(Outcome::Fine)
}

impl Document {
    /// Looks at this machine.
    pub(crate) fn here() -> Document {
        let machine = Machine::here();
        let budget = machine.budget_bytes();
        let recommended_pages = machine.pages(budget.unwrap_or(u64::MAX));
        Document { machine, recommended_budget_bytes: budget, recommended_pages }
    }

    pub(crate) fn table(&self) -> Table {
        let unknown = || "unknown".to_owned();
        let bytes = |bytes: Option<u64>| bytes.map_or_else(unknown, output::bytes);
        let machine = &self.machine;
        let free = machine.huge_pages_free.zip(machine.huge_page_bytes);
        let free = free.map(|(pages, size)| format!("{pages} free of {}", output::bytes(size)));
        let mut table = Table::new(&["", "found"]);
        for (name, found) in [
            ("processor", machine.processor.clone().unwrap_or_else(unknown)),
            ("cores", machine.cores.map_or_else(unknown, |cores| cores.to_string())),
            ("AVX2", if machine.avx2 { "yes" } else { "no" }.to_owned()),
            ("memory", bytes(machine.memory_bytes)),
            ("memory available", bytes(machine.available_bytes)),
            ("memory limit", machine.limit_bytes.map_or("none".to_owned(), output::bytes)),
            ("transparent huge pages", machine.transparent_huge_pages.clone().unwrap_or_else(unknown)),
            ("pool of huge pages", free.unwrap_or_else(unknown)),
            ("recommended: --budget, at most", bytes(self.recommended_budget_bytes)),
            ("recommended: --pages", self.recommended_pages.to_owned()),
        ] {
            table.row(vec![name.to_owned(), found]);
        }
        table
    }
}

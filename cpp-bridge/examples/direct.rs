//! Replays plain captures through the tree without the bridge: what `tests/cpp.rs` measures the bridge
//! against.

use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{Batch, ConflictSet, Verdicts};
use resolver_workloads::capture::{CaptureReader, Record};
use std::error::Error;
use std::path::Path;

/// What a batch costs; counted apart, so that reading captures is not.
#[inline(never)]
fn decide_directly(
    set: &mut TreeSet,
    batch: &Batch<'_>,
    verdicts: &mut Verdicts,
) -> Result<(), Box<dyn Error>> {
    set.judge(batch, verdicts)?;
    set.commit(batch, verdicts)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut verdicts = Verdicts::default();
    for path in std::env::args_os().skip(1) {
        let mut set = TreeSet::new(TreeConfig::default())?;
        let mut reader = CaptureReader::open(Path::new(&path))?;
        while let Some(record) = reader.next_record()? {
            match record {
                Record::Clear(version) => set.clear(version),
                Record::Batch { batch, .. } => {
                    let ranges = batch.ranges();
                    decide_directly(&mut set, &batch.batch(&ranges), &mut verdicts)?;
                }
            }
        }
    }
    Ok(())
}

//! The model on random batches: against a plain list of all writes, as a follower, and over every shape.

use resolver_oracle::Model;
use resolver_types::{Batch, ConflictSet, KeyRange, Retention, Verdict, Verdicts, Version};
use resolver_workloads::{BatchBuf, RandomBatches, Workload};

/// Every write that was ever accepted, and nothing forgotten: the rules at their shortest.
struct ListOfWrites {
    writes: Vec<(Vec<u8>, Vec<u8>, Version)>,
    effective_oldest: Version,
}

impl ListOfWrites {
    fn resolve(&mut self, batch: &Batch<'_>) -> Verdicts {
        let mut verdicts = Verdicts::default();
        self.effective_oldest = self.effective_oldest.max(batch.oldest);
        let old = self.writes.len();
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let reads = batch.reads(transaction);
            let meets = |read: &KeyRange<'_>, writes: &[(Vec<u8>, Vec<u8>, Version)]| {
                writes.iter().any(|(begin, end, version)| {
                    *version > transaction.read_version
                        && read.begin.max(begin.as_slice()) < read.end.min(end.as_slice())
                })
            };
            let numbered = (0u32..).zip(reads);
            // Versions start at 0, so reading at -1 meets every key.
            let (history, this_batch) = self.writes.split_at(old);
            let mut losing: Vec<u32> = numbered
                .clone()
                .filter(|(_, read)| {
                    meets(read, history) || transaction.read_version < Version::ZERO && !read.is_empty()
                })
                .map(|(read, _)| read)
                .collect();
            if losing.is_empty() {
                losing.extend(
                    numbered
                        .filter(|(_, read)| {
                            this_batch.iter().any(|(begin, end, _)| {
                                read.begin.max(begin.as_slice()) < read.end.min(end.as_slice())
                            })
                        })
                        .map(|(read, _)| read)
                        .take(1),
                );
            }
            let verdict = if !reads.is_empty() && transaction.read_version < self.effective_oldest {
                Verdict::TooOld
            } else if losing.is_empty() {
                Verdict::Committed
            } else {
                Verdict::Conflict
            };
            verdicts.verdicts.push(verdict);
            if verdict == Verdict::Conflict && transaction.report {
                verdicts.reported.extend(losing.into_iter().map(|read| (index as u32, read)));
            }
            if verdict == Verdict::Committed {
                for write in batch.writes(transaction) {
                    self.writes.push((write.begin.to_vec(), write.end.to_vec(), batch.version));
                }
            }
        }
        verdicts
    }
}

fn judge(model: &mut Model, buf: &BatchBuf) -> Verdicts {
    let mut verdicts = Verdicts::default();
    model.judge(&buf.batch(&buf.ranges()), &mut verdicts).unwrap();
    verdicts
}

fn commit(model: &mut Model, buf: &BatchBuf, verdicts: &Verdicts) {
    model.commit(&buf.batch(&buf.ranges()), verdicts).unwrap();
}

fn count(verdicts: &Verdicts, verdict: Verdict) -> usize {
    verdicts.verdicts.iter().filter(|&&given| given == verdict).count()
}

#[test]
fn a_plain_list_of_all_writes_decides_the_same() {
    for shape in RandomBatches::shapes() {
        let mut model = Model::new(Retention::Window);
        let mut list = ListOfWrites { writes: Vec::new(), effective_oldest: Version::LOWEST };
        for (index, buf) in RandomBatches::new(shape, 11, 2_500).unwrap().enumerate() {
            let verdicts = judge(&mut model, &buf);
            assert_eq!(verdicts, list.resolve(&buf.batch(&buf.ranges())), "{shape}, batch {index}");
            commit(&mut model, &buf, &verdicts);
        }
    }
}

#[test]
fn every_shape_gives_every_verdict_often_and_reports() {
    for shape in RandomBatches::shapes() {
        let mut model = Model::new(Retention::Window);
        let (mut conflicts, mut too_old, mut committed, mut reports) = (0, 0, 0, 0);
        for buf in RandomBatches::new(shape, 2, 20_000).unwrap() {
            let verdicts = judge(&mut model, &buf);
            commit(&mut model, &buf, &verdicts);
            conflicts += count(&verdicts, Verdict::Conflict);
            too_old += count(&verdicts, Verdict::TooOld);
            committed += count(&verdicts, Verdict::Committed);
            reports += verdicts.reported.len();
        }
        let least = [conflicts, too_old, committed, reports].into_iter().min().unwrap();
        assert!(least > 500, "{shape}: {conflicts}, {too_old}, {committed}; {reports} reports");
        assert!(model.cutoff() > Some(Version::ZERO), "{shape}: history was given up");
    }
}

#[test]
fn a_follower_decides_like_the_history_whose_floor_it_is_told() {
    // The leader has the window, the follower only its effective oldest as a floor, and it applies the leader's verdicts.
    let mut leader = Model::new(Retention::Window);
    let mut follower = Model::new(Retention::Budget);
    for buf in RandomBatches::new("adversarial", 3, 20_000).unwrap() {
        let verdicts = judge(&mut leader, &buf);
        follower.set_floor(leader.effective_oldest().max(buf.oldest()));
        assert_eq!(judge(&mut follower, &buf), verdicts, "batch at {}", buf.version());
        commit(&mut leader, &buf, &verdicts);
        commit(&mut follower, &buf, &verdicts);
    }
    assert!(follower.cutoff() > Some(Version::ZERO));
    assert_eq!(follower.effective_oldest(), Version::LOWEST);
}

#[test]
fn a_history_that_forgets_nothing_finds_no_conflict_in_what_a_window_committed() {
    let mut window = Model::new(Retention::Window);
    let mut all = Model::new(Retention::Budget);
    let mut committed = 0;
    for buf in RandomBatches::new("adversarial", 4, 20_000).unwrap() {
        let verdicts = judge(&mut window, &buf);
        let by_all = judge(&mut all, &buf);
        for (index, &verdict) in verdicts.verdicts.iter().enumerate() {
            if verdict == Verdict::Committed && buf.transactions()[index].reads > 0 {
                committed += 1;
                // What the window's losers would have written must not count here.
                let own = by_all.verdicts[index] == Verdict::Committed;
                let within = !own && meets_an_earlier_write(&buf, index, &by_all);
                assert!(own || within, "transaction {index} of the batch at {}", buf.version());
            }
        }
        commit(&mut window, &buf, &verdicts);
        commit(&mut all, &buf, &verdicts);
    }
    assert!(committed > 2_000 && all.cutoff().is_none(), "{committed}");
}

/// Whether a read of the transaction meets a write that the verdicts commit before it in the batch.
fn meets_an_earlier_write(buf: &BatchBuf, index: usize, verdicts: &Verdicts) -> bool {
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let earlier = batch.transactions[..index].iter().zip(&verdicts.verdicts);
    let mut written = earlier
        .filter(|(_, verdict)| **verdict == Verdict::Committed)
        .flat_map(|(other, _)| batch.writes(other));
    let reads = batch.reads(&batch.transactions[index]);
    written.any(|write| reads.iter().any(|read| read.begin.max(write.begin) < read.end.min(write.end)))
}

/// The share of transactions that commit once the history is full.
fn committed_share(name: &str, batches: usize) -> f64 {
    let mut model = Model::new(Retention::Window);
    let (mut committed, mut transactions) = (0, 0);
    for (index, buf) in Workload::by_name(name, 1).unwrap().with_batches(batches).enumerate() {
        let verdicts = judge(&mut model, &buf);
        commit(&mut model, &buf, &verdicts);
        if index >= 60 {
            committed += count(&verdicts, Verdict::Committed);
            transactions += verdicts.verdicts.len();
        }
    }
    committed as f64 / transactions as f64
}

#[test]
fn the_conflictset_workloads_commit_the_share_they_are_known_for() {
    let points = committed_share("conflictset-points", 120);
    assert!((0.97..0.99).contains(&points), "{points}");
    let ranges = committed_share("conflictset-ranges", 120);
    assert!((0.165..0.195).contains(&ranges), "{ranges}");
}

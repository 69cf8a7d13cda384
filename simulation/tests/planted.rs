//! Each planted mistake is found by the checks of the simulation within a few seeds, and a failing schedule gets smaller.

#![cfg(feature = "planted-bugs")]
#![allow(clippy::print_stdout)] // tells what found each

use resolver_simulation::{
    Options, PlantedBug, Unexplained, Violation, check_seed, schedule, shrink, simulate,
};

/// Seeds that a mistake may need to show.
const SEEDS: u64 = 60;

/// The first violation that a mistake leads to.
fn found(bug: PlantedBug) -> Option<(u64, Violation)> {
    let options = Options::default().with_bug(bug);
    let run = |seed| match bug {
        PlantedBug::UnseededDelay => check_seed(seed, &options),
        _ => simulate(seed, &options),
    };
    (0..SEEDS).find_map(|seed| run(seed).violation.map(|violation| (seed, violation)))
}

/// What has to find a mistake.
fn finder(bug: PlantedBug) -> fn(&Violation) -> bool {
    match bug {
        PlantedBug::RetentionBudget
        | PlantedBug::ForgetEarlierOwners
        | PlantedBug::ForgetOwnersEarly
        | PlantedBug::LateMove
        | PlantedBug::AnyResolver
        | PlantedBug::FallbackKeepsBase
        | PlantedBug::RecoveryWithoutJump => {
            |found| matches!(found, Violation::History(Unexplained::Overwritten { .. }))
        }
        PlantedBug::DuplicatePushApplied => {
            |found| matches!(found, Violation::History(Unexplained::Snapshot { .. }))
        }
        PlantedBug::ReplyBeforeReport => {
            |found| matches!(found, Violation::History(Unexplained::RealTime { .. }))
        }
        PlantedBug::ReportOffByOne => |found| matches!(found, Violation::WrongReport { .. }),
        PlantedBug::LostReply | PlantedBug::SequencerForgets | PlantedBug::IgnorePreviousVersion => {
            |found| matches!(found, Violation::NeverAnswered { .. } | Violation::Refused { .. })
        }
        PlantedBug::DuplicateAnswer => |found| matches!(found, Violation::AnsweredTwice { .. }),
        PlantedBug::DuplicateResolved => {
            |found| matches!(found, Violation::AnswersDiffer { .. } | Violation::Refused { .. })
        }
        PlantedBug::FollowerNotTold => |found| matches!(found, Violation::VerdictsDiffer { .. }),
        PlantedBug::AcknowledgedAfterLock => |found| matches!(found, Violation::WrongPosition { .. }),
        PlantedBug::UnseededDelay => |found| matches!(found, Violation::NotRepeatable { .. }),
    }
}

#[test]
fn every_planted_mistake_is_found_by_what_guards_against_it() {
    let mut failures = Vec::new();
    for &bug in PlantedBug::ALL {
        match found(bug) {
            None => failures.push(format!("{}: survives {SEEDS} seeds", bug.name())),
            Some((seed, violation)) => {
                let line: String = violation.to_string().chars().take(100).collect();
                println!("{:<30} | {:<16} | seed {seed}: {line}", bug.name(), "simulation");
                if !finder(bug)(&violation) {
                    failures.push(format!("{}: seed {seed}: found as: {violation}", bug.name()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_failing_schedule_gets_smaller_and_still_fails() {
    let bug = PlantedBug::ForgetEarlierOwners;
    let options = Options::default().with_bug(bug);
    let (seed, violation) = found(bug).expect("the mistake is found");
    let shrunk = shrink(seed, &options, &violation, 60);
    assert!(shrunk.faults.len() < schedule(seed).len() / 2, "{} faults are left", shrunk.faults.len());
    let again = simulate(seed, &options.with_faults(shrunk.faults));
    assert_eq!(again.violation, Some(shrunk.violation));
}

//! The page: what was measured in words, pictures and tables.

use super::plot::{self, Pair};
use super::{Document, label};
use crate::bench::Entry;
use crate::output::{self, Table};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use resolver_types::STAGES;

/// Noise above which the machine was not left alone.
const BUSY: f64 = 0.25;

/// A skip list that uses less of the budget than this is at a disadvantage.
const USED_UP: f64 = 0.95;

/// At most so many rows of a table over time.
const ROWS: usize = 12;

/// The whole page.
pub(super) fn page(document: &Document) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Resolver: the tree against the skip list" }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                h1 { "The tree against FoundationDB's skip list" }
                p.faint { (source(document)) }
                (answers(document))
                (ratios(document))
                (phases(document))
                (strategies(document))
                (retention(document))
                (memory(document))
                (batch_times(document))
                (latency(document))
                (conditions(document))
            }
        }
    }
}

/// What was measured, and where.
fn source(document: &Document) -> String {
    let machine = &document.machine.machine;
    let processor = machine.processor.as_deref().unwrap_or("unknown processor");
    let cores = machine.cores.map_or(String::new(), |cores| format!(", {cores} cores"));
    format!("{}; {processor}{cores}", built_from(document))
}

fn built_from(document: &Document) -> String {
    match document.commit {
        Some(commit) => match commit.strip_suffix("-dirty") {
            Some(commit) => format!("commit {commit} with changes"),
            None => format!("commit {commit}"),
        },
        None => format!("version {}, commit unknown", document.version),
    }
}

/// What was measured of both, fastest first.
fn pairs<'a>(document: &'a Document) -> Vec<Pair<'a>> {
    let pair = |entry: &'a Entry| Some(Pair { name: label(&entry.workload), entry, ratio: entry.ratio? });
    let mut pairs: Vec<_> = document.workloads.iter().filter_map(pair).collect();
    pairs.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    pairs
}

fn answers(document: &Document) -> Markup {
    let pairs = pairs(document);
    let names = |is: &dyn Fn(f64, f64) -> bool| {
        let chosen = pairs.iter().filter(|pair| is(pair.ratio, pair.entry.noise));
        chosen.map(|pair| format!("{} {:.3}x", pair.name, pair.ratio)).collect::<Vec<_>>()
    };
    let busy = pairs.iter().filter(|pair| pair.entry.noise > BUSY).count();
    let slower = names(&|ratio, noise| ratio > 1.0 + noise);
    let alike = names(&|ratio, noise| (ratio - 1.0).abs() <= noise);
    let held = |pair: &Pair<'_>| [0, 1].map(|side| pair.entry.candidates[side].memory_bytes);
    let heavier = pairs.iter().map(|pair| (pair.name, held(pair))).filter(|(_, [tree, list])| tree > list);
    let heavier: Vec<String> = heavier
        .map(|(name, held)| format!("{name} {} against {}", output::bytes(held[0]), output::bytes(held[1])))
        .collect();
    html! {
        @if document.debug_assertions {
            p.warning { "Built with debug assertions: the times below say nothing about a release build." }
        }
        @if busy > 0 {
            p.warning {
                "The machine was busy: on " (busy) " of " (pairs.len()) " workloads the skip list against itself differs by "
                "more than " (BUSY) ". Measure again where nothing else runs before believing a time below."
            }
        }
        div.answers {
            @if let (Some(first), Some(last)) = (pairs.first(), pairs.last()) {
                div {
                    b { (format!("{:.2}x to {:.2}x", first.ratio, last.ratio)) }
                    "the skip list's time a batch, by workload: below 1 the tree is faster, on "
                    (pairs.len() - slower.len() - alike.len()) " of " (pairs.len()) " beyond the noise"
                }
            }
            @if let Some(retention) = &document.retention {
                div {
                    b { (format!("{:.1}x the history", retention.ratio)) }
                    (format!("in {}: {:.2} s of the long trace, the skip list {:.2} s",
                        output::bytes(retention.budget_bytes), retention.tree_seconds, retention.skiplist_seconds))
                }
            }
            @if let Some(times) = &document.replay.batch_times {
                div {
                    b { (format!("{:.2}x", times.p999_us / times.median_us)) }
                    "the median is the 99.9th percentile of the tree's batch times while it reclaims: "
                    (micros(times.p999_us)) " against " (micros(times.median_us))
                }
            }
        }
        p {
            b { "Where the tree loses or gains nothing. " }
            @if slower.is_empty() && alike.is_empty() { "In time, on none of these workloads. " }
            @if !slower.is_empty() { "Slower: " (slower.join(", ")) ". " }
            @if !alike.is_empty() { "No difference beyond the noise: " (alike.join(", ")) ". " }
            @if heavier.is_empty() { "In memory at the end, on none of them." }
            @else { "More memory at the end: " (heavier.join(", ")) "." }
        }
        @if let Some(retention) = &document.retention {
            @if retention.verdicts_equal {
                p {
                    "Both decided alike: on every workload below by a hash over all decisions, on the long trace "
                    (retention.decisions_compared) " of " (retention.decisions) " decisions compared, 0 mismatches, "
                    "and " (retention.probes) " probes of the history, 0 wrong."
                }
            } @else {
                p.warning {
                    "On the long trace the decisions differ: " (retention.mismatches) " mismatches, "
                    (retention.probe_failures) " probes of the history wrong. Its figures below mean nothing."
                }
            }
        }
    }
}

fn ratios(document: &Document) -> Markup {
    let pairs = pairs(document);
    let mut table = Table::new(&[
        "workload",
        "ratio",
        "least round",
        "most",
        "noise",
        "a transaction, tree",
        "skip list",
        "memory at the end, tree",
        "skip list",
        "batches",
    ]);
    for Pair { name, entry, ratio } in &pairs {
        let [tree, list] = [0, 1].map(|side| &entry.candidates[side]);
        let each = |seconds: f64| output::seconds(seconds / entry.transactions.max(1) as f64);
        let least = entry.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = entry.rounds.iter().copied().fold(0.0, f64::max);
        table.row(vec![
            (*name).to_owned(),
            format!("{ratio:.3}x"),
            format!("{least:.3}x"),
            format!("{most:.3}x"),
            format!("{:.3}", entry.noise),
            each(tree.seconds),
            each(list.seconds),
            output::bytes(tree.memory_bytes),
            output::bytes(list.memory_bytes),
            entry.batches.to_string(),
        ]);
    }
    html! {
        h2 { "Time of a batch, by workload" }
        @if pairs.is_empty() {
            p { "No workload was measured against the skip list." }
        } @else {
            (figure(
                &plot::ratios(&pairs),
                &[
                    ("--tree", "", "the tree's time over the skip list's, median of the rounds"),
                    ("--ink", "ring", "each round"),
                    ("--list", "line", "equally fast"),
                ],
                "Shorter is faster. Each bar is a ratio of whole batches within one run, both candidates in \
                 alternating rounds on the same input, so the machine's speed cancels out; ratios of different \
                 machines or runs still differ by more than the rings show. Noise is how far ratios of the skip \
                 list against itself lie apart: a difference from 1 below it means nothing.",
            ))
            (rows(&table))
        }
        @for entry in document.workloads.iter().filter(|entry| entry.ratio.is_none()) {
            p {
                (label(&entry.workload)) " is measured of the tree alone, inside the index: "
                (output::seconds(entry.candidates[0].seconds)) " for " (entry.batches) " batches."
            }
        }
    }
}

fn phases(document: &Document) -> Markup {
    let pairs = pairs(document);
    let colours = STAGES.map(|stage| format!("--{}", plot::phase_variable(stage.name())));
    let named = colours.iter().zip(STAGES);
    let legend: Vec<_> = named.map(|(colour, stage)| (colour.as_str(), "", stage.name())).collect();
    html! {
        @if !pairs.is_empty() {
            h2 { "Where the time goes" }
            (figure(
                &plot::phases(&pairs),
                &legend,
                "Of every workload two bars, in parts of what the skip list takes in all phases: where the \
                 tree's bar is shorter, the phases of one colour show what got cheaper. Phases are timed in \
                 rounds of their own, since reading the clock costs as much as a phase of a small batch: that \
                 inflates both bars where batches are small, and where the bars disagree with the ratios above, \
                 the machine had something else to do.",
            ))
            p.faint { "What a range costs in each phase, by the ranges that the phase deals with:" }
            @for (index, pair) in pairs.iter().enumerate() {
                details open[index == 0] {
                    summary { (pair.name) }
                    (rows(&pair.entry.phase_table()))
                }
            }
        }
    }
}

fn strategies(document: &Document) -> Markup {
    let entries = &document.strategies.workloads;
    html! {
        h2 { "Strategies of the tree" }
        (figure(
            &plot::strategies(entries),
            &[("--tree", "", "time over the pipelined strategy's"), ("--ink", "line", "equally fast")],
            "The same tree, decisions and blocks; what differs is how nodes are waited for. Pipelined walks levels \
             and leaves in order with a distance of prefetching; cooperative runs so many read tasks and groups of \
             write tasks in turns, as the posts have it. One task of each kind (1:1x1) is the sequential base: the \
             gain in the table is its time over the candidate's. A history that fits the caches has nothing to hide.",
        ))
        @for (index, entry) in entries.iter().enumerate() {
            details open[index == 0] {
                summary { (label(&entry.workload)) ", " (output::bytes(entry.memory_bytes)) " of history" }
                (rows(&entry.table()))
            }
        }
    }
}

/// Says that there is nothing to show.
fn nothing_reclaimed(document: &Document) -> Markup {
    let settings = &document.settings;
    html! {
        p.warning {
            (settings.trace_seconds) " s of the long trace do not fill " (output::bytes(settings.budget_bytes))
            " in both, so nothing is said here about how much history fits: it takes more seconds, or a smaller "
            "budget."
        }
    }
}

fn retention(document: &Document) -> Markup {
    let replay = &document.replay;
    let window = document.retention.as_ref().map(|retention| retention.skiplist_seconds);
    let mut legend = vec![("--tree", "line", "tree: seconds back to its cutoff")];
    if window.is_some() {
        legend.push(("--list", "line", "skip list: its largest window that fits the budget"));
    }
    html! {
        h2 { "History held in " (output::bytes(document.settings.budget_bytes)) }
        @if replay.batch_times.is_none() || document.retention.is_none() { (nothing_reclaimed(document)) }
        @if replay.batch_times.is_some() {
            (figure(
                &plot::retained(&replay.points, window),
                &legend,
                "Both replay the long trace. Until the tree first reclaims, it holds everything so far; from \
                 then on as many seconds as fit. The skip list has no budget: its line is the largest fixed \
                 window, found by trying, whose peak stays within the same budget. What counts for the ratio is \
                 the tree's smallest value after reclamation has begun. Shorter keys favour the tree: \
                 the ratio is one of this trace, not of every load.",
            ))
        }
        @if let Some(retention) = &document.retention {
            (rows(&retention.table()))
            @let used = retention.skiplist_peak_bytes as f64 / retention.budget_bytes as f64;
            @if used < USED_UP {
                p.warning {
                    "The skip list's window uses " (format!("{:.0} %", used * 100.0)) " of the budget, since the next "
                    "larger one that was tried does not fit: the ratio flatters the tree. A larger budget is fairer."
                }
            }
        }
        (over_time(document))
    }
}

/// A few rows of what the lines over time show.
fn over_time(document: &Document) -> Markup {
    let points = &document.replay.points;
    let mut table = Table::new(&["second of the trace", "history held", "memory held"]);
    let every = points.len().div_ceil(ROWS).max(1);
    let mut chosen: Vec<_> = points.iter().rev().step_by(every).collect();
    chosen.reverse();
    for point in chosen {
        let held = match point.retained_seconds {
            Some(age) => format!("{age:.2} s"),
            None => "everything".to_owned(),
        };
        table.row(vec![format!("{:.2}", point.seconds), held, output::bytes(point.memory_bytes)]);
    }
    html! { details open { summary { "the tree, over time" } (rows(&table)) } }
}

fn memory(document: &Document) -> Markup {
    let replay = &document.replay;
    let mut table = Table::new(&["", "peak, counted", "peak, process", "of the budget"]);
    let share = |bytes: u64| format!("{:.1} %", 100.0 * bytes as f64 / document.settings.budget_bytes as f64);
    let process = |bytes: Option<u64>| bytes.map_or("-".to_owned(), output::bytes);
    let peak = replay.peak_bytes;
    table.row(vec!["tree".to_owned(), output::bytes(peak), process(replay.process_bytes), share(peak)]);
    if let Some(retention) = &document.retention {
        let peak = retention.skiplist_peak_bytes;
        let seen = process(retention.skiplist_process_bytes);
        table.row(vec!["skiplist".to_owned(), output::bytes(peak), seen, share(peak)]);
    }
    html! {
        h2 { "Memory over time" }
        (figure(
            &plot::memory(&replay.points, document.settings.budget_bytes),
            &[("--tree", "line", "tree"), ("--ink", "line dashed", "budget")],
            "What the tree counts as held after each batch. It grows to its budget and stays below; a flat line \
             near the budget is no leak but the point of it. The process's own peak also has the batch, the \
             trace's generator and the allocator's slack.",
        ))
        (rows(&table))
    }
}

fn batch_times(document: &Document) -> Markup {
    let Some(times) = &document.replay.batch_times else {
        return html! { h2 { "Batch times while reclaiming" } p { "The tree reclaimed nothing in this run." } };
    };
    let mut named = Table::new(&["", "time", "in medians"]);
    for (name, value) in [
        ("median", times.median_us),
        ("p99", times.p99_us),
        ("p99.9", times.p999_us),
        ("longest", times.max_us),
    ] {
        named.row(vec![name.to_owned(), micros(value), format!("{:.2}x", value / times.median_us)]);
    }
    let mut bins = Table::new(&["from", "to", "batches"]);
    for bin in document.replay.histogram.iter().filter(|bin| bin.batches > 0) {
        bins.row(vec![micros(bin.from_us), micros(bin.to_us), bin.batches.to_string()]);
    }
    let replays = document.settings.replays;
    html! {
        h2 { "Batch times while reclaiming" }
        (figure(
            &plot::histogram(&document.replay.histogram, times),
            &[
                ("--tree", "", "batches of the tree's replay since its first reclamation"),
                ("--mark", "line", "named times"),
            ],
            "Judging and committing one batch of 2,048 transactions under the budget. Bars are on a logarithmic \
             scale, so that a single slow batch can be seen: most batches stand in the tallest bars. Beyond \
             three medians, p99.9 would be too slow by this project's own measure.",
        ))
        p.faint {
            @if replays > 1 {
                "Of each batch the least time of " (replays) " identical replays counts: what the machine adds now and \
                 then is taken off, what the tree itself does, the same in every replay, stays."
            } @else {
                "One replay: what the machine adds now and then is in these times, too."
            }
            @if times.batches < 1_000 {
                " Of " (times.batches) " batches, p99.9 is the longest."
            }
        }
        (rows(&named))
        details { summary { "the bars" } (rows(&bins)) }
    }
}

fn latency(document: &Document) -> Markup {
    html! {
        h2 { "Latency of memory" }
        (figure(
            &plot::latency(&document.latency.rows),
            &[("--mark", "line", "ordinary pages"), ("--within-batch", "line", "huge pages asked for")],
            "One load that depends on the load before it, in random order through so much memory: steps are \
             caches that no longer hold it, and translations of addresses. It places this machine beside others; \
             it is no speed of either conflict set. The kernel may refuse huge pages without a word, and \
             neighbours on a shared machine take part of the larger caches.",
        ))
        (rows(&document.latency.table()))
    }
}

fn conditions(document: &Document) -> Markup {
    let settings = &document.settings;
    let mut table = Table::new(&["", "set"]);
    for (name, value) in [
        ("built from", built_from(document)),
        ("rounds of each workload", settings.rounds.to_string()),
        (
            "batches of each workload",
            settings
                .batches
                .map_or("as in the table of ratios".to_owned(), |batches| format!("at most {batches}")),
        ),
        ("scale of the workloads", settings.scale.to_string()),
        ("budget of the long trace", output::bytes(settings.budget_bytes)),
        ("seconds of the long trace", settings.trace_seconds.to_string()),
        ("keys of the long trace", format!("{} bytes", settings.key_bytes)),
        ("mixture of the long trace", settings.mixture.to_owned()),
        ("seed of the long trace", settings.seed.to_string()),
        ("replays of the tree under the budget", settings.replays.to_string()),
    ] {
        table.row(vec![name.to_owned(), value]);
    }
    html! {
        h2 { "Machine and settings" }
        (rows(&document.machine.table()))
        (rows(&table))
    }
}

fn micros(micros: f64) -> String {
    output::seconds(micros / 1e6)
}

/// A picture with its legend (colour, form, meaning) and what to know about it.
fn figure(svg: &str, legend: &[(&str, &str, &str)], explained: &str) -> Markup {
    html! {
        figure {
            div.picture {
                div.legend {
                    @for (colour, form, meaning) in legend {
                        @let paint = if form.is_empty() { "background" } else { "border-color" };
                        span { i class=(form) style=(format!("{paint}: var({colour})")) {} (meaning) }
                    }
                }
                (PreEscaped(svg))
            }
            figcaption { p { (explained) } }
        }
    }
}

fn rows(table: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                tr { @for cell in table.header() { th { (cell) } } }
                @for row in table.rows() { tr { @for cell in row { td { (cell) } } } }
            }
        }
    }
}

//! The model: a tree's shape, the expectation of what routing costs in it, and the count for given reads.

use resolver_index::{Outline, walk_steps, walks};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// A tree as routing sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A leaf with so many intervals.
    Leaf(u64),
    /// An inner node.
    Inner {
        /// What its separators tell apart, in key order.
        children: Vec<Rc<Shape>>,
        /// The intervals below.
        intervals: u64,
    },
}

impl Shape {
    fn inner(children: Vec<Rc<Shape>>) -> Shape {
        let intervals = children.iter().map(|child| child.intervals()).sum();
        Shape::Inner { children, intervals }
    }

    /// The published tree of 6 GiB: a root with two children, four more levels of 28, and 41 intervals in each of 1,229,312
    /// leaves.
    pub fn published() -> Shape {
        [28, 28, 28, 28, 2].into_iter().fold(Shape::Leaf(41), |below, children| {
            let below = Rc::new(below);
            Shape::inner(vec![below; children])
        })
    }

    /// The intervals of the whole.
    pub fn intervals(&self) -> u64 {
        match self {
            Shape::Leaf(intervals) | Shape::Inner { intervals, .. } => *intervals,
        }
    }
}

impl From<Outline> for Shape {
    fn from(outline: Outline) -> Shape {
        match outline {
            Outline::Leaf { entries } => Shape::Leaf(entries as u64),
            Outline::Inner(children) => {
                Shape::inner(children.into_iter().map(|child| Rc::new(Shape::from(child))).collect())
            }
        }
    }
}

/// What is not said by the algorithm's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The model's: of two separators in the middle the upper one, and a begin that is alone is like any other slice.
    Model,
    /// The tree's: the lower one, a begin that is alone is looked for among all separators of its node, and begins about as
    /// many as the separators are walked along with them, several at a step.
    Tree,
}

impl Rule {
    /// How children `first..=last` are halved: the first of the upper half, before which the separator stands.
    fn middle(self, first: usize, last: usize) -> usize {
        let separators = last - first;
        match self {
            Rule::Model => first + separators / 2 + 1,
            Rule::Tree => first + separators.div_ceil(2),
        }
    }
}

/// What routing costs, in comparisons. Of a formula, expectations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparisons {
    /// With separators, each begin by itself.
    pub independent: f64,
    /// With separators, all begins together.
    pub grouped: f64,
    /// Inside the leaves, a search for each begin.
    pub leaf_independent: f64,
    /// Inside the leaves, a search for each leaf.
    pub leaf_grouped: f64,
    /// Leaves that begins reach.
    pub leaves: f64,
}

/// The comparisons of a binary search in `length` sorted keys, the first `below` of which are below what is sought.
fn search(length: u64, below: u64) -> u64 {
    let (mut low, mut left, mut comparisons) = (0, length, 0);
    while left > 0 {
        comparisons += 1;
        let half = left / 2;
        if low + half < below {
            low += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    comparisons
}

/// What the model counts for these begins: the intervals they fall into, sorted. O(begins x height).
///
/// # Panics
/// When a begin lies outside the shape.
pub fn counted(shape: &Shape, begins: &[u64], rule: Rule) -> Comparisons {
    debug_assert!(begins.is_sorted(), "the begins of a batch are sorted");
    let mut all = Comparisons::default();
    count_below(shape, 0, begins, rule, &mut all);
    let mut each = Comparisons::default();
    for begin in begins {
        count_below(shape, 0, std::slice::from_ref(begin), rule, &mut each);
    }
    Comparisons { independent: each.grouped, leaf_independent: each.leaf_grouped, ..all }
}

/// Counts a subtree whose first interval is `start`.
fn count_below(shape: &Shape, start: u64, begins: &[u64], rule: Rule, count: &mut Comparisons) {
    let Some(&first) = begins.first() else { return };
    match shape {
        Shape::Leaf(intervals) => {
            assert!(first - start < *intervals, "a begin lies in the tree");
            count.leaves += 1.0;
            // The first interval that begins after it.
            count.leaf_grouped += search(*intervals, first - start + 1) as f64;
        }
        Shape::Inner { children, .. } => {
            let bounds = starts(children, start);
            if rule == Rule::Tree && walks(begins.len(), children.len()) {
                let mut rest = begins;
                for (slot, child) in children.iter().enumerate().take_while(|_| !rest.is_empty()) {
                    let below = rest.partition_point(|&begin| begin < bounds[slot + 1]);
                    if slot + 1 < children.len() {
                        count.grouped += walk_steps(rest.len(), below) as f64;
                    }
                    count_below(child, bounds[slot], &rest[..below], rule, count);
                    rest = &rest[below..];
                }
                return;
            }
            let mut parts = vec![(0, children.len() - 1, begins)];
            while let Some((first, last, begins)) = parts.pop() {
                if begins.is_empty() {
                    continue;
                }
                if first == last {
                    count_below(&children[first], bounds[first], begins, rule, count);
                } else if begins.len() == 1 && rule == Rule::Tree {
                    count.grouped += f64::from(children.len().ilog2() + 1);
                    let child = bounds[..children.len()].partition_point(|&bound| bound <= begins[0]) - 1;
                    count_below(&children[child], bounds[child], begins, rule, count);
                } else {
                    let middle = rule.middle(first, last);
                    let cut = begins.partition_point(|&begin| begin < bounds[middle]);
                    count.grouped += search(begins.len() as u64, cut as u64) as f64;
                    parts.push((middle, last, &begins[cut..]));
                    parts.push((first, middle - 1, &begins[..cut]));
                }
            }
        }
    }
}

/// Where each child's intervals start, and where the last one's stop.
fn starts(children: &[Rc<Shape>], start: u64) -> Vec<u64> {
    let mut bounds = vec![start];
    bounds.extend(children.iter().scan(start, |at, child| {
        *at += child.intervals();
        Some(*at)
    }));
    bounds
}

/// What routing so many begins is expected to cost, each in any interval of the region with the same chance. Exact but for
/// chances below 1e-12.
///
/// # Panics
/// When the region is empty or reaches past the shape.
pub fn analytical(shape: &Shape, begins: u64, region: Range<u64>) -> Comparisons {
    assert!(region.start < region.end && region.end <= shape.intervals(), "a region of the tree");
    let mut formula = Formula { begins, region, searches: HashMap::new(), leaves: HashMap::new() };
    let mut sum = Comparisons::default();
    formula.below(shape, 0, &mut sum);
    sum
}

struct Formula {
    begins: u64,
    region: Range<u64>,
    /// By the intervals of a part and of its lower half: the comparisons with the separator between.
    searches: HashMap<(u64, u64), f64>,
    /// By the intervals of a leaf that lies in the region: the comparisons inside it, of each begin and of the first.
    leaves: HashMap<u64, (f64, f64)>,
}

impl Formula {
    /// How many of some intervals lie in the region.
    fn inside(&self, intervals: Range<u64>) -> u64 {
        intervals.end.min(self.region.end).saturating_sub(intervals.start.max(self.region.start))
    }

    fn all(&self) -> u64 {
        self.region.end - self.region.start
    }

    fn below(&mut self, shape: &Shape, start: u64, sum: &mut Comparisons) {
        let inside = self.inside(start..start + shape.intervals());
        if inside == 0 {
            return;
        }
        match shape {
            Shape::Leaf(intervals) => {
                let (each, first) = self.leaf(*intervals, start, inside);
                sum.leaf_independent += each;
                sum.leaf_grouped += first;
                sum.leaves += 1.0 - self.none_in(inside);
            }
            Shape::Inner { children, .. } => {
                let bounds = starts(children, start);
                let mut parts = vec![(0, children.len() - 1)];
                while let Some((first, last)) = parts.pop() {
                    let part = self.inside(bounds[first]..bounds[last + 1]);
                    if first == last || part == 0 {
                        continue;
                    }
                    let middle = Rule::Model.middle(first, last);
                    // Each begin of the part is compared with the middle separator once.
                    sum.independent += self.begins as f64 * part as f64 / self.all() as f64;
                    sum.grouped += self.search(part, self.inside(bounds[first]..bounds[middle]));
                    parts.extend([(first, middle - 1), (middle, last)]);
                }
                for (child, &bound) in children.iter().zip(&bounds) {
                    self.below(child, bound, sum);
                }
            }
        }
    }

    /// The chance that no begin falls into so many intervals.
    fn none_in(&self, intervals: u64) -> f64 {
        (1.0 - intervals as f64 / self.all() as f64).powf(self.begins as f64)
    }

    /// The expected comparisons inside a leaf: those of each begin, and those of the first begin alone.
    fn leaf(&mut self, intervals: u64, start: u64, inside: u64) -> (f64, f64) {
        let whole = inside == intervals;
        if let Some(&known) = self.leaves.get(&intervals).filter(|_| whole) {
            return known;
        }
        let before = self.region.start.saturating_sub(start);
        let (mut each, mut first) = (0.0, 0.0);
        for at in 0..inside {
            let comparisons = search(intervals, before + at + 1) as f64;
            each += comparisons * self.begins as f64 / self.all() as f64;
            first += comparisons * (self.none_in(at) - self.none_in(at + 1));
        }
        if whole {
            self.leaves.insert(intervals, (each, first));
        }
        (each, first)
    }

    /// The expected comparisons of one separator with the begins of a part, `lower` of whose intervals lie below it.
    fn search(&mut self, part: u64, lower: u64) -> f64 {
        let (begins, all) = (self.begins, self.all());
        *self.searches.entry((part, lower)).or_insert_with(|| {
            binomial(begins, part as f64 / all as f64)
                .map(|(length, chance)| {
                    let below = binomial(length, lower as f64 / part as f64);
                    chance * below.map(|(below, chance)| chance * search(length, below) as f64).sum::<f64>()
                })
                .sum()
        })
    }
}

/// The numbers of successes among so many trials, with their chances; without those so unlikely that nothing hangs on
/// them. Every term follows from its neighbour, beginning at the likeliest.
fn binomial(trials: u64, chance: f64) -> impl Iterator<Item = (u64, f64)> {
    const UNLIKELY: f64 = 1e-12;
    let odds = chance / (1.0 - chance);
    let likeliest = (((trials + 1) as f64 * chance) as u64).min(trials);
    let likely = |term: &(u64, f64)| term.1 > UNLIKELY;
    let up = std::iter::successors(Some((likeliest, 1.0)), move |&(at, weight)| {
        (at < trials).then(|| (at + 1, weight * odds * (trials - at) as f64 / (at + 1) as f64))
    });
    let down = std::iter::successors(Some((likeliest, 1.0)), move |&(at, weight)| {
        (at > 0).then(|| (at - 1, weight / odds * at as f64 / (trials - at + 1) as f64))
    });
    let terms: Vec<(u64, f64)> = up.take_while(likely).chain(down.skip(1).take_while(likely)).collect();
    let sum: f64 = terms.iter().map(|term| term.1).sum();
    terms.into_iter().map(move |(at, weight)| (at, weight / sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binomial_is_what_its_definition_gives() {
        let found: Vec<(u64, f64)> = {
            let mut terms: Vec<_> = binomial(4, 0.25).collect();
            terms.sort_by_key(|term| term.0);
            terms
        };
        let expected = [81.0, 108.0, 54.0, 12.0, 1.0].map(|weight| weight / 256.0);
        assert_eq!(found.len(), 5);
        assert!(found.iter().zip(expected).all(|(found, expected)| (found.1 - expected).abs() < 1e-12));
        for (chance, only) in [(0.0, 0), (1.0, 7)] {
            assert_eq!(binomial(7, chance).collect::<Vec<_>>(), [(only, 1.0)]);
        }
    }

    #[test]
    fn a_search_takes_as_many_comparisons_as_it_makes() {
        assert_eq!((search(0, 0), search(1, 0), search(1, 1)), (0, 1, 1));
        assert_eq!([0, 1, 2, 3].map(|below| search(3, below)), [2, 2, 2, 2]);
        // The published example: boundaries 20, 40 and 60.
        let leaf = Rc::new(Shape::Leaf(20));
        let shape = Shape::inner(vec![leaf; 4]);
        let count = counted(&shape, &[10, 25, 40, 45, 70], Rule::Model);
        assert_eq!((count.independent, count.grouped, count.leaves), (10.0, 6.0, 4.0));
    }

    #[test]
    fn a_formula_is_the_mean_over_all_batches() {
        let leaves = [3, 1, 2, 4, 2].map(|intervals| Rc::new(Shape::Leaf(intervals)));
        let low = Rc::new(Shape::inner(leaves[..2].to_vec()));
        let high = Rc::new(Shape::inner(leaves[2..].to_vec()));
        let shape = Shape::inner(vec![low, high, Rc::new(Shape::Leaf(1))]);
        for region in [0..13_u64, 2..9] {
            let mut mean = Comparisons::default();
            let size = region.end - region.start;
            let batches = size.pow(3);
            for batch in 0..batches {
                let mut begins =
                    [batch, batch / size, batch / size / size].map(|at| region.start + at % size);
                begins.sort_unstable();
                let count = counted(&shape, &begins, Rule::Model);
                mean.independent += count.independent / batches as f64;
                mean.grouped += count.grouped / batches as f64;
                mean.leaf_independent += count.leaf_independent / batches as f64;
                mean.leaf_grouped += count.leaf_grouped / batches as f64;
                mean.leaves += count.leaves / batches as f64;
            }
            let formula = analytical(&shape, 3, region);
            for (mean, formula) in [
                (mean.independent, formula.independent),
                (mean.grouped, formula.grouped),
                (mean.leaf_independent, formula.leaf_independent),
                (mean.leaf_grouped, formula.leaf_grouped),
                (mean.leaves, formula.leaves),
            ] {
                assert!((mean - formula).abs() < 1e-9, "{mean} {formula}");
            }
        }
    }

    /// The published totals, rounded as they were.
    #[test]
    fn the_published_shape_gives_the_published_totals() {
        let shape = Shape::published();
        assert_eq!(shape.intervals(), 1_229_312 * 41);
        let found = analytical(&shape, 10_000, 0..shape.intervals());
        assert_eq!(found.independent.round(), 204_286.0);
        assert_eq!((found.independent + found.leaf_independent).round(), 258_920.0);
        assert_eq!(found.grouped.round(), 90_463.0);
        assert_eq!((found.grouped + found.leaf_grouped).round(), 144_877.0);
        assert_eq!(found.leaves.round(), 9_959.0);
    }
}

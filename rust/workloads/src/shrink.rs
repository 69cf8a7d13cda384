//! Making a failing input smaller.

use crate::part::Part;

/// Looks for fewer and smaller batches that still fail, starting from `batches`, which do.
///
/// First the shortest run of last batches is sought, then batches, transactions and ranges are left out, in halving chunks,
/// as long as what remains fails, until nothing more can be. `fails` is asked until it has been given `effort` transactions and
/// batches: the result always fails, but it need not be the smallest.
pub fn shrink<'a>(
    batches: Vec<Part<'a>>,
    effort: u64,
    fails: &mut dyn FnMut(&[Part<'a>]) -> bool,
) -> Vec<Part<'a>> {
    let mut shrinking = Shrinking { batches, effort, fails };
    shrinking.keep_last_batches();
    loop {
        let before = shrinking.size();
        shrinking.leave_out_batches();
        shrinking.leave_out_inside(
            |part| part.batch().transactions.len(),
            |part, chunk| part.with_transactions(|index| !chunk.contains(&index)),
        );
        shrinking
            .leave_out_inside(|part| part.batch().ranges.len(), |part, chunk| part.without_ranges(chunk));
        if shrinking.size() == before {
            return shrinking.batches;
        }
    }
}

struct Shrinking<'a, 'f> {
    batches: Vec<Part<'a>>,
    effort: u64,
    fails: &'f mut dyn FnMut(&[Part<'a>]) -> bool,
}

impl<'a> Shrinking<'a, '_> {
    /// Batches, transactions and ranges together.
    fn size(&self) -> usize {
        let size = |part: &Part<'a>| 1 + part.batch().transactions.len() + part.batch().ranges.len();
        self.batches.iter().map(size).sum()
    }

    /// Takes `candidate` over if it still fails.
    fn try_out(&mut self, candidate: Vec<Part<'a>>) -> bool {
        let cost: u64 = candidate.iter().map(|part| 1 + part.batch().transactions.len() as u64).sum();
        if self.effort < cost {
            return false;
        }
        self.effort -= cost;
        let failed = (self.fails)(&candidate);
        if failed {
            self.batches = candidate;
        }
        failed
    }

    fn keep_last_batches(&mut self) {
        let all = self.batches.len();
        let mut last = 1;
        while last < all && !self.try_out(self.batches[all - last..].to_vec()) {
            last *= 2;
        }
    }

    fn leave_out_batches(&mut self) {
        let mut chunk = self.batches.len().div_ceil(2);
        while chunk > 0 {
            let mut at = 0;
            while at < self.batches.len() {
                let mut candidate = self.batches.clone();
                candidate.drain(at..(at + chunk).min(self.batches.len()));
                if candidate.is_empty() || !self.try_out(candidate) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Leaves out chunks of what `len` counts in one batch after the other.
    fn leave_out_inside(
        &mut self,
        len: impl Fn(&Part<'a>) -> usize,
        without: impl Fn(&Part<'a>, std::ops::Range<usize>) -> Part<'a>,
    ) {
        for batch in 0..self.batches.len() {
            let mut chunk = len(&self.batches[batch]);
            while chunk > 0 {
                let mut at = 0;
                while at < len(&self.batches[batch]) {
                    let mut candidate = self.batches.clone();
                    candidate[batch] = without(&self.batches[batch], at..at + chunk);
                    if !self.try_out(candidate) {
                        at += chunk;
                    }
                }
                chunk /= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchBuf;
    use resolver_types::Version;

    #[test]
    fn what_the_failure_does_not_need_is_left_out() {
        let mut bufs = Vec::new();
        for batch in 0..40u8 {
            let mut buf = BatchBuf::new(Version(i64::from(batch) + 1), Version::ZERO);
            for transaction in 0..7 {
                buf.push_transaction(Version::ZERO, false);
                buf.push_read(&[batch, transaction], &[batch, transaction, 0]);
                buf.push_write(&[batch, transaction], &[batch, transaction, 1]);
            }
            bufs.push(buf);
        }
        let views: Vec<_> = bufs.iter().map(BatchBuf::ranges).collect();
        let parts = bufs.iter().zip(&views).map(|(buf, ranges)| Part::of(&buf.batch(ranges), |_| true));
        let holds = |parts: &[Part<'_>], key: &[u8]| {
            parts.iter().any(|part| part.batch().ranges.iter().any(|range| range.begin == key))
        };
        let mut fails = |parts: &[Part<'_>]| holds(parts, &[31, 2]) && holds(parts, &[38, 5]);
        let small = shrink(parts.collect(), 1_000_000, &mut fails);
        assert!(fails(&small));
        assert_eq!(small.len(), 2);
        assert!(
            small.iter().all(|part| part.batch().transactions.len() == 1 && part.batch().ranges.len() == 1)
        );
    }
}

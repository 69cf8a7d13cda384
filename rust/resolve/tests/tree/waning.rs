//! History that wanes: bursts of ranges and points over half of the keys, and quiet times between, in which
//! they expire in leaves that hardly anybody writes to, so that the slow hand has compacting and joining to
//! do. Now and then something wide makes slots vacant.

use resolver_types::Version;
use resolver_workloads::{BatchBuf, Rng};

/// Keys are numbers below this; the upper half is written to at all times.
const KEYS: u64 = 12_000;
/// Batches from burst to burst.
const CYCLE: i64 = 60;

fn key(number: u64, long: bool) -> Vec<u8> {
    if long {
        // A few hundred in a row share 70 bytes, and no others.
        [&(number / 256).to_be_bytes()[..], &[b'.'; 62], &number.to_be_bytes()].concat()
    } else {
        number.to_be_bytes().to_vec()
    }
}

/// Batches of short keys, or of keys with tails and separators with chains.
pub(crate) fn batches(seed: u64, count: i64, long: bool) -> impl Iterator<Item = BatchBuf> {
    let mut rng = Rng::new(seed);
    let mut border = 0;
    (1..=count).map(move |version| {
        let mut buf = BatchBuf::new(Version(version), Version(version - rng.between(20, 40)));
        let burst = version % CYCLE == 1;
        buf.push_transaction(Version(version), false);
        for _ in 0..if burst { 1_500 } else { 8 } {
            let begin = rng.below(KEYS / 2);
            let span = if rng.one_in(2) { 0 } else { 1 + rng.below(60) };
            push(&mut buf, begin, span, long);
        }
        for _ in 0..100 {
            push(&mut buf, KEYS / 2 + rng.below(KEYS / 2), 0, long);
        }
        if rng.one_in(8) {
            // Each begins where the last one ended, until the end of the lower half.
            let span = 300 + rng.below(900);
            push(&mut buf, border, span, long);
            border = if border + span < KEYS / 2 { border + span } else { 0 };
        }
        for _ in 0..20 {
            buf.push_transaction(Version((version - rng.between(1, 25)).max(0)), rng.one_in(2));
            let begin = rng.below(KEYS);
            let end = begin + 1 + rng.below(rng.clone().pick(&[1, 20, 2_000]));
            buf.push_read(&key(begin, long), &key(end, long));
        }
        buf
    })
}

/// Adds a write of `span` keys, or of one key alone.
fn push(buf: &mut BatchBuf, begin: u64, span: u64, long: bool) {
    let begin_key = key(begin, long);
    let end = if span == 0 { [&begin_key[..], &[0]].concat() } else { key(begin + span, long) };
    buf.push_write(&begin_key, &end);
}

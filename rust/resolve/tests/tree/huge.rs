//! Huge keys.

use resolver_types::{MAX_KEY_LENGTH, Version};
use resolver_workloads::{BatchBuf, Rng};

/// Batches of a few huge keys, which meet, among short ones: more than the least budget holds at times.
pub(crate) fn batches(seed: u64, batches: i64) -> impl Iterator<Item = BatchBuf> {
    let mut rng = Rng::new(seed);
    let key = |rng: &mut Rng| {
        let length = rng.pick(&[1, 30_000, 30_001, MAX_KEY_LENGTH - 1, MAX_KEY_LENGTH]);
        let mut key = vec![rng.pick(b"ak"); length];
        key[length / 2] = rng.pick(b"akz");
        key[length - 1] = rng.pick(b"\0akz");
        key
    };
    (1..=batches).map(move |version| {
        let mut buf = BatchBuf::new(Version(version), Version(version - 40));
        let most = if rng.one_in(20) { 8 } else { 1 };
        for _ in 0..=rng.below(most) {
            buf.push_transaction(Version(version - rng.between(1, 20)), rng.one_in(2));
            for read in [true, false] {
                for _ in 0..rng.below(3) {
                    let mut begin = key(&mut rng);
                    let mut end = [&begin[..], &[0]].concat();
                    if rng.one_in(3) {
                        end = key(&mut rng);
                        if begin > end {
                            std::mem::swap(&mut begin, &mut end);
                        }
                    }
                    if read { buf.push_read(&begin, &end) } else { buf.push_write(&begin, &end) }
                }
            }
        }
        buf
    })
}

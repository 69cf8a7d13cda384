//! The hash of everything that happened: equal seeds must give equal hashes.

/// FNV-1a, 64 bits, over little-endian words.
#[derive(Clone, Debug)]
pub(crate) struct Trace(u64);

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, words: &[u64]) {
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// 16 lower-case hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_sees_order() {
        let hash = |words: &[u64]| {
            let mut trace = Trace::new();
            trace.add(words);
            trace.hex()
        };
        assert_eq!(hash(&[]), "cbf29ce484222325");
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
    }
}

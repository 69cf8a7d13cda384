//! A batch as the tree takes it in: its endpoints sorted, every one a 16-byte record.

use crate::keys::{LONG, Place, load_head, load_head_of};
use crate::pool;
use resolver_types::KeyRange;
use std::cmp::Ordering;

/// What an endpoint is to its range. The declared order is the tie rule at equal keys, so that ranges that
/// only touch do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EndpointKind {
    /// The end of a read range.
    ReadEnd = 0,
    /// The end of a write range.
    WriteEnd = 1,
    /// The begin of a write range.
    WriteBegin = 2,
    /// The begin of a read range.
    ReadBegin = 3,
}

/// One endpoint of a batch: the eight bytes of its key that follow the batch's common prefix, and a tag.
///
/// The order (head, then tag) is the order of the keys and of the tie rule, but for keys that agree in the
/// head and are both longer: those are settled by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The walk of the descent loads whole records, and counts on the head in front.
#[repr(C)]
pub struct Endpoint {
    /// Big-endian, padded with zero bytes.
    head: u64,
    /// From the top: 4 bits how many bytes follow the prefix (9: more than the head holds), 3 bits the kind,
    /// 1 bit whether the range is a point, 16 bits nothing, 8 bits how many bytes follow the batch's prefix (255: so
    /// many or more), 32 bits the range's index.
    tag: u64,
}

impl Endpoint {
    /// Head and tag as one number: comparing it takes no branch.
    #[inline]
    fn order(self) -> u128 {
        u128::from(self.head) << 64 | u128::from(self.tag)
    }
}

impl PartialOrd for Endpoint {
    #[inline]
    fn partial_cmp(&self, other: &Endpoint) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Endpoint {
    #[inline]
    fn cmp(&self, other: &Endpoint) -> Ordering {
        self.order().cmp(&other.order())
    }
}

const LENGTH_SHIFT: u32 = 60;
const KIND_SHIFT: u32 = 57;
const POINT_BIT: u64 = 1 << 56;
const SIZE_SHIFT: u32 = 32;
/// The size of keys that are longer than a record can say.
const SIZE_UNKNOWN: usize = 255;

impl Endpoint {
    /// The endpoint of range `range` whose key is `key`, seen after `prefix` bytes that all keys of the batch
    /// share.
    #[inline]
    pub fn new(key: &[u8], prefix: usize, kind: EndpointKind, range: u32) -> Endpoint {
        let size = (key.len() - prefix).min(SIZE_UNKNOWN) as u64;
        let tag = (kind as u64) << KIND_SHIFT | size << SIZE_SHIFT | u64::from(range);
        Endpoint { head: 0, tag }.seen_after(key, prefix)
    }

    /// The same endpoint of the same key, seen after another number of bytes.
    #[inline]
    pub fn seen_after(self, key: &[u8], prefix: usize) -> Endpoint {
        let place = load_head_of(key, prefix);
        self.with(place.head, place.length)
    }

    /// The same endpoint with the head and the length of another one.
    #[inline]
    pub fn seen_like(self, other: Endpoint) -> Endpoint {
        self.with(other.head, other.length())
    }

    #[inline]
    fn with(self, head: u64, length: u8) -> Endpoint {
        let tag = self.tag & ((1 << LENGTH_SHIFT) - 1) | u64::from(length) << LENGTH_SHIFT;
        Endpoint { head, tag }
    }

    /// The begin of a point range, which has no end of its own: that is the next key there is.
    #[inline]
    pub fn into_point(self) -> Endpoint {
        Endpoint { tag: self.tag | POINT_BIT, ..self }
    }

    /// The eight key bytes after the batch's common prefix.
    #[inline]
    pub fn head(self) -> u64 {
        self.head
    }

    /// The head without its first `bits` bits; 64 leave nothing.
    #[inline]
    pub(crate) fn moved_head(self, bits: u32) -> u64 {
        self.head.checked_shl(bits).unwrap_or(0)
    }

    /// How many key bytes follow the batch's common prefix: 0 to 8, or 9 for more.
    #[inline]
    pub fn length(self) -> u8 {
        (self.tag >> LENGTH_SHIFT) as u8
    }

    /// Whether the key has bytes that the head does not hold.
    #[inline]
    pub fn is_long(self) -> bool {
        self.tag >> LENGTH_SHIFT > 8
    }

    /// What the endpoint is to its range.
    #[inline]
    pub fn kind(self) -> EndpointKind {
        match self.tag >> KIND_SHIFT & 3 {
            0 => EndpointKind::ReadEnd,
            1 => EndpointKind::WriteEnd,
            2 => EndpointKind::WriteBegin,
            _ => EndpointKind::ReadBegin,
        }
    }

    /// Whether the endpoint belongs to a write range.
    #[inline]
    pub fn is_write(self) -> bool {
        // Kinds 1 and 2: the two bits differ.
        (self.tag >> KIND_SHIFT ^ self.tag >> (KIND_SHIFT + 1)) & 1 == 1
    }

    /// Whether the endpoint is the end of its range.
    #[inline]
    pub fn is_end(self) -> bool {
        self.tag >> (KIND_SHIFT + 1) & 1 == 0
    }

    /// Whether the range is a point range.
    #[inline]
    pub fn is_point(self) -> bool {
        self.tag & POINT_BIT != 0
    }

    /// How many key bytes follow the batch's common prefix, if the record can say it.
    #[inline]
    fn size(self) -> Option<usize> {
        let size = (self.tag >> SIZE_SHIFT) as usize & SIZE_UNKNOWN;
        (size < SIZE_UNKNOWN).then_some(size)
    }

    /// The index of the range in the batch.
    #[inline]
    pub fn range(self) -> u32 {
        self.tag as u32
    }
}

/// The endpoints of one batch in key order, with what is needed to read their keys.
#[derive(Clone, Copy, Debug)]
pub struct Probes<'a> {
    /// Sorted by key, equal keys by the tie rule.
    pub endpoints: &'a [Endpoint],
    /// By position in `endpoints`: the eight bytes behind the head, as a head. Empty if nobody has collected them: then
    /// they are looked up in the keys.
    pub behind: &'a [u64],
    /// For a range that is not a point: where its end stands in `endpoints`. By range index.
    pub ends: &'a [u32],
    /// The bytes that all keys share; at most all of the shortest.
    pub prefix: &'a [u8],
    /// What all keys with bytes that their heads do not hold end with; at most those bytes of the shortest. Often
    /// nothing.
    pub suffix: &'a [u8],
    /// The ranges of the batch.
    pub ranges: &'a [KeyRange<'a>],
}

impl<'a> Probes<'a> {
    /// The key of an endpoint.
    #[inline]
    pub(crate) fn key(&self, endpoint: Endpoint) -> &'a [u8] {
        let range = &self.ranges[endpoint.range() as usize];
        match endpoint.kind() {
            EndpointKind::ReadBegin | EndpointKind::WriteBegin => range.begin,
            EndpointKind::ReadEnd | EndpointKind::WriteEnd => range.end,
        }
    }

    /// The key bytes of an endpoint from the given one on, if the batch's common suffix has them all: the key itself
    /// then need not be read.
    #[inline]
    fn in_suffix(&self, endpoint: Endpoint, from: usize) -> Option<&'a [u8]> {
        let left = (self.prefix.len() + endpoint.size()?).saturating_sub(from);
        // A shorter key ends as it likes.
        let before = self.suffix.len().checked_sub(left).filter(|_| endpoint.is_long())?;
        Some(&self.suffix[before..])
    }

    /// Fetches what [`Probes::prefetch_key`] reads.
    #[inline]
    pub(crate) fn prefetch_range(&self, position: u32) {
        let endpoint = self.endpoints[position as usize];
        if self.in_suffix(endpoint, self.prefix.len() + 8).is_none() {
            pool::prefetch(&self.ranges[endpoint.range() as usize]);
        }
    }

    /// Fetches the start of what an endpoint's key has behind its head, if it is to be read there.
    #[inline]
    pub(crate) fn prefetch_key(&self, position: u32) {
        let endpoint = self.endpoints[position as usize];
        let behind = self.prefix.len() + 8;
        if self.in_suffix(endpoint, behind).is_none()
            && let Some(first) = self.key(endpoint).get(behind)
        {
            pool::prefetch(first);
        }
    }

    /// The length of an endpoint's key.
    #[inline]
    pub(crate) fn key_length(&self, position: u32) -> usize {
        let endpoint = self.endpoints[position as usize];
        endpoint.size().map_or_else(|| self.key(endpoint).len(), |size| self.prefix.len() + size)
    }

    /// An endpoint's key as seen in a node whose keys share their first `prefix` bytes with it.
    ///
    /// Most are shifted out of the record and of what stands behind its head; only a node that sees further is answered
    /// from the key itself, which costs two dependent misses.
    #[inline(always)]
    pub(crate) fn place(&self, position: u32, prefix: usize) -> Place {
        let endpoint = self.endpoints[position as usize];
        let own = self.prefix.len();
        if prefix == own {
            return Place { head: endpoint.head(), length: endpoint.length() };
        }
        if prefix > own {
            let shift = prefix - own;
            if !endpoint.is_long() {
                let head = if shift < 8 { endpoint.head() << (8 * shift) } else { 0 };
                return Place { head, length: endpoint.length().saturating_sub(shift.min(9) as u8) };
            }
            return self.place_of_long(position, shift);
        }
        let before = own - prefix;
        let shared = load_head(&self.prefix[prefix..]).head;
        let head = if before < 8 { shared | endpoint.head() >> (8 * before) } else { shared };
        Place { head, length: (endpoint.length() as usize + before).min(9) as u8 }
    }

    /// By how many bits the heads of the endpoints `low..high` move to the left in a node that sees `shift` bytes further than
    /// the batch. None where that does not give its heads: some key has bytes behind its own.
    pub(crate) fn moved_by(&self, shift: usize, (low, high): (u32, u32)) -> Option<u32> {
        let slice = &self.endpoints[low as usize..high as usize];
        let any_long = shift > 0 && slice.iter().fold(false, |any, endpoint| any | endpoint.is_long());
        (!any_long).then_some(8 * shift.min(8) as u32)
    }

    /// The same for a key with more bytes than its head holds, in a node that sees `shift` bytes further than the batch.
    #[inline(never)]
    fn place_of_long(&self, position: u32, shift: usize) -> Place {
        let endpoint = self.endpoints[position as usize];
        match self.behind.get(position as usize) {
            Some(&behind) if shift <= 8 => {
                let head = match shift {
                    8 => behind,
                    _ => endpoint.head() << (8 * shift) | behind >> (64 - 8 * shift),
                };
                let left = endpoint.size().unwrap_or(SIZE_UNKNOWN) - shift;
                Place { head, length: left.min(usize::from(LONG)) as u8 }
            }
            _ => load_head(self.from(endpoint, self.prefix.len() + shift)),
        }
    }

    /// The key bytes of an endpoint that a node with the given prefix does not hold in its head.
    #[inline]
    pub(crate) fn rest(&self, position: u32, prefix: usize) -> &'a [u8] {
        self.from(self.endpoints[position as usize], prefix + 8)
    }

    /// The key bytes of an endpoint from the given one on.
    #[inline]
    fn from(&self, endpoint: Endpoint, first: usize) -> &'a [u8] {
        self.in_suffix(endpoint, first).unwrap_or_else(|| self.key(endpoint).get(first..).unwrap_or_default())
    }
}

/// One write of a batch, in key order and disjoint from the others: positions in [`Probes::endpoints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where the write's begin stands.
    pub begin: u32,
    /// Where its end stands, or [`Write::POINT`].
    pub end: u32,
}

impl Write {
    /// Instead of an end: the write covers the key at its begin and no other.
    pub const POINT: u32 = u32::MAX;
}

/// Who is told what the check of reads finds, and says how new a write must be to matter.
pub trait ReadSink {
    /// The stamp that a write must pass to conflict with the read range; [`u32::MAX`] when the range is not
    /// to be checked (any more).
    fn limit(&self, range: u32) -> u32;
    /// The read range conflicts.
    fn conflict(&mut self, range: u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_seen_from_any_prefix_is_what_its_key_says() {
        let long = [b'x'; 300];
        let keys: [&[u8]; 7] = [
            b"abcdef",
            b"abcdef\x00",
            b"abcdefghijklmn",
            b"abcdefghijklmno",
            b"abcdefghijklmnopqrstuvwxyz",
            b"abcdefz",
            &long,
        ];
        for own in 0..=6 {
            for key in keys {
                let ranges = [KeyRange { begin: key, end: b"" }];
                let endpoints = [Endpoint::new(key, own, EndpointKind::WriteBegin, 0)];
                let behind = [load_head(key.get(own + 8..).unwrap_or_default()).head];
                let unheld = key.get(own + 8..).unwrap_or_default();
                // Of a key that is no longer than its head, the suffix of the others says nothing.
                let all = if unheld.is_empty() { b"zyx" } else { unheld };
                let half = &all[all.len() / 2..];
                for (behind, suffix) in [(&behind[..], half), (&[], half), (&[], all)] {
                    let probes = Probes {
                        endpoints: &endpoints,
                        behind,
                        ends: &[0],
                        prefix: &key[..own],
                        suffix,
                        ranges: &ranges,
                    };
                    assert_eq!(probes.key_length(0), key.len());
                    for prefix in 0..=key.len() {
                        let what = format!("{key:?} {own} {prefix} {suffix:?}");
                        assert_eq!(probes.place(0, prefix), load_head(&key[prefix..]), "{what}");
                        if let Some(shift) = prefix.checked_sub(own) {
                            let moved = probes.moved_by(shift, (0, 1));
                            assert_eq!(moved.is_none(), shift > 0 && key.len() > own + 8, "{what}");
                            if let Some(bits) = moved {
                                let head = endpoints[0].moved_head(bits);
                                assert_eq!(head, load_head(&key[prefix..]).head, "{what}");
                            }
                        }
                        assert_eq!(
                            probes.rest(0, prefix),
                            key.get(prefix + 8..).unwrap_or_default(),
                            "{what}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn heads_are_the_same_however_they_are_read() {
        let key = b"0123456789abcdefghij";
        for length in 0..=key.len() {
            for prefix in 0..=length {
                assert_eq!(
                    load_head_of(&key[..length], prefix),
                    load_head(&key[prefix..length]),
                    "{length} {prefix}"
                );
            }
        }
        assert_eq!(load_head(b"ab"), Place { head: 0x6162_0000_0000_0000, length: 2 });
    }

    #[test]
    fn kinds_survive_packing() {
        use EndpointKind::*;
        for kind in [ReadEnd, WriteEnd, WriteBegin, ReadBegin] {
            for point in [false, true] {
                let endpoint = Endpoint::new(b"key", 0, kind, 77);
                let endpoint = if point { endpoint.into_point() } else { endpoint };
                assert_eq!((endpoint.kind(), endpoint.is_point(), endpoint.range()), (kind, point, 77));
                assert_eq!(endpoint.is_write(), matches!(kind, WriteBegin | WriteEnd));
                assert_eq!(endpoint.is_end(), matches!(kind, ReadEnd | WriteEnd));
            }
        }
        assert!(Endpoint::new(b"k", 0, ReadEnd, 9) < Endpoint::new(b"k", 0, WriteBegin, 1));
        assert!(Endpoint::new(b"k", 0, ReadBegin, 9).into_point() < Endpoint::new(b"k\x00", 0, ReadEnd, 1));
    }
}

//! Zipfian ranks in constant time, the same on every machine.
//!
//! Rejection-inversion (Hörmann and Derflinger): the area under `x^-s` is cut into one strip for each rank, a point of it is drawn and its
//! strip found by inverting the integral. The few points that the strips' tops cut off are drawn again. Logarithms and powers are not the
//! platform's, which differ in the last bit, but the ones below: additions, multiplications and divisions alone, which IEEE 754 rounds
//! everywhere the same.

use crate::Rng;

/// Draws ranks `1..=ranks`, rank `k` in proportion to `k^-exponent`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: u64,
    exponent: f64,
    /// The integral up to the end of the first strip and of the last.
    first: f64,
    last: f64,
    /// A point this close below its rank needs no look at the strip's top.
    inside: f64,
}

impl Zipf {
    /// # Panics
    /// Without ranks, or with an exponent that is not between 0 and 1.
    pub(super) fn new(ranks: u64, exponent: f64) -> Zipf {
        assert!(ranks > 0 && exponent > 0.0 && exponent < 1.0, "{ranks} ranks, exponent {exponent}");
        let mut zipf = Zipf { ranks, exponent, first: 0.0, last: 0.0, inside: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(ranks as f64 + 0.5);
        zipf.inside = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        zipf
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> u64 {
        self.ranks
    }

    /// The next rank.
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let area = self.last + unit * (self.first - self.last);
            let point = self.inverse(area);
            let rank = ((point + 0.5) as u64).clamp(1, self.ranks);
            let at = rank as f64;
            if at - point <= self.inside || area >= self.integral(at + 0.5) - self.height(at) {
                return rank;
            }
        }
    }

    /// `x^-s`.
    fn height(&self, x: f64) -> f64 {
        exp(-self.exponent * ln(x))
    }

    /// The integral of `x^-s` from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let left = 1.0 - self.exponent;
        (exp(left * ln(x)) - 1.0) / left
    }

    /// The `x` up to which the integral is `area`.
    fn inverse(&self, area: f64) -> f64 {
        let left = 1.0 - self.exponent;
        exp(ln(1.0 + left * area) / left)
    }
}

const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: i64 = 1023;
/// ln 2 in two parts: products of the first with small whole numbers are exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The natural logarithm of a normal number above 0.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as i64 - EXPONENT_BIAS;
    let mantissa_bits = bits & ((1 << MANTISSA_BITS) - 1) | (EXPONENT_BIAS as u64) << MANTISSA_BITS;
    let mut mantissa = f64::from_bits(mantissa_bits);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh z, |z| < 0.172: the terms left out are below a part in 10^17.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut series = 0.0;
    for power in (1..=21).rev().step_by(2) {
        series = series * square + 1.0 / f64::from(power);
    }
    let exponent = exponent as f64;
    exponent * LN_2_HIGH + (exponent * LN_2_LOW + 2.0 * z * series)
}

/// e to the power of a number between -700 and 700.
fn exp(x: f64) -> f64 {
    let twos = x / std::f64::consts::LN_2;
    let twos = (twos + if twos < 0.0 { -0.5 } else { 0.5 }) as i64;
    let rest = x - twos as f64 * LN_2_HIGH - twos as f64 * LN_2_LOW;
    // |rest| < 0.347: the terms left out are below a part in 10^17.
    let mut series = 1.0;
    for term in (1..=13).rev() {
        series = 1.0 + series * rest / f64::from(term);
    }
    series * f64::from_bits(((twos + EXPONENT_BIAS) as u64) << MANTISSA_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_are_right_to_the_last_digits() {
        for x in [1.0, 1.000_001, 1.5, 2.5, 1e3, 1e8, 0.7, 1e-9] {
            let error = ln(x) - f64::ln(x);
            assert!(error.abs() <= 4e-16 * f64::ln(x).abs().max(1.0), "ln {x}: {error}");
            let y: f64 = x.min(600.0) * if x > 2.0 { -1.0 } else { 1.0 };
            assert!((exp(y) / f64::exp(y) - 1.0).abs() < 1e-14, "exp {y}");
        }
    }

    #[test]
    fn every_rank_comes_as_often_as_its_share_says() {
        let zipf = Zipf::new(1_000, 0.99);
        let mut rng = Rng::new(3);
        let draws = 400_000;
        let mut seen = vec![0u32; 1_001];
        for _ in 0..draws {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let weight = |rank: usize| (rank as f64).powf(-0.99);
        let all: f64 = (1..=1_000).map(weight).sum();
        // Single ranks at the top, then rows of them: each within five standard deviations.
        let rows = (1..=20).map(|rank| rank..rank + 1).chain([21..50, 50..200, 200..600, 600..1_001]);
        for row in rows {
            let share: f64 = row.clone().map(weight).sum::<f64>() / all;
            let expected = share * f64::from(draws);
            let found: u32 = row.clone().map(|rank| seen[rank]).sum();
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!((f64::from(found) - expected).abs() < 5.0 * deviation, "{row:?}: {found} for {expected}");
        }
    }

    #[test]
    fn the_stream_is_pinned() {
        let zipf = Zipf::new(100_000_000, 0.99);
        let mut rng = Rng::new(1);
        let ranks: Vec<u64> = (0..8).map(|_| zipf.draw(&mut rng)).collect();
        assert_eq!(ranks, PINNED);
        let mut greatest = 0;
        for _ in 0..100_000 {
            greatest = greatest.max(zipf.draw(&mut rng));
        }
        assert!((90_000_000..=100_000_000).contains(&greatest), "{greatest}");
    }

    const PINNED: [u64; 8] = [231, 7_909, 2_833, 89_618, 258, 8_064_228, 28_997_715, 108_182];
}

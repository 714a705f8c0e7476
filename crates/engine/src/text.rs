//! Building short strings without allocation.

/// Joins `parts` and a decimal number into `buf`, NUL-terminated; the length including NUL.
pub fn join(buf: &mut [u8], parts: &[&[u8]], number: Option<u64>) -> usize {
    let mut n = 0;
    for p in parts {
        buf[n..n + p.len()].copy_from_slice(p);
        n += p.len();
    }
    if let Some(mut v) = number {
        let mut digits = [0u8; 20];
        let mut k = 0;
        loop {
            digits[k] = b'0' + (v % 10) as u8;
            v /= 10;
            k += 1;
            if v == 0 {
                break;
            }
        }
        while k > 0 {
            k -= 1;
            buf[n] = digits[k];
            n += 1;
        }
    }
    buf[n] = 0;
    n + 1
}

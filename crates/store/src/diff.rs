//! Pages that are dirtied again and again: only their changed cache lines go into the ring.

use crate::areas::PAGE;
use crate::bitmap::{is_set, set};
use crate::cpu::Cpu;
use crate::error::StoreError;
use crate::index::page_of;
use crate::record::{is_page, kind, Tag, TAG};
use crate::region::Region;
use crate::store::Store;
use bytemuck::bytes_of;

const LINE: usize = 64;

/// A page.
pub type Page = [u8; PAGE as usize];

impl<R: Region> Store<'_, R> {
    /// Stores the lines of the page at `addr` in which `page` differs from `shadow`, and brings `shadow` up to date.
    /// Returns the changed lines, one bit each, lowest first; 0 adds nothing to the record.
    /// `shadow` is what the store holds for the page, which is stored whole if the store holds nothing.
    /// Errors wait for [`Store::commit`].
    ///
    /// # Safety
    /// `page` is readable and `shadow` writable; they are apart from each other and from the region.
    #[inline]
    pub unsafe fn diff(&mut self, addr: u64, page: *const Page, shadow: *mut Page) -> u64 {
        // SAFETY: as promised by the caller.
        unsafe {
            match self.try_diff(addr, page, shadow) {
                Ok(mask) => mask,
                Err(error) => {
                    self.fail(error);
                    0
                }
            }
        }
    }

    #[inline]
    unsafe fn try_diff(&mut self, addr: u64, page: *const Page, shadow: *mut Page) -> Result<u64, StoreError> {
        let index = match self.chunks.locate(addr) {
            Some(index) if is_page(addr) && is_set(&self.chunks.state(index).live, page_of(addr)) => index,
            _ => {
                // SAFETY: as promised by the caller of `diff`.
                unsafe {
                    core::ptr::copy_nonoverlapping(page, shadow, 1);
                    self.page(addr, &*shadow);
                }
                return Ok(u64::MAX);
            }
        };
        // SAFETY: as promised by the caller of `diff`.
        let mask = unsafe { changed_lines(self.cpu, page, shadow) };
        if mask == 0 {
            return Ok(0);
        }
        let at = self.reserve(TAG + 8 + LINE as u64 * mask.count_ones() as u64)?;
        self.region.write(at, bytes_of(&Tag { kind: kind::LINES, detail: 0, count: index, word: addr }));
        self.region.write(at + TAG, &mask.to_le_bytes());
        // SAFETY: as promised by the caller of `diff`.
        unsafe { self.write_lines(at + TAG + 8, mask, page, shadow) };
        set(&mut self.chunks.state_mut(index).logged, page_of(addr));
        Ok(mask)
    }

    /// Copies the lines in `mask` first into the shadow, then from there into the ring, so that both hold the same.
    #[inline]
    unsafe fn write_lines(&mut self, at: u64, mask: u64, page: *const Page, shadow: *mut Page) {
        let (mut rest, mut to) = (mask, at);
        while rest != 0 {
            let line = rest.trailing_zeros() as usize * LINE;
            rest &= rest - 1;
            // SAFETY: the line lies in both pages.
            unsafe {
                let target = shadow.cast::<u8>().add(line).cast::<[u8; LINE]>();
                core::ptr::copy_nonoverlapping(page.cast::<u8>().add(line).cast(), target, 1);
                self.region.write(to, &*target);
            }
            to += LINE as u64;
        }
    }
}

/// One bit for each of the 64 lines in which the pages differ.
#[inline]
unsafe fn changed_lines(cpu: Cpu, page: *const Page, shadow: *const Page) -> u64 {
    // SAFETY: both are readable, and the processor has what it says.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        return if cpu.avx2 { changed_lines_avx2(page, shadow) } else { changed_lines_sse2(page, shadow) };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = cpu;
            (0..64).fold(0, |mask, line| {
                let (a, b) = (page.cast::<[u8; LINE]>().add(line), shadow.cast::<[u8; LINE]>().add(line));
                mask | ((*a != *b) as u64) << line
            })
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn changed_lines_avx2(page: *const Page, shadow: *const Page) -> u64 {
    use core::arch::x86_64::*;
    let mut mask = 0;
    // Most lines are the same: four are looked at together, and only where they differ each by itself.
    for group in 0..16 {
        // SAFETY: 16 groups of four lines of two 32-byte vectors are a page; unaligned loads.
        let lines = [0, 2, 4, 6].map(|at| unsafe {
            let (a, b) = (page.cast::<__m256i>().add(8 * group + at), shadow.cast::<__m256i>().add(8 * group + at));
            let low = _mm256_xor_si256(_mm256_loadu_si256(a), _mm256_loadu_si256(b));
            let high = _mm256_xor_si256(_mm256_loadu_si256(a.add(1)), _mm256_loadu_si256(b.add(1)));
            _mm256_or_si256(low, high)
        });
        let halves = [_mm256_or_si256(lines[0], lines[1]), _mm256_or_si256(lines[2], lines[3])];
        let all = _mm256_or_si256(halves[0], halves[1]);
        if _mm256_testz_si256(all, all) == 0 {
            for (line, bits) in lines.into_iter().enumerate() {
                mask |= ((_mm256_testz_si256(bits, bits) == 0) as u64) << (4 * group + line);
            }
        }
    }
    mask
}

#[cfg(target_arch = "x86_64")]
unsafe fn changed_lines_sse2(page: *const Page, shadow: *const Page) -> u64 {
    use core::arch::x86_64::*;
    let mut mask = 0;
    for line in 0..64 {
        let mut same = 0xffff;
        for part in 0..4 {
            // SAFETY: 64 lines of four 16-byte vectors are a page; unaligned loads.
            same &= unsafe {
                let (a, b) =
                    (page.cast::<__m128i>().add(4 * line + part), shadow.cast::<__m128i>().add(4 * line + part));
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b)))
            };
        }
        mask |= ((same != 0xffff) as u64) << line;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_byte_marks_exactly_its_line() {
        let shadow = [7; 4096];
        for byte in 0..4096 {
            let mut page = shadow;
            page[byte] ^= 1 << (byte % 8);
            for cpu in [Cpu::detect(), Cpu::PLAIN] {
                // SAFETY: both are live arrays.
                let mask = unsafe { changed_lines(cpu, &page, &shadow) };
                assert_eq!(mask, 1 << (byte / LINE));
            }
        }
    }
}

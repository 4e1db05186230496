//! Finds the functions that the kernel maps into the process (vDSO): they read the host's clock.

use crate::guest_memory::{copy_out, read};
use crate::translate::Vdso;

/// Functions by the names of their symbols.
const NAMES: [(&[u8], Vdso); 6] = [
    (b"__vdso_clock_gettime", Vdso::ClockGettime),
    (b"__vdso_clock_getres", Vdso::ClockGetres),
    (b"__vdso_gettimeofday", Vdso::Gettimeofday),
    (b"__vdso_time", Vdso::Time),
    (b"__vdso_getcpu", Vdso::Getcpu),
    (b"__vdso_getrandom", Vdso::Getrandom),
];

/// Gives the functions' addresses; none without a vDSO.
pub(crate) fn functions() -> Vec<(u64, Vdso)> {
    // SAFETY: reads the auxiliary vector.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if base == 0 { Vec::new() } else { of(base).unwrap_or_default() }
}

/// Reads the symbols of the ELF image at `base`.
fn of(base: u64) -> Option<Vec<(u64, Vdso)>> {
    const DYNAMIC: u32 = 2;
    const LOAD: u32 = 1;
    let headers = base + read::<u64>(base + 0x20)?;
    let size = u64::from(read::<u16>(base + 0x36)?);
    let count = u64::from(read::<u16>(base + 0x38)?);
    let header =
        |kind| (0..count).map(|i| headers + i * size).find(|&at| read::<u32>(at) == Some(kind));
    let load = header(LOAD)?;
    let bias = base.wrapping_add(read::<u64>(load + 8)?).wrapping_sub(read::<u64>(load + 16)?);
    let dynamic = bias.wrapping_add(read::<u64>(header(DYNAMIC)? + 16)?);
    // DT_STRTAB, DT_SYMTAB, DT_HASH
    let entry = |tag: u64| {
        (0..64)
            .map(|i| dynamic + i * 16)
            .take_while(|&at| read::<u64>(at).is_some_and(|tag| tag != 0))
            .find(|&at| read::<u64>(at) == Some(tag))
            .and_then(|at| read::<u64>(at + 8))
            .map(|value| bias.wrapping_add(value))
    };
    let (names, symbols) = (entry(5)?, entry(6)?);
    // The string table follows the symbols in every vDSO; a symbol has 24 bytes.
    let symbol_count = names.checked_sub(symbols)? / 24;
    let mut found = Vec::new();
    for symbol in (0..symbol_count.min(256)).map(|i| symbols + i * 24) {
        let mut name = [0; 32];
        let at = names + u64::from(read::<u32>(symbol)?);
        if !copy_out(at, &mut name) {
            continue;
        }
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        if let Some((_, function)) = NAMES.iter().find(|(known, _)| *known == &name[..end]) {
            found.push((bias.wrapping_add(read::<u64>(symbol + 8)?), *function));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_found_where_the_c_library_finds_it() {
        let functions = functions();
        if functions.is_empty() {
            println!("SKIPPED: no vDSO in this process");
            return;
        }
        assert!(functions.iter().any(|(_, function)| *function == Vdso::ClockGettime));
        for (address, _) in functions {
            assert!(read::<u64>(address).is_some());
        }
    }
}

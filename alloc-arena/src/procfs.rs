//! Readers of what `/proc` says, over text that tests can make up.

use super::placement::Unknown;

/// Returns the value of the line `key:` of a status file.
pub(crate) fn field<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// Adds up the bytes on huge pages between the addresses `start` and `end` from the lines of
/// `/proc/self/smaps`.
///
/// The kernel gives one figure a mapping, so a mapping that reaches beyond the range makes the
/// figure unknown.
pub(crate) fn huge_bytes<'text>(
    smaps: impl Iterator<Item = &'text str>,
    start: usize,
    end: usize,
) -> Result<u64, Unknown> {
    let mut inside = false;
    let mut kibibytes = 0;
    for line in smaps {
        if let Some((first, last)) = addresses(line) {
            inside = first < end && last > start;
            if inside && (first < start || last > end) {
                return Err(Unknown::PartOfAMapping);
            }
        } else if inside {
            let keys = ["AnonHugePages", "Private_Hugetlb", "Shared_Hugetlb"];
            let value = keys.iter().find_map(|key| field(line, key));
            let number = value.and_then(|value| value.strip_suffix("kB"));
            kibibytes += number.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok(kibibytes * 1024)
}

/// Reads the head of a mapping's entry, `7f00-7fff rw-p …`.
fn addresses(line: &str) -> Option<(usize, usize)> {
    let (first, last) = line.split(' ').next()?.split_once('-')?;
    Some((usize::from_str_radix(first, 16).ok()?, usize::from_str_radix(last, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_whole_keys() {
        let status = "Name:\tx\nMems_allowed:\t00000001\nMems_allowed_list:\t0-1,64\n";
        assert_eq!(field(status, "Mems_allowed_list"), Some("0-1,64"));
        assert_eq!(field(status, "Mems_allowed"), Some("00000001"));
        assert_eq!(field(status, "Mems"), None);
    }

    const SMAPS: &str = "\
00001000-00002000 rw-p 00000000 00:00 0 \n\
Size:                  4 kB\n\
AnonHugePages:         4 kB\n\
VmFlags: rd wr \n\
00200000-00600000 rw-p 00000000 00:00 0 \n\
AnonHugePages:      2048 kB\n\
Shared_Hugetlb:        0 kB\n\
Private_Hugetlb:       0 kB\n\
00600000-00800000 rw-p 00000000 00:0f 12345 /anon_hugepage (deleted)\n\
AnonHugePages:         0 kB\n\
Private_Hugetlb:    2048 kB\n";

    #[test]
    fn huge_bytes_are_those_of_the_range() {
        let ask = |start, end| huge_bytes(SMAPS.lines(), start, end);
        assert_eq!(ask(0x20_0000, 0x60_0000), Ok(2 << 20));
        assert_eq!(ask(0x20_0000, 0x80_0000), Ok(4 << 20));
        assert_eq!(ask(0x60_0000, 0x80_0000), Ok(2 << 20));
        assert_eq!(ask(0x1000, 0x2000), Ok(4096));
        assert_eq!(ask(0x90_0000, 0xa0_0000), Ok(0));
    }

    #[test]
    fn a_mapping_beyond_the_range_makes_it_unknown() {
        let ask = |start, end| huge_bytes(SMAPS.lines(), start, end);
        assert_eq!(ask(0x20_1000, 0x60_0000), Err(Unknown::PartOfAMapping));
        assert_eq!(ask(0x20_0000, 0x70_0000), Err(Unknown::PartOfAMapping));
    }
}

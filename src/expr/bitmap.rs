//! BITMAP: a set of 32-bit integers, held as bytes in the portable format of Roaring bitmaps.
//!
//! Promises: a set has one form only, so equal sets have equal bytes; members are unsigned and come in rising order.

/// The cookie of a bitmap without containers of runs.
const PLAIN: u32 = 12_346;
/// The cookie, in the lower half, of one that may have such containers; the upper half is their number less one.
const WITH_RUNS: u32 = 12_347;
/// Containers of more members are bits, not a list.
const LIST_MAX: usize = 4_096;
/// Bytes of a container of bits.
const BITS_BYTES: usize = 8_192;
/// Bitmaps with runs have offsets only from this number of containers on.
const OFFSETS_FROM: usize = 4;

/// The bytes of a set; `members` rise.
pub(super) fn encode(members: &[u32]) -> Vec<u8> {
    let containers: Vec<&[u32]> = members.chunk_by(|a, b| a >> 16 == b >> 16).collect();
    let bodies: Vec<(bool, Vec<u8>)> = containers.iter().map(|container| body(container)).collect();
    let has_runs = bodies.iter().any(|(is_runs, _)| *is_runs);
    let count = containers.len();
    let mut out = Vec::new();
    if has_runs {
        out.extend((WITH_RUNS | (count as u32 - 1) << 16).to_le_bytes());
        let mut flags = vec![0_u8; count.div_ceil(8)];
        for (index, _) in bodies.iter().enumerate().filter(|(_, (is_runs, _))| *is_runs) {
            flags[index / 8] |= 1 << (index % 8);
        }
        out.extend(flags);
    } else {
        out.extend(PLAIN.to_le_bytes());
        out.extend((count as u32).to_le_bytes());
    }
    for container in &containers {
        out.extend(((container[0] >> 16) as u16).to_le_bytes());
        out.extend((container.len() as u32 - 1).to_le_bytes()[..2].iter());
    }
    if !has_runs || count >= OFFSETS_FROM {
        let mut offset = out.len() + 4 * count;
        for (_, body) in &bodies {
            out.extend((offset as u32).to_le_bytes());
            offset += body.len();
        }
    }
    bodies.iter().for_each(|(_, body)| out.extend(body));
    out
}

/// The body of a container, and whether it is one of runs.
fn body(container: &[u32]) -> (bool, Vec<u8>) {
    let low = |member: &u32| *member as u16;
    let runs: Vec<&[u32]> = container.chunk_by(|a, b| a + 1 == *b).collect();
    let plain_bytes = if container.len() <= LIST_MAX { 2 * container.len() } else { BITS_BYTES };
    if plain_bytes > 2 + 4 * runs.len() {
        let mut out = (runs.len() as u16).to_le_bytes().to_vec();
        for run in runs {
            out.extend(low(&run[0]).to_le_bytes());
            out.extend((run.len() as u32 - 1).to_le_bytes()[..2].iter());
        }
        return (true, out);
    }
    if container.len() <= LIST_MAX {
        return (false, container.iter().flat_map(|member| low(member).to_le_bytes()).collect());
    }
    let mut bits = vec![0_u8; BITS_BYTES];
    for member in container {
        bits[usize::from(low(member)) / 8] |= 1 << (low(member) % 8);
    }
    (false, bits)
}

/// The members of a set, rising; none = the bytes are no bitmap.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u32>> {
    let mut reader = Reader(bytes);
    let cookie = reader.u32()?;
    let (count, flags) = match cookie {
        PLAIN => (reader.u32()? as usize, None),
        _ if cookie & 0xffff == WITH_RUNS => {
            let count = (cookie >> 16) as usize + 1;
            (count, Some(reader.take(count.div_ceil(8))?))
        }
        _ => return None,
    };
    if count > 1 << 16 {
        return None;
    }
    let headers: Vec<(u32, usize)> =
        (0..count).map(|_| Some((reader.u16()?.into(), usize::from(reader.u16()?) + 1))).collect::<Option<_>>()?;
    if flags.is_none() || count >= OFFSETS_FROM {
        reader.take(4 * count)?;
    }
    let mut members = Vec::new();
    for (index, (key, cardinality)) in headers.into_iter().enumerate() {
        let high = key << 16;
        if flags.is_some_and(|flags| flags[index / 8] >> (index % 8) & 1 == 1) {
            for _ in 0..reader.u16()? {
                let (start, more) = (u32::from(reader.u16()?), u32::from(reader.u16()?));
                members.extend((start..=(start + more).min(0xffff)).map(|low| high | low));
            }
        } else if cardinality <= LIST_MAX {
            for _ in 0..cardinality {
                members.push(high | u32::from(reader.u16()?));
            }
        } else {
            let bits = reader.take(BITS_BYTES)?;
            members.extend((0..=0xffff_u32).filter(|low| bits[*low as usize / 8] >> (low % 8) & 1 == 1).map(|low| high | low));
        }
    }
    members.is_sorted_by(|a, b| a < b).then_some(members)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// The members of bytes that this module wrote.
pub(super) fn members(bytes: &[u8]) -> Vec<u32> {
    decode(bytes).unwrap_or_default()
}

/// The set as text: `{1,2,4294967295}`.
pub(super) fn write(out: &mut String, bytes: &[u8]) {
    out.push('{');
    for (index, member) in members(bytes).into_iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        out.push_str(itoa::Buffer::new().format(member));
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_bytes_are_those_of_roaring_bitmaps() {
        assert_eq!(hex(&encode(&[])), "3a30000000000000");
        assert_eq!(hex(&encode(&[1, 3, 0xffff_fffe])), "3a3000000200000000000100ffff0000180000001c00000001000300feff");
        assert_eq!(hex(&encode(&(1..=10).collect::<Vec<_>>())), "3b3000000100000900010001000900");
    }

    #[test]
    fn sets_survive_the_way_into_bytes_and_back() {
        let sets: [Vec<u32>; 5] = [
            Vec::new(),
            vec![0, 7, 65_535, 65_536, u32::MAX],
            (0..70_000).collect(),
            (0..70_000).filter(|n| n % 3 != 0).collect(),
            (0..6).map(|n| n << 16 | n).collect(),
        ];
        for set in sets {
            assert_eq!(decode(&encode(&set)), Some(set));
        }
        for bytes in [&b""[..], b"invalid", &[0x3a, 0x30, 0, 0, 1, 0, 0, 0]] {
            assert_eq!(decode(bytes), None);
        }
    }
}

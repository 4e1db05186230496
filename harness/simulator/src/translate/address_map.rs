//! Blocks by address.

/// Blocks by the address of their first instruction: open addressing, never shrinking.
#[derive(Debug)]
pub(super) struct AddressMap {
    slots: Vec<(u64, u32)>,
    used: usize,
}

impl AddressMap {
    pub(super) fn new() -> Self {
        Self { slots: vec![(0, 0); 1 << 12], used: 0 }
    }

    fn slot(&self, rip: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (rip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != rip {
            slot = (slot + 1) & mask;
        }
        slot
    }

    pub(super) fn get(&self, rip: u64) -> Option<u32> {
        let (_, block) = self.slots[self.slot(rip)];
        (block != 0).then_some(block)
    }

    pub(super) fn insert(&mut self, rip: u64, block: u32) {
        if self.used * 2 >= self.slots.len() {
            let grown = vec![(0, 0); self.slots.len() * 2];
            for (rip, block) in core::mem::replace(&mut self.slots, grown) {
                if block != 0 {
                    let slot = self.slot(rip);
                    self.slots[slot] = (rip, block);
                }
            }
        }
        let slot = self.slot(rip);
        self.used += usize::from(self.slots[slot].1 == 0);
        self.slots[slot] = (rip, block);
    }
}

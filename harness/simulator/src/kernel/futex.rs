//! Futexes: queues of sleeping threads by address, first come, first served.

use std::collections::{BTreeMap, VecDeque};

use libc::c_long;

use super::clocks::{Timespec, deadline_of};
use super::{Call, Caller, Effect, Errno, Handler, Kernel, Reply, Wait, get, refuse, value};

use crate::time::Time;

const PRIVATE: u32 = libc::FUTEX_PRIVATE_FLAG as u32;
const REALTIME: u32 = libc::FUTEX_CLOCK_REALTIME as u32;
const ANY: u32 = u32::MAX;
/// Where addresses of programs end.
const LAST_ADDRESS: u64 = 0x7fff_ffff_f000;

pub(super) fn handler(number: c_long) -> Option<Handler> {
    (number == libc::SYS_futex).then_some(futex)
}

/// The waiting threads of each address. All threads share one address space, so the address is
/// the identity of a futex, private or not.
#[derive(Debug, Default)]
pub(super) struct Futexes(BTreeMap<u64, VecDeque<Waiter>>);

#[derive(Debug, Clone, Copy)]
struct Waiter {
    thread: usize,
    bitset: u32,
}

impl Futexes {
    fn push(&mut self, address: u64, waiter: Waiter) {
        self.0.entry(address).or_default().push_back(waiter);
    }

    /// Takes the first waiter of an address that waits for one of these bits.
    fn pop(&mut self, address: u64, bitset: u32) -> Option<Waiter> {
        let queue = self.0.get_mut(&address)?;
        let index = queue.iter().position(|waiter| waiter.bitset & bitset != 0)?;
        let waiter = queue.remove(index);
        if queue.is_empty() {
            self.0.remove(&address);
        }
        waiter
    }

    /// Takes a thread out of an address's queue.
    pub(super) fn remove(&mut self, address: u64, thread: usize) {
        if let Some(queue) = self.0.get_mut(&address) {
            queue.retain(|waiter| waiter.thread != thread);
            if queue.is_empty() {
                self.0.remove(&address);
            }
        }
    }
}

/// The six arguments by the names that the manual gives them.
#[derive(Clone, Copy)]
struct Arguments {
    address: u64,
    private: bool,
    realtime: bool,
    val: u32,
    timeout: u64,
    val2: u32,
    second: u64,
    val3: u32,
}

fn futex(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [address, operation, val, timeout, second, val3] = call.arguments;
    let operation = operation as u32;
    let arguments = Arguments {
        address,
        private: operation & PRIVATE != 0,
        realtime: operation & REALTIME != 0,
        val: val as u32,
        timeout,
        val2: timeout as u32,
        second,
        val3: val3 as u32,
    };
    let command = (operation & !(PRIVATE | REALTIME)) as i32;
    if arguments.realtime && command == libc::FUTEX_WAIT {
        return Err(Errno(libc::ENOSYS));
    }
    match command {
        libc::FUTEX_WAIT => kernel.futex_wait(caller, arguments, ANY, false),
        libc::FUTEX_WAIT_BITSET => kernel.futex_wait(caller, arguments, arguments.val3, true),
        libc::FUTEX_WAKE => kernel.futex_wake(caller, arguments, ANY),
        libc::FUTEX_WAKE_BITSET => kernel.futex_wake(caller, arguments, arguments.val3),
        libc::FUTEX_REQUEUE => kernel.futex_requeue(caller, arguments, false),
        libc::FUTEX_CMP_REQUEUE => kernel.futex_requeue(caller, arguments, true),
        libc::FUTEX_WAKE_OP => kernel.futex_wake_op(caller, arguments),
        libc::FUTEX_LOCK_PI
        | libc::FUTEX_LOCK_PI2
        | libc::FUTEX_UNLOCK_PI
        | libc::FUTEX_TRYLOCK_PI
        | libc::FUTEX_WAIT_REQUEUE_PI
        | libc::FUTEX_CMP_REQUEUE_PI => Ok(refuse(
            call,
            "futexes with priority inheritance are not simulated; use a lock without it",
        )),
        _ => Err(Errno(libc::ENOSYS)),
    }
}

impl Kernel {
    fn futex_wait(
        &mut self,
        caller: Caller,
        arguments: Arguments,
        bitset: u32,
        absolute: bool,
    ) -> Reply {
        if bitset == 0 {
            return Err(Errno(libc::EINVAL));
        }
        let deadline = match arguments.timeout {
            0 => None,
            pointer => {
                let time = get::<Timespec>(pointer)?.checked()?;
                let clock = match arguments.realtime {
                    true => libc::CLOCK_REALTIME,
                    false => libc::CLOCK_MONOTONIC,
                };
                Some(deadline_of(clock, time, absolute, caller.now))
            }
        };
        check_aligned(arguments.address)?;
        let word = get::<u32>(arguments.address)?;
        self.effects.push_back(Effect::Read { address: arguments.address });
        if word != arguments.val {
            return Err(Errno(libc::EAGAIN));
        }
        if deadline.is_some_and(|deadline| deadline <= caller.now) {
            return Err(Errno(libc::ETIMEDOUT));
        }
        let slack = self.threads[caller.thread].timer_slack;
        let deadline = deadline.map(|deadline| deadline.saturating_add(slack));
        self.futexes.push(arguments.address, Waiter { thread: caller.thread, bitset });
        let (address, expected) = (arguments.address, arguments.val);
        Ok(self.block(caller, Wait::Futex { address, expected, bitset }, deadline))
    }

    /// Wakes up to `count` waiters, but at least one, as Linux does.
    fn wake_waiters(&mut self, caller: Caller, address: u64, count: i32, bitset: u32) -> i64 {
        let mut woken = 0;
        while let Some(waiter) = self.futexes.pop(address, bitset) {
            self.wake_from_futex(caller, waiter.thread);
            woken += 1;
            if woken >= i64::from(count) {
                return woken;
            }
        }
        wake_real(address, i64::from(count) - woken);
        woken
    }

    /// Wakes threads whose word is no longer what they expected: threads of the process that are
    /// not simulated change words too, and wake in the real kernel only. Whether there were any.
    pub(crate) fn wake_changed(&mut self, now: Time) -> bool {
        let mut any = false;
        for thread in 0..self.threads.len() {
            let Some(Wait::Futex { address, expected, .. }) =
                self.threads[thread].sleep.map(|sleep| sleep.wait)
            else {
                continue;
            };
            if get::<u32>(address).is_ok_and(|word| word != expected) {
                self.futexes.remove(address, thread);
                self.wake(thread, 0, now.saturating_add(self.machine.wake_latency_ps()));
                any = true;
            }
        }
        any
    }

    fn wake_from_futex(&mut self, caller: Caller, thread: usize) {
        self.charge += self.machine.futex_wake_ps();
        let at: Time = caller.now + self.charge + self.machine.wake_latency_ps();
        self.wake(thread, 0, at);
    }

    fn futex_wake(&mut self, caller: Caller, arguments: Arguments, bitset: u32) -> Reply {
        if bitset == 0 {
            return Err(Errno(libc::EINVAL));
        }
        check(arguments.address, arguments.private)?;
        value(self.wake_waiters(caller, arguments.address, arguments.val as i32, bitset))
    }

    /// Wakes the first `val` waiters and lets the next `val2` wait at the second address.
    fn futex_requeue(&mut self, caller: Caller, arguments: Arguments, compare: bool) -> Reply {
        let (wake, requeue) = (arguments.val as i32, arguments.val2 as i32);
        if wake < 0 || requeue < 0 {
            return Err(Errno(libc::EINVAL));
        }
        check(arguments.address, arguments.private)?;
        check(arguments.second, arguments.private)?;
        if compare && get::<u32>(arguments.address)? != arguments.val3 {
            return Err(Errno(libc::EAGAIN));
        }
        let mut woken = 0;
        while woken < i64::from(wake)
            && let Some(waiter) = self.futexes.pop(arguments.address, ANY)
        {
            self.wake_from_futex(caller, waiter.thread);
            woken += 1;
        }
        let mut moved = 0;
        let mut waiters = Vec::new();
        while moved < i64::from(requeue)
            && let Some(waiter) = self.futexes.pop(arguments.address, ANY)
        {
            waiters.push(waiter);
            moved += 1;
        }
        for waiter in waiters {
            self.futexes.push(arguments.second, waiter);
            if let Some(sleep) = &mut self.threads[waiter.thread].sleep
                && let Wait::Futex { address, .. } = &mut sleep.wait
            {
                *address = arguments.second;
            }
        }
        value(woken + moved)
    }

    /// Changes the word at the second address, wakes at the first, and at the second if its old
    /// value was as asked.
    fn futex_wake_op(&mut self, caller: Caller, arguments: Arguments) -> Reply {
        check(arguments.address, arguments.private)?;
        check_aligned(arguments.second)?;
        let operation = Operation::decoded(arguments.val3)?;
        let old = get::<u32>(arguments.second)?;
        self.put(arguments.second, operation.applied(old))?;
        let (first, second) = (arguments.val as i32, arguments.val2 as i32);
        let mut woken = self.wake_waiters(caller, arguments.address, first, ANY);
        if operation.holds(old) {
            woken += self.wake_waiters(caller, arguments.second, second, ANY);
        }
        value(woken)
    }
}

/// What `FUTEX_WAKE_OP` does to the word, and what it asks about its old value.
struct Operation {
    operation: u32,
    argument: u32,
    comparison: u32,
    compared: i32,
}

impl Operation {
    fn decoded(code: u32) -> Result<Operation, Errno> {
        let signed = |bits: u32| ((bits << 20) as i32) >> 20;
        let mut argument = signed(code >> 12 & 0xfff) as u32;
        if code >> 28 & 8 != 0 {
            argument = 1 << (argument & 31);
        }
        let (operation, comparison) = (code >> 28 & 7, code >> 24 & 15);
        if operation > 4 || comparison > 5 {
            return Err(Errno(libc::ENOSYS));
        }
        Ok(Operation { operation, argument, comparison, compared: signed(code & 0xfff) })
    }

    fn applied(&self, old: u32) -> u32 {
        match self.operation {
            0 => self.argument,
            1 => old.wrapping_add(self.argument),
            2 => old | self.argument,
            3 => old & !self.argument,
            _ => old ^ self.argument,
        }
    }

    fn holds(&self, old: u32) -> bool {
        let old = old as i32;
        match self.comparison {
            0 => old == self.compared,
            1 => old != self.compared,
            2 => old < self.compared,
            3 => old <= self.compared,
            4 => old > self.compared,
            _ => old >= self.compared,
        }
    }
}

/// Wakes threads of the process that are not simulated and sleep at the same word: they share locks
/// with guests, those of the allocator and of standard output for instance.
fn wake_real(address: u64, count: i64) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let count = count.clamp(1, i64::from(i32::MAX));
    // SAFETY: wakes sleepers at a word, which the kernel does not read.
    unsafe { libc::syscall(libc::SYS_futex, address, operation, count) };
}

/// Whether a futex word is where one may be.
fn check_aligned(address: u64) -> Result<(), Errno> {
    if !address.is_multiple_of(4) {
        return Err(Errno(libc::EINVAL));
    }
    if address >= LAST_ADDRESS {
        return Err(Errno(libc::EFAULT));
    }
    Ok(())
}

/// A private futex is known by its address alone; for a shared one its page must be there.
fn check(address: u64, private: bool) -> Result<(), Errno> {
    check_aligned(address)?;
    if !private {
        get::<u32>(address)?;
    }
    Ok(())
}

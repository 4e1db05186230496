//! Instructions that the processor must not execute for the thread: they would answer about the
//! host.

use core::arch::x86_64::{__cpuid_count, CpuidResult};

use crate::context::register;
use crate::engine::{Engine, Next};
use crate::guest_memory;
use crate::halt::{Halt, stop};
use crate::kernel::{Call, Caller, Outcome};
use crate::translate::{Special, Vdso};
use crate::valgrind_cpuid;

impl Engine {
    /// Interprets an instruction; `next` is the one after it.
    pub(crate) fn special(
        &mut self,
        at: usize,
        exit: u32,
        special: Special,
        next: u64,
    ) -> Result<Next, Box<Halt>> {
        self.cores[at].context.vector_loaded = 0;
        self.cores[at].spin.disturb();
        match special {
            Special::End => return self.ends(at, exit),
            Special::Syscall => return self.syscall(at, exit, next),
            Special::Vdso(function) => return self.vdso(at, function),
            Special::Cpuid => self.cpuid(at),
            Special::Rdtsc { core } => self.time_stamp(at, core),
            Special::Rdpid(register) => {
                self.cores[at].context.registers[register as usize] = self.processor(at);
            }
            Special::Random { register, bytes } => self.random(at, register, bytes),
            Special::TimedWait => self.timed_wait(at),
            Special::Monitor => self.cores[at].time += self.machine.pause_ps(),
            Special::Xbegin(fallback) => {
                // Transactions always abort, with no reason that a retry could help.
                self.cores[at].context.registers[register::RAX] = 0;
                return self.stand_at(at, fallback);
            }
            Special::Xtest => {
                let flags = &mut self.cores[at].context.flags;
                *flags = *flags & !0x8d5 | 0x40;
            }
            Special::Forbidden(function) => {
                // As after the call that led here: the stack shows who called.
                let rip = self.translator.exits[exit as usize].rip;
                return stop(Halt::Forbidden { core: at, rip, function });
            }
            Special::Breakpoint => {
                let rip = self.translator.exits[exit as usize].rip;
                let signal = libc::SIGTRAP;
                return stop(Halt::Fault { core: at, rip, signal, address: None });
            }
            Special::Illegal | Special::Unmapped | Special::Unsupported => {
                let rip = self.translator.exits[exit as usize].rip;
                return stop(Halt::Instruction { core: at, rip, special });
            }
        }
        let block = self.block(at, next)?;
        self.go_to_block(at, block);
        Ok(Next::Go)
    }

    /// The host's processor as far as instructions go, the machine's as far as places go.
    fn cpuid(&mut self, at: usize) {
        let cores = self.machine.cores() as u32;
        let cpu = self.cores[at].cpu;
        let registers = &mut self.cores[at].context.registers;
        let (leaf, subleaf) = (registers[register::RAX] as u32, registers[register::RCX] as u32);
        if self.like_valgrind {
            let places = [register::RAX, register::RBX, register::RCX, register::RDX];
            for (place, value) in places.into_iter().zip(valgrind_cpuid::answer(leaf, subleaf)) {
                registers[place] = value.into();
            }
            return;
        }
        let CpuidResult { mut eax, mut ebx, mut ecx, mut edx } = __cpuid_count(leaf, subleaf);
        match leaf {
            1 => ebx = ebx & 0xffff | cores.min(255) << 16 | (cpu & 0xff) << 24,
            7 if subleaf == 0 => {
                ebx &= !(1 << 4 | 1 << 11); // transactions: HLE, RTM
                edx &= !(1 << 22 | 1 << 24 | 1 << 25); // tiles have state that is not saved
            }
            // One level: all processors of the machine.
            0xb | 0x1f => {
                let bits = cores.next_power_of_two().trailing_zeros();
                (eax, ebx, ecx) = match subleaf {
                    0 => (bits, cores, 0x201),
                    _ => (0, 0, subleaf & 0xff),
                };
                edx = cpu;
            }
            _ => {}
        }
        registers[register::RAX] = eax.into();
        registers[register::RBX] = ebx.into();
        registers[register::RCX] = ecx.into();
        registers[register::RDX] = edx.into();
    }

    /// Ticks of the machine's clock since the session began, and some more: never 0.
    fn ticks(&self, at: usize) -> u64 {
        const BEFORE: u64 = 1 << 40;
        BEFORE + (self.cores[at].time as f64 * self.machine.clock_ghz() / 1e3) as u64
    }

    fn time_stamp(&mut self, at: usize, core: bool) {
        let (ticks, processor) = (self.ticks(at), self.processor(at));
        let registers = &mut self.cores[at].context.registers;
        registers[register::RAX] = ticks & 0xffff_ffff;
        registers[register::RDX] = ticks >> 32;
        if core {
            registers[register::RCX] = processor;
        }
    }

    /// What Linux leaves in `IA32_TSC_AUX`: the node above 12 bits for the CPU.
    fn processor(&self, at: usize) -> u64 {
        let cpu = self.cores[at].cpu;
        (self.machine.node_of(cpu) as u64) << 12 | u64::from(cpu)
    }

    fn random(&mut self, at: usize, register: u8, bytes: u8) {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = crate::work::mix(self.random);
        let context = &mut self.cores[at].context;
        let place = &mut context.registers[register as usize];
        *place = match bytes {
            2 => *place & !0xffff | value & 0xffff,
            4 => value & 0xffff_ffff,
            _ => value,
        };
        context.flags = context.flags & !0x8d5 | 1; // the carry says that there was a number
    }

    /// Waits for a time stamp, as nobody writes to the monitored line: at most a microsecond.
    fn timed_wait(&mut self, at: usize) {
        let now = self.ticks(at);
        let core = &mut self.cores[at];
        let registers = &core.context.registers;
        let until = registers[register::RDX] << 32 | registers[register::RAX] & 0xffff_ffff;
        let ticks = until.saturating_sub(now) as f64;
        let wait = (ticks * 1e3 / self.machine.clock_ghz()).min(1e6) as u64;
        core.time += wait.max(self.machine.pause_ps());
        core.context.flags &= !0x8d5;
    }

    /// A function that the kernel put into the process: answered as the system call that it
    /// spares, at the cost of some instructions.
    fn vdso(&mut self, at: usize, function: Vdso) -> Result<Next, Box<Halt>> {
        const INSTRUCTIONS: u64 = 60;
        let number = match function {
            Vdso::ClockGettime => libc::SYS_clock_gettime,
            Vdso::ClockGetres => libc::SYS_clock_getres,
            Vdso::Gettimeofday => libc::SYS_gettimeofday,
            Vdso::Time => libc::SYS_time,
            Vdso::Getcpu => libc::SYS_getcpu,
            Vdso::Getrandom => libc::SYS_getrandom,
        };
        let Some(thread) = self.cores[at].thread else { return Ok(Next::Wait) };
        let core = &mut self.cores[at];
        core.time += INSTRUCTIONS * self.translator.costs().of_one(core.pace);
        core.counts.instructions += INSTRUCTIONS;
        let registers = &core.context.registers;
        use register as r;
        let arguments = [r::RDI, r::RSI, r::RDX, r::RCX, r::R8, r::R9].map(|n| registers[n]);
        let caller = Caller { thread, cpu: core.cpu, now: core.time };
        let call = Call { number: number as u64, arguments };
        let answer = self.kernel.call(caller, &call);
        let Outcome::Return(value) = answer.outcome else {
            let reason = "a function of the kernel's that does not return".into();
            return stop(Halt::Refused { core: at, reason });
        };
        while self.kernel.take_effect().is_some() {}
        let core = &mut self.cores[at];
        core.context.registers[r::RAX] = value as u64;
        let stack = core.context.registers[r::RSP];
        let Some(back) = guest_memory::read::<u64>(stack) else {
            return stop(Halt::Fault {
                core: at,
                rip: 0,
                signal: libc::SIGSEGV,
                address: Some(stack),
            });
        };
        core.context.registers[r::RSP] = stack + 8;
        let block = self.block(at, back)?;
        self.go_to_block(at, block);
        Ok(Next::Go)
    }
}

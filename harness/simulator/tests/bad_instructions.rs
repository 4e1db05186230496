//! Guests whose instructions fault, are no instructions, or could harm the engine: the run stops
//! with the reason and the place, and this process lives on.

use core::arch::asm;
use core::hint::black_box;
use core::ptr;
use std::sync::Mutex;

use simulator::{Reason, Stopped};

#[macro_use]
#[path = "support/bad.rs"]
mod bad;
#[path = "support/guests.rs"]
mod guests;

use bad::three;
use guests::stops;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

// Faults.

bad!(illegal_instruction, Fault, ["illegal instruction"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("ud2") }
});
bad!(another_illegal_instruction, Fault, ["illegal instruction"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("ud1 eax, eax") }
});
bad!(bytes_that_are_no_instruction, Fault, ["illegal instruction"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!(".byte 0x06") }
});
bad!(lock_where_none_may_be, Fault, ["illegal instruction"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!(".byte 0xf0, 0x90") }
});

bad!(divides_by_zero, Fault, ["divided by zero"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("div rcx", in("rcx") 0_u64, inout("rax") 5_u64 => _, inout("rdx") 0_u64 => _) }
});

bad!(quotient_does_not_fit, Fault, ["quotient does not fit"], || {
    let most = i64::MIN;
    // SAFETY: the engine stops it.
    unsafe { asm!("idiv rcx", in("rcx") -1_i64, inout("rax") most => _, inout("rdx") -1_i64 => _) }
});

bad!(reads_null, Fault, ["null pointer"], || {
    // SAFETY: the engine stops it.
    unsafe { black_box(ptr::null::<u64>()).read_volatile() };
});

bad!(writes_null, Fault, ["null pointer", "0x10"], || {
    let place = ptr::without_provenance_mut::<u64>(black_box(16));
    // SAFETY: the engine stops it.
    unsafe { place.write_volatile(1) };
});

bad!(adds_to_null, Fault, ["null pointer"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("lock add qword ptr [{}], 1", in(reg) black_box(0_u64)) }
});

bad!(copies_from_null, Fault, ["null pointer"], || {
    let mut bytes = [0_u8; 100];
    let to = bytes.as_mut_ptr();
    // SAFETY: the engine stops it.
    unsafe {
        asm!("rep movsb", inout("rcx") 100_u64 => _, inout("rsi") 8_u64 => _, inout("rdi") to => _)
    }
});

bad!(reads_what_is_no_address, Fault, ["!null"], || {
    let place = ptr::without_provenance::<u64>(black_box(0x8000_0000_0000_0000));
    // SAFETY: the engine stops it.
    unsafe { place.read_volatile() };
});

bad!(writes_a_constant, Fault, ["may not"], || {
    static CONSTANT: [u64; 8] = [7; 8];
    let place = black_box(&raw const CONSTANT).cast_mut().cast::<u64>();
    // SAFETY: the engine stops it.
    unsafe { place.write_volatile(1) };
});

bad!(calls_null, Fault, ["0x0"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("call {}", in(reg) black_box(0_u64), clobber_abi("C")) }
});

#[test]
fn jumps_to_where_nothing_is() {
    let stopped = stops(three(), |_| {
        // SAFETY: the engine stops it.
        unsafe { asm!("jmp {}", in(reg) black_box(0x1234_5678_9000_u64)) }
    });
    assert_eq!(stopped.reason, Reason::Fault);
    assert!(stopped.message.contains("jumped to 0x123456789000, where no code is"), "{stopped}");
}

bad!(calls_data, Fault, ["no code"], || {
    let returns: Box<[u8]> = Box::new([0xc3; 64]);
    // SAFETY: the engine stops it.
    unsafe { asm!("call {}", in(reg) black_box(returns.as_ptr()), clobber_abi("C")) }
});

#[inline(never)]
fn recurses(depth: u64) -> u64 {
    let frame = black_box([depth; 100]);
    if depth == 0 { 0 } else { recurses(depth - 1) + black_box(frame)[3] }
}

#[test]
fn overflows_its_stack() {
    let guests: [(&str, &(dyn Fn() + Sync)); 2] = [
        ("recurses", &|| {
            black_box(recurses(black_box(1 << 30)));
        }),
        ("", &|| {
            black_box([0_u8; 16 << 20]);
        }),
    ];
    for (name, guest) in guests {
        let stopped = stops(three(), |_| black_box(guest)());
        assert_eq!(stopped.reason, Reason::Fault, "{stopped}");
        let Stopped { message, .. } = stopped;
        assert!(message.contains("overflowed its stack") && message.contains(name), "{message}");
    }
}

bad!(breakpoint, Fault, ["breakpoint"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("int3") }
});
bad!(halts_the_processor, Fault, [], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("hlt") }
});
bad!(disables_interrupts, Fault, ["!null"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("cli") }
});
bad!(reads_a_port, Fault, ["!null"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("in al, 0x80", out("al") _) }
});
bad!(writes_a_control_register, Fault, ["!null"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("mov cr4, {}", in(reg) 0_u64) }
});
bad!(writes_a_model_register, Fault, ["!null"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("wrmsr", in("ecx") 0x10, in("eax") 0, in("edx") 0) }
});
bad!(alignment_that_an_instruction_wants, Fault, ["!null"], || {
    let bytes = [0_u8; 64];
    let odd = bytes.as_ptr().addr() | 1;
    // SAFETY: the engine stops it.
    unsafe { asm!("movaps xmm0, [{}]", in(reg) odd, out("xmm0") _) }
});
bad!(reserved_bits_of_mxcsr, Fault, ["!null"], || {
    let value = u32::MAX;
    // SAFETY: the engine stops it.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value) }
});

// What could harm the engine.

bad!(reads_gs, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("mov {}, gs:[0]", out(reg) _) }
});
bad!(loads_gs, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("mov gs, {:x}", in(reg) 0_u64) }
});
bad!(loads_fs_from_the_stack, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("push 0", "pop fs") }
});
bad!(sets_the_gs_base, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("wrgsbase {}", in(reg) 0_u64) }
});
bad!(sets_the_fs_base, Refused, ["arch_prctl"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1002, 0) });
});
bad!(old_system_call, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("int 0x80", inout("eax") 20 => _) }
});
bad!(software_interrupt, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("int 0x20") }
});
bad!(old_fast_system_call, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("sysenter") }
});
bad!(code_of_32_bits, Refused, ["cannot be simulated"], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("push 0x23", "push 0", "retfq") }
});

/// Sets a flag, does what leads into the engine, and gives the flags that it finds afterwards.
#[inline(never)]
fn keeps(flag: u64) -> u64 {
    let found;
    // SAFETY: the flags are put back, and every register that changes is named.
    unsafe {
        asm!(
            "mov r9, rbx", "pushfq", "pop r10", "or {flag}, r10", "push {flag}", "popfq",
            "pause", "xor eax, eax", "cpuid", "pause", "mov eax, 24", "syscall", "mfence", "rdtsc",
            "pushfq", "pop {flag}", "push r10", "popfq", "mov rbx, r9",
            flag = inout(reg) flag => found,
            out("rax") _, out("rcx") _, out("rdx") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    found
}

#[test]
fn flags_that_stay_set_do_not_reach_the_engine() {
    const DIRECTION: u64 = 1 << 10;
    const ALIGNMENT: u64 = 1 << 18;
    let mut session = three().threads(8).start().unwrap();
    let total = Mutex::new(0);
    for flag in [DIRECTION, ALIGNMENT] {
        let report = session.each(|_| {
            let found = keeps(flag) & flag;
            *total.lock().unwrap() += 1;
            found
        });
        assert_eq!(report.unwrap().results, [flag; 8], "{flag:#x}");
    }
    assert_eq!(*total.lock().unwrap(), 16);
}

bad!(steps_singly, Fault, [], || {
    // SAFETY: the engine stops it.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop", "nop") }
});

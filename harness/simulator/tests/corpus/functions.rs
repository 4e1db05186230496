//! Functions whose instructions are counted twice: by Callgrind and by the simulator.
//!
//! Each runs `ops` rounds on one thread, does the same work in every run, and returns a checksum.
//! Nothing depends on addresses, time, random seeds or the environment.

mod collections;
mod control;
mod machine;
mod memory;
mod numeric;
mod parking;
mod sync;
mod text;
mod vector;

/// Runs this many rounds, returns a checksum.
pub(crate) type Function = fn(u64) -> u64;

/// One row per function: its name on the command line, and the function.
pub(crate) const CORPUS: &[(&str, Function)] = &[
    ("ticket_lock", sync::ticket_lock),
    ("mcs_lock", sync::mcs_lock),
    ("atomic_counters", sync::atomic_counters),
    ("std_mutex", sync::std_mutex),
    ("std_mutex_poison", sync::std_mutex_poison),
    ("std_rwlock_read", sync::std_rwlock_read),
    ("std_rwlock_write", sync::std_rwlock_write),
    ("std_condvar_notify", sync::std_condvar_notify),
    ("std_once", sync::std_once),
    ("std_once_lock", sync::std_once_lock),
    ("std_lazy_lock", sync::std_lazy_lock),
    ("std_barrier", sync::std_barrier),
    ("arc_clone_drop", sync::arc_clone_drop),
    ("thread_local", sync::thread_local),
    ("park_unpark", sync::park_unpark),
    ("std_channel", sync::std_channel),
    ("std_sync_channel", sync::std_sync_channel),
    ("parking_mutex", parking::parking_mutex),
    ("parking_fair_mutex", parking::parking_fair_mutex),
    ("parking_reentrant_mutex", parking::parking_reentrant_mutex),
    ("parking_rwlock", parking::parking_rwlock),
    ("parking_condvar", parking::parking_condvar),
    ("parking_once", parking::parking_once),
    ("array_queue", parking::array_queue),
    ("seg_queue", parking::seg_queue),
    ("crossbeam_bounded", parking::crossbeam_bounded),
    ("crossbeam_unbounded", parking::crossbeam_unbounded),
    ("crossbeam_select", parking::crossbeam_select),
    ("hash_map", collections::hash_map),
    ("hash_set", collections::hash_set),
    ("hash_map_strings", collections::hash_map_strings),
    ("btree_map", collections::btree_map),
    ("vec_deque", collections::vec_deque),
    ("binary_heap", collections::binary_heap),
    ("vec_push_pop", collections::vec_push_pop),
    ("vec_sort", collections::vec_sort),
    ("vec_sort_unstable", collections::vec_sort_unstable),
    ("vec_search_dedup", collections::vec_search_dedup),
    ("sort_strings", collections::sort_strings),
    ("linked_list", collections::linked_list),
    ("lru_cache", collections::lru_cache),
    ("iterator_chains", collections::iterator_chains),
    ("format_integers", text::format_integers),
    ("format_floats", text::format_floats),
    ("format_debug", text::format_debug),
    ("parse_integers", text::parse_integers),
    ("parse_floats", text::parse_floats),
    ("utf8_validation", text::utf8_validation),
    ("char_iteration", text::char_iteration),
    ("string_search", text::string_search),
    ("string_edit", text::string_edit),
    ("log_ring", text::log_ring),
    ("edit_distance", text::edit_distance),
    ("copy_sizes", memory::copy_sizes),
    ("copy_large", memory::copy_large),
    ("move_overlapping", memory::move_overlapping),
    ("fill_sizes", memory::fill_sizes),
    ("compare_sizes", memory::compare_sizes),
    ("c_string_length", memory::c_string_length),
    ("c_string_search", memory::c_string_search),
    ("byte_search", memory::byte_search),
    ("boxes", memory::boxes),
    ("reallocation", memory::reallocation),
    ("aligned_allocation", memory::aligned_allocation),
    ("mixed_allocation", memory::mixed_allocation),
    ("large_allocation", memory::large_allocation),
    ("large_stack_array", memory::large_stack_array),
    ("deep_stack", memory::deep_stack),
    ("system_calls", memory::system_calls),
    ("resume_unwind", control::resume_unwind),
    ("panic_caught", control::panic_caught),
    ("panic_with_drops", control::panic_with_drops),
    ("dynamic_dispatch", control::dynamic_dispatch),
    ("function_pointers", control::function_pointers),
    ("closures", control::closures),
    ("recursion", control::recursion),
    ("mutual_recursion", control::mutual_recursion),
    ("bytecode_interpreter", control::bytecode_interpreter),
    ("state_machine", control::state_machine),
    ("results_and_options", control::results_and_options),
    ("float64_libm", numeric::float64_libm),
    ("float32_libm", numeric::float32_libm),
    ("float_rounding", numeric::float_rounding),
    ("float_conversions", numeric::float_conversions),
    ("mandelbrot", numeric::mandelbrot),
    ("matrix_product", numeric::matrix_product),
    ("n_body", numeric::n_body),
    ("wide_division", numeric::wide_division),
    ("checked_arithmetic", numeric::checked_arithmetic),
    ("bit_tricks", numeric::bit_tricks),
    ("prime_sieve", numeric::prime_sieve),
    ("sip_hash_std", numeric::sip_hash_std),
    ("sip_hash_own", numeric::sip_hash_own),
    ("sha_mixing", numeric::sha_mixing),
    ("crc_table", numeric::crc_table),
    ("sse_integers", vector::sse_integers),
    ("sse_strings", vector::sse_strings),
    ("avx2_sums", vector::avx2_sums),
    ("avx2_gather", vector::avx2_gather),
    ("fused_multiply_add", vector::fused_multiply_add),
    ("aes_rounds", vector::aes_rounds),
    ("carryless_product", vector::carryless_product),
    ("non_temporal_stores", vector::non_temporal_stores),
    ("x87", machine::x87),
    ("rep_movsb", machine::rep_movsb),
    ("rep_movsb_backwards", machine::rep_movsb_backwards),
    ("rep_stosq", machine::rep_stosq),
    ("repe_cmpsb", machine::repe_cmpsb),
    ("repne_scasb", machine::repne_scasb),
    ("single_string_steps", machine::single_string_steps),
    ("compare_exchange_16", machine::compare_exchange_16),
    ("exchange_and_add", machine::exchange_and_add),
    ("locked_operations", machine::locked_operations),
    ("flag_transfers", machine::flag_transfers),
    ("enter_leave", machine::enter_leave),
    ("loop_and_jrcxz", machine::loop_and_jrcxz),
    ("cmov_setcc", machine::cmov_setcc),
    ("flag_arithmetic", machine::flag_arithmetic),
    ("call_and_ret", machine::call_and_ret),
    ("jump_table", machine::jump_table),
    ("stack_operations", machine::stack_operations),
    ("bit_deposit", machine::bit_deposit),
    ("wide_multiply_divide", machine::wide_multiply_divide),
    ("pauses_and_fences", machine::pauses_and_fences),
    ("cpuid_and_clock", machine::cpuid_and_clock),
    ("high_byte_registers", machine::high_byte_registers),
];

/// Pseudo-random numbers from a fixed seed (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Folds `value` into the checksum `sum`.
fn mix(sum: u64, value: u64) -> u64 {
    (sum ^ value).rotate_left(23).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Folds every byte of `bytes` into the checksum `sum`.
fn mix_bytes(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &byte| mix(sum, u64::from(byte)))
}

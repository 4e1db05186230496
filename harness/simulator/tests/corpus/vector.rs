//! SSE, AVX2 and their neighbours, where the machine has them.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_add_epi32, _mm_aesenc_si128, _mm_castsi128_ps,
    _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cmpestri, _mm_crc32_u64, _mm_cvtsi128_si64,
    _mm_loadu_si128, _mm_madd_epi16, _mm_movemask_epi8, _mm_movemask_ps, _mm_mullo_epi16,
    _mm_packus_epi16, _mm_prefetch, _mm_sad_epu8, _mm_set_epi64x, _mm_set1_epi8, _mm_sfence,
    _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128, _mm_stream_si128, _mm_unpackhi_epi64,
    _mm256_add_epi64, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpgt_epi32,
    _mm256_extracti128_si256, _mm256_fmadd_pd, _mm256_i32gather_epi32, _mm256_loadu_si256,
    _mm256_maskload_epi32, _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_sad_epu8, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srlv_epi32, _mm256_storeu_pd, _mm256_xor_si256,
};
use std::hint::black_box;

use super::mix;

#[target_feature(enable = "sse2")]
fn fold(sum: u64, value: __m128i) -> u64 {
    let high = _mm_unpackhi_epi64(value, value);
    mix(mix(sum, _mm_cvtsi128_si64(value) as u64), _mm_cvtsi128_si64(high) as u64)
}

#[target_feature(enable = "avx2")]
fn fold_wide(sum: u64, value: __m256i) -> u64 {
    let low = fold(sum, _mm256_castsi256_si128(value));
    fold(low, _mm256_extracti128_si256::<1>(value))
}

/// Sixteen bytes at a place within 64.
fn load(bytes: &[u8; 64], place: u64) -> __m128i {
    let place = (place % 49) as usize;
    // SAFETY: sixteen bytes, all within the array.
    unsafe { _mm_loadu_si128(bytes[place..place + 16].as_ptr().cast()) }
}

/// Thirty-two bytes at a place within 64.
#[target_feature(enable = "avx2")]
fn load_wide(bytes: &[u8; 64], place: u64) -> __m256i {
    let place = (place % 33) as usize;
    // SAFETY: thirty-two bytes, all within the array.
    unsafe { _mm256_loadu_si256(bytes[place..place + 32].as_ptr().cast()) }
}

fn sample() -> [u8; 64] {
    black_box(std::array::from_fn(|place| (place * place * 5 + 3) as u8))
}

#[target_feature(enable = "sse2")]
fn sse_integers_baseline(ops: u64) -> u64 {
    let bytes = sample();
    let mut sum = 0;
    for round in 0..ops * 10 {
        let (a, b) = (load(&bytes, round), load(&bytes, round * 7));
        sum = fold(sum, _mm_add_epi32(_mm_mullo_epi16(a, b), _mm_sad_epu8(a, b)));
        sum = fold(sum, _mm_packus_epi16(_mm_madd_epi16(a, b), _mm_shuffle_epi32::<0x1B>(a)));
        sum = mix(sum, _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u64);
        sum = mix(sum, _mm_movemask_ps(_mm_castsi128_ps(a)) as u64);
    }
    sum
}

#[inline(never)]
pub(crate) fn sse_integers(ops: u64) -> u64 {
    // SAFETY: every x86-64 machine has SSE2.
    black_box(unsafe { sse_integers_baseline(ops) })
}

#[target_feature(enable = "ssse3,sse4.2")]
fn sse_strings_detected(ops: u64) -> u64 {
    let bytes = sample();
    let mut sum = 0;
    for round in 0..ops * 10 {
        let (a, b) = (load(&bytes, round), load(&bytes, round * 3));
        sum = fold(sum, _mm_shuffle_epi8(a, b));
        sum = mix(sum, _mm_cmpestri::<0>(a, (round % 9) as i32, b, 16) as u64);
        sum = mix(sum, _mm_crc32_u64(sum, round));
    }
    sum
}

#[inline(never)]
pub(crate) fn sse_strings(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.2");
    // SAFETY: the features were detected.
    black_box(if detected { unsafe { sse_strings_detected(ops) } } else { ops })
}

#[target_feature(enable = "avx2")]
fn avx2_sums_detected(ops: u64) -> u64 {
    let bytes = sample();
    let mut sums = _mm256_setzero_si256();
    for round in 0..ops * 10 {
        let (a, b) = (load_wide(&bytes, round), load_wide(&bytes, round * 5));
        sums = _mm256_add_epi64(sums, _mm256_mul_epu32(a, b));
        let greater = _mm256_cmpgt_epi32(a, b);
        sums = _mm256_xor_si256(sums, _mm256_blendv_epi8(a, _mm256_mullo_epi32(a, b), greater));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(a, b));
        sums = _mm256_permute4x64_epi64::<0x39>(_mm256_slli_epi64::<3>(sums));
        sums = _mm256_xor_si256(sums, _mm256_srlv_epi32(a, _mm256_set1_epi32(round as i32 & 31)));
        sums = _mm256_permutevar8x32_epi32(sums, b);
    }
    fold_wide(0, sums)
}

#[inline(never)]
pub(crate) fn avx2_sums(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("avx2");
    // SAFETY: the feature was detected.
    black_box(if detected { unsafe { avx2_sums_detected(ops) } } else { ops })
}

#[target_feature(enable = "avx2")]
fn avx2_gather_detected(ops: u64) -> u64 {
    let table: [i32; 256] = black_box(std::array::from_fn(|place| place as i32 * 3 - 100));
    let (bytes, mut sum) = (sample(), 0);
    for round in 0..ops * 5 {
        let places = _mm256_srlv_epi32(load_wide(&bytes, round), _mm256_set1_epi32(24));
        // SAFETY: each place is at most 255.
        let found = unsafe { _mm256_i32gather_epi32::<4>(table.as_ptr(), places) };
        sum = fold_wide(sum, found);
        // SAFETY: lanes left out are not read; those read are within the table.
        let masked = unsafe { _mm256_maskload_epi32(table.as_ptr(), found) };
        sum = fold_wide(sum, masked);
    }
    sum
}

#[inline(never)]
pub(crate) fn avx2_gather(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("avx2");
    // SAFETY: the feature was detected.
    black_box(if detected { unsafe { avx2_gather_detected(ops) } } else { ops })
}

#[target_feature(enable = "avx2,fma")]
fn fused_multiply_add_detected(ops: u64) -> u64 {
    let mut value = _mm256_set1_pd(black_box(1.0));
    for round in 0..ops * 20 {
        value = _mm256_fmadd_pd(value, _mm256_set1_pd(0.99), _mm256_set1_pd(round as f64));
    }
    let mut lanes = [0.0; 4];
    // SAFETY: four floats fit.
    unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), value) };
    lanes.iter().fold(0, |sum, lane| mix(sum, lane.to_bits()))
}

#[inline(never)]
pub(crate) fn fused_multiply_add(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    // SAFETY: the features were detected.
    black_box(if detected { unsafe { fused_multiply_add_detected(ops) } } else { ops })
}

#[target_feature(enable = "aes")]
fn aes_rounds_detected(ops: u64) -> u64 {
    let bytes = sample();
    let mut block = load(&bytes, 0);
    for round in 0..ops * 20 {
        block = _mm_aesenc_si128(block, load(&bytes, round));
    }
    fold(0, block)
}

#[inline(never)]
pub(crate) fn aes_rounds(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("aes");
    // SAFETY: the feature was detected.
    black_box(if detected { unsafe { aes_rounds_detected(ops) } } else { ops })
}

#[target_feature(enable = "pclmulqdq")]
fn carryless_product_detected(ops: u64) -> u64 {
    let mut value = _mm_set_epi64x(black_box(0x1234_5678_9ABC_DEF1), 77);
    for round in 0..ops * 20 {
        let other = _mm_set_epi64x(round as i64, 0x87);
        value = _mm_add_epi32(_mm_clmulepi64_si128::<0x01>(value, other), value);
    }
    fold(0, value)
}

#[inline(never)]
pub(crate) fn carryless_product(ops: u64) -> u64 {
    let detected = is_x86_feature_detected!("pclmulqdq");
    // SAFETY: the feature was detected.
    black_box(if detected { unsafe { carryless_product_detected(ops) } } else { ops })
}

#[repr(align(64))]
struct Aligned([u8; 256]);

#[target_feature(enable = "sse2")]
fn non_temporal_stores_baseline(ops: u64) -> u64 {
    let mut target = Box::new(Aligned([0; 256]));
    let mut sum = 0;
    for round in 0..ops * 3 {
        let value = _mm_set1_epi8(round as i8);
        for place in (0..256).step_by(16) {
            let address = target.0[place..].as_mut_ptr().cast::<__m128i>();
            // SAFETY: aligned to sixteen and within the array.
            unsafe { _mm_stream_si128(address, value) };
        }
        _mm_sfence();
        let first = target.0.as_mut_ptr();
        _mm_prefetch::<_MM_HINT_T0>(first.cast());
        // SAFETY: the bytes from 7 to 23 of the array.
        unsafe { _mm_storeu_si128(first.wrapping_add(7).cast(), value) };
        sum = mix(sum, u64::from(black_box(&target.0)[100]));
    }
    sum
}

#[inline(never)]
pub(crate) fn non_temporal_stores(ops: u64) -> u64 {
    // SAFETY: every x86-64 machine has SSE2.
    black_box(unsafe { non_temporal_stores_baseline(ops) })
}

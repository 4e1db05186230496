//! Atomics and the standard library's synchronization, uncontended.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{
    Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError, mpsc,
};
use std::thread;

use super::mix;

#[inline(never)]
pub(crate) fn ticket_lock(ops: u64) -> u64 {
    let (next, serving) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut guarded = 0_u64;
    for round in 0..ops * 50 {
        let mine = next.fetch_add(1, Ordering::Relaxed);
        while serving.load(Ordering::Acquire) != mine {
            std::hint::spin_loop();
        }
        guarded = mix(guarded, round);
        serving.store(mine.wrapping_add(1), Ordering::Release);
    }
    black_box(guarded)
}

struct Node {
    next: AtomicPtr<Node>,
    locked: AtomicBool,
}

#[inline(never)]
pub(crate) fn mcs_lock(ops: u64) -> u64 {
    let tail = AtomicPtr::<Node>::new(ptr::null_mut());
    let mut guarded = 0_u64;
    for round in 0..ops * 50 {
        let mut node =
            Node { next: AtomicPtr::new(ptr::null_mut()), locked: AtomicBool::new(true) };
        let mine = ptr::from_mut(&mut node);
        let before = tail.swap(mine, Ordering::AcqRel);
        guarded = mix(guarded, round + u64::from(!before.is_null()));
        if tail
            .compare_exchange(mine, ptr::null_mut(), Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            guarded += u64::from(node.locked.load(Ordering::Relaxed));
            guarded += u64::from(node.next.load(Ordering::Relaxed).is_null());
        }
    }
    black_box(guarded)
}

#[inline(never)]
pub(crate) fn atomic_counters(ops: u64) -> u64 {
    let wide = AtomicU64::new(1);
    let narrow = AtomicU8::new(3);
    let mut sum = 0;
    for round in 0..ops * 20 {
        sum = mix(sum, wide.fetch_add(round, Ordering::SeqCst));
        sum = mix(sum, wide.fetch_max(round * 3, Ordering::Relaxed));
        sum = mix(sum, wide.fetch_xor(sum, Ordering::AcqRel));
        sum = mix(sum, wide.fetch_and(!round, Ordering::AcqRel));
        sum = mix(sum, wide.fetch_nand(round | 7, Ordering::AcqRel));
        sum = mix(sum, u64::from(narrow.fetch_sub(5, Ordering::Relaxed)));
        sum = mix(sum, u64::from(narrow.fetch_or(64, Ordering::Relaxed)));
        let _ = narrow.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
            old.is_multiple_of(2).then(|| old.wrapping_mul(3))
        });
        narrow.store(narrow.swap(9, Ordering::SeqCst).wrapping_add(1), Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }
    black_box(mix(sum, u64::from(narrow.into_inner())))
}

#[inline(never)]
pub(crate) fn std_mutex(ops: u64) -> u64 {
    let mutex = black_box(Mutex::new(0_u64));
    for round in 0..ops * 20 {
        if let Ok(mut guard) = mutex.lock() {
            *guard = mix(*guard, round);
            // A try_lock under the lock fails without waiting.
            if matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)) {
                *guard += 1;
            }
        }
    }
    black_box(mutex.into_inner().unwrap_or(0))
}

#[inline(never)]
pub(crate) fn std_mutex_poison(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mutex = Mutex::new(round);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = mutex.lock();
            resume_unwind(Box::new(round));
        }));
        sum = mix(sum, u64::from(caught.is_err()));
        sum = mix(sum, u64::from(mutex.is_poisoned()));
        mutex.clear_poison();
        sum = mix(sum, mutex.lock().map_or(0, |guard| *guard));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn std_rwlock_read(ops: u64) -> u64 {
    let lock = black_box(RwLock::new(7_u64));
    let mut sum = 0;
    for round in 0..ops * 20 {
        let (one, two) = (lock.read(), lock.try_read());
        sum = mix(sum, one.map_or(0, |guard| *guard) + round);
        sum = mix(sum, two.map_or(0, |guard| *guard));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn std_rwlock_write(ops: u64) -> u64 {
    let lock = black_box(RwLock::new(7_u64));
    for round in 0..ops * 20 {
        if let Ok(mut guard) = lock.write() {
            *guard = mix(*guard, round);
            *guard += u64::from(lock.try_read().is_err()) + u64::from(lock.try_write().is_err());
        }
    }
    black_box(lock.into_inner().unwrap_or(0))
}

#[inline(never)]
pub(crate) fn std_condvar_notify(ops: u64) -> u64 {
    let (mutex, condvar) = (Mutex::new(1_u64), Condvar::new());
    for round in 0..ops * 10 {
        if let Ok(mut guard) = mutex.lock() {
            *guard = mix(*guard, round);
        }
        condvar.notify_one();
        condvar.notify_all();
        // The condition holds already: no wait.
        if let Ok(guard) = mutex.lock() {
            let guard = condvar.wait_while(guard, |value| black_box(*value) == u64::MAX);
            drop(guard);
        }
    }
    black_box(mutex.into_inner().unwrap_or(0))
}

#[inline(never)]
pub(crate) fn std_once(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let once = black_box(Once::new());
        for turn in 0..4 {
            once.call_once(|| sum = mix(sum, round + turn));
        }
        once.call_once_force(|state| sum += u64::from(state.is_poisoned()));
        sum += u64::from(once.is_completed());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn std_once_lock(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let cell = black_box(OnceLock::<u64>::new());
        sum += u64::from(cell.get().is_none());
        for turn in 0..4 {
            sum = mix(sum, *cell.get_or_init(|| round * 5 + turn));
        }
        sum += u64::from(cell.set(1).is_err());
        sum = mix(sum, cell.into_inner().unwrap_or(0));
    }
    black_box(sum)
}

static SQUARES: LazyLock<Vec<u64>> = LazyLock::new(|| (0..64).map(|value| value * value).collect());

#[inline(never)]
pub(crate) fn std_lazy_lock(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let lazy = black_box(LazyLock::new(|| vec![1_u64, 2, 3]));
        sum = mix(sum, lazy.iter().sum::<u64>() + round);
        sum = mix(sum, lazy.len() as u64 + SQUARES[(round % 64) as usize]);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn std_barrier(ops: u64) -> u64 {
    let barrier = black_box(Barrier::new(1));
    let mut sum = 0;
    for round in 0..ops * 10 {
        sum = mix(sum, round + u64::from(barrier.wait().is_leader()));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn arc_clone_drop(ops: u64) -> u64 {
    let shared = black_box(Arc::new([1_u64, 2, 3]));
    let mut sum = 0;
    for round in 0..ops * 10 {
        let other = Arc::clone(&shared);
        let weak = Arc::downgrade(&other);
        sum = mix(sum, other[(round % 3) as usize] + Arc::strong_count(&shared) as u64);
        drop(other);
        sum = mix(sum, weak.upgrade().map_or(0, |third| third[0]));
        let mut own = Arc::new(round);
        let kept = Arc::clone(&own);
        *Arc::make_mut(&mut own) += 1;
        sum = mix(sum, *own + *kept);
        let text: Arc<str> = Arc::from("shared text");
        sum += text.len() as u64;
    }
    black_box(sum)
}

struct Droppable(Vec<u64>);

impl Drop for Droppable {
    fn drop(&mut self) {
        black_box(self.0.len());
    }
}

thread_local! {
    static PLAIN: Cell<u64> = const { Cell::new(0) };
    static LAZY: RefCell<Droppable> = RefCell::new(Droppable(Vec::with_capacity(4)));
}

#[inline(never)]
pub(crate) fn thread_local(ops: u64) -> u64 {
    PLAIN.set(0);
    LAZY.with_borrow_mut(|value| value.0.clear());
    for round in 0..ops * 10 {
        PLAIN.set(mix(PLAIN.get(), round));
        LAZY.with_borrow_mut(|value| {
            if value.0.len() == 20 {
                value.0 = Vec::new();
            }
            value.0.push(round);
        });
    }
    black_box(LAZY.with_borrow(|value| value.0.iter().fold(PLAIN.get(), |sum, &x| mix(sum, x))))
}

#[inline(never)]
pub(crate) fn park_unpark(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 5 {
        let current = thread::current();
        current.unpark();
        // The token is there: park returns at once.
        thread::park();
        sum = mix(sum, round + u64::from(current.name().is_none()));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn std_channel(ops: u64) -> u64 {
    let (sender, receiver) = mpsc::channel::<[u64; 3]>();
    let mut sum = 0;
    for round in 0..ops * 3 {
        let other = sender.clone();
        for turn in 0..5 {
            let _ = other.send([round, turn, round ^ turn]);
        }
        while let Ok(message) = receiver.try_recv() {
            sum = mix(sum, message[0] + message[1] + message[2]);
        }
        let _ = sender.send([1, 2, 3]);
        sum = mix(sum, receiver.recv().map_or(0, |message| message[2]));
    }
    let (_, closed) = mpsc::channel::<u64>();
    black_box(sum + u64::from(closed.recv().is_err()))
}

#[inline(never)]
pub(crate) fn std_sync_channel(ops: u64) -> u64 {
    let (sender, receiver) = mpsc::sync_channel::<u64>(4);
    let mut sum = 0;
    for round in 0..ops * 3 {
        for turn in 0..4 {
            let _ = sender.send(round + turn);
        }
        sum += u64::from(sender.try_send(9).is_err());
        for value in receiver.try_iter() {
            sum = mix(sum, value);
        }
        sum += u64::from(receiver.try_recv().is_err());
    }
    black_box(sum)
}

//! Guests that do what they should not: what stops them, and whether this process lives on.

use std::sync::mpsc;

use simulator::{Machine, Reason, Simulation, Stopped};

/// The machine that tests simulate.
pub(crate) fn machine() -> Machine {
    Machine::named("epyc-7742-2s").unwrap()
}

/// Executes the guest, which must be stopped, and sees that the session is over (but for panics)
/// and that this process works.
#[track_caller]
pub(crate) fn stops<R: Send>(simulation: Simulation, guest: impl Fn(usize) -> R + Sync) -> Stopped {
    let mut session = simulation.start().unwrap();
    let stopped = match session.each(guest) {
        Ok(report) => panic!("the guest came to its end: {:?}", report.total),
        Err(stopped) => stopped,
    };
    match session.each(|_| ()) {
        Ok(_) => assert_eq!(stopped.reason, Reason::Panicked, "the session goes on"),
        Err(again) => assert_eq!(again.reason, Reason::Over, "{again}"),
    }
    drop(session);
    println!("{:?}: {stopped}", stopped.reason);
    alive();
    stopped
}

/// This process allocates, prints, starts threads and simulates.
pub(crate) fn alive() {
    let words: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    println!("alive: {} letters", words.concat().len());
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(vec![1; 1000].len())).join().unwrap().unwrap();
    assert_eq!(receive.recv(), Ok(1000));
    let mut session = Simulation::on(&machine()).threads(2).start().unwrap();
    let report = session.each(|thread| format!("{thread}").repeat(3)).unwrap();
    assert_eq!(report.results, ["000", "111"]);
}

/// Asserts what stopped a run, what the message says (and not, after a `!`), and that it names a line of `file` among the
/// ten from `line` on.
#[track_caller]
pub(crate) fn assert_says(
    stopped: &Stopped,
    reason: Reason,
    words: &[&str],
    (file, line): (&str, u32),
) {
    let Stopped { reason: found, message, .. } = stopped;
    assert_eq!(*found, reason, "{message}");
    for word in words {
        match word.strip_prefix('!') {
            Some(word) => assert!(!message.contains(word), "{word:?} is wrong: {message}"),
            None => assert!(message.contains(word), "{word:?} is missing: {message}"),
        }
    }
    let name = format!("{}:", file.rsplit('/').next().unwrap());
    let named: Vec<u32> = message
        .match_indices(&name)
        .filter_map(|(at, name)| {
            let number = &message[at + name.len()..];
            let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            number[..end].parse().ok()
        })
        .collect();
    assert!(
        named.iter().any(|named| (line..line + 10).contains(named)),
        "{file}:{line} is not named: {message}"
    );
}

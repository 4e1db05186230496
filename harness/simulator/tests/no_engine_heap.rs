//! A program that does not declare the engine's heap is told so, and goes on.

use simulator::{Error, Machine, Simulation};

#[test]
fn the_missing_declaration_is_named() {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    for _ in 0..2 {
        let error = Simulation::on(&machine).threads(4).start().unwrap_err();
        assert!(matches!(error, Error::NoEngineHeap), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("#[global_allocator]"), "{text}");
        assert!(
            text.contains("static HEAP: simulator::EngineHeap = simulator::EngineHeap;"),
            "{text}"
        );
    }
    let error = machine.run(2, |thread| thread).unwrap_err();
    assert!(matches!(error, Error::NoEngineHeap), "{error:?}");
}

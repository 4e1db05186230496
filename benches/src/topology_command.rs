//! `manycore topology`: this machine, or a saved tree.

use topology::Topology;

use crate::cli::TopologyArgs;
use crate::exit::Failure;
use crate::stdout;

/// Runs the command.
///
/// # Errors
/// When the tree cannot be read or standard output cannot be written.
pub(crate) fn run(arguments: &TopologyArgs) -> Result<(), Failure> {
    let topology = match &arguments.root {
        Some(root) => Topology::from_root(root),
        None => Topology::this_host(),
    };
    let topology = topology.map_err(|error| Failure::Failed(error.to_string()))?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&topology);
        return stdout::print(&json.map_err(|error| Failure::Failed(error.to_string()))?);
    }
    stdout::print(topology.text().trim_end())
}

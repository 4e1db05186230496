//! `manycore topology`: this machine, or a saved tree.

use std::path::PathBuf;

use clap::Args;
use topology::Topology;

use crate::drawing_flags::DrawingFlags;
use crate::exit::Failure;
use crate::stdout;

pub(crate) const HELP: &str = "\
Examples:
  manycore topology
  manycore topology --draw
      packages, nodes, L3 groups, cores and PUs as boxes
  manycore topology --svg machine.svg
      the same for a browser, or for a document
  manycore topology --root saved-tree --json
      of a directory that holds `sys` and `proc` as copied from a machine
  manycore topology --root saved-tree.tar.gz --draw
      the same from an archive of such a directory; nothing is unpacked

docs/topology.md says how to save a tree.
Exit codes: 0 done, 1 the tree cannot be read or a file not be written, 2 usage";

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    /// Read the tree in this directory or archive (.tar.gz, .tar) instead of this host
    #[arg(long, value_name = "DIR|FILE")]
    root: Option<PathBuf>,
    #[command(flatten)]
    drawing: DrawingFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When the tree cannot be read, or a file or standard output cannot be written.
pub(crate) fn run(arguments: &TopologyArgs) -> Result<(), Failure> {
    let topology = match &arguments.root {
        Some(root) => Topology::from_root(root),
        None => Topology::this_host(),
    };
    let topology = topology.map_err(|error| Failure::Failed(error.to_string()))?;
    if arguments.drawing.any() {
        return arguments.drawing.run(&topology.plan().nest());
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&topology);
        return stdout::print(&json.map_err(|error| Failure::Failed(error.to_string()))?);
    }
    stdout::print(topology.text().trim_end())
}

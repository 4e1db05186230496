//! `manycore list`: the variants with their properties.

use comfy_table::{Table, presets};
use serde_json::{Map, Value, json};

use crate::cli::ListArgs;
use crate::exit::Failure;
use crate::rows::{self, PRIMITIVES, Variant};
use crate::{select, stdout};

/// Runs the command.
///
/// # Errors
/// When a primitive is unknown or standard output cannot be written.
pub(crate) fn run(arguments: &ListArgs) -> Result<(), Failure> {
    let variants = select::variants(rows::all(), &arguments.primitive, &[])?;
    if arguments.json {
        return stdout::print(&variants.iter().map(json_line).collect::<Vec<_>>().join("\n"));
    }
    let sections: Vec<String> = PRIMITIVES
        .iter()
        .map(|&primitive| {
            variants.iter().filter(|v| v.row.primitive == primitive).collect::<Vec<_>>()
        })
        .filter(|section| !section.is_empty())
        .map(|section| table(&section))
        .collect();
    stdout::print(&sections.join("\n\n"))
}

fn table(section: &[&Variant]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = section[0].properties.iter().map(|(name, _)| name.replace('_', " "));
    table.set_header(["variant", "kind"].into_iter().map(str::to_owned).chain(names));
    for variant in section {
        let values = variant.properties.iter().map(|(_, value)| value.as_str());
        table.add_row([variant.row.id, variant.row.kind].into_iter().chain(values));
    }
    format!("{}\n{}", section[0].row.primitive, table.trim_fmt())
}

fn json_line(variant: &Variant) -> String {
    let properties: Map<String, Value> =
        variant.properties.iter().map(|(name, value)| ((*name).into(), json!(value))).collect();
    let row = variant.row;
    json!({
        "primitive": row.primitive,
        "variant": row.id,
        "kind": row.kind,
        "properties": properties,
    })
    .to_string()
}

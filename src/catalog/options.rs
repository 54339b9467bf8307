//! The options of a table against those that its connector knows: a misspelt key is found at CREATE TABLE, not by a query.

use std::collections::BTreeMap;

use super::{CatalogTable, ColumnKind, ConnectorDescriptor, ConnectorRegistry, OptionDescriptor};
use crate::config::{Notice, SettingType};
use crate::error::{Error, ErrorKind, Result, Span, nearest};

/// What the doc of an option starts with that is accepted for Flink's sake only.
const NO_EFFECT: &str = "Accepted, no effect:";

/// What a table that is read may say of its watermarks, whatever its connector.
pub const WATERMARK_OPTIONS: &[OptionDescriptor] = &[
    watermark_option(
        "scan.watermark.emit.strategy",
        SettingType::OneOf(&["on-event", "on-periodic"]),
        "on-event: a watermark follows each row that raises it; on-periodic: one every 'pipeline.auto-watermark-interval'.",
    ),
    watermark_option(
        "scan.watermark.idle-timeout",
        SettingType::Duration,
        "A split without rows for so long no longer holds back the watermark; 0 = never left out.",
    ),
    watermark_option(
        "scan.watermark.alignment.group",
        SettingType::Text,
        "The sources of one group are read side by side in event time.",
    ),
    watermark_option(
        "scan.watermark.alignment.max-drift",
        SettingType::Duration,
        "A split that is ahead of the slowest source of its group by more than this is not read on.",
    ),
    watermark_option(
        "scan.watermark.alignment.update-interval",
        SettingType::Duration,
        "How often the sources of a group compare their watermarks; 1 s by default.",
    ),
];

const fn watermark_option(key: &'static str, option_type: SettingType, doc: &'static str) -> OptionDescriptor {
    OptionDescriptor { key, option_type, default: None, required: false, doc }
}

/// Checks connector and options of a table. `places` says where the options stand (those of LIKE stand nowhere). Gives notices for
/// options without effect.
pub fn check_options(
    table: &CatalogTable,
    registry: &ConnectorRegistry,
    places: &BTreeMap<String, (String, Span)>,
) -> Result<Vec<Notice>> {
    let place = |key: &str| places.get(key).map(|(_, span)| *span);
    let at = |error: Error, key: &str| match place(key) {
        Some(span) => error.at(span),
        None => error,
    };
    let connector = connector_of(table, registry).map_err(|error| at(error, "connector"))?;
    let known = known_options(table, connector).map_err(|error| at(error, "format"))?;
    let mut notices = Vec::new();
    for (key, value) in table.options.iter().filter(|(key, _)| *key != "connector") {
        let option = find(table, connector, &known, key).map_err(|error| at(error, key))?;
        option.option_type.check(key, value).map_err(|error| at(error, key))?;
        if let Some(why) = option.doc.strip_prefix(NO_EFFECT) {
            let why = why.trim().trim_end_matches('.');
            notices.push(Notice::new(format!("option '{key}' has no effect: {why}")).at(place(key)));
        }
    }
    if let Some(missing) = known.iter().find(|option| option.required && !table.options.contains_key(option.key)) {
        let message = format!("missing option '{}' of connector '{}'", missing.key, connector.name());
        return Err(at(Error::new(ErrorKind::InvalidOption, message).with_hint(missing.doc), "connector"));
    }
    connector.validate(table).map_err(|error| {
        let key = culprit(table, &error).to_string();
        at(error, &key)
    })?;
    Ok(notices)
}

/// Checks that the connector of a table knows the options that are to be taken out of it.
pub fn check_keys(table: &CatalogTable, registry: &ConnectorRegistry, keys: &[(String, Span)]) -> Result<()> {
    let connector = connector_of(table, registry)?;
    let known = known_options(table, connector)?;
    keys.iter().try_for_each(|(key, span)| find(table, connector, &known, key).map(drop).map_err(|error| error.at(*span)))
}

fn known_options(table: &CatalogTable, connector: &dyn ConnectorDescriptor) -> Result<Vec<OptionDescriptor>> {
    let mut known = connector.options(table)?;
    if connector.source(table).is_ok() {
        known.extend_from_slice(WATERMARK_OPTIONS);
    }
    Ok(known)
}

/// The option that an error of the connector speaks of; `connector` where it speaks of none.
fn culprit<'a>(table: &'a CatalogTable, error: &Error) -> &'a str {
    let named = table.options.keys().find(|key| error.message().contains(&format!("option '{key}'")));
    let among = || table.options.keys().find(|key| error.message().contains(&format!("'{key}'")));
    named.or_else(among).map_or("connector", String::as_str)
}

/// Connectors of Flink's that Flott does not have.
const FLINK_CONNECTORS: &[&str] = &[
    "dynamodb",
    "elasticsearch-7",
    "elasticsearch-8",
    "firehose",
    "hbase-1.4",
    "hbase-2.2",
    "hudi",
    "iceberg",
    "jdbc",
    "kafka",
    "kinesis",
    "mongodb",
    "mysql-cdc",
    "opensearch",
    "opensearch-2",
    "paimon",
    "postgres-cdc",
    "pulsar",
    "upsert-kafka",
];

fn connector_of<'a>(table: &CatalogTable, registry: &'a ConnectorRegistry) -> Result<&'a dyn ConnectorDescriptor> {
    let available = || registry.0.keys().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let Some(name) = table.options.get("connector") else {
        let error = Error::new(ErrorKind::InvalidOption, "missing option 'connector'");
        return Err(error.with_hint(format!("say where the rows are: WITH ('connector' = '…'), one of {}", available())));
    };
    if let Some(connector) = registry.0.get(name.as_str()) {
        return Ok(&**connector);
    }
    if FLINK_CONNECTORS.contains(&name.as_str()) {
        return Err(Error::unsupported(format!("connector '{name}'")).with_hint(format!("available are {}", available())));
    }
    let error = Error::new(ErrorKind::InvalidOption, format!("unknown connector '{name}'"));
    Err(match nearest(name, registry.0.keys().copied()) {
        Some(near) => error.with_hint(format!("did you mean '{near}'? available are {}", available())),
        None => error.with_hint(format!("available are {}", available())),
    })
}

/// The option that a key names.
fn find<'a>(
    table: &CatalogTable,
    connector: &dyn ConnectorDescriptor,
    known: &'a [OptionDescriptor],
    key: &str,
) -> Result<&'a OptionDescriptor> {
    if let Some(option) = known.iter().find(|option| option.key == key) {
        return Ok(option);
    }
    for option in known {
        let Some((before, after)) = option.key.split_once('#') else { continue };
        let Some(column) = key.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) else { continue };
        let physical: Vec<&str> = physical_columns(table).collect();
        // `fields.r.a.kind` speaks of a field of a ROW column.
        if physical.iter().any(|name| column == *name || column.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))) {
            return Ok(option);
        }
        let error =
            Error::new(ErrorKind::InvalidOption, format!("option '{key}' names column \"{column}\", which the table lacks"));
        return Err(match nearest(column, physical.iter().copied()) {
            Some(near) => error.with_hint(format!("did you mean '{before}{near}{after}'?")),
            None => error.with_hint(format!("columns are {}", physical.join(", "))),
        });
    }
    Err(unknown_option(table, connector, known, key))
}

fn physical_columns(table: &CatalogTable) -> impl Iterator<Item = &str> {
    table.columns.iter().filter(|column| column.kind == ColumnKind::Physical).map(|column| column.name.as_str())
}

fn unknown_option(table: &CatalogTable, connector: &dyn ConnectorDescriptor, known: &[OptionDescriptor], key: &str) -> Error {
    let error = Error::new(ErrorKind::InvalidOption, format!("unknown option '{key}' of connector '{}'", connector.name()));
    let mut candidates: Vec<String> = Vec::new();
    for option in known {
        match option.key.split_once('#') {
            None => candidates.push(option.key.to_string()),
            Some((before, after)) => candidates.extend(physical_columns(table).map(|column| format!("{before}{column}{after}"))),
        }
    }
    match nearest(key, candidates.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean '{near}'?")),
        None => {
            // Those of watermarks are the same everywhere: they would hide the others.
            let own = known.iter().filter(|option| !option.key.starts_with("scan.watermark."));
            let keys: Vec<&str> = own.map(|option| option.key).collect();
            error.with_hint(format!("options are connector, {}", keys.join(", ")))
        }
    }
}

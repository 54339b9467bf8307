//! CREATE TABLE … LIKE: which parts of the source table the new one takes over.

use super::table::joined;
use crate::catalog::{CatalogTable, Column, ColumnKind};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{LikeClause, LikeFeature, LikeStrategy};

/// The new table with what LIKE takes from the source: the source's columns first. Without options all is taken and the new
/// table's own options win.
pub(super) fn merge(own: CatalogTable, source: &CatalogTable, clause: &LikeClause) -> Result<CatalogTable> {
    let conflict = |what: String, feature: &str| {
        Error::new(ErrorKind::DuplicateObject, format!("{what} is in {} already", joined(&clause.source)))
            .with_hint(format!("write LIKE … (EXCLUDING {feature}) or (OVERWRITING {feature})"))
            .at(clause.source.span)
    };
    let strategy = |feature: LikeFeature| strategy(clause, feature);
    let mut columns: Vec<Column> = source
        .columns
        .iter()
        .filter(|column| match column.kind {
            ColumnKind::Physical => true,
            ColumnKind::Computed { .. } => strategy(LikeFeature::Generated) != LikeStrategy::Excluding,
            ColumnKind::Metadata { .. } => strategy(LikeFeature::Metadata) != LikeStrategy::Excluding,
        })
        .cloned()
        .map(|column| Column { data_type: column.data_type.clone().regular(), ..column })
        .collect();
    for column in own.columns {
        match columns.iter_mut().find(|known| known.name == column.name) {
            None => columns.push(column),
            Some(known) => {
                let (feature, name) = match (&known.kind, &column.kind) {
                    (ColumnKind::Computed { .. }, ColumnKind::Computed { .. }) => (LikeFeature::Generated, "GENERATED"),
                    (ColumnKind::Metadata { .. }, ColumnKind::Metadata { .. }) => (LikeFeature::Metadata, "METADATA"),
                    _ => {
                        let message = format!("column \"{}\" is in {} already", column.name, joined(&clause.source));
                        return Err(Error::new(ErrorKind::DuplicateObject, message).at(clause.source.span));
                    }
                };
                if strategy(feature) != LikeStrategy::Overwriting {
                    return Err(conflict(format!("column \"{}\"", column.name), name));
                }
                *known = column;
            }
        }
    }
    let watermark = match (own.watermark, &source.watermark, strategy(LikeFeature::Watermarks)) {
        (own, _, LikeStrategy::Excluding) => own,
        (Some(_), Some(_), LikeStrategy::Including) => return Err(conflict("a watermark".to_string(), "WATERMARKS")),
        (own, from_source, _) => own.or_else(|| from_source.clone()),
    };
    let (primary_key, primary_key_name) =
        match (own.primary_key.is_empty(), source.primary_key.is_empty(), strategy(LikeFeature::Constraints)) {
            (false, false, LikeStrategy::Including | LikeStrategy::Overwriting) => {
                return Err(conflict("a primary key".to_string(), "CONSTRAINTS"));
            }
            (true, false, LikeStrategy::Including | LikeStrategy::Overwriting) => {
                (source.primary_key.clone(), source.primary_key_name.clone())
            }
            _ => (own.primary_key, own.primary_key_name),
        };
    let partition_keys =
        match (own.partition_keys.is_empty(), source.partition_keys.is_empty(), strategy(LikeFeature::Partitions)) {
            (false, false, LikeStrategy::Including | LikeStrategy::Overwriting) => {
                return Err(conflict("PARTITIONED BY".to_string(), "PARTITIONS"));
            }
            (true, false, LikeStrategy::Including | LikeStrategy::Overwriting) => source.partition_keys.clone(),
            _ => own.partition_keys,
        };
    // A path that is taken over means what it meant there.
    let takes_path = !own.options.contains_key("path") && strategy(LikeFeature::Options) != LikeStrategy::Excluding;
    let base_dir = if takes_path { source.base_dir.clone() } else { own.base_dir };
    let mut options = match strategy(LikeFeature::Options) {
        LikeStrategy::Excluding => Default::default(),
        _ => source.options.clone(),
    };
    for (key, value) in own.options {
        if options.insert(key.clone(), value).is_some() && strategy(LikeFeature::Options) == LikeStrategy::Including {
            return Err(conflict(format!("option '{key}'"), "OPTIONS"));
        }
    }
    Ok(CatalogTable {
        columns,
        watermark,
        primary_key,
        primary_key_name,
        partition_keys,
        options,
        comment: own.comment,
        temporary: own.temporary,
        base_dir,
    })
}

/// How a feature is taken: as its own option says, else as ALL says, else Flink's default.
fn strategy(clause: &LikeClause, feature: LikeFeature) -> LikeStrategy {
    let of =
        |wanted: LikeFeature| clause.strategies.iter().rev().find(|(_, known)| *known == wanted).map(|(strategy, _)| *strategy);
    of(feature).or_else(|| of(LikeFeature::All)).unwrap_or(match feature {
        LikeFeature::Options => LikeStrategy::Overwriting,
        _ => LikeStrategy::Including,
    })
}

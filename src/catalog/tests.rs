//! Tests of the catalog: names, shadowing, texts, options.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::expect;

use super::*;
use crate::config::SettingType;
use crate::error::{ErrorKind, Location, Result, Span};
use crate::sql::{Name, parse_data_type};
use crate::types::{ChangelogMode, Field, Schema, TimeAttribute};

fn name(text: &str) -> Name {
    Name { parts: text.split('.').map(str::to_string).collect(), span: Span::default() }
}

fn column(name: &str, data_type: &str) -> Column {
    let data_type = parse_data_type(data_type).unwrap();
    Column { name: name.to_string(), data_type, kind: ColumnKind::Physical, comment: None }
}

fn table(columns: Vec<Column>) -> CatalogTable {
    CatalogTable {
        columns,
        watermark: None,
        primary_key: Vec::new(),
        primary_key_name: None,
        partition_keys: Vec::new(),
        options: BTreeMap::from([("connector".to_string(), "print".to_string())]),
        comment: None,
        temporary: false,
        base_dir: Default::default(),
    }
}

fn view(sql: &str) -> CatalogView {
    let schema = Schema::new(vec![Field::new("x", parse_data_type("INT NOT NULL").unwrap())]);
    CatalogView { sql: sql.to_string(), schema: Arc::new(schema), comment: None, temporary: false }
}

fn temporary(table: CatalogTable) -> CatalogTable {
    CatalogTable { temporary: true, ..table }
}

#[test]
fn names_are_completed_and_found() {
    let mut catalog = CatalogManager::new();
    assert!(catalog.create_table(&name("bids"), table(vec![column("a", "INT")]), false).unwrap());
    let (path, entry) = catalog.resolve(&name("default_database.bids")).unwrap();
    assert_eq!(path.to_string(), "`default_catalog`.`default_database`.`bids`");
    assert!(!entry.is_view());
    let error = catalog.resolve(&name("bid")).unwrap_err();
    assert_eq!((error.kind(), error.hint()), (ErrorKind::UndefinedTable, Some("did you mean \"bids\"?")));
    assert_eq!(catalog.resolve(&name("nodb.bids")).unwrap_err().kind(), ErrorKind::UndefinedObject);
    assert!(!catalog.create_table(&name("bids"), table(Vec::new()), true).unwrap());
    assert_eq!(catalog.create_table(&name("bids"), table(Vec::new()), false).unwrap_err().kind(), ErrorKind::DuplicateObject);
}

#[test]
fn temporary_tables_shadow_persistent_ones() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), table(vec![column("a", "INT")]), false).unwrap();
    catalog.create_table(&name("t"), temporary(table(vec![column("b", "INT")])), false).unwrap();
    assert_eq!(catalog.describe(&name("t")).unwrap()[0].name, "b");
    let error = catalog.drop_table(&name("t"), false, false).unwrap_err();
    assert_eq!(error.hint(), Some("DROP TEMPORARY TABLE first"));
    assert!(catalog.drop_table(&name("t"), true, false).unwrap());
    assert_eq!(catalog.describe(&name("t")).unwrap()[0].name, "a");
    assert!(catalog.drop_table(&name("t"), false, false).unwrap());
    assert!(!catalog.drop_table(&name("t"), false, true).unwrap());
    // The database of a temporary table need not exist.
    catalog.create_table(&name("nodb.t"), temporary(table(Vec::new())), false).unwrap();
    assert!(catalog.resolve(&name("nodb.t")).is_ok());
}

#[test]
fn a_clone_is_a_snapshot() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), table(Vec::new()), false).unwrap();
    let snapshot = catalog.clone();
    catalog.drop_table(&name("t"), false, false).unwrap();
    assert!(snapshot.resolve(&name("t")).is_ok() && catalog.resolve(&name("t")).is_err());
}

#[test]
fn databases_and_catalogs() {
    let mut catalog = CatalogManager::new();
    assert!(catalog.create_database(&name("d"), false, None, Options::new()).unwrap());
    assert!(!catalog.create_database(&name("d"), true, None, Options::new()).unwrap());
    catalog.create_table(&name("d.t"), table(Vec::new()), false).unwrap();
    assert_eq!(
        catalog.drop_database(&name("d"), false, false).unwrap_err().hint(),
        Some("add CASCADE to drop all that is in it")
    );
    catalog.use_database(&name("d")).unwrap();
    assert!(catalog.resolve(&name("t")).is_ok());
    assert!(catalog.drop_database(&name("d"), false, true).is_err());
    catalog.use_database(&name("default_catalog.default_database")).unwrap();
    assert!(catalog.drop_database(&name("d"), false, true).unwrap());
    assert_eq!(catalog.use_database(&name("default_databse")).unwrap_err().hint(), Some("did you mean \"default_database\"?"));

    let options = BTreeMap::from([("type".to_string(), "generic_in_memory".to_string())]);
    assert!(catalog.create_catalog(&name("c"), false, None, &options).unwrap());
    catalog.use_catalog(&name("c")).unwrap();
    assert_eq!((catalog.current_catalog(), catalog.current_database()), ("c", "default"));
    assert!(catalog.drop_catalog(&name("c"), false).is_err());
    assert_eq!(catalog.list_catalogs(&LikeFilter::new(None)), ["c", "default_catalog"]);
    assert!(catalog.create_catalog(&name("x"), false, None, &Options::new()).is_err());
}

#[test]
fn tables_and_views_are_of_different_kind() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), table(Vec::new()), false).unwrap();
    catalog.create_view(&name("v"), view("SELECT 1 AS x"), false, false).unwrap();
    assert_eq!(catalog.drop_view(&name("t"), false, false).unwrap_err().hint(), Some("write DROP TABLE"));
    assert_eq!(catalog.drop_table(&name("v"), false, true).unwrap_err().hint(), Some("write DROP VIEW"));
    assert_eq!(catalog.list_tables(None, &LikeFilter::new(None)).unwrap(), ["t", "v"]);
    assert_eq!(catalog.list_views(None, &LikeFilter::new(None)).unwrap(), ["v"]);
    assert!(catalog.create_view(&name("v"), view("SELECT 2 AS x"), false, false).is_err());
    assert!(catalog.create_view(&name("v"), view("SELECT 2 AS x"), false, true).unwrap());
    assert!(catalog.create_view(&name("t"), view("SELECT 2 AS x"), false, true).is_err());
    assert!(catalog.show_create_table(&name("v")).is_err());
    expect![[r#"
        CREATE VIEW `default_catalog`.`default_database`.`v` (
          `x`
        )
        AS SELECT 2 AS x"#]]
    .assert_eq(&catalog.show_create_view(&name("v")).unwrap());
}

#[test]
fn alter_table() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), table(Vec::new()), false).unwrap();
    catalog.create_table(&name("u"), table(Vec::new()), false).unwrap();
    assert_eq!(catalog.rename_table(&name("t"), &name("u")).unwrap_err().kind(), ErrorKind::DuplicateObject);
    catalog.rename_table(&name("t"), &name("w")).unwrap();
    assert!(catalog.resolve(&name("t")).is_err());
    let set = BTreeMap::from([("a".to_string(), ("b".to_string(), Span::default()))]);
    let changed = catalog.with_options(&name("w"), &set).unwrap();
    catalog.replace_table(&name("w"), changed).unwrap();
    assert!(catalog.show_create_table(&name("w")).unwrap().contains("  'a' = 'b',\n  'connector' = 'print'"));
    assert!(catalog.without_options(&name("w"), &[("connector".to_string(), Span::default())]).is_err());
    assert_eq!(catalog.without_options(&name("w"), &[("a".to_string(), Span::default())]).unwrap().options.len(), 1);
}

/// A table with everything that a definition can have.
fn full_table() -> CatalogTable {
    let computed = |name: &str, data_type: &str, sql: &str| Column {
        kind: ColumnKind::Computed { sql: sql.to_string() },
        ..column(name, data_type)
    };
    let mut ts = column("ts", "TIMESTAMP(3)");
    ts.data_type.time = Some(TimeAttribute::Rowtime);
    CatalogTable {
        columns: vec![
            column("id", "BIGINT NOT NULL"),
            Column { comment: Some("it's".to_string()), ..column("a b", "ARRAY<ROW<x STRING NOT NULL, y TIMESTAMP_LTZ(3)>>") },
            computed("twice", "BIGINT NOT NULL", "id  * 2"),
            Column { kind: ColumnKind::Metadata { key: Some("off".to_string()), is_virtual: true }, ..column("o", "INT") },
            Column { kind: ColumnKind::Metadata { key: None, is_virtual: false }, ..column("m", "INT") },
            ts,
        ],
        watermark: Some(WatermarkDefinition { column: "ts".to_string(), sql: "ts - INTERVAL '5' SECOND".to_string() }),
        primary_key: vec!["id".to_string()],
        partition_keys: vec!["a b".to_string()],
        comment: Some("c".to_string()),
        ..table(Vec::new())
    }
}

#[test]
fn show_create_table_is_flinks_text() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), full_table(), false).unwrap();
    expect![[r#"
        CREATE TABLE `default_catalog`.`default_database`.`t` (
          `id` BIGINT NOT NULL,
          `a b` ARRAY<ROW<`x` VARCHAR(2147483647) NOT NULL, `y` TIMESTAMP(3) WITH LOCAL TIME ZONE>> COMMENT 'it''s',
          `twice` AS `id` * 2,
          `o` INT METADATA FROM 'off' VIRTUAL,
          `m` INT METADATA,
          `ts` TIMESTAMP(3),
          WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND,
          CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED
        )
        COMMENT 'c'
        PARTITIONED BY (`a b`)
        WITH (
          'connector' = 'print'
        )"#]]
    .assert_eq(&catalog.show_create_table(&name("t")).unwrap());
}

#[test]
fn describe_is_flinks_rows() {
    let mut catalog = CatalogManager::new();
    catalog.create_table(&name("t"), full_table(), false).unwrap();
    let rows: Vec<String> = catalog
        .describe(&name("t"))
        .unwrap()
        .into_iter()
        .map(|row| {
            let rest = [row.key, row.extras, row.watermark, row.comment].map(|cell| cell.unwrap_or_else(|| "NULL".to_string()));
            format!("{},{},{},{}", row.name, row.data_type, row.nullable, rest.join(","))
        })
        .collect();
    expect![[r#"
        id,BIGINT,false,PRI(id),NULL,NULL,NULL
        a b,ARRAY<ROW<`x` STRING NOT NULL, `y` TIMESTAMP_LTZ(3)>>,true,NULL,NULL,NULL,it's
        twice,BIGINT,false,NULL,AS `id` * 2,NULL,NULL
        o,INT,true,NULL,METADATA FROM 'off' VIRTUAL,NULL,NULL
        m,INT,true,NULL,METADATA,NULL,NULL
        ts,TIMESTAMP(3) *ROWTIME*,true,NULL,NULL,`ts` - INTERVAL '5' SECOND,NULL"#]]
    .assert_eq(&rows.join("\n"));
}

#[derive(Debug)]
struct Generator;

impl ConnectorDescriptor for Generator {
    fn name(&self) -> &'static str {
        "datagen"
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        let option = |key, option_type, required, doc| OptionDescriptor { key, option_type, default: None, required, doc };
        Ok(vec![
            option("rows-per-second", SettingType::Integer, false, "Rows a second."),
            option("path", SettingType::Text, true, "Where the rows are."),
            option("fields.#.kind", SettingType::OneOf(&["random", "sequence"]), false, "How values are made."),
            option("scan.cache", SettingType::Boolean, false, "Accepted, no effect: nothing is cached."),
        ])
    }

    fn validate(&self, _table: &CatalogTable) -> Result<()> {
        Ok(())
    }

    fn source(&self, _table: &CatalogTable) -> Result<SourceAbilities> {
        Ok(SourceAbilities {
            bounded: true,
            changelog: ChangelogMode::InsertOnly,
            metadata: Vec::new(),
            parallelism: None,
            watermarks: false,
        })
    }

    fn sink(&self, _table: &CatalogTable) -> Result<SinkAbilities> {
        Err(crate::error::Error::unsupported("writing"))
    }
}

/// What checking these options says: the notices, or the error with its hint and line.
fn checked(options: &[(&str, &str)]) -> String {
    let registry = ConnectorRegistry(BTreeMap::from([("datagen", Arc::new(Generator) as Arc<dyn ConnectorDescriptor>)]));
    let places: BTreeMap<String, (String, Span)> = options
        .iter()
        .enumerate()
        .map(|(index, (key, value))| {
            let at = Location { line: index as u64 + 1, column: 1 };
            (key.to_string(), (value.to_string(), Span { start: at, end: at }))
        })
        .collect();
    let options = places.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect();
    let table = CatalogTable { options, ..table(vec![column("price", "INT")]) };
    match check_options(&table, &registry, &places) {
        Ok(notices) => notices.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => {
            let line = error.span().map_or(0, |span| span.start.line);
            format!("{} [line {line}; {}]", error.message(), error.hint().unwrap_or_default())
        }
    }
}

#[test]
fn options_are_checked_at_their_place() {
    let connector = ("connector", "datagen");
    let path = ("path", "x");
    let cases: &[&[(&str, &str)]] = &[
        &[connector, path, ("rows-per-second", "5"), ("fields.price.kind", "Random")],
        &[connector, path, ("scan.cache", "true")],
        &[path],
        &[("connector", "datagn"), path],
        &[connector, ("rows-per-second", "5")],
        &[connector, path, ("rows-per-secnd", "5")],
        &[connector, path, ("rows-per-second", "many")],
        &[connector, path, ("fields.prize.kind", "random")],
        &[connector, path, ("field.price.kind", "random")],
        &[connector, path, ("nonsense", "1")],
    ];
    let shown: Vec<String> = cases.iter().map(|options| checked(options)).collect();
    expect![[r#"

        notice: option 'scan.cache' has no effect: nothing is cached
        missing option 'connector' [line 0; say where the rows are: WITH ('connector' = '…'), one of 'datagen']
        unknown connector 'datagn' [line 1; did you mean 'datagen'? available are 'datagen']
        missing option 'path' of connector 'datagen' [line 1; Where the rows are.]
        unknown option 'rows-per-secnd' of connector 'datagen' [line 3; did you mean 'rows-per-second'?]
        value 'many' does not fit option 'rows-per-second' [line 3; give a whole number]
        option 'fields.prize.kind' names column "prize", which the table lacks [line 3; did you mean 'fields.price.kind'?]
        unknown option 'field.price.kind' of connector 'datagen' [line 3; did you mean 'fields.price.kind'?]
        unknown option 'nonsense' of connector 'datagen' [line 3; options are connector, rows-per-second, path, fields.#.kind, scan.cache]"#]]
    .assert_eq(&shown.join("\n"));
}

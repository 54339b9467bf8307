//! Statements that define things: they change the catalog and run nothing, but for CREATE TABLE AS, which runs its query.

use std::sync::Arc;

use super::result::{Outcome, StatementResult};
use super::session::Session;
use crate::catalog::{CatalogTable, ColumnKind, check_keys, check_options};
use crate::config::Notice;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::plan::{self, LogicalPlan, binder};
use crate::sql::{
    AlterTable, CreateFunction, CreateTable, CreateView, DropKind, HintedOptions, Insert, Name, Statement, UseTarget,
};
use crate::types::{Field, FunctionSpace, Schema, SchemaRef};

impl Session {
    /// Carries out a definition.
    pub(super) async fn define(&self, statement: &Statement, hints: &[HintedOptions]) -> Result<StatementResult> {
        let notices = match statement {
            Statement::CreateTable(create) if create.query.is_some() => return self.create_table_as(create, hints).await,
            Statement::CreateTable(create) => self.create_table(create, hints)?,
            Statement::CreateView(create) => self.create_view(create, hints)?,
            Statement::CreateFunction(create) => {
                self.create_function(create, hints)?;
                Vec::new()
            }
            Statement::DropFunction { name, if_exists, space } => {
                self.drop_function(name, *if_exists, *space)?;
                Vec::new()
            }
            Statement::CreateDatabase { name, if_not_exists, comment, options } => {
                self.locked().catalog.create_database(name, *if_not_exists, comment.clone(), options.clone())?;
                Vec::new()
            }
            Statement::CreateCatalog { name, if_not_exists, comment, options } => {
                self.locked().catalog.create_catalog(name, *if_not_exists, comment.clone(), options)?;
                Vec::new()
            }
            Statement::AlterTable { name, if_exists, action } => self.alter_table(name, *if_exists, action)?,
            Statement::Drop { kind, name, if_exists, temporary, cascade } => {
                self.drop_object(*kind, name, *if_exists, *temporary, *cascade)?;
                Vec::new()
            }
            Statement::Use(UseTarget::Catalog(name)) => {
                self.locked().catalog.use_catalog(name)?;
                Vec::new()
            }
            Statement::Use(UseTarget::Database(name)) => {
                self.locked().catalog.use_database(name)?;
                Vec::new()
            }
            other => return Err(Error::internal(format!("no definition: {other:?}"))),
        };
        Ok(StatementResult { outcome: Outcome::Done, notices })
    }

    fn create_function(&self, create: &CreateFunction, hints: &[HintedOptions]) -> Result<()> {
        let functions = &self.engine.functions;
        if create.if_not_exists && functions.is_defined(&create.name.parts.join("."), create.space) {
            return Ok(());
        }
        let state = self.locked();
        let function = binder::bind_function(create, &state.bind_context(&self.engine, hints))?;
        functions.define(Arc::new(function), create.space, create.or_replace).map_err(|error| error.at(create.name.span))
    }

    fn drop_function(&self, name: &Name, if_exists: bool, space: FunctionSpace) -> Result<()> {
        let (functions, wanted) = (&self.engine.functions, name.parts.join("."));
        if functions.forget(&wanted, space) {
            return Ok(());
        }
        let elsewhere = functions.spaces(&wanted).first().copied();
        let is_known = functions.scalar(&wanted).is_some() || functions.aggregate(&wanted).is_some();
        if is_known && elsewhere.is_none() {
            let error = Error::new(ErrorKind::InvalidArgument, format!("function {wanted} is built in, and stays"));
            return Err(error.at(name.span));
        }
        if if_exists {
            return Ok(());
        }
        let what = format!("{}function {wanted}", space.words().to_lowercase());
        let error = Error::new(ErrorKind::UndefinedFunction, format!("{what} not found")).at(name.span);
        Err(match elsewhere {
            Some(other) => error.with_hint(format!("there is another one: DROP {}FUNCTION {wanted}", other.words())),
            None => error,
        })
    }

    fn create_table(&self, create: &CreateTable, hints: &[HintedOptions]) -> Result<Vec<Notice>> {
        let mut state = self.locked();
        let table = binder::validate_table(create, &state.base_dir, &state.bind_context(&self.engine, hints))?;
        let notices = check_options(&table, &self.engine.descriptors, &create.options)?;
        let memory = is_memory(&table).then(|| memory_columns(&table));
        let path = state.catalog.path(&create.name).stored(table.temporary);
        let created = state.catalog.create_table(&create.name, table, create.if_not_exists)?;
        if let Some((schema, primary_key)) = memory.filter(|_| created) {
            self.engine.connectors.memory().create(&path, &schema, &primary_key)?;
        }
        Ok(notices)
    }

    /// CREATE TABLE AS: the table, then a job that fills it.
    async fn create_table_as(&self, create: &CreateTable, hints: &[HintedOptions]) -> Result<StatementResult> {
        let exists = self.locked().catalog.resolve(&create.name).is_ok();
        if exists && create.if_not_exists {
            return Ok(Outcome::Done.into());
        }
        let mut notices = self.create_table(create, hints)?;
        let planned = self.planned(hints, |cx, planner| {
            let columns = binder::bind_table_query(create, cx)?.map(|plan| column_names(&plan)).unwrap_or_default();
            let query = create.query.as_ref().ok_or_else(|| Error::internal("CREATE TABLE AS has a query"))?;
            let (table, query) = (create.name.clone(), query.query.clone());
            let insert = Insert { table, columns, partition: Vec::new(), overwrite: false, query, on_conflict: None };
            plan::plan_inserts(vec![binder::bind_insert(&insert, cx)?], planner)
        });
        let job = match planned {
            Ok(planned) => match self.remarks(&planned, create.name.span) {
                Ok(remarks) => {
                    notices.extend(remarks);
                    self.run(&planned).await
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        // A query that does not fit its sink leaves no table behind.
        if job.is_err() {
            self.drop_object(DropKind::Table, &create.name, true, create.temporary, false)?;
        }
        Ok(StatementResult { outcome: Outcome::Job(job?), notices })
    }

    fn create_view(&self, create: &CreateView, hints: &[HintedOptions]) -> Result<Vec<Notice>> {
        let mut state = self.locked();
        let path = state.catalog.path(&create.name);
        let view = binder::bind_view(create, &path, &state.bind_context(&self.engine, hints))?;
        state.catalog.create_view(&create.name, view, create.if_not_exists, create.or_replace)?;
        Ok(Vec::new())
    }

    fn alter_table(&self, name: &Name, if_exists: bool, action: &AlterTable) -> Result<Vec<Notice>> {
        let mut state = self.locked();
        if if_exists && state.catalog.resolve(name).is_err() {
            return Ok(Vec::new());
        }
        let (mut table, places) = match action {
            AlterTable::Rename(new_name) => {
                let (path, _) = state.catalog.resolve(name)?;
                state.catalog.rename_table(name, new_name)?;
                self.engine.connectors.rename_table(&path, &state.catalog.path(new_name));
                return Ok(Vec::new());
            }
            AlterTable::Set(options) => (state.catalog.with_options(name, options)?, options.clone()),
            AlterTable::Reset(keys) => {
                let table = state.catalog.without_options(name, keys)?;
                check_keys(&table, &self.engine.descriptors, keys)?;
                (table, Default::default())
            }
        };
        if places.contains_key("path") {
            table.base_dir = state.base_dir.clone();
        }
        let notices = check_options(&table, &self.engine.descriptors, &places)?;
        state.catalog.replace_table(name, table)?;
        Ok(notices)
    }

    fn drop_object(&self, kind: DropKind, name: &Name, if_exists: bool, temporary: bool, cascade: bool) -> Result<()> {
        let mut state = self.locked();
        let known = state.catalog.stored_paths();
        match kind {
            DropKind::Table => drop(state.catalog.drop_table(name, temporary, if_exists)?),
            DropKind::View => drop(state.catalog.drop_view(name, temporary, if_exists)?),
            DropKind::Database => drop(state.catalog.drop_database(name, if_exists, cascade)?),
            DropKind::Catalog => drop(state.catalog.drop_catalog(name, if_exists)?),
        }
        for path in known.difference(&state.catalog.stored_paths()) {
            self.engine.connectors.forget_table(path);
        }
        Ok(())
    }
}

fn is_memory(table: &CatalogTable) -> bool {
    table.options.get("connector").map(String::as_str) == Some("memory")
}

/// The columns and the key that the store of memory tables keeps.
fn memory_columns(table: &CatalogTable) -> (SchemaRef, Vec<usize>) {
    let physical = table.columns.iter().filter(|column| column.kind == ColumnKind::Physical);
    let schema =
        Schema::new(physical.map(|column| Field::new(column.name.clone(), column.data_type.clone().regular())).collect());
    let primary_key = table.primary_key.iter().filter_map(|name| schema.index_of(name)).collect();
    (Arc::new(schema), primary_key)
}

/// The columns of a query as names, to insert into.
fn column_names(plan: &LogicalPlan) -> Vec<Name> {
    plan.schema().fields.iter().map(|field| Name { parts: vec![field.name.clone()], span: Span::default() }).collect()
}

//! Scans of one table that differ only in what was pushed into them become one scan that serves all: the table is read once.
//!
//! The one scan produces what any of them needs; above it each query filters and cuts out its own columns. It matters beyond
//! speed: a generator or a socket gives all readers the same rows. Runs over all queries of a job at once.

use std::sync::Arc;

use super::expressions::{is_identity, shifted};
use super::merge_projects;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext, ScanTable};
use crate::stream_graph::WatermarkSpec;
use crate::types::{Field, Schema, SchemaRef};

/// Makes all scans of the same table in these plans one.
pub fn share_scans(plans: Vec<LogicalPlan>, cx: &PlannerContext) -> Result<Vec<LogicalPlan>> {
    let mut scans = Vec::new();
    plans.iter().for_each(|plan| collect(plan, &mut scans));
    let mut replaced: Vec<(LogicalPlan, LogicalPlan)> = Vec::new();
    while let Some(first) = scans.first().cloned() {
        let (same, others) = scans.into_iter().partition::<Vec<Scan>, _>(|scan| scan.table == first.table);
        scans = others;
        if same.len() > 1 {
            replaced.extend(same.iter().zip(unified(&same).unwrap_or_default()).map(|(scan, by)| (scan.plan.clone(), by)));
        }
    }
    if replaced.is_empty() {
        return Ok(plans);
    }
    let replace = |plan: LogicalPlan| {
        let by = replaced.iter().find(|(scan, _)| *scan == plan).map(|(_, by)| by.clone());
        Ok(by.unwrap_or(plan))
    };
    plans.into_iter().map(|plan| merge_projects::apply(bottom_up(plan, &mut { replace })?, cx)).collect()
}

/// A scan taken apart.
#[derive(Clone)]
struct Scan {
    plan: LogicalPlan,
    table: ScanTable,
    projection: Vec<usize>,
    metadata: Vec<Field>,
    /// Output columns over the produced ones.
    output: Vec<Expr>,
    watermark: Option<WatermarkSpec>,
    predicate: Option<Expr>,
    schema: SchemaRef,
}

/// The different scans of a plan.
fn collect(plan: &LogicalPlan, found: &mut Vec<Scan>) {
    if let LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit: _, schema } = plan
        && !found.iter().any(|scan| scan.plan == *plan)
    {
        let passed = schema.fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone().regular()));
        found.push(Scan {
            plan: plan.clone(),
            table: table.clone(),
            projection: projection.clone(),
            metadata: metadata.clone(),
            output: computed.clone().unwrap_or_else(|| passed.collect()),
            watermark: watermark.clone(),
            predicate: predicate.clone(),
            schema: schema.clone(),
        });
    }
    plan.inputs().into_iter().for_each(|input| collect(input, found));
}

/// The scan that serves all, in the making.
struct Shared {
    projection: Vec<usize>,
    metadata: Vec<Field>,
    /// Output columns: all produced ones, then computed ones.
    output: Vec<Expr>,
    fields: Vec<Field>,
}

impl Shared {
    fn new(scans: &[Scan]) -> Self {
        let mut projection: Vec<usize> = scans.iter().flat_map(|scan| scan.projection.iter().copied()).collect();
        projection.sort_unstable();
        projection.dedup();
        let mut metadata: Vec<Field> = Vec::new();
        for field in scans.iter().flat_map(|scan| &scan.metadata) {
            if !metadata.contains(field) {
                metadata.push(field.clone());
            }
        }
        let fields = scans[0].table.produced(&projection, &metadata).fields;
        let output = fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
        Shared { projection, metadata, output, fields }
    }

    /// Where a produced column of a scan is among those produced now.
    fn produced_place(&self, scan: &Scan, column: usize) -> usize {
        let place = match column.checked_sub(scan.projection.len()) {
            None => self.projection.iter().position(|physical| *physical == scan.projection[column]),
            Some(at) => self.metadata.iter().position(|key| *key == scan.metadata[at]).map(|at| self.projection.len() + at),
        };
        place.expect("the shared scan produces what each scan does")
    }

    /// Where the output columns of a scan are; computed ones are added.
    fn output_places(&mut self, scan: &Scan) -> Vec<usize> {
        let mut places = Vec::with_capacity(scan.output.len());
        for (expr, field) in scan.output.iter().zip(&scan.schema.fields) {
            let expr = shifted(expr.clone(), &|column| self.produced_place(scan, column));
            places.push(match &expr {
                Expr::Column { index, .. } => *index,
                _ => self.output.iter().position(|known| *known == expr).unwrap_or_else(|| {
                    self.output.push(expr);
                    self.fields.push(field.clone());
                    self.output.len() - 1
                }),
            });
        }
        places
    }
}

/// What stands for each of the scans, over one that they share; none when their watermarks differ.
fn unified(scans: &[Scan]) -> Option<Vec<LogicalPlan>> {
    let mut shared = Shared::new(scans);
    let places: Vec<Vec<usize>> = scans.iter().map(|scan| shared.output_places(scan)).collect();
    let moved = |expr: &Expr, places: &[usize]| shifted(expr.clone(), &|column| places[column]);
    let watermark_of = |(scan, places): (&Scan, &Vec<usize>)| {
        scan.watermark.as_ref().map(|watermark| WatermarkSpec {
            rowtime: places[watermark.rowtime],
            expr: moved(&watermark.expr, places),
            timing: watermark.timing.clone(),
        })
    };
    // One that needs no watermark does not mind one.
    let mut watermarks = scans.iter().zip(&places).filter_map(watermark_of);
    let watermark = watermarks.next();
    if watermarks.any(|other| Some(other) != watermark) {
        return None;
    }
    if let (Some(watermark), Some(scan)) = (&watermark, scans.iter().find(|scan| scan.watermark.is_some())) {
        let own = scan.watermark.as_ref().map_or(0, |watermark| watermark.rowtime);
        shared.fields[watermark.rowtime].data_type = scan.schema.field(own).data_type.clone();
    }
    let predicates: Vec<Option<Expr>> =
        scans.iter().zip(&places).map(|(scan, places)| Some(moved(scan.predicate.as_ref()?, places))).collect();
    let all_alike = predicates.iter().all(|predicate| *predicate == predicates[0]);
    let computed = Some(shared.output).filter(|output| !is_identity(output, shared.projection.len() + shared.metadata.len()));
    let scan = LogicalPlan::Scan {
        table: scans[0].table.clone(),
        projection: shared.projection,
        metadata: shared.metadata,
        computed,
        watermark,
        predicate: predicates[0].clone().filter(|_| all_alike),
        limit: None,
        schema: Arc::new(Schema::new(shared.fields)),
    };
    let each = scans.iter().zip(places).zip(predicates).map(|((own, places), predicate)| {
        let input = match predicate.filter(|_| !all_alike) {
            Some(predicate) => LogicalPlan::Filter { input: Box::new(scan.clone()), predicate },
            None => scan.clone(),
        };
        let columns = places.iter().zip(&own.schema.fields);
        let exprs = columns.map(|(at, field)| Expr::column(*at, field.data_type.clone())).collect();
        LogicalPlan::Project { input: Box::new(input), exprs, schema: own.schema.clone() }
    });
    Some(each.collect())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::optimize;
    use crate::plan::testing::*;

    #[test]
    fn one_scan_serves_queries_with_their_own_columns_and_filters() {
        let session = Session::new();
        let cheap = columns(filter(scan_with_watermark(), compare(bigint(1), "<", bigint_literal(3))), &[0]);
        let windows = aggregate(windowed(scan_with_watermark(), TUMBLE_10S), &[3, 4], vec![count("n")]);
        let plans = [cheap, windows].map(|plan| optimize(plan, &session.cx()).unwrap());
        let shared = share_scans(plans.into(), &session.cx()).unwrap();
        expect![[r#"
            Project(select=[item])
            +- Filter(where=[(price < 3)])
               +- TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts])
            Project(select=[window_start, window_end, n])
            +- WindowAggregate(window=[TUMBLE(time_col=[ts], size=[10 s])], select=[COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])
               +- Project(select=[ts])
                  +- TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts])
        "#]].assert_eq(&shared.iter().map(ToString::to_string).collect::<String>());
    }

    #[test]
    fn other_options_are_another_table() {
        let session = Session::new();
        let hinted = scan_of(table("bids", "append", &[], &[("scan.parallelism", "2")]));
        let plans = vec![columns(scan(), &[0]), columns(hinted, &[1])];
        assert_eq!(share_scans(plans.clone(), &session.cx()).unwrap(), plans);
    }
}

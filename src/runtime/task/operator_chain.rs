//! The operators of a task as a tree: what one emits goes by direct call into the next ones or into result partitions.
//!
//! Operators stand in depth-first order, every one after the one that feeds it; so the part of the list behind an operator holds all
//! that it can reach, and a call down the chain borrows ever shorter tails: no queue, no copy, no reference count.
//!
//! The end: the maximal watermark is never passed down by an operator. When an operator's input has ended the chain calls `end_input`,
//! gives it the maximal watermark, then `finish`, and only then goes on to the next one. So no row can come after the end of time.
//!
//! A barrier goes into all partitions, then the state of all operators is frozen: between the two nothing runs.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use arrow::array::{ArrayRef, StringViewArray};
use arrow::compute;

use super::{ChainLink, LateLink};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::channel::ResultPartition;
use crate::runtime::checkpoint::{OperatorSnapshot, RestoredTask};
use crate::runtime::{
    Committable, FlushId, Operator, OperatorMetrics, Output, SourceOperator, SourceStatus, StateTable, StateTableSnapshot,
    StreamElement, WatermarkStatus,
};
use crate::types::{Batch, CheckpointId, InputNumber, KeyGroupRange, OperatorId, Watermark, WatermarkSteps};

/// Where an operator stands and what came out of it.
pub(super) struct Port {
    pub(super) id: OperatorId,
    pub(super) name: String,
    pub(super) links: Vec<ChainLink>,
    /// Where late rows go.
    pub(super) late_links: Vec<LateLink>,
    pub(super) metrics: Arc<OperatorMetrics>,
    pub(super) emitted: Watermark,
    /// What a sink has prepared, at which checkpoint, that no checkpoint has yet of which it is known to be complete.
    pub(super) prepared: Vec<(Option<CheckpointId>, Committable)>,
}

/// An operator in its place.
pub(super) struct Node {
    pub(super) operator: Box<dyn Operator>,
    pub(super) port: Port,
}

/// The source at the head of a chain.
pub(super) struct SourceNode {
    pub(super) operator: Box<dyn SourceOperator>,
    pub(super) port: Port,
}

/// The operators of a task.
pub(super) struct OperatorChain {
    pub(super) source: Option<SourceNode>,
    /// All others. Position `i` here is position `i + base` in the descriptor, where base = 1 behind a source.
    pub(super) nodes: Vec<Node>,
    pub(super) partitions: Vec<ResultPartition>,
    /// The operator that runs, by position in the descriptor: to name it when it panics.
    running: Cell<usize>,
    /// The checkpoint that the last snapshot was taken for.
    frozen_for: Option<CheckpointId>,
}

impl OperatorChain {
    pub(super) fn new(source: Option<SourceNode>, nodes: Vec<Node>, partitions: Vec<ResultPartition>) -> Self {
        OperatorChain { source, nodes, partitions, running: Cell::new(0), frozen_for: None }
    }

    fn base(&self) -> usize {
        usize::from(self.source.is_some())
    }

    /// The name of the operator that runs (or ran last).
    pub(super) fn running_name(&self) -> &str {
        let position = self.running.get();
        match &self.source {
            Some(source) if position == 0 => &source.port.name,
            source => self.nodes.get(position - usize::from(source.is_some())).map_or("", |node| &node.port.name),
        }
    }

    /// Calls an operator, by position in the descriptor, with the output behind it.
    fn call(&mut self, position: usize, work: impl FnOnce(&mut dyn Operator, &mut ChainOutput<'_>) -> Result<()>) -> Result<()> {
        let base = self.base();
        let mut reach = Reach { nodes: &mut self.nodes, base, partitions: &mut self.partitions, running: &self.running };
        reach.call(position, work)
    }

    fn positions(&self) -> std::ops::Range<usize> {
        self.base()..self.base() + self.nodes.len()
    }

    /// Rows for the head.
    pub(super) fn batch(&mut self, input: InputNumber, mut batch: Batch) -> Result<()> {
        let steps = batch.take_steps();
        let batch = batch.with_steps(without_end(steps));
        self.call(0, |operator, output| {
            output.port.metrics.rows_in.fetch_add(batch.num_rows() as u64, Relaxed);
            operator.process_batch(input, batch, output)
        })
    }

    /// Event time for the head.
    pub(super) fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        if watermark == Watermark::MAX {
            return Ok(());
        }
        self.call(0, |operator, output| operator.process_watermark(watermark, output))
    }

    /// A status goes past all operators into all partitions.
    pub(super) fn watermark_status(&mut self, status: WatermarkStatus) -> Result<()> {
        self.partitions.iter_mut().try_for_each(|partition| partition.watermark_status(status))
    }

    /// A flush has come on all channels: it goes through all operators into all partitions.
    pub(super) fn flush(&mut self, id: FlushId) -> Result<()> {
        for position in self.positions() {
            self.call(position, |operator, output| operator.flush(output))?;
        }
        self.control(StreamElement::Flush(id))
    }

    /// The frozen state of all operators at a barrier, or (none) at their end. `input_has_ended`: nothing comes any more, so that only what outlives that is of use.
    pub(super) fn snapshot(&mut self, checkpoint: Option<CheckpointId>, input_has_ended: bool) -> Result<Vec<OperatorSnapshot>> {
        let mut snapshots = Vec::with_capacity(self.nodes.len() + 1);
        self.frozen_for = checkpoint;
        if let Some(source) = &mut self.source {
            let tables =
                freeze(source.operator.state(), input_has_ended).map_err(|error| error.in_operator(&source.port.name))?;
            snapshots.push(source.port.snapshot(tables));
        }
        for node in &mut self.nodes {
            let prepared = node.operator.prepare_commit(checkpoint);
            let frozen = prepared.and_then(|prepared| Ok((freeze(node.operator.state(), input_has_ended)?, prepared)));
            let (tables, prepared) = frozen.map_err(|error| error.in_operator(&node.port.name))?;
            node.port.prepared.extend(prepared.into_iter().map(|committable| (checkpoint, committable)));
            snapshots.push(node.port.snapshot(tables));
        }
        Ok(snapshots)
    }

    /// Fills the operators with the state of a checkpoint.
    pub(super) fn restore(&mut self, restored: &RestoredTask, range: KeyGroupRange) -> Result<()> {
        if let Some(source) = &mut self.source {
            fill(source.operator.state(), restored, &source.port, range)?;
        }
        self.nodes.iter_mut().try_for_each(|node| fill(node.operator.state(), restored, &node.port, range))
    }

    /// Says again how far event time had come when the state was taken: what has no state of its own would not know.
    pub(super) fn restore_watermarks(&mut self, restored: &RestoredTask) -> Result<()> {
        let emitted = |port: &Port| restored.operators.get(&port.id).map_or(Watermark::MIN, |operator| operator.output_watermark);
        if let OperatorChain { source: Some(source), nodes, partitions, running, .. } = self {
            let watermark = emitted(&source.port);
            let reach = Reach { nodes, base: 1, partitions, running };
            ChainOutput { port: &mut source.port, reach }.watermark(watermark)?;
        } else {
            self.watermark(restored.input_watermark)?;
        }
        for position in self.positions() {
            let watermark = emitted(&self.nodes[position - self.base()].port);
            self.call(position, |_, output| output.watermark(watermark))?;
        }
        Ok(())
    }

    /// A checkpoint is complete.
    pub(super) fn checkpoint_completed(&mut self, checkpoint: CheckpointId) -> Result<()> {
        let tell = |node: &mut Node| {
            node.port.prepared.retain(|(prepared, _)| prepared.is_none_or(|prepared| prepared > checkpoint));
            let told = node.operator.checkpoint_completed(checkpoint);
            told.map_err(|error| error.in_operator(&node.port.name))
        };
        self.nodes.iter_mut().try_for_each(tell)?;
        if self.frozen_for == Some(checkpoint) {
            let tables = self.nodes.iter_mut().flat_map(|node| node.operator.state());
            tables.for_each(|(_, table)| table.snapshot_completed());
        }
        Ok(())
    }

    /// A control element that concerns no operator goes into all partitions.
    pub(super) fn control(&mut self, element: StreamElement) -> Result<()> {
        self.partitions.iter_mut().try_for_each(|partition| partition.control(element.clone()))
    }

    /// An input of the head has ended.
    pub(super) fn end_input(&mut self, input: InputNumber) -> Result<()> {
        self.call(0, |operator, output| operator.end_input(input, output))
    }

    /// All inputs of the head have ended: ends all operators. The partitions get the last watermark, and wait for their end.
    pub(super) fn finish_operators(&mut self) -> Result<()> {
        self.source.iter().for_each(|source| source.port.metrics.watermark.set(Watermark::MAX.0));
        for position in self.positions() {
            if position > 0 {
                let input = self.input_of(position);
                self.call(position, |operator, output| operator.end_input(input, output))?;
            }
            self.call(position, |operator, output| {
                operator.process_watermark(Watermark::MAX, output)?;
                operator.finish(output)?;
                output.port.metrics.watermark.set(Watermark::MAX.0);
                Ok(())
            })?;
        }
        self.partitions.iter_mut().for_each(|partition| partition.watermark(Watermark::MAX));
        Ok(())
    }

    /// Nothing more comes out.
    pub(super) fn finish_partitions(&mut self) -> Result<()> {
        self.partitions.iter_mut().try_for_each(ResultPartition::finish)
    }

    /// Which input of a chained operator its predecessor feeds.
    fn input_of(&self, position: usize) -> InputNumber {
        let ports = self.source.iter().map(|source| &source.port).chain(self.nodes.iter().map(|node| &node.port));
        let mut links = ports.flat_map(Port::all_links);
        links
            .find_map(|link| match link {
                ChainLink::Operator { index, input } if *index == position => Some(*input),
                _ => None,
            })
            .expect("checked when the chain was built: every operator but the head is fed")
    }

    /// Polls the source.
    pub(super) fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceStatus>> {
        let OperatorChain { source, nodes, partitions, running, .. } = self;
        let source = source.as_mut().expect("asked of source tasks only");
        running.set(0);
        let reach = Reach { nodes, base: 1, partitions, running };
        let polled = source.operator.poll(context, &mut ChainOutput { port: &mut source.port, reach });
        polled.map_err(|error| error.in_operator(&source.port.name))
    }

    /// Whether all operators and partitions can take more.
    pub(super) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut ready = self.partitions.iter().all(ResultPartition::has_room);
        for node in &mut self.nodes {
            match node.operator.poll_ready(context) {
                Poll::Ready(result) => result.map_err(|error| error.in_operator(&node.port.name))?,
                Poll::Pending => ready = false,
            }
        }
        if ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Whether no further input can change what anyone sees: every way down leads to a satisfied operator or a partition without
    /// consumers.
    pub(super) fn is_satisfied(&self) -> bool {
        match &self.source {
            Some(source) => self.all_satisfied(&source.port),
            None => self.node_satisfied(0),
        }
    }

    fn node_satisfied(&self, position: usize) -> bool {
        let node = &self.nodes[position - self.base()];
        node.operator.is_satisfied() || self.all_satisfied(&node.port)
    }

    fn all_satisfied(&self, port: &Port) -> bool {
        // A sink has no links and is wanted until it says otherwise.
        !port.links.is_empty()
            && port.links.iter().all(|link| match link {
                ChainLink::Partition(partition) => self.partitions[*partition].is_released(),
                ChainLink::Operator { index, .. } => self.node_satisfied(*index),
            })
    }

    /// When someone in the chain wants to be called.
    pub(super) fn next_timer(&self) -> Option<i64> {
        let source = self.source.iter().filter_map(|source| source.operator.next_processing_timer());
        let nodes = self.nodes.iter().filter_map(|node| node.operator.next_processing_timer());
        let partitions = self.partitions.iter().filter_map(ResultPartition::next_flush_ms);
        source.chain(nodes).chain(partitions).min()
    }

    /// The clock has moved: calls whoever wanted it.
    pub(super) fn process_time(&mut self, now_ms: i64) -> Result<()> {
        let is_due = |timer: Option<i64>| timer.is_some_and(|timer| timer <= now_ms);
        self.process_source_time(now_ms)?;
        for position in self.positions() {
            let operator = &self.nodes[position - self.base()].operator;
            if is_due(operator.next_processing_timer()) {
                self.call(position, |operator, output| operator.process_time(now_ms, output))?;
            }
        }
        self.partitions.iter_mut().try_for_each(|partition| partition.set_time(now_ms))
    }

    fn process_source_time(&mut self, now_ms: i64) -> Result<()> {
        let OperatorChain { source, nodes, partitions, running, .. } = self;
        let Some(source) = source else { return Ok(()) };
        if source.operator.next_processing_timer().is_none_or(|timer| timer > now_ms) {
            return Ok(());
        }
        running.set(0);
        let reach = Reach { nodes, base: 1, partitions, running };
        let processed = source.operator.process_time(now_ms, &mut ChainOutput { port: &mut source.port, reach });
        processed.map_err(|error| error.in_operator(&source.port.name))
    }

    /// Bytes of state of all operators.
    pub(super) fn state_bytes(&mut self) -> usize {
        let nodes = self.nodes.iter_mut().flat_map(|node| node.operator.state());
        nodes.map(|(_, table)| table.bytes()).sum()
    }

    /// The watermark that the last operator emitted.
    pub(super) fn emitted(&self) -> Watermark {
        let last = self.nodes.last().map(|node| &node.port).or(self.source.as_ref().map(|source| &source.port));
        last.map_or(Watermark::MIN, |port| port.emitted)
    }
}

impl Port {
    fn emit(&mut self, watermark: Watermark) {
        self.emitted = watermark;
        self.metrics.watermark.set(watermark.0);
    }

    /// Where rows and watermarks go, side outputs included.
    fn all_links(&self) -> impl Iterator<Item = &ChainLink> {
        self.links.iter().chain(self.late_links.iter().map(|late| &late.link))
    }

    fn snapshot(&self, tables: FrozenTables) -> OperatorSnapshot {
        // Also what was prepared for a checkpoint that failed: it is made visible with the next one.
        let committables = self.prepared.iter().map(|(_, committable)| committable.clone()).collect();
        OperatorSnapshot { operator: self.id, output_watermark: self.emitted, tables, committables }
    }
}

/// Tables of an operator, frozen.
type FrozenTables = Vec<(&'static str, StateTableSnapshot)>;

fn freeze(tables: Vec<(&'static str, &mut dyn StateTable)>, input_has_ended: bool) -> Result<FrozenTables> {
    let wanted = tables.into_iter().filter(|(_, table)| !input_has_ended || table.outlives_input());
    wanted.map(|(name, table)| Ok((name, table.snapshot()?))).collect()
}

/// Fills the tables of an operator. Rows of a table that it does not have are an error: they would be lost.
fn fill(
    mut tables: Vec<(&'static str, &mut dyn StateTable)>,
    restored: &RestoredTask,
    port: &Port,
    range: KeyGroupRange,
) -> Result<()> {
    let Some(operator) = restored.operators.get(&port.id) else { return Ok(()) };
    for (name, rows) in &operator.tables {
        let Some((_, table)) = tables.iter_mut().find(|(known, _)| known == name) else {
            let error = Error::new(ErrorKind::DataFormat, format!("the checkpoint has state \"{name}\", the operator does not"));
            return Err(error.with_hint("restore it with the version that took it").in_operator(&port.name));
        };
        table.restore(rows, range).map_err(|error| error.in_operator(&port.name))?;
    }
    Ok(())
}

/// The operators behind one, and the partitions.
struct Reach<'a> {
    nodes: &'a mut [Node],
    base: usize,
    partitions: &'a mut [ResultPartition],
    running: &'a Cell<usize>,
}

impl Reach<'_> {
    fn call(&mut self, position: usize, work: impl FnOnce(&mut dyn Operator, &mut ChainOutput<'_>) -> Result<()>) -> Result<()> {
        let (node, behind) = self.nodes[position - self.base..].split_first_mut().expect("links lead to operators");
        let caller = self.running.replace(position);
        let reach = Reach { nodes: behind, base: position + 1, partitions: self.partitions, running: self.running };
        let mut output = ChainOutput { port: &mut node.port, reach };
        work(&mut *node.operator, &mut output).map_err(|error| error.in_operator(&node.port.name))?;
        // Not put back on a panic: then it names who panicked.
        self.running.set(caller);
        Ok(())
    }
}

impl Reach<'_> {
    fn batch(&mut self, link: &ChainLink, batch: Batch) -> Result<()> {
        match link {
            ChainLink::Partition(partition) => self.partitions[*partition].batch(batch),
            ChainLink::Operator { index, input } => self.call(*index, |operator, output| {
                output.port.metrics.rows_in.fetch_add(batch.num_rows() as u64, Relaxed);
                operator.process_batch(*input, batch, output)
            }),
        }
    }

    fn watermark(&mut self, link: &ChainLink, watermark: Watermark) -> Result<()> {
        match link {
            ChainLink::Partition(partition) => {
                self.partitions[*partition].watermark(watermark);
                Ok(())
            }
            ChainLink::Operator { index, .. } => {
                self.call(*index, |operator, output| operator.process_watermark(watermark, output))
            }
        }
    }
}

/// The output of one operator of a chain.
struct ChainOutput<'a> {
    port: &'a mut Port,
    reach: Reach<'a>,
}

impl Output for ChainOutput<'_> {
    fn batch(&mut self, mut batch: Batch) -> Result<()> {
        let steps = rising(without_end(batch.take_steps()), self.port.emitted);
        if batch.num_rows() == 0 {
            return steps.last().map_or(Ok(()), |watermark| self.watermark(watermark));
        }
        if let Some(watermark) = steps.last() {
            self.port.emit(watermark);
        }
        for late in &self.port.late_links {
            if let Some(watermark) = steps.last() {
                self.reach.watermark(&late.link, watermark)?;
            }
        }
        self.port.metrics.rows_out.fetch_add(batch.num_rows() as u64, Relaxed);
        let mut batch = Some(batch.with_steps(steps));
        for (at, link) in self.port.links.iter().enumerate() {
            let last = at + 1 == self.port.links.len();
            let batch = if last { batch.take() } else { batch.clone() }.expect("taken by the last link only");
            self.reach.batch(link, batch)?;
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        if watermark <= self.port.emitted || watermark == Watermark::MAX {
            return Ok(());
        }
        self.port.emit(watermark);
        for link in self.port.all_links() {
            self.reach.watermark(link, watermark)?;
        }
        Ok(())
    }

    fn watermark_status(&mut self, status: WatermarkStatus) -> Result<()> {
        for link in self.port.all_links() {
            match link {
                ChainLink::Partition(partition) => self.reach.partitions[*partition].watermark_status(status)?,
                ChainLink::Operator { index, .. } => {
                    self.reach.call(*index, |_, output| output.watermark_status(status))?;
                }
            }
        }
        Ok(())
    }

    fn takes_late_rows(&self, input: InputNumber) -> bool {
        self.port.late_links.iter().any(|late| late.output.input == input)
    }

    fn late_rows(&mut self, input: InputNumber, rows: Batch, watermarks: ArrayRef) -> Result<()> {
        for late in self.port.late_links.iter().filter(|late| late.output.input == input) {
            let mut columns = rows.columns().to_vec();
            columns.push(compute::cast(&watermarks, &late.output.watermark_type.to_arrow())?);
            let kinds = (0..rows.num_rows()).map(|row| Some(rows.kind(row).to_string()));
            columns.push(Arc::new(kinds.collect::<StringViewArray>()));
            self.reach.batch(&late.link, Batch::new(columns, rows.num_rows()))?;
        }
        Ok(())
    }
}

/// The steps without the end of time, which the chain itself brings.
fn without_end(steps: WatermarkSteps) -> WatermarkSteps {
    if steps.last() != Some(Watermark::MAX) {
        return steps;
    }
    steps.map_watermarks(|watermark| (watermark != Watermark::MAX).then_some(watermark))
}

/// The steps above what was emitted before.
fn rising(steps: WatermarkSteps, emitted: Watermark) -> WatermarkSteps {
    match steps.as_slice().first() {
        Some(first) if first.watermark <= emitted => steps.map_watermarks(|watermark| (watermark > emitted).then_some(watermark)),
        _ => steps,
    }
}

//! The graph in the making: nodes and edges are added here, and equal subplans found again.

use super::sharing::same_rows;
use crate::config::{MAX_PARALLELISM, PARALLELISM, PIPELINE_NAME, STATE_TTL};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::changelog::{Changelog, Changes};
use crate::plan::{LogicalPlan, PlannerContext, state_bounds};
use crate::stream_graph::{
    ChainingStrategy, ChangeCut, ExchangeMode, LateOutput, OperatorSpec, Partitioner, StreamEdge, StreamGraph, StreamNode,
    StreamNodeId,
};
use crate::types::{DataType, InputNumber, ResultId, SchemaRef};

/// The slot sharing group of operators that were given none.
const DEFAULT_SLOT_SHARING_GROUP: &str = "default";
/// Key groups are numbered by 16 bits, of which Flink uses 15.
const MAX_PARALLELISM_LIMIT: i64 = 1 << 15;

/// Makes the graph of all queries of a job. `result`: where the rows of a query that is no INSERT go to.
pub fn generate(queries: &[(&LogicalPlan, &Changelog)], result: Option<ResultId>, cx: &PlannerContext) -> Result<StreamGraph> {
    let mut generator = Generator::new(cx)?;
    let mut sinks = Vec::new();
    for (plan, changelog) in queries {
        match (plan, result) {
            (LogicalPlan::Sink { input, table, schema, on_conflict, .. }, _) => {
                sinks.push(format!("{}.{}.{}", table.path.catalog, table.path.database, table.path.name));
                generator.sink(input, table, schema, *on_conflict, &changelog.inputs[0])?;
            }
            (_, Some(result)) => generator.collect(plan, changelog, result)?,
            (_, None) => return Err(Error::internal("a query without a sink needs a result to be collected in")),
        }
    }
    generator.late_rows()?;
    Ok(generator.finish(&sinks))
}

/// The rows of a generated subplan: where they come from and what they are.
#[derive(Clone)]
pub(super) struct Stream {
    /// The nodes that emit them: several for a UNION ALL.
    pub nodes: Vec<StreamNodeId>,
    /// The parallelism of what comes after, unless it has a reason for another one.
    pub parallelism: u32,
    /// Their kinds.
    pub changes: Changes,
    /// Columns whose equality keeps the changes of a row together.
    pub key: Option<Vec<usize>>,
}

/// Which rows must meet in one subtask.
pub(super) enum Distribution {
    /// Any: rows stay where they are.
    Any,
    /// Those with equal keys; all of them without a key.
    Keyed(Vec<usize>),
    /// All.
    Single,
}

/// An operator to be added.
pub(super) struct NewNode {
    pub name: String,
    pub description: String,
    pub spec: OperatorSpec,
    pub schema: SchemaRef,
    pub changes: Changes,
}

pub(super) struct Generator<'a> {
    pub cx: &'a PlannerContext<'a>,
    pub parallelism: u32,
    max_parallelism: u32,
    /// The time to live of state, milliseconds, where no hint says otherwise; 0 = for ever.
    state_ttl_ms: u64,
    pub graph: StreamGraph,
    /// Which changes must all come of what is being generated, since it ends in a window of event time.
    pub change_cut: Option<ChangeCut>,
    /// What was generated already, so that equal subplans are shared.
    generated: Vec<(&'a LogicalPlan, &'a Changelog, Stream)>,
}

impl<'a> Generator<'a> {
    fn new(cx: &'a PlannerContext<'a>) -> Result<Self> {
        let max_parallelism = cx.configuration.integer(&MAX_PARALLELISM);
        if !(1..=MAX_PARALLELISM_LIMIT).contains(&max_parallelism) {
            return Err(out_of_range(MAX_PARALLELISM.key, max_parallelism, MAX_PARALLELISM_LIMIT));
        }
        let parallelism = cx.configuration.integer(&PARALLELISM);
        if !(1..=max_parallelism).contains(&parallelism) {
            return Err(out_of_range(PARALLELISM.key, parallelism, max_parallelism));
        }
        Ok(Generator {
            cx,
            parallelism: parallelism as u32,
            max_parallelism: max_parallelism as u32,
            state_ttl_ms: cx.configuration.duration_ms(&STATE_TTL),
            graph: StreamGraph { configuration: cx.configuration.0.clone(), ..StreamGraph::default() },
            change_cut: None,
            generated: Vec::new(),
        })
    }

    /// The stream of a subplan: found again or generated.
    pub fn stream(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        // What a window takes changes from is its own.
        let is_shared =
            self.change_cut.is_none() || matches!(plan, LogicalPlan::Scan { .. }) || changelog.changes.is_insert_only();
        let known = self.generated.iter().find(|(known, log, _)| is_shared && *log == changelog && same_rows(known, plan));
        if let Some((_, _, stream)) = known {
            return Ok(stream.clone());
        }
        let key = changelog.upsert_keys.iter().find(|key| !key.is_empty()).cloned();
        let first = self.graph.nodes.len();
        let stream = Stream { key, ..self.node(plan, changelog)? };
        self.describe_state(first, plan, changelog);
        if is_shared {
            self.generated.push((plan, changelog, stream.clone()));
        }
        Ok(stream)
    }

    /// The stream that a window sorts its rows from, by the time of this type.
    pub fn windowed_stream(
        &mut self,
        plan: &'a LogicalPlan,
        changelog: &'a Changelog,
        time_type: &DataType,
        cut: ChangeCut,
    ) -> Result<Stream> {
        let cut = Some(cut).filter(|_| time_type.is_rowtime() && !changelog.changes.is_insert_only());
        let before = std::mem::replace(&mut self.change_cut, cut);
        let stream = self.stream(plan, changelog);
        self.change_cut = before;
        stream
    }

    /// Which changes of an operator must all come.
    pub fn cut_of(&self, changelog: &Changelog) -> Option<ChangeCut> {
        self.change_cut.filter(|_| !changelog.changes.is_insert_only())
    }

    /// Adds an operator without inputs. What comes after it has `downstream` subtasks.
    pub fn add_source(&mut self, node: NewNode, parallelism: u32, downstream: u32) -> Result<Stream> {
        let changes = node.changes;
        let id = self.add(node, parallelism)?;
        Ok(Stream { nodes: vec![id], parallelism: downstream, changes, key: None })
    }

    /// Adds an operator over inputs, each with what it asks of the distribution of its rows.
    pub fn add_operator(&mut self, node: NewNode, inputs: &[(&Stream, Distribution)]) -> Result<Stream> {
        let parallelism = match &inputs[0] {
            (_, Distribution::Single) => 1,
            (_, Distribution::Keyed(keys)) if keys.is_empty() => 1,
            (_, Distribution::Keyed(_)) => self.parallelism,
            (stream, Distribution::Any) => stream.parallelism,
        };
        self.add_operator_with(node, inputs, parallelism)
    }

    /// The same with this parallelism.
    pub fn add_operator_with(&mut self, node: NewNode, inputs: &[(&Stream, Distribution)], parallelism: u32) -> Result<Stream> {
        let changes = node.changes;
        let id = self.add(node, parallelism)?;
        for (number, (stream, distribution)) in inputs.iter().enumerate() {
            self.connect(stream, id, InputNumber(number as u8), distribution)?;
        }
        Ok(Stream { nodes: vec![id], parallelism, changes, key: None })
    }

    /// Adds an operator that reads a side output of another one, in the same subtasks.
    pub fn add_late(&mut self, node: NewNode, source: StreamNodeId, parallelism: u32, late: LateOutput) -> Result<Stream> {
        let changes = node.changes;
        let target = self.add(node, parallelism)?;
        let (input, partitioner, exchange) = (InputNumber(0), Partitioner::Forward, ExchangeMode::Pipelined);
        self.graph.edges.push(StreamEdge { source, target, input, partitioner, exchange, late: Some(late) });
        Ok(Stream { nodes: vec![target], parallelism, changes, key: None })
    }

    /// Adds an operator that keeps nothing where its rows are: in their order, by which rows are late, and in their task.
    pub fn add_in_place(&mut self, node: NewNode, input: &Stream) -> Result<Stream> {
        let parallelism = self.own_parallelism(input);
        let added = self.add_operator_with(node, &[(input, Distribution::Any)], parallelism)?;
        Ok(Stream { parallelism: input.parallelism, ..added })
    }

    /// The parallelism of the nodes that emit a stream, where they agree; else that of what comes after.
    fn own_parallelism(&self, stream: &Stream) -> u32 {
        let mut own = stream.nodes.iter().map(|id| self.graph.nodes[id.0 as usize - 1].parallelism);
        let first = own.next().unwrap_or(stream.parallelism);
        if own.all(|other| other == first) { first } else { stream.parallelism }
    }

    fn add(&mut self, node: NewNode, parallelism: u32) -> Result<StreamNodeId> {
        if parallelism == 0 || parallelism > self.max_parallelism {
            let error = Error::new(
                ErrorKind::InvalidOption,
                format!("parallelism {parallelism} of {} is not between 1 and {}", node.description, self.max_parallelism),
            );
            return Err(error.with_hint(format!("choose another one, or raise '{}'", MAX_PARALLELISM.key)));
        }
        let id = StreamNodeId(self.graph.nodes.len() as u32 + 1);
        let inputs_with_ttl = node.spec.inputs_with_ttl();
        self.graph.nodes.push(StreamNode {
            id,
            uid: None,
            name: format!("{}[{}]", node.name, id.0),
            description: node.description,
            spec: node.spec,
            parallelism,
            max_parallelism: self.max_parallelism,
            chaining: ChainingStrategy::Always,
            slot_sharing_group: DEFAULT_SLOT_SHARING_GROUP.to_string(),
            state_ttl_ms: vec![self.state_ttl_ms; inputs_with_ttl],
            state: None,
            schema: node.schema,
            changelog: node.changes.mode(),
        });
        Ok(id)
    }

    /// Says what the operator of a plan's root keeps: the last one, of the nodes from `first` on, of which it is not known.
    fn describe_state(&mut self, first: usize, plan: &LogicalPlan, changelog: &Changelog) {
        let cx = self.cx;
        let unknown = self.graph.nodes[first..].iter_mut().rev().filter(|node| node.state.is_none());
        for node in unknown {
            node.state = state_bounds::contract(&node.spec, plan, changelog, &node.state_ttl_ms, cx);
            if node.state.is_some() {
                return;
            }
        }
    }

    /// The same of the materializer of a sink, over the rows of a plan.
    pub fn describe_materializer(&mut self, stream: &Stream, plan: &LogicalPlan, changelog: &Changelog) {
        let cx = self.cx;
        for node in &stream.nodes {
            let node = &mut self.graph.nodes[node.0 as usize - 1];
            let ttl_ms = node.state_ttl_ms.first().copied().unwrap_or(0);
            node.state = Some(state_bounds::of_materializer(plan, changelog, ttl_ms, cx));
        }
    }

    /// The state of an input of the operator of `stream` lives as long as a hint says, if one does.
    pub fn hint_ttl(&mut self, stream: &Stream, hints: &[Option<u64>]) {
        for node in &stream.nodes {
            let ttls = &mut self.graph.nodes[node.0 as usize - 1].state_ttl_ms;
            ttls.iter_mut().zip(hints).for_each(|(ttl, hint)| *ttl = hint.unwrap_or(*ttl));
        }
    }

    fn connect(&mut self, stream: &Stream, target: StreamNodeId, input: InputNumber, distribution: &Distribution) -> Result<()> {
        for source in &stream.nodes {
            let partitioner = match distribution {
                Distribution::Any => self.unforced_partitioner(stream, *source, target)?,
                Distribution::Keyed(keys) if !keys.is_empty() => Partitioner::Hash { keys: keys.clone() },
                Distribution::Keyed(_) | Distribution::Single => Partitioner::Global,
            };
            let exchange = ExchangeMode::Pipelined;
            self.graph.edges.push(StreamEdge { source: *source, target, input, partitioner, exchange, late: None });
        }
        Ok(())
    }

    /// Of an edge whose target asks nothing of the distribution: all changes of a row must still take the same way.
    fn unforced_partitioner(&self, stream: &Stream, source: StreamNodeId, target: StreamNodeId) -> Result<Partitioner> {
        let node = |id: StreamNodeId| &self.graph.nodes[id.0 as usize - 1];
        let (from, to) = (node(source).parallelism, node(target).parallelism);
        match &stream.key {
            _ if from == to => Ok(Partitioner::Forward),
            _ if stream.changes.is_insert_only() => Ok(Partitioner::Rebalance),
            _ if from == 1 || to == 1 => Ok(Partitioner::Global),
            Some(keys) => Ok(Partitioner::Hash { keys: keys.clone() }),
            None => {
                let message = format!(
                    "parallelism {from} of {} differs from that of its consumer, {to}, and its changes ({}) have no key to stay together by",
                    node(source).description,
                    stream.changes
                );
                Err(Error::new(ErrorKind::InvalidOption, message)
                    .with_hint("give the table a PRIMARY KEY, or leave out 'scan.parallelism' and 'sink.parallelism'"))
            }
        }
    }

    fn finish(mut self, sinks: &[String]) -> StreamGraph {
        let name = self.cx.configuration.text(&PIPELINE_NAME);
        self.graph.name = match (name, sinks) {
            ("", []) => "collect".to_string(),
            ("", sinks) => format!("insert-into_{}", sinks.join(",")),
            (name, _) => name.to_string(),
        };
        self.graph
    }
}

fn out_of_range(key: &str, value: i64, max: i64) -> Error {
    Error::new(ErrorKind::InvalidOption, format!("value '{value}' of option '{key}' is not between 1 and {max}"))
}

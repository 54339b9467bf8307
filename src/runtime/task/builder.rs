//! From a task's descriptor to its operators and channels.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::operator_chain::{Node, OperatorChain, Port, SourceNode};
use super::task_input::TaskInput;
use super::{ChainLink, ChainedOperator, Mailbox, TaskDescriptor, TaskMetrics};
use crate::error::{Error, Result};
use crate::runtime::channel::{ChannelSettings, ResultPartition, ShuffleEnvironment};
use crate::runtime::{Environment, OperatorContext, OperatorMetrics};
use crate::types::{KeyGroupRange, OperatorId, Watermark};

/// What a task is made of.
pub(super) struct Built {
    pub(super) chain: OperatorChain,
    pub(super) contexts: Contexts,
    pub(super) input: TaskInput,
    /// The source at the head, if there is one.
    pub(super) source: Option<OperatorId>,
    pub(super) metrics: TaskMetrics,
}

/// What the operators behind the source may know of themselves, in their order.
pub(super) struct Contexts {
    pub(super) nodes: Vec<OperatorContext>,
}

pub(super) fn build(
    descriptor: &TaskDescriptor,
    environment: &Arc<Environment>,
    shuffle: &ShuffleEnvironment,
    mailbox: &Mailbox,
) -> Result<Built> {
    check(descriptor)?;
    let mut source = None;
    let mut nodes = Vec::new();
    let mut contexts = Vec::new();
    let mut metrics = TaskMetrics::default();
    for (position, operator) in descriptor.operators.iter().enumerate() {
        let context = operator_context(descriptor, operator, environment);
        metrics.operators.push((operator.id, operator.name.clone(), Arc::clone(&context.metrics)));
        let port = Port {
            id: operator.id,
            name: operator.name.clone(),
            links: operator.links.clone(),
            late_links: operator.late_links.clone(),
            metrics: Arc::clone(&context.metrics),
            emitted: Watermark::MIN,
            prepared: Vec::new(),
        };
        let named = |error: Error| error.in_operator(&operator.name);
        match environment.operators.build_source(&operator.spec, &context).map_err(named)? {
            Some(built) if position == 0 => source = Some(SourceNode { operator: built, port }),
            Some(_) => return Err(Error::internal(format!("source \"{}\" is not the head of its chain", operator.name))),
            None => {
                let built = environment.operators.build(&operator.spec, &context).map_err(named)?;
                nodes.push(Node { operator: built, port });
                contexts.push(context);
            }
        }
    }
    let settings = ChannelSettings::new(&descriptor.configuration);
    let partition = |partition| shuffle.partition(partition, descriptor.max_parallelism, &settings, mailbox);
    let partitions: Vec<_> = descriptor.partitions.iter().map(partition).collect();
    let num_channels = partitions.iter().map(ResultPartition::num_channels).sum();
    metrics.backlogs = (0..num_channels).map(|_| AtomicU64::new(0)).collect();
    let gate = |gate: &super::InputGateDescriptor| (gate.input, shuffle.gate(gate, &settings, mailbox));
    let input = TaskInput::new(descriptor.gates.iter().map(gate).collect());
    let source_id = source.is_some().then(|| descriptor.operators[0].id);
    if source_id.is_none() == descriptor.gates.is_empty() {
        return Err(Error::internal("a task has a source at its head or gates before it"));
    }
    let chain = OperatorChain::new(source, nodes, partitions);
    Ok(Built { chain, contexts: Contexts { nodes: contexts }, input, source: source_id, metrics })
}

/// Refuses what no generator should have made: the chain relies on it.
fn check(descriptor: &TaskDescriptor) -> Result<()> {
    let broken = |what: String| Err(Error::internal(what));
    let TaskDescriptor { parallelism, max_parallelism, operators, partitions, .. } = descriptor;
    if *parallelism == 0 || parallelism > max_parallelism || descriptor.attempt.subtask.0 >= *parallelism {
        return broken(format!("parallelism {parallelism} does not fit {max_parallelism} key groups"));
    }
    let mut fed = vec![0; operators.len()];
    for (position, operator) in operators.iter().enumerate() {
        for link in operator.links.iter().chain(operator.late_links.iter().map(|late| &late.link)) {
            match link {
                ChainLink::Operator { index, .. } if *index > position && *index < operators.len() => fed[*index] += 1,
                ChainLink::Partition(partition) if *partition < partitions.len() => {}
                link => return broken(format!("\"{}\" has a link that leads nowhere: {link:?}", operator.name)),
            }
        }
    }
    if operators.is_empty() || fed[0] != 0 || fed[1..].iter().any(|count| *count != 1) {
        return broken("a chain is a tree with one head".to_string());
    }
    Ok(())
}

fn operator_context(descriptor: &TaskDescriptor, operator: &ChainedOperator, environment: &Arc<Environment>) -> OperatorContext {
    let TaskDescriptor { attempt, parallelism, max_parallelism, .. } = *descriptor;
    OperatorContext {
        job: attempt.job,
        operator: operator.id,
        name: operator.name.clone(),
        subtask: attempt.subtask,
        parallelism,
        max_parallelism,
        key_groups: KeyGroupRange::of_subtask(attempt.subtask, parallelism, max_parallelism),
        state_ttl_ms: operator.state_ttl_ms.clone(),
        configuration: Arc::clone(&descriptor.configuration),
        job_start_ms: descriptor.job_start_ms,
        restored: descriptor.restore.as_ref().map(|restore| restore.checkpoint),
        environment: Arc::clone(environment),
        metrics: Arc::new(OperatorMetrics::new(&operator.spec)),
    }
}

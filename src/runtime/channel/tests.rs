//! Partitions and gates joined by local channels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;
use crate::error::ErrorKind;
use crate::runtime::WatermarkStatus;
use crate::runtime::state::MemoryManager;
use crate::runtime::task::{
    ExecutionAttemptId, InputGateDescriptor, Mailbox, ResultPartitionDescriptor, ResultPartitionId, SubpartitionId,
};
use crate::stream_graph::Partitioner;
use crate::types::{Batch, InputNumber, JobId, SubtaskIndex, VertexId, Watermark, WatermarkSteps};

const MAX_PARALLELISM: u32 = 128;

fn settings() -> ChannelSettings {
    ChannelSettings { batch_rows: 4, exclusive: 2, floating: 0, buffer_timeout_ms: 100 }
}

fn partition_id() -> ResultPartitionId {
    let producer = ExecutionAttemptId { job: JobId(1), vertex: VertexId(0), subtask: SubtaskIndex(0), attempt: 0 };
    ResultPartitionId { producer, data_set: 0 }
}

fn partition(
    shuffle: &ShuffleEnvironment,
    partitioner: Partitioner,
    targets: u32,
    settings: &ChannelSettings,
) -> ResultPartition {
    let descriptor = ResultPartitionDescriptor { id: partition_id(), partitioner, subpartitions: targets };
    shuffle.partition(&descriptor, MAX_PARALLELISM, settings, &Mailbox::new())
}

fn gate(shuffle: &ShuffleEnvironment, index: u32, settings: &ChannelSettings) -> InputGate {
    let channels = vec![SubpartitionId { partition: partition_id(), index }];
    shuffle.gate(&InputGateDescriptor { input: InputNumber(0), channels }, settings, &Mailbox::new())
}

fn batch(values: std::ops::Range<i64>) -> Batch {
    let rows = values.clone().count();
    Batch::new(vec![Arc::new(Int64Array::from_iter_values(values))], rows)
}

fn show(element: &StreamElement) -> String {
    match element {
        StreamElement::Batch(batch) => {
            let values = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
            let steps: Vec<String> =
                batch.steps().as_slice().iter().map(|step| format!(" {}@{}", step.watermark, step.rows_before)).collect();
            format!("{values:?}{}", steps.concat())
        }
        StreamElement::Watermark(watermark) => format!("watermark {watermark}"),
        StreamElement::EndOfData => "end".to_string(),
        other => format!("{other:?}"),
    }
}

fn drain(gate: &mut InputGate) -> Vec<String> {
    std::iter::from_fn(|| gate.take().unwrap()).map(|(_, element)| show(&element)).collect()
}

#[test]
fn slices_wait_for_company_until_the_timeout() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings());
    let mut gate = gate(&shuffle, 0, &settings());
    partition.set_time(1_000).unwrap();
    partition.batch(batch(0..2)).unwrap();
    partition.watermark(Watermark(5));
    assert_eq!((drain(&mut gate), partition.next_flush_ms()), (vec![], Some(1_100)));
    partition.set_time(1_099).unwrap();
    assert!(drain(&mut gate).is_empty());
    partition.set_time(1_100).unwrap();
    assert_eq!((drain(&mut gate), partition.next_flush_ms()), (vec!["[0, 1] 5@2".to_string()], None));
    partition.watermark(Watermark(9));
    assert_eq!(drain(&mut gate), ["watermark 9"], "with no rows to wait for, it goes at once");
}

#[test]
fn without_a_timeout_nothing_waits() {
    let settings = ChannelSettings { buffer_timeout_ms: 0, ..settings() };
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings);
    let mut gate = gate(&shuffle, 0, &settings);
    partition.batch(batch(0..1)).unwrap();
    assert_eq!(drain(&mut gate), ["[0]"]);
}

#[test]
fn a_control_element_comes_after_the_rows_before_it() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut gate = gate(&shuffle, 0, &settings());
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings());
    partition.batch(batch(0..1)).unwrap();
    partition.watermark_status(WatermarkStatus::Idle).unwrap();
    partition.batch(batch(1..2)).unwrap();
    partition.finish().unwrap();
    assert_eq!(drain(&mut gate), ["[0]", "WatermarkStatus(Idle)", "[1]", "end"]);
    assert!(gate.is_finished());
}

#[test]
fn a_partition_is_full_when_its_consumer_does_not_take() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings());
    let mut gate = gate(&shuffle, 0, &settings());
    let mut sent = 0;
    while partition.has_room() {
        partition.batch(batch(sent..sent + 4)).unwrap();
        sent += 4;
    }
    // Two buffers of the receiver, two that wait in the sender.
    assert_eq!((sent, partition.waiting()), (16, 2));
    gate.take().unwrap();
    assert!(partition.has_room());
    assert_eq!(drain(&mut gate).len(), 3);
    assert_eq!((partition.waiting(), shuffle.network().bytes()), (0, 0));
    assert_eq!(shuffle.counters().buffers_in_flight_max.load(Relaxed), 2);
}

#[test]
fn the_limit_on_bytes_holds_partitions_back_but_never_an_empty_one() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(1));
    let settings = ChannelSettings { exclusive: 1, floating: 8, ..settings() };
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings);
    let mut gate = gate(&shuffle, 0, &settings);
    let mut seen = 0;
    for _ in 0..10 {
        let mut sent = 0;
        while partition.has_room() {
            partition.batch(batch(0..4)).unwrap();
            sent += 1;
            assert!(sent <= 1, "though the receiver has credit for more");
        }
        assert!(shuffle.network().bytes() > 1);
        seen += drain(&mut gate).len();
    }
    assert!(seen >= 10);
    assert_eq!(shuffle.network().bytes(), 0);
}

#[test]
fn a_producer_that_fails_is_noticed_after_its_last_element() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings());
    partition.batch(batch(0..4)).unwrap();
    let mut gate = gate(&shuffle, 0, &settings());
    drop(partition);
    assert_eq!(gate.take().unwrap().map(|(_, element)| show(&element)).as_deref(), Some("[0, 1, 2, 3]"));
    assert_eq!(gate.take().unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn a_consumer_that_leaves_releases_its_partition() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Rebalance, 2, &settings());
    let gates = (gate(&shuffle, 0, &settings()), gate(&shuffle, 1, &settings()));
    (0..20).for_each(|_| partition.batch(batch(0..4)).unwrap());
    assert!(!partition.has_room());
    drop(gates.0);
    assert!(!partition.is_released());
    drop(gates.1);
    assert!(partition.is_released() && partition.has_room());
    assert_eq!(shuffle.network().bytes(), 0);
    partition.batch(batch(0..4)).unwrap();
    partition.finish().unwrap();
    assert_eq!((partition.waiting(), shuffle.network().bytes()), (0, 0));
}

#[test]
fn channels_whose_other_end_never_came_go_with_their_job() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let first = partition(&shuffle, Partitioner::Forward, 1, &settings());
    drop(first);
    shuffle.release_job(JobId(1));
    assert_eq!(shuffle.network().bytes(), 0);
    let _second = partition(&shuffle, Partitioner::Forward, 1, &settings());
    assert!(drain(&mut gate(&shuffle, 0, &settings())).is_empty(), "the failed one is forgotten");
}

/// What each of `targets` consumers gets of a batch, as text.
fn routed(partitioner: Partitioner, targets: u32, batches: Vec<Batch>) -> BTreeMap<u32, Vec<String>> {
    let settings = ChannelSettings { batch_rows: 10_000, ..settings() };
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, partitioner, targets, &settings);
    batches.into_iter().for_each(|batch| partition.batch(batch).unwrap());
    partition.finish().unwrap();
    (0..targets).map(|target| (target, drain(&mut gate(&shuffle, target, &settings)))).collect()
}

fn with_steps(batch: Batch, steps: &[(u32, i64)]) -> Batch {
    let mut of_batch = WatermarkSteps::none();
    steps.iter().for_each(|(rows, watermark)| of_batch.push(*rows, Watermark(*watermark)));
    batch.with_steps(of_batch)
}

#[test]
fn every_target_gets_every_watermark_between_its_rows() {
    let hash = Partitioner::Hash { keys: vec![0] };
    let seen = routed(hash, 3, vec![with_steps(batch(0..8), &[(2, 20), (6, 60)])]);
    let mut all = Vec::new();
    for elements in seen.values() {
        let text = elements.join(" ");
        assert!(text.ends_with("end") && text.contains("60"), "{seen:?}");
        let numbers = text.split_once(']').map_or("", |(numbers, _)| numbers.trim_start_matches('['));
        all.extend(numbers.split(", ").filter(|number| !number.is_empty()).map(|number| number.parse::<i64>().unwrap()));
    }
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
}

#[test]
fn round_robin_balances_small_batches_and_cuts_large_ones() {
    let small = routed(Partitioner::Rebalance, 2, vec![batch(0..3), batch(3..4), batch(4..6), batch(6..7)]);
    assert_eq!((small[&0][0].as_str(), small[&1][0].as_str()), ("[0, 1, 2, 6]", "[3, 4, 5]"));
    let large = with_steps(batch(0..1024), &[(100, 1), (600, 2)]);
    let large = routed(Partitioner::Rebalance, 2, vec![large]);
    assert!(large[&0][0].ends_with("511] 1@100 2@512"), "{:?}", large[&0]);
    assert_eq!(large[&1][0], "watermark 1");
    assert!(large[&1][1].starts_with("[512,") && large[&1][1].ends_with("1023] 2@88"), "{:?}", large[&1]);
}

#[test]
fn global_sends_rows_to_the_first_and_watermarks_to_all() {
    let seen = routed(Partitioner::Global, 2, vec![with_steps(batch(0..2), &[(1, 7)])]);
    assert_eq!(seen[&0], ["[0, 1] 7@1", "end"]);
    assert_eq!(seen[&1], ["watermark 7", "end"]);
}

#[test]
fn blocked_channels_keep_what_they_have() {
    let shuffle = ShuffleEnvironment::new(MemoryManager::new(0));
    let mut partition = partition(&shuffle, Partitioner::Forward, 1, &settings());
    let mut gate = gate(&shuffle, 0, &settings());
    gate.block(0);
    partition.batch(batch(0..4)).unwrap();
    assert!(drain(&mut gate).is_empty());
    gate.unblock(0);
    assert_eq!(drain(&mut gate), ["[0, 1, 2, 3]"]);
}

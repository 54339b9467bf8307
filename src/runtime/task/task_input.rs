//! The input of a task: elements of all its gates become events for the head of its chain, with one event time and aligned flushes.

use std::collections::VecDeque;

use super::alignment::{Aligned, Aligner, Completed};
use crate::error::Result;
use crate::runtime::channel::InputGate;
use crate::runtime::time::WatermarkValve;
use crate::runtime::{StreamElement, WatermarkStatus};
use crate::types::{Batch, CheckpointId, InputNumber, Watermark};

/// What happens to the head of a chain.
#[derive(Debug)]
pub(super) enum InputEvent {
    /// Rows, with the steps of the operator's event time.
    Batch(InputNumber, Batch),
    /// Event time has advanced over all inputs.
    Watermark(Watermark),
    /// All channels are idle, or one is back.
    Status(WatermarkStatus),
    /// A flush or barrier has come on all channels.
    Aligned(Aligned),
    /// To be passed on.
    LatencyMarker(u64),
    /// All channels of an input have ended.
    EndOfInput(InputNumber),
}

#[derive(Debug)]
struct Gate {
    gate: InputGate,
    input: InputNumber,
    /// Number of its first channel among all channels of the task.
    first_channel: usize,
}

/// The gates of a task.
#[derive(Debug)]
pub(super) struct TaskInput {
    gates: Vec<Gate>,
    valve: WatermarkValve,
    aligner: Aligner,
    /// The gate that is asked first: after one has given something, the next one's turn comes.
    next_gate: usize,
    /// Events that came with the last element.
    pending: VecDeque<InputEvent>,
}

impl TaskInput {
    pub(super) fn new(gates: Vec<(InputNumber, InputGate)>) -> Self {
        let mut channels = 0;
        let number = |(input, gate): (InputNumber, InputGate)| {
            let first_channel = channels;
            channels += gate.channels();
            Gate { gate, input, first_channel }
        };
        let gates = gates.into_iter().map(number).collect();
        let (valve, aligner) = (WatermarkValve::new(channels), Aligner::new(channels));
        TaskInput { gates, valve, aligner, next_gate: 0, pending: VecDeque::new() }
    }

    /// The event time of the task.
    pub(super) fn watermark(&self) -> Watermark {
        self.valve.current()
    }

    /// Event time had come this far when the checkpoint was taken that the task starts from: nothing before it is said again.
    pub(super) fn restore_watermark(&mut self, watermark: Watermark) {
        self.valve.restore(watermark);
    }

    /// Whether all inputs have ended and all events were taken.
    pub(super) fn is_finished(&self) -> bool {
        self.pending.is_empty() && self.gates.iter().all(|gate| gate.gate.is_finished())
    }

    /// The inputs whose end was not told.
    pub(super) fn open_inputs(&self) -> Vec<InputNumber> {
        let open = self.gates.iter().filter(|gate| !gate.gate.is_finished());
        let untold = self.pending.iter().filter_map(|event| match event {
            InputEvent::EndOfInput(input) => Some(*input),
            _ => None,
        });
        let mut inputs: Vec<_> = open.map(|gate| gate.input).chain(untold).collect();
        inputs.sort_unstable();
        inputs.dedup();
        inputs
    }

    /// The next event; none = nothing is there.
    pub(super) fn next(&mut self) -> Result<Option<InputEvent>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(event));
            }
            let Some((gate, channel, element)) = self.take()? else { return Ok(None) };
            self.element(gate, channel, element);
        }
    }

    fn take(&mut self) -> Result<Option<(usize, usize, StreamElement)>> {
        for offset in 0..self.gates.len() {
            let index = (self.next_gate + offset) % self.gates.len();
            if let Some((channel, element)) = self.gates[index].gate.take()? {
                self.next_gate = index + 1;
                return Ok(Some((index, channel, element)));
            }
        }
        Ok(None)
    }

    fn element(&mut self, gate: usize, channel_in_gate: usize, element: StreamElement) {
        let channel = self.gates[gate].first_channel + channel_in_gate;
        match element {
            StreamElement::Batch(mut batch) => {
                let steps = batch.take_steps();
                let batch = batch.with_steps(self.valve.steps(channel, &steps));
                self.pending.push_back(InputEvent::Batch(self.gates[gate].input, batch));
            }
            StreamElement::Watermark(watermark) => {
                self.pending.extend(self.valve.watermark(channel, watermark).map(InputEvent::Watermark));
            }
            StreamElement::WatermarkStatus(status) => {
                let output = self.valve.status(channel, status);
                self.pending.extend(output.watermark.map(InputEvent::Watermark));
                self.pending.extend(output.status.map(InputEvent::Status));
            }
            StreamElement::LatencyMarker(sent) => self.pending.push_back(InputEvent::LatencyMarker(sent)),
            StreamElement::Begin => self.arrive(gate, channel_in_gate, Aligned::Begin),
            StreamElement::Barrier(barrier) => self.arrive(gate, channel_in_gate, Aligned::Barrier(barrier)),
            StreamElement::Flush(id) => self.arrive(gate, channel_in_gate, Aligned::Flush(id)),
            StreamElement::EndOfData => self.end(gate, channel),
        }
    }

    fn arrive(&mut self, gate: usize, channel_in_gate: usize, element: Aligned) {
        let gate = &mut self.gates[gate];
        if self.aligner.arrive(gate.first_channel + channel_in_gate, element) {
            gate.gate.block(channel_in_gate);
        }
        self.complete_alignments();
    }

    fn end(&mut self, gate: usize, channel: usize) {
        // Its rows are all here: it holds nobody back any more.
        self.pending.extend(self.valve.watermark(channel, Watermark::MAX).map(InputEvent::Watermark));
        self.aligner.end(channel);
        self.complete_alignments();
        let input = self.gates[gate].input;
        if self.gates.iter().all(|gate| gate.input != input || gate.gate.is_finished()) {
            self.pending.push_back(InputEvent::EndOfInput(input));
        }
    }

    fn complete_alignments(&mut self) {
        while let Some(Completed { element, unblock }) = self.aligner.complete() {
            self.pending.push_back(InputEvent::Aligned(element));
            self.unblock(&unblock);
        }
    }

    /// A checkpoint was given up: what waits for its barriers goes on.
    pub(super) fn abort_checkpoint(&mut self, checkpoint: CheckpointId) {
        let unblock = self.aligner.abort(checkpoint);
        self.unblock(&unblock);
        self.complete_alignments();
    }

    fn unblock(&mut self, channels: &[usize]) {
        for channel in channels {
            let owner = self.gates.partition_point(|gate| gate.first_channel <= *channel) - 1;
            let gate = &mut self.gates[owner];
            gate.gate.unblock(channel - gate.first_channel);
        }
    }
}

//! The credit machines of a gate, wired by hand: scripts of chosen orders of events, and random ones against the laws.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use goldenscript::{Command, Context};
use proptest::prelude::*;

use super::*;
use crate::runtime::FlushId;
use crate::types::{Batch, Watermark};

/// A channel with its wires: frames one way, credit the other, each with a delay that the test decides.
#[derive(Debug)]
struct Channel {
    send: SendQueue,
    frames: VecDeque<Frame>,
    credit_on_the_way: u32,
    receive: ReceiverCredit,
    arrived: VecDeque<StreamElement>,
}

/// A gate of channels.
#[derive(Debug)]
struct Gate {
    channels: Vec<Channel>,
    pool: FloatingBuffers,
    floating: u32,
}

impl Gate {
    fn new(channels: usize, exclusive: u32, floating: u32) -> Self {
        let channel = |_| {
            let mut send = SendQueue::default();
            send.grant(exclusive);
            let receive = ReceiverCredit::new(exclusive);
            Channel { send, frames: VecDeque::new(), credit_on_the_way: 0, receive, arrived: VecDeque::new() }
        };
        Gate { channels: (0..channels).map(channel).collect(), pool: FloatingBuffers::new(floating), floating }
    }

    /// The sender puts all that it may on the wire.
    fn send(&mut self, channel: usize) -> Vec<Frame> {
        let channel = &mut self.channels[channel];
        let frames: Vec<Frame> = std::iter::from_fn(|| channel.send.next_frame()).collect();
        channel.frames.extend(frames.iter().cloned());
        frames
    }

    /// The oldest frame on the wire arrives; how many buffers were wanted and borrowed.
    fn arrive(&mut self, index: usize) -> Option<(Frame, u32, u32)> {
        let channel = &mut self.channels[index];
        let frame = channel.frames.pop_front()?;
        let wanted = channel.receive.receive(&frame);
        let got = self.pool.borrow(index, wanted);
        channel.credit_on_the_way += channel.receive.borrow(got);
        channel.arrived.push_back(frame.element.clone());
        Some((frame, wanted, got))
    }

    /// The credit on the way reaches the sender.
    fn grant(&mut self, channel: usize) -> u32 {
        let channel = &mut self.channels[channel];
        let credit = std::mem::take(&mut channel.credit_on_the_way);
        channel.send.grant(credit);
        credit
    }

    /// The task takes an element; what became of its buffer and who got it.
    fn take(&mut self, index: usize) -> Option<(StreamElement, Option<Freed>, Option<usize>)> {
        let element = self.channels[index].arrived.pop_front()?;
        let mut freed = None;
        let mut heir = None;
        if matches!(element, StreamElement::Batch(_)) {
            let outcome = self.channels[index].receive.free();
            match outcome {
                Freed::Granted => self.channels[index].credit_on_the_way += 1,
                Freed::GivenBack => heir = self.give_back(),
            }
            freed = Some(outcome);
        }
        Some((element, freed, heir))
    }

    fn give_back(&mut self) -> Option<usize> {
        loop {
            let next = self.pool.give_back()?;
            let channel = &mut self.channels[next];
            if channel.receive.wanted() > 0 {
                channel.credit_on_the_way += channel.receive.borrow(1);
                let got = self.pool.borrow(next, channel.receive.wanted());
                channel.credit_on_the_way += channel.receive.borrow(got);
                return Some(next);
            }
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        let borrowed: u32 = self.channels.iter().map(|channel| channel.receive.floating()).sum();
        assert_eq!(borrowed + self.pool.free(), self.floating, "floating buffers are neither lost nor made");
        for channel in &self.channels {
            let on_the_wire = channel.frames.iter().filter(|frame| matches!(frame.element, StreamElement::Batch(_))).count();
            let credit = channel.send.credit() + channel.credit_on_the_way + on_the_wire as u32;
            assert_eq!(credit, channel.receive.announced(), "announced credit is spent, on the way or with the sender");
        }
    }
}

fn batch(value: i64) -> StreamElement {
    StreamElement::Batch(Batch::new(vec![Arc::new(Int64Array::from(vec![value]))], 1))
}

fn show(element: &StreamElement) -> String {
    match element {
        StreamElement::Batch(batch) => format!("batch {}", batch.column(0).as_primitive::<Int64Type>().value(0)),
        StreamElement::Watermark(watermark) => format!("watermark {watermark}"),
        StreamElement::Begin => "begin".to_string(),
        StreamElement::Flush(id) => format!("flush {}", id.0),
        StreamElement::EndOfData => "end".to_string(),
        other => format!("{other:?}"),
    }
}

struct Runner(Gate);

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut out = String::new();
        if command.name == "gate" {
            let mut key = |key| args.take_key(key).ok_or("a number is missing")?.parse::<u32>().map_err(Box::<dyn Error>::from);
            self.0 = Gate::new(key("channels")? as usize, key("exclusive")?, key("floating")?);
            return Ok(out);
        }
        if command.name == "state" {
            return Ok(self.state());
        }
        let channel: usize = args.next_pos().ok_or("a channel is missing")?.parse()?;
        let gate = &mut self.0;
        match command.name.as_str() {
            "push" => {
                while let Some(value) = args.next_pos() {
                    gate.channels[channel].send.push(batch(value.parse()?), 0);
                }
            }
            "watermark" => {
                let watermark = args.next_pos().ok_or("a time is missing")?.parse()?;
                gate.channels[channel].send.push(StreamElement::Watermark(Watermark(watermark)), 0);
            }
            "flush" => gate.channels[channel].send.push(StreamElement::Flush(FlushId(1)), 0),
            "end" => gate.channels[channel].send.push(StreamElement::EndOfData, 0),
            "send" => {
                for frame in gate.send(channel) {
                    let Frame { sequence, backlog, element, .. } = &frame;
                    writeln!(out, "{channel} → {} (sequence {sequence}, backlog {backlog})", show(element))?;
                }
            }
            "arrive" => {
                while let Some((frame, wanted, got)) = gate.arrive(channel) {
                    writeln!(out, "{channel} ← {} (borrowed {got} of {wanted})", show(&frame.element))?;
                }
            }
            "grant" => writeln!(out, "{channel} ← credit {}", gate.grant(channel))?,
            "take" => match gate.take(channel) {
                Some((element, freed, heir)) => {
                    write!(out, "{}", show(&element))?;
                    freed.map_or(Ok(()), |freed| write!(out, ", buffer {freed:?}"))?;
                    heir.map_or(Ok(()), |heir| write!(out, " to channel {heir}"))?;
                    writeln!(out)?;
                }
                None => writeln!(out, "nothing")?,
            },
            other => return Err(format!("unknown command {other}").into()),
        }
        gate.check();
        Ok(out)
    }
}

impl Runner {
    fn state(&self) -> String {
        let mut out = format!("floating: {} of {} free\n", self.0.pool.free(), self.0.floating);
        for (index, channel) in self.0.channels.iter().enumerate() {
            let (send, receive) = (&channel.send, &channel.receive);
            let _ = writeln!(
                out,
                "{index}: backlog {} credit {} | held {} floating {} announced {}",
                send.backlog(),
                send.credit(),
                receive.held(),
                receive.floating(),
                receive.announced()
            );
        }
        out
    }
}

fn script(name: &str) {
    let path = format!("{}/src/runtime/channel/testscripts/credit/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Runner(Gate::new(1, 1, 0)), path).unwrap();
}

#[test]
fn credit_limits_what_is_sent() {
    script("credit_limits_what_is_sent");
}

#[test]
fn floating_buffers_follow_the_backlog() {
    script("floating_buffers_follow_the_backlog");
}

#[test]
fn control_elements_take_no_credit_and_keep_their_place() {
    script("control_elements_take_no_credit_and_keep_their_place");
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Push,
    Watermark,
    Send,
    Arrive,
    Grant,
    Take,
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let event = prop_oneof![
        3 => Just(Event::Push),
        1 => Just(Event::Watermark),
        2 => Just(Event::Send),
        2 => Just(Event::Arrive),
        2 => Just(Event::Grant),
        2 => Just(Event::Take),
    ];
    prop::collection::vec((0..3usize, event), 0..200)
}

/// What came out: batches in order, and for each the watermark before it.
#[derive(Debug, Default, PartialEq)]
struct Trace {
    batches: Vec<(String, i64)>,
    watermark: i64,
}

impl Trace {
    fn see(&mut self, element: &StreamElement) {
        match element {
            StreamElement::Watermark(watermark) => self.watermark = watermark.0,
            batch => self.batches.push((show(batch), self.watermark)),
        }
    }
}

proptest! {
    #[test]
    fn any_order_of_events_keeps_the_laws_and_loses_nothing(
        exclusive in 1..3u32, floating in 0..4u32, events in events()
    ) {
        let mut gate = Gate::new(3, exclusive, floating);
        let mut sent: Vec<Trace> = (0..3).map(|_| Trace::default()).collect();
        let mut taken: Vec<Trace> = (0..3).map(|_| Trace::default()).collect();
        let mut next = 0;
        for (channel, event) in events {
            next += 1;
            match event {
                Event::Push | Event::Watermark => {
                    let element = match event {
                        Event::Push => batch(next),
                        _ => StreamElement::Watermark(Watermark(next)),
                    };
                    sent[channel].see(&element);
                    gate.channels[channel].send.push(element, 0);
                }
                Event::Send => drop(gate.send(channel)),
                Event::Arrive => drop(gate.arrive(channel)),
                Event::Grant => drop(gate.grant(channel)),
                Event::Take => if let Some((element, ..)) = gate.take(channel) {
                    taken[channel].see(&element);
                },
            }
            gate.check();
        }
        // However it stands, it all goes through once everything moves.
        for _ in 0..1_000 {
            for (channel, trace) in taken.iter_mut().enumerate() {
                gate.send(channel);
                while gate.arrive(channel).is_some() {}
                while let Some((element, ..)) = gate.take(channel) {
                    trace.see(&element);
                }
                gate.grant(channel);
                gate.check();
            }
        }
        prop_assert_eq!(sent, taken);
    }
}

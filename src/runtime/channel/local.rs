//! A channel within the process: the two credit machines side by side behind one lock, batches moved, never copied.
//!
//! The lock is taken once for a batch on each side and never held while anything else runs: wakers are called after it is free.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use super::credit::{FloatingBuffers, Frame, Freed, ReceiverCredit, SendQueue, merge_control};
use super::input_gate::GateSignal;
use super::pool::{LocalBufferPool, NetworkBufferPool};
use super::{ChannelReceiver, ChannelSender, Received, RuntimeCounters};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::StreamElement;
use crate::runtime::task::SubpartitionId;

/// The state that both ends share.
#[derive(Debug)]
pub(super) struct LocalChannel {
    id: SubpartitionId,
    counters: Arc<RuntimeCounters>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    send: SendQueue,
    producer: Option<Arc<LocalBufferPool>>,
    receive: Option<ReceiveSide>,
    /// The producer has sent the end of data: nothing follows.
    finished: bool,
    /// The producer went away without the end of data.
    aborted: bool,
    /// The consumer went away: what is sent is dropped.
    released: bool,
}

#[derive(Debug)]
struct ReceiveSide {
    credit: ReceiverCredit,
    arrived: VecDeque<(StreamElement, usize)>,
    floating: Arc<Mutex<FloatingBuffers>>,
    signal: Arc<GateSignal>,
    channel: usize,
    /// Whether the gate knows that something has arrived.
    signalled: bool,
}

impl LocalChannel {
    pub(super) fn new(id: SubpartitionId, counters: Arc<RuntimeCounters>) -> Arc<Self> {
        Arc::new(LocalChannel { id, counters, state: Mutex::new(State::default()) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Moves all that may go from the sender to the receiver, and tells those who wait.
    fn pump(&self, mut state: MutexGuard<'_, State>) {
        let State { send, receive, producer, .. } = &mut *state;
        let Some(receive) = receive else { return };
        let mut sent = 0;
        while let Some(frame) = send.next_frame() {
            sent += usize::from(matches!(frame.element, StreamElement::Batch(_)));
            let wanted = receive.credit.receive(&frame);
            if wanted > 0 {
                let got = lock_pool(&receive.floating).borrow(receive.channel, wanted);
                send.grant(receive.credit.borrow(got));
            }
            receive.push(frame);
        }
        self.counters.buffers_in_flight_max.fetch_max(u64::from(receive.credit.held_max()), Relaxed);
        let signal = receive.take_signal();
        let producer = producer.clone();
        drop(state);
        if let Some(producer) = producer {
            producer.dequeue(sent);
        }
        if let Some((signal, channel)) = signal {
            signal.ready(channel);
        }
    }
}

impl Drop for LocalChannel {
    /// What waited for a consumer that never came is in use no more.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(producer) = &state.producer {
            producer.network().remove(state.send.waiting_bytes());
        }
    }
}

impl ReceiveSide {
    fn push(&mut self, frame: Frame) {
        if let Some((last, _)) = self.arrived.back_mut()
            && merge_control(last, &frame.element)
        {
            return;
        }
        self.arrived.push_back((frame.element, frame.bytes));
    }

    fn take_signal(&mut self) -> Option<(Arc<GateSignal>, usize)> {
        if self.signalled || self.arrived.is_empty() {
            return None;
        }
        self.signalled = true;
        Some((Arc::clone(&self.signal), self.channel))
    }
}

fn lock_pool(pool: &Mutex<FloatingBuffers>) -> MutexGuard<'_, FloatingBuffers> {
    pool.lock().expect("no holder of this lock panics")
}

/// The producer's end.
#[derive(Debug)]
pub(super) struct LocalSender {
    channel: Arc<LocalChannel>,
    pool: Arc<LocalBufferPool>,
}

impl LocalSender {
    pub(super) fn new(channel: Arc<LocalChannel>, pool: Arc<LocalBufferPool>) -> Self {
        channel.lock().producer = Some(Arc::clone(&pool));
        LocalSender { channel, pool }
    }
}

impl ChannelSender for LocalSender {
    fn send(&mut self, element: StreamElement) {
        let bytes = match &element {
            StreamElement::Batch(batch) => batch.bytes(),
            _ => 0,
        };
        let mut state = self.channel.lock();
        assert!(!state.finished, "nothing follows the end of data");
        state.finished = matches!(element, StreamElement::EndOfData);
        if state.released {
            return;
        }
        if let StreamElement::Batch(batch) = &element {
            self.pool.enqueue();
            self.pool.network().add(bytes);
            self.channel.counters.buffers.fetch_add(1, Relaxed);
            self.channel.counters.batch_rows_max.fetch_max(batch.num_rows() as u64, Relaxed);
        }
        state.send.push(element, bytes);
        self.channel.pump(state);
    }

    fn is_released(&self) -> bool {
        self.channel.lock().released
    }

    fn backlog(&self) -> u32 {
        self.channel.lock().send.backlog()
    }
}

impl Drop for LocalSender {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        if state.finished {
            return;
        }
        state.aborted = true;
        let signal = state.receive.as_mut().and_then(|receive| {
            let fresh = !std::mem::replace(&mut receive.signalled, true);
            fresh.then(|| (Arc::clone(&receive.signal), receive.channel))
        });
        drop(state);
        if let Some((signal, channel)) = signal {
            signal.ready(channel);
        }
    }
}

/// The consumer's end.
#[derive(Debug)]
pub(super) struct LocalReceiver {
    channel: Arc<LocalChannel>,
    network: Arc<NetworkBufferPool>,
}

impl LocalReceiver {
    /// Connects the consumer: from now on the producer has the credit of the exclusive buffers.
    pub(super) fn connect(
        channel: Arc<LocalChannel>,
        network: Arc<NetworkBufferPool>,
        exclusive: u32,
        floating: Arc<Mutex<FloatingBuffers>>,
        signal: Arc<GateSignal>,
        index: usize,
    ) -> Self {
        let mut state = channel.lock();
        assert!(state.receive.is_none(), "a channel has one consumer");
        let credit = ReceiverCredit::new(exclusive);
        state.send.grant(exclusive);
        let aborted = state.aborted;
        state.receive = Some(ReceiveSide {
            credit,
            arrived: VecDeque::new(),
            floating,
            signal: Arc::clone(&signal),
            channel: index,
            signalled: aborted,
        });
        channel.pump(state);
        if aborted {
            signal.ready(index);
        }
        LocalReceiver { channel, network }
    }
}

fn producer_gone(id: SubpartitionId) -> Error {
    Error::new(ErrorKind::Cancelled, format!("the producer of vertex {} ended before its data did", id.partition.producer.vertex))
}

impl ChannelReceiver for LocalReceiver {
    fn receive(&mut self) -> Result<Received> {
        let mut state = self.channel.lock();
        let aborted = state.aborted;
        let State { send, receive, producer, .. } = &mut *state;
        let receive = receive.as_mut().expect("connected at construction");
        let Some((element, bytes)) = receive.arrived.pop_front() else {
            receive.signalled = false;
            return if aborted { Err(producer_gone(self.channel.id)) } else { Ok(Received::default()) };
        };
        let mut given_back = 0;
        let mut taken_from = None;
        match element {
            StreamElement::Batch(_) => {
                self.network.remove(bytes);
                taken_from.clone_from(producer);
                match receive.credit.free() {
                    Freed::Granted => send.grant(1),
                    Freed::GivenBack => given_back = 1,
                }
            }
            StreamElement::EndOfData => given_back = receive.credit.release(),
            _ => {}
        }
        // An aborted channel stays signalled until its error was seen.
        let more = !receive.arrived.is_empty() || aborted;
        receive.signalled = more;
        self.channel.pump(state);
        if let Some(producer) = taken_from {
            producer.consumed(1);
        }
        Ok(Received { element: Some(element), more, given_back })
    }

    fn offer(&mut self) -> bool {
        let mut state = self.channel.lock();
        let State { send, receive, .. } = &mut *state;
        let receive = receive.as_mut().expect("connected at construction");
        if receive.credit.wanted() == 0 {
            return false;
        }
        send.grant(receive.credit.borrow(1));
        let wanted = receive.credit.wanted();
        if wanted > 0 {
            // It wants more still: takes what is free, or waits again behind the others.
            let got = lock_pool(&receive.floating).borrow(receive.channel, wanted);
            send.grant(receive.credit.borrow(got));
        }
        self.channel.pump(state);
        true
    }

    fn backlog(&self) -> u32 {
        self.channel.lock().send.backlog()
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        state.released = true;
        let waiting = state.send.backlog() as usize;
        let mut bytes = state.send.waiting_bytes();
        let mut in_flight = waiting;
        state.send.clear();
        if let Some(receive) = &mut state.receive {
            in_flight += receive.credit.held() as usize;
            bytes += receive.arrived.drain(..).map(|(_, bytes)| bytes).sum::<usize>();
            receive.credit.release();
        }
        let producer = state.producer.clone();
        drop(state);
        self.network.remove(bytes);
        if let Some(producer) = producer {
            producer.dequeue(waiting);
            producer.consumed(in_flight);
            producer.wake();
        }
    }
}

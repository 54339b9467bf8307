//! The watermark valve: from the watermarks of many channels to the one event time of an operator.
//!
//! The minimum over all channels, those left out that are idle. Laws: what comes out only rises; a channel that is back from idleness
//! counts again only when it has caught up with what was already said; when all are idle the valve says so once, after letting out the
//! highest watermark any of them had reached (as Flink does: nobody will come any more to contradict it).
//!
//! Flink has one valve per input and a second one over the inputs; the minimum of minima is the minimum, so here is one for all.
//! The steps inside a batch pass one by one: the rows between two steps are judged by the event time of the *operator*.

use crate::runtime::WatermarkStatus;
use crate::types::{Watermark, WatermarkSteps};

/// What comes out when a channel changes its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValveOutput {
    /// Event time has advanced.
    pub watermark: Option<Watermark>,
    /// All channels are idle, or one is back; comes after the watermark.
    pub status: Option<WatermarkStatus>,
}

/// The watermark valve of a task.
#[derive(Debug)]
pub struct WatermarkValve {
    channels: Vec<Channel>,
    output: Watermark,
    idle: bool,
}

#[derive(Debug, Clone)]
struct Channel {
    watermark: Watermark,
    idle: bool,
    /// Whether it takes part in the minimum: active and not behind what was already said.
    aligned: bool,
}

impl WatermarkValve {
    /// For so many channels, all active and at the beginning of time.
    pub fn new(channels: usize) -> Self {
        let channel = Channel { watermark: Watermark::MIN, idle: false, aligned: true };
        WatermarkValve { channels: vec![channel; channels], output: Watermark::MIN, idle: false }
    }

    /// The event time that was last said.
    pub fn current(&self) -> Watermark {
        self.output
    }

    /// Event time had come this far before a restart. The channels begin anew: until they have caught up, nothing is said.
    pub fn restore(&mut self, watermark: Watermark) {
        self.output = self.output.max(watermark);
    }

    /// A channel has advanced; the new event time, if it rises.
    pub fn watermark(&mut self, channel: usize, watermark: Watermark) -> Option<Watermark> {
        let others = self.minimum(Some(channel));
        self.advance(channel, watermark, others)
    }

    /// A batch of a channel has these steps; the steps of the operator's event time.
    pub fn steps(&mut self, channel: usize, steps: &WatermarkSteps) -> WatermarkSteps {
        if steps.is_empty() {
            return WatermarkSteps::none();
        }
        let others = self.minimum(Some(channel));
        steps.map_watermarks(|watermark| self.advance(channel, watermark, others))
    }

    /// A channel falls idle or is back.
    pub fn status(&mut self, channel: usize, status: WatermarkStatus) -> ValveOutput {
        match status {
            WatermarkStatus::Idle => self.fall_idle(channel),
            WatermarkStatus::Active => self.come_back(channel),
        }
    }

    fn fall_idle(&mut self, channel: usize) -> ValveOutput {
        if std::mem::replace(&mut self.channels[channel].idle, true) {
            return ValveOutput::default();
        }
        self.channels[channel].aligned = false;
        self.idle = self.channels.iter().all(|channel| channel.idle);
        let candidate = if self.idle { self.channels.iter().map(|channel| channel.watermark).max() } else { self.minimum(None) };
        let watermark = candidate.and_then(|watermark| self.say(watermark));
        ValveOutput { watermark, status: self.idle.then_some(WatermarkStatus::Idle) }
    }

    fn come_back(&mut self, channel: usize) -> ValveOutput {
        let channel = &mut self.channels[channel];
        if !std::mem::replace(&mut channel.idle, false) {
            return ValveOutput::default();
        }
        channel.aligned = channel.watermark >= self.output;
        let was_idle = std::mem::replace(&mut self.idle, false);
        ValveOutput { watermark: None, status: was_idle.then_some(WatermarkStatus::Active) }
    }

    /// The least watermark of the channels that count, one left aside; none = no other counts.
    fn minimum(&self, except: Option<usize>) -> Option<Watermark> {
        let counted = self.channels.iter().enumerate().filter(|(index, channel)| channel.aligned && Some(*index) != except);
        counted.map(|(_, channel)| channel.watermark).min()
    }

    fn advance(&mut self, channel: usize, watermark: Watermark, others: Option<Watermark>) -> Option<Watermark> {
        let output = self.output;
        let channel = &mut self.channels[channel];
        if channel.idle || watermark <= channel.watermark {
            return None;
        }
        channel.watermark = watermark;
        channel.aligned |= watermark >= output;
        if !channel.aligned {
            return None;
        }
        self.say(others.map_or(watermark, |others| others.min(watermark)))
    }

    fn say(&mut self, watermark: Watermark) -> Option<Watermark> {
        if watermark <= self.output {
            return None;
        }
        self.output = watermark;
        Some(watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_all_channels_passes() {
        let mut valve = WatermarkValve::new(2);
        assert_eq!(valve.watermark(0, Watermark(5)), None);
        assert_eq!(valve.watermark(1, Watermark(3)), Some(Watermark(3)));
        assert_eq!(valve.watermark(1, Watermark(9)), Some(Watermark(5)));
        assert_eq!(valve.watermark(0, Watermark(4)), None);
    }

    #[test]
    fn steps_are_those_of_the_operator() {
        let mut valve = WatermarkValve::new(2);
        valve.watermark(1, Watermark(6));
        let mut steps = WatermarkSteps::none();
        for (rows, watermark) in [(1, 2), (2, 5), (3, 8), (4, 9)] {
            steps.push(rows, Watermark(watermark));
        }
        let passed = valve.steps(0, &steps);
        let passed: Vec<_> = passed.as_slice().iter().map(|step| (step.rows_before, step.watermark.0)).collect();
        assert_eq!(passed, [(1, 2), (2, 5), (3, 6)]);
        assert_eq!(valve.watermark(1, Watermark(7)), Some(Watermark(7)));
    }

    #[test]
    fn an_idle_channel_is_left_out_and_counts_again_when_it_has_caught_up() {
        let mut valve = WatermarkValve::new(2);
        valve.watermark(0, Watermark(8));
        let output = valve.status(1, WatermarkStatus::Idle);
        assert_eq!(output, ValveOutput { watermark: Some(Watermark(8)), status: None });
        assert_eq!(valve.status(1, WatermarkStatus::Active), ValveOutput::default());
        assert_eq!(valve.watermark(1, Watermark(4)), None, "behind: does not count yet");
        assert_eq!(valve.watermark(0, Watermark(10)), Some(Watermark(10)));
        assert_eq!(valve.watermark(1, Watermark(11)), None, "caught up: counts");
        assert_eq!(valve.watermark(0, Watermark(20)), Some(Watermark(11)));
    }

    #[test]
    fn when_all_are_idle_the_highest_passes_and_then_the_status() {
        let mut valve = WatermarkValve::new(2);
        valve.watermark(0, Watermark(3));
        valve.watermark(1, Watermark(7));
        assert_eq!(valve.status(1, WatermarkStatus::Idle), ValveOutput::default());
        let output = valve.status(0, WatermarkStatus::Idle);
        assert_eq!(output, ValveOutput { watermark: Some(Watermark(7)), status: Some(WatermarkStatus::Idle) });
        let back = valve.status(0, WatermarkStatus::Active);
        assert_eq!(back, ValveOutput { watermark: None, status: Some(WatermarkStatus::Active) });
    }
}

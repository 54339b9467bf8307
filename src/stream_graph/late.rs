//! Which operators wait for event time or for the clock, and which of their inputs lose the rows that come too late for it.

use super::{FrameBound, FrameUnit, LateOutput, OperatorSpec, OverFrame, OverStrategy, RankStrategy, WindowSource};
use crate::types::{DataType, InputNumber, Schema, TypeKind};

impl OperatorSpec {
    /// Whether the operator holds rows back, or forgets them, until event time has come far enough.
    pub fn waits_for_event_time(&self) -> bool {
        match self {
            OperatorSpec::WindowAggregate(spec) => !window_time(&spec.window).is_proctime(),
            // Sessions are put together here; other windows follow from the row alone.
            OperatorSpec::WindowTableFunction(spec) => spec.kind.is_session() && !spec.time_type.is_proctime(),
            OperatorSpec::TemporalSort { .. } | OperatorSpec::WindowJoin(_) => true,
            OperatorSpec::IntervalJoin(spec) => !spec.is_proctime,
            OperatorSpec::OverAggregate(spec) => {
                matches!(spec.strategy, OverStrategy::EventTime(_) | OverStrategy::EventTimeFrames(_))
            }
            OperatorSpec::Rank(spec) => match spec.strategy {
                RankStrategy::Earliest(_) => true,
                RankStrategy::Window { .. } => spec.rank.window.as_ref().is_some_and(|window| !window.time_type.is_proctime()),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the operator holds rows back until the clock has come far enough, and drops them when its input ends before that.
    pub fn waits_for_clock(&self) -> bool {
        match self {
            OperatorSpec::WindowAggregate(spec) => window_time(&spec.window).is_proctime(),
            OperatorSpec::WindowTableFunction(spec) => spec.kind.is_session() && spec.time_type.is_proctime(),
            OperatorSpec::OverAggregate(spec) => {
                let looks_back =
                    |frame: &OverFrame| frame.unit == FrameUnit::Range && matches!(frame.start, FrameBound::Preceding(_));
                spec.strategy == OverStrategy::ProcessingTime && spec.over.calls.iter().any(|call| looks_back(&call.frame))
            }
            OperatorSpec::Rank(spec) => spec.rank.window.as_ref().is_some_and(|window| window.time_type.is_proctime()),
            _ => false,
        }
    }

    /// The inputs whose late rows the operator drops. `inputs`: the columns of each.
    pub fn late_outputs(&self, inputs: &[&Schema]) -> Vec<LateOutput> {
        if !self.waits_for_event_time() {
            return Vec::new();
        }
        let output = |input: u8, data_type: &DataType| {
            let local = matches!(data_type.kind, TypeKind::TimestampLtz(_));
            let kind = if local { TypeKind::TimestampLtz(3) } else { TypeKind::Timestamp(3) };
            LateOutput { input: InputNumber(input), watermark_type: DataType::nullable(kind) }
        };
        let of_column = |input: u8, column: usize| {
            let field = inputs.get(usize::from(input)).map(|schema| &schema.field(column).data_type);
            output(input, field.unwrap_or(&DataType::nullable(TypeKind::Timestamp(3))))
        };
        match self {
            OperatorSpec::WindowAggregate(spec) => vec![output(0, window_time(&spec.window))],
            OperatorSpec::WindowTableFunction(spec) => vec![output(0, &spec.time_type)],
            OperatorSpec::TemporalSort { keys } => vec![of_column(0, keys[0].column)],
            OperatorSpec::WindowJoin(spec) => vec![output(0, &spec.time_type), output(1, &spec.time_type)],
            // Rows of an outer side are never dropped: they come out with NULLs.
            OperatorSpec::IntervalJoin(spec) => {
                let sides = [(!spec.join_type.pads_right(), spec.left_time), (!spec.join_type.pads_left(), spec.right_time)];
                let dropping = sides.into_iter().enumerate().filter(|(_, (drops, _))| *drops);
                dropping.map(|(side, (_, column))| of_column(side as u8, column)).collect()
            }
            OperatorSpec::OverAggregate(spec) => match spec.strategy {
                OverStrategy::EventTime(column) | OverStrategy::EventTimeFrames(column) => vec![of_column(0, column)],
                _ => Vec::new(),
            },
            OperatorSpec::Rank(spec) => match (spec.strategy, &spec.rank.window) {
                (RankStrategy::Earliest(column), _) => vec![of_column(0, column)],
                (_, Some(window)) => vec![output(0, &window.time_type)],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// The time attribute that a window was made from.
fn window_time(window: &WindowSource) -> &DataType {
    match window {
        WindowSource::Assigned(window) => &window.time_type,
        WindowSource::Attached { time_type, .. } => time_type,
    }
}
